"""Rules: pure functions from votes to certificates, vectorised over inputs, without torch."""

from dualrs.certificates.certificate import ABSTAIN, Certificate, Certificates, Outcome, Radii, spell_seed
from dualrs.certificates.predict import Prediction, Predictions, check_predict, predict, predict_dual, predicted
from dualrs.certificates.rule import Rule

__all__ = [
    "ABSTAIN",
    "Certificate",
    "Certificates",
    "Outcome",
    "Prediction",
    "Predictions",
    "Radii",
    "Rule",
    "check_predict",
    "predict",
    "predict_dual",
    "predicted",
    "spell_seed",
]
