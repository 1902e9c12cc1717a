"""The router's losses against formulas written out from the paper, one input and one candidate at a time."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dualrs.errors import BadData, BadModel, BadSetting
from dualrs.training.losses import (
    balance_weights,
    consistency,
    consistency_gate,
    hard_labels,
    keep,
    radius_scale,
    router_loss,
    soft_cross_entropy,
    soft_labels,
)

SHAPES = [(1, 5, 3), (2, 4, 3), (2, 3, 2), (4, 3, 5)]  # (copies, batch, candidates)
FLOAT32 = {"rtol": 2e-6, "atol": 2e-6}  # some roundings of 6e-8 each
FINITE_DIFFERENCE = {"rtol": 1e-6, "atol": 1e-6}


# The paper in plain Python, one input at a time: ``copies`` are rows of logits, ``radii`` one row.


def log_softmax(row):
    largest = max(row)
    total = sum(math.exp(v - largest) for v in row)
    return [v - largest - math.log(total) for v in row]


def slow_cross_entropy(copies, label):
    return sum(-y * v for row in copies for y, v in zip(label, log_softmax(row), strict=True)) / len(copies)


def slow_consistency(copies, weight, entropy_weight):
    logs = [log_softmax(row) for row in copies]
    mean = [sum(math.exp(row[k]) for row in logs) / len(logs) for k in range(len(logs[0]))]
    # an answer of probability 0 adds 0 to KL and to the entropy
    possible = [k for k, p in enumerate(mean) if p > 0]
    divergence = sum(mean[k] * (math.log(mean[k]) - row[k]) for row in logs for k in possible) / len(logs)
    return weight * divergence - entropy_weight * sum(mean[k] * math.log(mean[k]) for k in possible)


def slow_label(radii, hard):
    if hard:
        return [float(k == radii.index(max(radii))) for k in range(len(radii))]
    return [math.exp(r) / sum(math.exp(s) for s in radii) for r in radii]


def slow_gate(radii, copies, kind, scale):
    if kind == "none":
        return 1.0
    predicted = [row.index(max(row)) for row in copies]
    return min(1.0, radii[max(predicted) if kind == "strong" else min(predicted)] / scale)


def slow_router_loss(logits, radii, balance, weight, entropy_weight, gate, scale, hard):
    losses = []
    for i, (row, w_e) in enumerate(zip(radii, balance, strict=True)):
        copies = [list(copy[i]) for copy in logits]
        loss = slow_cross_entropy(copies, slow_label(list(row), hard))
        regular = slow_consistency(copies, weight, entropy_weight)
        losses.append(w_e * (loss + slow_gate(list(row), copies, gate, scale) * regular))
    return sum(losses) / len(losses)


def slow_gradient(function, logits, step):
    """Central differences of a function of a float64 array."""
    gradient = np.zeros_like(logits)
    for place in np.ndindex(logits.shape):
        up, down = logits.copy(), logits.copy()
        up[place] += step
        down[place] -= step
        gradient[place] = (function(up) - function(down)) / (2 * step)
    return gradient


def batched(function, logits, *rows):
    """A slow loss of one input, over a batch of logits (copies, batch, candidates)."""
    return [function([list(c[i]) for c in logits], *(r[i] for r in rows)) for i in range(logits.shape[1])]


def random_case(shape, seed=0, spread=2.0):
    generator = np.random.default_rng(seed)
    return spread * generator.standard_normal(shape), generator.uniform(0, 2, shape[1:])


def gradient_of(function, logits, dtype=torch.float64):
    variable = torch.tensor(logits, dtype=dtype, requires_grad=True)
    function(variable).sum().backward()
    return variable.grad.double().numpy()


def regular(logits, weight=40.0, entropy_weight=0.5):
    return consistency(logits, consistency_weight=weight, entropy_weight=entropy_weight)


def divergence(logits):
    return consistency(logits, consistency_weight=1.0, entropy_weight=0.0)


# Labels and weights of the inputs


def test_soft_labels_of_the_papers_example():
    labels = soft_labels(torch.tensor([[0.0, 1.6, 0.0], [0.3, 0.4, 0.3]]))
    # e^1.6 = 4.953032, of 6.953032 in all; e^0.1 = 1.105171, of 3.105171 after division by e^0.3
    expected = [[0.143822, 0.712356, 0.143822], [0.322043, 0.355913, 0.322043]]
    np.testing.assert_allclose(labels, expected, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("function", "hard"), [(soft_labels, False), (hard_labels, True)])
def test_labels_follow_their_formula(shape, function, hard):
    _, radii = random_case(shape)
    expected = [slow_label(list(row), hard) for row in radii]
    np.testing.assert_allclose(function(torch.tensor(radii)), expected, rtol=1e-14)


def test_hard_label_is_the_smallest_of_equally_good_sigmas():
    radii = torch.tensor([[0.0, 1.6, 0.0], [0.0, 0.7, 0.7], [0.2, 0.2, 0.2], [0.1, 0.0, 0.3]])
    assert hard_labels(radii).tolist() == [[0, 1, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]]


def test_inputs_without_a_radius_are_dropped():
    radii = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.1], [0.3, 0.4, 0.3], [0.0, 0.0, 0.0]])
    assert keep(radii).tolist() == [False, True, True, False]


def test_balance_weights_by_hand():
    # best: first, first (a tie), third, first; so q = 3/4, 0, 1/4
    radii = torch.tensor([[0.5, 0.1, 0.0], [0.4, 0.4, 0.0], [0.0, 0.0, 2.0], [0.3, 0.2, 0.1]])
    assert balance_weights(radii, balanced=True).tolist() == pytest.approx([4 / 3, 4 / 3, 4, 4 / 3], rel=1e-7)
    assert balance_weights(radii, balanced=False).tolist() == [1, 1, 1, 1]


def test_balance_weights_give_every_sigma_the_same_total():
    radii = torch.tensor(random_case((1, 1000, 3))[1] * [1.0, 0.8, 0.5])
    weights, best = balance_weights(radii, balanced=True).numpy(), radii.numpy().argmax(axis=1)
    totals = [weights[best == k].sum() for k in range(3)]
    np.testing.assert_allclose(totals, 1000, rtol=1e-12)
    for k in range(3):
        assert weights[best == k] == pytest.approx(1 / np.mean(best == k))


def test_radius_scale_brings_all_radii_to_the_unit_interval():
    radii = torch.tensor([[0.0, 1.6, 0.0], [0.3, 0.4, 0.3]])
    assert radius_scale(radii) == pytest.approx(1.6)
    assert float((radii / radius_scale(radii)).max()) == 1


@pytest.mark.parametrize(
    "radii",
    [torch.zeros(0, 3), torch.zeros(2, 3), torch.tensor([[0.1, math.nan]]), torch.tensor([[0.1, math.inf]])],
    ids=["nothing kept", "all zero", "nan", "infinite"],
)
def test_labels_without_a_usable_radius_are_refused(radii):
    with pytest.raises(BadData, match=r"the largest radius .* nothing to learn from; check that the classifier"):
        radius_scale(radii)


# The gate


def test_gates_by_hand():
    radii = torch.tensor([[0.2, 0.8, 1.6], [0.4, 0.8, 0.0], [0.4, 1.2, 3.0], [0.0, 0.0, 0.6]])
    chosen = torch.tensor([[0, 2, 2, 2], [1, 0, 1, 2]])  # two copies of four inputs
    assert consistency_gate(radii, chosen, "strong", 1.6).tolist() == pytest.approx([0.5, 0.0, 1.0, 0.375])
    assert consistency_gate(radii, chosen, "weak", 1.6).tolist() == pytest.approx([0.125, 0.25, 0.75, 0.375])
    assert consistency_gate(radii, chosen, "none", 1.6).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("kind", ["strong", "weak", "none"])
def test_gate_lies_between_0_and_1_and_carries_no_gradient(kind):
    logits, radii = random_case((3, 50, 4))
    variable = torch.tensor(logits, requires_grad=True)
    gate = consistency_gate(torch.tensor(radii), variable.argmax(dim=-1), kind, 1.0)  # a scale below many radii
    assert gate.shape == (50,)
    assert float(gate.min()) >= 0
    assert float(gate.max()) == 1
    assert not gate.requires_grad


def test_unknown_gate_is_refused():
    with pytest.raises(BadSetting, match="unknown consistency gate 'soft'; choose one of strong, weak, none"):
        consistency_gate(torch.ones(2, 3), torch.zeros(2, 2, dtype=torch.long), "soft", 1.0)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan])
def test_radius_scale_that_cannot_divide_is_refused(scale):
    with pytest.raises(BadSetting, match="must be positive"):
        consistency_gate(torch.ones(2, 3), torch.zeros(2, 2, dtype=torch.long), "weak", scale)


# Cross-entropy and consistency


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cross_entropy_follows_its_formula(shape, dtype):
    logits, radii = random_case(shape)
    labels = [slow_label(list(row), hard=False) for row in radii]
    found = soft_cross_entropy(torch.tensor(logits, dtype=dtype), torch.tensor(labels, dtype=dtype))
    tolerance = FLOAT32 if dtype == torch.float32 else {"rtol": 1e-13}
    np.testing.assert_allclose(found, batched(slow_cross_entropy, logits, labels), **tolerance)


def test_consistency_by_hand():
    # copies (3/4, 1/4) and (1/4, 3/4) have the mean (1/2, 1/2): KL is ln(4/3)/2 to either, the entropy ln 2
    logits = torch.tensor([[[math.log(3), 0.0]], [[0.0, math.log(3)]]])
    assert regular(logits).item() == pytest.approx(40 * math.log(4 / 3) / 2 + 0.5 * math.log(2), rel=1e-6)


@pytest.mark.parametrize("weights", [(40.0, 0.5), (10.0, 0.0), (0.0, 0.5)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_consistency_follows_its_formula(shape, dtype, weights):
    logits, _ = random_case(shape)
    expected = batched(lambda copies: slow_consistency(copies, *weights), logits)
    tolerance = FLOAT32 if dtype == torch.float32 else {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(regular(torch.tensor(logits, dtype=dtype), *weights), expected, **tolerance)


def test_equal_weights_make_consistency_a_cross_entropy():
    logits = torch.tensor(random_case((3, 20, 4))[0])
    probabilities = logits.softmax(dim=-1)
    cross = -(probabilities.mean(dim=0) * probabilities.log()).sum(dim=-1).mean(dim=0)
    np.testing.assert_allclose(regular(logits, 20.0, 20.0), 20 * cross, rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_follow_finite_differences_of_the_formulas(shape):
    logits, radii = random_case(shape)
    labels = [slow_label(list(row), hard=False) for row in radii]
    np.testing.assert_allclose(
        gradient_of(lambda x: soft_cross_entropy(x, torch.tensor(labels)), logits),
        slow_gradient(lambda x: sum(batched(slow_cross_entropy, x, labels)), logits, 1e-5),
        **FINITE_DIFFERENCE,
    )
    np.testing.assert_allclose(
        gradient_of(regular, logits),
        slow_gradient(lambda x: sum(batched(lambda c: slow_consistency(c, 40.0, 0.5), x)), logits, 1e-5),
        **FINITE_DIFFERENCE,
    )
    variable = torch.tensor(logits, requires_grad=True)
    assert torch.autograd.gradcheck(regular, variable)


def check_saturated(copies, rounding=0.0):
    """Float32 at the paper's lambda against float64: the value, and each copy's gradient to 1e-6 of its length."""
    logits = np.array(copies, dtype=np.float64)
    value = regular(torch.tensor(logits, dtype=torch.float32))
    gradient = gradient_of(regular, logits, torch.float32)
    for i in range(logits.shape[1]):
        one = logits[:, i]
        assert float(value[i]) == pytest.approx(slow_consistency(one, 40.0, 0.5), rel=1e-6, abs=1e-6), one
        slow = slow_gradient(lambda x: slow_consistency(x, 40.0, 0.5), one, 1e-4)
        error, length = (np.linalg.norm(g, axis=1) for g in (gradient[:, i] - slow, slow))
        assert (error <= 1e-6 * (1 + length) + rounding).all(), (one, gradient[:, i], slow)


@pytest.mark.parametrize("copies", [2, 3, 4])
def test_copies_sure_of_one_answer_give_the_right_value_and_gradient(copies):
    answers = np.array(list(itertools.product(range(3), repeat=copies))).T
    check_saturated(1000 * np.eye(3)[answers] - 500)


@pytest.mark.parametrize("copies", [2, 3])
def test_copies_sure_of_several_answers_give_the_right_value_and_gradient(copies):
    patterns = itertools.product([-500, 500], repeat=3 * copies)
    # float32 rounds a log-probability of -1000 by up to 2^-15; where a copy wavers, its gradient sees lambda times that
    check_saturated(np.array(list(patterns)).reshape(-1, copies, 3).swapaxes(0, 1), rounding=40 * 2**-15)


def test_logits_saturated_unevenly_give_the_right_value_and_gradient():
    check_saturated([[[3, -480, 250], [0, 0.5, -500]], [[-20, 390, -500], [1, -1, -500]]])


def test_saturated_logits_give_the_right_cross_entropy_and_gradient():
    logits = np.array([[[500.0, -500.0, -500.0]], [[-500.0, 500.0, -500.0]]])
    labels = [[0.25, 0.5, 0.25]]

    def function(x):
        return soft_cross_entropy(x, torch.tensor(labels))

    # a copy pays 1000 for the label that it does not see: 0.75 of it for the first, 0.5 for the second
    assert function(torch.tensor(logits, dtype=torch.float32)).tolist() == [625.0]
    assert gradient_of(function, logits, torch.float32)[:, 0].tolist() == [
        [0.375, -0.25, -0.125],
        [-0.125, 0.25, -0.125],
    ]


def test_one_copy_is_consistent_with_itself():
    logits = torch.tensor(random_case((1, 50, 3), spread=10.0)[0], dtype=torch.float32)
    assert divergence(logits).tolist() == [0.0] * 50
    assert gradient_of(divergence, logits.numpy(), torch.float32).tolist() == np.zeros((1, 50, 3)).tolist()


def test_small_divergence_is_not_lost_in_rounding():
    logits = torch.tensor(random_case((1, 200, 3))[0], dtype=torch.float32)
    copies = torch.cat([logits, logits + 1e-2 * torch.tensor(random_case((1, 200, 3), seed=1)[0]).float()])
    exact = batched(lambda c: slow_consistency(c, 1.0, 0.0), copies.double().numpy())
    assert max(exact) < 1e-3
    np.testing.assert_allclose(divergence(copies), exact, rtol=1e-2, atol=1e-9)


def test_order_of_the_copies_does_not_matter():
    logits, radii = random_case((3, 6, 4))
    balance = torch.linspace(0.5, 2.0, 6)
    options = {"consistency_weight": 40.0, "entropy_weight": 0.5, "gate": "strong", "scale": 2.0}
    losses = [
        float(router_loss(torch.tensor(logits[list(order)]), torch.tensor(radii), balance, **options))
        for order in itertools.permutations(range(3))
    ]
    np.testing.assert_allclose(losses, losses[0], rtol=1e-14)


@settings(deadline=None)
@given(
    st.integers(2, 6).flatmap(
        lambda k: st.lists(st.lists(st.floats(-1000, 1000, width=32), min_size=k, max_size=k), min_size=1, max_size=5)
    )
)
@example([[0.1, 0.2, 0.3], [0.1, 0.2, 0.30000001]])
def test_divergence_is_never_negative(copies):
    logits = torch.tensor(copies, dtype=torch.float32)[:, None]
    assert divergence(logits).item() >= 0
    assert math.isfinite(regular(logits).item())
    assert np.isfinite(gradient_of(regular, logits.numpy(), torch.float32)).all()


# The whole loss


@pytest.mark.parametrize("hard", [False, True], ids=["soft labels", "hard labels"])
@pytest.mark.parametrize("gate", ["strong", "weak", "none"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_router_loss_and_its_gradient_follow_the_paper(shape, gate, hard):
    logits, radii = random_case(shape, seed=3)
    balance = np.linspace(0.5, 3.0, shape[1])

    def found(x):
        return router_loss(
            x, torch.tensor(radii, dtype=x.dtype), torch.tensor(balance, dtype=x.dtype),
            consistency_weight=40.0, entropy_weight=0.5, gate=gate, scale=1.5, hard=hard,
        )  # fmt: skip

    def expected(x):
        return slow_router_loss(x, radii, balance, 40.0, 0.5, gate, 1.5, hard)

    loss = found(torch.tensor(logits))
    assert loss.shape == ()
    assert float(loss) == pytest.approx(expected(logits), rel=1e-12)
    assert float(found(torch.tensor(logits, dtype=torch.float32))) == pytest.approx(expected(logits), rel=1e-5)
    slow = slow_gradient(expected, logits, 1e-5)
    np.testing.assert_allclose(gradient_of(found, logits), slow, **FINITE_DIFFERENCE)


def test_half_precision_logits_lose_nothing_more():
    logits, radii = random_case((2, 8, 3))
    half = torch.tensor(logits, dtype=torch.bfloat16)
    one, other = (
        router_loss(
            x, torch.tensor(radii, dtype=torch.float32), torch.ones(8),
            consistency_weight=40.0, entropy_weight=0.5, gate="weak", scale=2.0,
        )
        for x in (half, half.float())
    )  # fmt: skip
    assert one.dtype == torch.float32
    assert float(one) == float(other)


@pytest.mark.parametrize(
    ("logits", "balance"), [((2, 4, 2), (4,)), ((2, 3, 3), (4,)), ((4, 3), (4,)), ((2, 4, 3), (4, 1))], ids=str
)
def test_shapes_that_do_not_fit_are_refused(logits, balance):
    with pytest.raises(BadModel, match=r"logits .* radii \(4, 3\) .* one answer for each sigma of the labels"):
        router_loss(
            torch.zeros(logits), torch.ones(4, 3), torch.ones(balance),
            consistency_weight=40.0, entropy_weight=0.5, gate="none", scale=1.0,
        )  # fmt: skip
