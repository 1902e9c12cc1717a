"""How long the arithmetic takes."""

import time

import numpy as np

from dualrs.schemes import DualVotes, rule
from dualrs.votes import SamplingPlan, Votes

Row = tuple[str, str, str]


def four_rules(inputs: int = 10_000, n: int = 10_000) -> list[Row]:
    """All four rules on random votes."""
    rng = np.random.default_rng(0)
    plan = SamplingPlan(100, n)

    def votes(sigma: float, answers: int) -> Votes:
        p = rng.dirichlet(np.full(answers, 0.3), inputs)
        return Votes(sigma, rng.multinomial(plan.n0, p), rng.multinomial(n, p), plan)

    dual = DualVotes(votes(1.0, 3), tuple(votes(s, 10) for s in (0.25, 0.5, 1.0)))
    began = time.perf_counter()
    rule("cohen").certify(dual.experts[0], 0.001)
    for name in ("paper", "nosplit", "fusion"):
        rule(name).certify(dual, 0.001)
    seconds = time.perf_counter() - began
    return [(f"cohen, paper, nosplit and fusion on {inputs:,} inputs", f"{seconds:.2f} s", "under 1 s")]
