"""The procedure by which every rule, honest or sabotaged, is judged.

The event: a certificate names a class with a radius larger than the true one, or names a class that is not
G's at the input. The claim: its probability is at most alpha. The verdict: the rule is rejected if so many
errors, or more, have probability below `FALSE_ALARM` when each trial errs with probability alpha exactly.
An honest rule is thus rejected with probability at most `FALSE_ALARM`, whatever the problem. Seeds are fixed.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

ALPHA = 0.1
FALSE_ALARM = 1e-6
TRIALS = 20_000


@dataclass(frozen=True)
class Verdict:
    errors: int
    trials: int

    @property
    def rate(self):
        return self.errors / self.trials

    @property
    def p_value(self):
        """Probability of at least this many errors if each trial errs with probability alpha."""
        return float(binom.sf(self.errors - 1, self.trials, ALPHA))

    @property
    def rejected(self):
        return self.p_value < FALSE_ALARM

    def __str__(self):
        return f"{self.errors} errors in {self.trials} trials, rate {self.rate:.4f}, p-value {self.p_value:.2g}"


def judge(certificates, problem):
    """Verdict on certificates of a problem, one trial each."""
    claimed = ~certificates.abstained
    false = (certificates.prediction != problem.label) | (certificates.radius > problem.radius)
    return Verdict(int(np.sum(claimed & false)), len(certificates))


def judge_predictions(prediction, problem):
    """Verdict on predictions without a radius: an error is a class, not an abstention, other than G's."""
    return Verdict(int(np.sum((prediction >= 0) & (prediction != problem.label))), len(prediction))
