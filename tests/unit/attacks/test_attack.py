"""Attacks where the truth is known: they find what is there, at the spot where it is, and nothing else."""

import numpy as np
import pytest
import torch
from torch import nn

from dualrs import Aces, Cascade, DualSmoothed, Smoothed
from dualrs.attacks import Effort, attack, attacker
from dualrs.attacks.field import Field
from dualrs.attacks.linear import shortest
from dualrs.attacks.pixels import distance, is_inside, rounded_inside, squared_levels
from dualrs.attacks.search import Search
from dualrs.certificates import ABSTAIN, Outcome, Prediction
from dualrs.errors import BadSetting
from dualrs.schemes.aim import Aim, Move
from dualrs.votes import Stage
from planes import IMAGE, Always, Plane, claim, normal

REACH = 0.5
AT = Stage.CLASS, 0.001
QUICK = Effort(steps=10, restarts=2, copies=16, walk_votes=256, votes=100, verdict=2_000)


@pytest.fixture(autouse=True)
def known_verdicts(monkeypatch):
    """Verdicts have secret seeds; here they are numbers, so that a test that passes once passes always."""
    seeds = iter(range(1_000, 10**6))
    monkeypatch.setattr(attacker, "fresh_seed", lambda: next(seeds))


def run(model, radius, sigma, **settings):
    return attack(model, IMAGE, claim(radius, sigma), effort=QUICK, seed=1, **settings)[0]


class Shaken(Plane):
    """A plane that noise of its own moves to and fro, another for every image; smoothed, it stays where it is."""

    def forward(self, x, randomness):
        return super().forward(x + 0.1 * randomness.randn(*x.shape))


class TestRandomness:
    def test_copies_draw_afresh(self):
        model = Smoothed(Shaken(normal(0), 0.0), sigma=0.001)
        shares = Field(model, torch.Generator().manual_seed(0)).shares(torch.full((1, 8, 8), 128 / 255), *AT, 200)
        assert ((shares > 0.3) & (shares < 0.7)).all()  # were one number drawn for all, it would be 0 or 1

    def test_true_radius_is_found(self):
        assert run(Smoothed(Shaken(normal(0), REACH), sigma=0.25), 1.1 * REACH, 0.25).broken
        assert not run(Smoothed(Shaken(normal(0), REACH), sigma=0.25), REACH, 0.25).broken


class TestHalfSpace:
    @pytest.mark.parametrize("hard", [False, True], ids=["gradient", "votes"])
    @pytest.mark.parametrize("seed", range(3))
    def test_wins_just_beyond_the_true_radius(self, seed, hard):
        plane = Plane(normal(seed), REACH, hard=hard)
        model = Smoothed(plane, sigma=0.25)
        aim = Aim("class", (Move(Stage.CLASS, 0.25, (1,)),))
        generator = torch.Generator().manual_seed(seed)
        slack = 1.15 if hard else 1.01  # votes tell the direction less exactly
        search = Search(Field(model, generator), Effort(steps=30, walk_votes=2_048), generator)
        place = search.inside(torch.from_numpy(IMAGE).float() / 255, aim, slack * REACH)
        found = rounded_inside(IMAGE, place.image.numpy(), slack * REACH)
        assert is_inside(IMAGE, found, slack * REACH)
        assert plane.beyond(found[None] / np.float32(255)) > 0

    def test_true_certificate_is_not_broken(self):
        row = run(Smoothed(Plane(normal(0), REACH), sigma=0.25), REACH, 0.25)
        assert not row.broken
        assert row.upper is not None
        assert REACH < row.upper < 1.2 * REACH
        assert row.answer == 1
        assert distance(IMAGE, (IMAGE + row.change).astype(np.uint8)) == row.upper

    @pytest.mark.parametrize("hard", [False, True], ids=["gradient", "votes"])
    def test_radius_times_1_3_is_found(self, hard):
        row = run(Smoothed(Plane(normal(0), REACH, hard=hard), sigma=0.25), 1.3 * REACH, 0.25, bracket=False)
        assert row.flipped == 1

    def test_cost_is_counted(self):
        row = run(Smoothed(Plane(normal(0), 2 * REACH), sigma=0.25), REACH, 0.25, bracket=False)
        assert row.backward % QUICK.copies == 0
        assert 0 < row.backward <= QUICK.steps * QUICK.copies
        assert row.forward == row.backward
        assert row.votes == 0


