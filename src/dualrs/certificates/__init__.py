"""Rules: pure functions from votes to certificates, vectorised over inputs, without torch."""

from dualrs.certificates.certificate import ABSTAIN, Certificate, Certificates, Outcome, spell_seed
from dualrs.certificates.predict import Prediction, Predictions, check_predict, predict, predict_dual
from dualrs.certificates.rules import NAMES, Rule, aces_rule, aces_threshold, rule

__all__ = [
    "ABSTAIN",
    "NAMES",
    "Certificate",
    "Certificates",
    "Outcome",
    "Prediction",
    "Predictions",
    "Rule",
    "aces_rule",
    "aces_threshold",
    "check_predict",
    "predict",
    "predict_dual",
    "rule",
    "spell_seed",
]
