"""Rules: pure functions from votes to certificates, vectorised over inputs, without torch."""

from dualrs.certificates.certificate import ABSTAIN, Certificate, Certificates, Outcome
from dualrs.certificates.predict import Prediction, Predictions, check_predict, predict, predict_dual
from dualrs.certificates.rules import NAMES, OneStage, Rule, TwoStage, rule

__all__ = [
    "ABSTAIN",
    "NAMES",
    "Certificate",
    "Certificates",
    "OneStage",
    "Outcome",
    "Prediction",
    "Predictions",
    "Rule",
    "TwoStage",
    "check_predict",
    "predict",
    "predict_dual",
    "rule",
]