class TestAdaptive:
    """An attack spends where something may come of it."""

    def test_a_hopeless_search_ends_after_two_long_steps(self):
        row = run(Smoothed(Plane(normal(0), 20 * REACH), sigma=0.25), REACH, 0.25, bracket=False)
        assert row.backward == 3 * QUICK.copies  # and begins nowhere else

    def test_many_copies_in_the_end(self, monkeypatch):
        """Where something may come of it, inside a radius and beyond it: 128 at least."""
        asked, slope = [], Field.slope
        monkeypatch.setattr(Field, "slope", lambda self, x, aim, n: asked.append(n) or slope(self, x, aim, n))
        model = Smoothed(Plane(normal(0), REACH), sigma=0.25)
        attack(model, IMAGE, claim(0.99 * REACH, 0.25), bracket=False, seed=1)
        assert asked[-4:] == [128] * 4
        asked.clear()
        attack(model, IMAGE, claim(REACH / 2, 0.25), seed=1)
        assert asked[-3:] == [128] * 3

    def test_what_was_found_ends_the_search(self):
        """The first of three routes leads to another answer: the others are not tried."""
        router = Plane(normal(1), REACH, before=1, beyond=0, answers=3)
        experts = {0.25: Always(1), 0.5: Always(0), 1.0: Always(1)}
        row = run(DualSmoothed(router, experts, sigmas=(0.25, 0.5, 1.0), sigma_e=1.0), 4.0, 0.5, bracket=False)
        assert row.flipped == 1
        assert row.backward <= QUICK.steps * QUICK.copies  # of the router alone: experts have no gradient

    def test_a_clear_verdict_takes_few_votes(self):
        row = run(Smoothed(Plane(normal(0), REACH), sigma=0.25), 3 * REACH, 0.25, bracket=False)
        assert row.flipped == 1
        assert row.votes == 256

    def test_looks_share_the_level(self, monkeypatch):
        asked = []

        def undecided(self, pixels, *, n, alpha, **rest):
            asked.append((n, alpha))
            return Prediction(ABSTAIN, 0.25, Outcome.CLASS_UNDECIDED)

        monkeypatch.setattr(Smoothed, "predict", undecided)
        row = run(Smoothed(Plane(normal(0), REACH), sigma=0.25), 2 * REACH, 0.25, bracket=True)
        assert not row.broken
        assert row.upper is None
        inside, beyond = asked[:2], asked[2:]
        assert inside == [(256, 0.001 / 2), (2_000, 0.001 / 2)]
        assert sum(alpha for _, alpha in beyond) <= 0.001 * (1 + 1e-9)


class Quantised(nn.Module):
    """A plane behind an image of few grey levels, and only the first answer: its gradients are exactly zero."""

    def __init__(self, plane):
        super().__init__()
        self.plane = plane
        self.eval()

    def forward(self, x):
        logits = self.plane(torch.round(8 * x) / 8)
        return nn.functional.one_hot(logits.argmax(dim=1), 2).float() + 0 * x.sum()


class TestNoGradient:
    def test_gradients_are_exactly_zero(self):
        x = torch.from_numpy(IMAGE)[None].float().div(255).requires_grad_(True)
        (slope,) = torch.autograd.grad(Quantised(Plane(normal(0), REACH))(x).sum(), x)
        assert not slope.any()

    def test_votes_break_a_false_certificate(self):
        row = run(Smoothed(Quantised(Plane(normal(0), REACH)), sigma=0.25), 1.3 * REACH, 0.25, bracket=False)
        assert row.flipped == 1

    def test_votes_find_the_border(self):
        row = run(Smoothed(Quantised(Plane(normal(0), REACH)), sigma=0.25), 0.9 * REACH, 0.25)
        assert not row.broken
        assert 0.95 * REACH < row.upper < 1.4 * REACH  # quantising moves the border a little


class TestRouting:
    """The class under the chosen sigma never changes; the router does at REACH, and names an expert that disagrees."""

    def model(self):
        router = Plane(normal(1), REACH)
        return DualSmoothed(router, {0.25: Always(0), 0.5: Always(1)}, sigmas=(0.25, 0.5), sigma_e=0.5)

    def test_routing_boundary_is_the_weak_spot(self):
        row = run(self.model(), 0.9 * REACH, 0.25)
        assert not row.broken
        assert row.aim == "routing to sigma 0.5"
        assert REACH < row.upper < 1.3 * REACH

    def test_ignored_routing_radius_is_found(self):
        """As if the certificate were that of the class alone."""
        assert run(self.model(), 2.0, 0.25, bracket=False).flipped == 1


class TestCascade:
    """The last stage never changes; the noisiest answers another class beyond REACH."""

    def model(self):
        early = Plane(normal(2), REACH, before=2, beyond=1, answers=3)
        return Cascade({1.0: early, 0.25: Always(0, 3)}, confidences=())

    def test_an_earlier_stage_is_the_weak_spot(self):
        # the noisiest stage answers class 2 at the image: thresholds apart, it is what the cascade answers
        row = attack(self.model(), IMAGE, claim(0.9 * REACH, 1.0, prediction=2), effort=QUICK, seed=1)[0]
        assert not row.broken
        assert row.aim == "another class at sigma 1"
        assert row.answer == 1
        assert REACH < row.upper < 1.6 * REACH

    def test_ignored_stage_is_found(self):
        row = attack(self.model(), IMAGE, claim(1.6, 1.0, prediction=2), effort=QUICK, seed=1, bracket=False)[0]
        assert row.flipped == 1


class TestAces:
    def test_core_network_is_the_weak_spot(self):
        """The selector is sure before the plane and not beyond it; the core answers another class."""

        class Sure(Plane):
            def forward(self, x):
                t = self.beyond(x)
                return torch.stack([-12 * t.clamp(max=0.0), torch.zeros_like(t)], dim=1)

        model = Aces(Always(0), Always(1), 0.25, (0.35,), selector=Sure(normal(3), REACH))
        row = run(model, 1.5 * REACH, 0.25, bracket=False)
        assert row.flipped == 1


class TestFalsify:
    def test_few_broken_ones_are_chance(self):
        model = Smoothed(Plane(normal(0), REACH), sigma=0.25)
        rows = attack(model, np.stack([IMAGE, IMAGE]), [claim(REACH / 2, 0.25), claim(1.3 * REACH, 0.25)],
                      effort=QUICK, seed=1, bracket=False)  # fmt: skip
        assert rows.broken == 1
        assert rows.chance == pytest.approx(1 - 0.999**2)
        assert "1 of 2 certificates broken" in str(rows)

    def test_abstentions_are_left_out(self):
        model = Smoothed(Always(0), sigma=0.25)
        silent = model.certify(IMAGE, n=20, n0=5, alpha=0.4)
        silent = type(silent)(**silent.to_dict() | {"prediction": -1, "outcome": "class undecided"})
        assert len(attack(model, IMAGE, silent, effort=QUICK)) == 0

    def test_images_and_certificates_must_match(self):
        with pytest.raises(BadSetting, match="1 certificates for 2 images"):
            attack(Smoothed(Always(0), sigma=0.25), np.stack([IMAGE, IMAGE]), claim(1.0, 0.25))


class TestMove:
    """Answers 0 and 1 name class 0, 2 and 3 class 1, 4 and 5 class 2; the certified class is 0."""

    shares = np.array([0.2, 0.1, 0.15, 0.1, 0.35, 0.1])
    move = Move(Stage.CLASS, 0.25, (2, 3, 4, 5), ((2, 3), (4, 5)))

    def test_the_strongest_class_must_beat_every_other(self):
        assert self.move.followed(self.shares) == pytest.approx(0.45 / (0.45 + 0.3))
        tied = np.array([0.1, 0.0, 0.45, 0.0, 0.45, 0.0])
        assert self.move.followed(tied) == pytest.approx(0.5)  # PREDICT would not name one of them

    def test_a_majority_must_beat_all_others_together(self):
        assert self.move._replace(majority=True).followed(self.shares) == pytest.approx(0.45)

    def test_aimed_at_one_class(self):
        aimed = self.move._replace(aimed=0)
        assert self.move.strongest(self.shares) == [1, 0]
        assert aimed.followed(self.shares) == pytest.approx(0.25 / (0.25 + 0.45))
        assert aimed.sides(self.shares) == ([2, 3], [4, 5])
        assert aimed._replace(majority=True).sides(self.shares) == ([2, 3], [0, 1, 4, 5])

    def test_aimed_at_nothing_every_other_class_is_raised(self):
        assert self.move.sides(self.shares) == ([2, 3, 4, 5], [0, 1])


class TestShortest:
    """The nearest point beyond several planes."""

    def test_of_one_plane(self):
        change = shortest([torch.tensor([3.0, 4.0])], np.array([10.0]))
        assert change.tolist() == pytest.approx([1.2, 1.6])

    def test_of_two_planes(self):
        change = shortest([torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0])], np.array([1.0, 3.0]))
        assert change.tolist() == pytest.approx([1.5, 1.5])
        change = shortest([torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0])], np.array([2.0, 3.0]))
        assert change.tolist() == pytest.approx([2.0, 1.0])

    def test_what_is_reached_already_needs_no_change(self):
        change = shortest([torch.tensor([1.0, 0.0])], np.array([-1.0]))
        assert change.tolist() == [0.0, 0.0]

    def test_planes_that_face_each_other_have_none(self):
        assert shortest([torch.tensor([1.0, 0.0]), torch.tensor([-1.0, 0.0])], np.array([1.0, 1.0])) is None

    def test_without_a_gradient_there_is_none(self):
        assert shortest([torch.zeros(2)], np.array([1.0])) is None


class TestChain:
    """Verdicts beyond a radius come nearer, each at the whole level of its chain, and end with the first that fails."""

    @pytest.mark.parametrize(("answers", "asked", "found"), [
        ([1, 1], 2, True), ([1, ABSTAIN], 2, True), ([ABSTAIN, 1, 1], 3, True), ([0, ABSTAIN], 2, False),
    ])  # fmt: skip
    def test_ends_with_the_first_that_fails(self, monkeypatch, answers, asked, found):
        levels, given = [], iter(answers)

        def answer(self, pixels, *, n, alpha, **rest):
            levels.append((n, alpha))
            return Prediction(next(given), 0.25, Outcome.PREDICTED)

        monkeypatch.setattr(Smoothed, "predict", answer)
        row = run(Smoothed(Plane(normal(0), REACH), sigma=0.25), REACH / 2, 0.25)
        assert len(levels) == asked
        assert {alpha for _, alpha in levels} == {0.001 / 2}
        assert [n for n, _ in levels[-2:]] in ([500, 2_000], [500, 500])
        assert (row.upper is not None) == found


class TestPixels:
    def test_distance_is_exact(self):
        other = IMAGE.copy()
        other[0, 0, 0] += 3
        other[0, 1, 1] -= 4
        assert squared_levels(IMAGE, other) == 25
        assert distance(IMAGE, other) == 5 / 255
        assert not is_inside(IMAGE, other, 5 / 255)  # 5/255 rounds down: not even equal
        assert is_inside(IMAGE, other, np.nextafter(5 / 255, 1))

    @pytest.mark.parametrize("radius", [0.003, 0.01, 0.3, 2.0])
    def test_rounded_images_stay_inside(self, radius):
        rng = np.random.default_rng(0)
        for _ in range(20):
            moved = IMAGE / 255 + rng.normal(size=IMAGE.shape) * radius / 8
            assert is_inside(IMAGE, rounded_inside(IMAGE, moved, radius), radius)
