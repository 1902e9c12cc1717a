"""certify_dataset under looks, and with shared copies: what the ledger holds, what resumes, and what verify finds."""

import json
import sqlite3
from contextlib import closing
from itertools import count

import numpy as np
import pytest
import torch
from torch import nn

from dualrs import DualSmoothed, Smoothed
from dualrs.data.dataset import ArrayDataset
from dualrs.errors import BadSetting, ForeignLedger
from dualrs.jobs import certify_dataset
from dualrs.models.denoise import Denoised
from dualrs.policy import Grid, Tolerance
from dualrs.sampling.noise import NOISE, SHARED
from dualrs.schemes import rule
from dualrs.storage import Ledger, verify
from dualrs.storage.rows import Concluded
from dualrs.theory.looks import planned_looks
from dualrs.votes import Part, SamplingPlan, Stage, Unit
from small import Small

IMAGES = np.random.default_rng(0).integers(0, 256, (8, 1, 6, 6), dtype=np.uint8)
DATA = ArrayDataset(IMAGES, [0, 1, 2, 0, 1, 2, 0, 1], name="eight images")
SIGMAS, SIGMA_E = (0.25, 0.5, 1.0), 1.0
N0, N, ALPHA, SEED = 30, 4000, 0.01, 3
ADAPTIVE, FIXED = SamplingPlan(N0, N, planned_looks(N)), SamplingPlan(N0, N)
GRID = Grid((0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0))


def dual(share=True, router=None, classifier=None, batch_size=100):
    router, classifier = router or Small(9), classifier or Small(7)
    return DualSmoothed(router, classifier, SIGMAS, SIGMA_E, batch_size=batch_size, share=share)


def run(path, model=None, plan=ADAPTIVE, target=GRID, name="fusion", indices=range(8), **options):
    model = model or dual()
    certify_dataset(
        model, DATA, path, plan=plan, alpha=ALPHA, rule=model.rule(name), seed=SEED, indices=indices,
        target=target if plan.adaptive else None, **options,
    )  # fmt: skip
    return path


def rows(path):
    """Everything that a run must give again; not the seconds, nor the seals over them."""
    with closing(sqlite3.connect(path)) as file:
        return {
            "votes": file.execute("SELECT * FROM votes ORDER BY 1, 2, 3, 4, 5").fetchall(),
            "certificates": [r[:8] + r[9:10] for r in file.execute("SELECT * FROM certificates ORDER BY input")],
        }


def problems(path):
    with Ledger.open(path) as ledger:
        return verify(ledger)


def blocks(path):
    """The counts of every stream of every input, block after block."""
    with Ledger.open(path) as ledger:
        found = {}
        for unit, counts in sorted(ledger.units(), key=lambda held: held[0]):
            found.setdefault((unit.input_id, unit.stream), []).append(counts)
        return {place: np.concatenate(parts) for place, parts in found.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def whole(folder):
    """One unbroken adaptive run; nobody may change the file."""
    return run(folder / "adaptive.ledger")


@pytest.fixture(scope="module")
def everything(folder):
    """Every vote of every stream, at the fixed n."""
    return run(folder / "all.ledger", plan=FIXED, all_votes=True)


@pytest.fixture
def earlier(tmp_path, whole):
    """A copy of the adaptive run, to be used up."""
    path = tmp_path / "run.ledger"
    path.write_bytes(whole.read_bytes())
    return path


# What an adaptive run leaves behind


def test_votes_are_the_first_votes_of_a_run_with_a_fixed_n(whole, everything):
    short, long = blocks(whole), blocks(everything)
    assert short.keys() < long.keys()
    for place, counts in short.items():
        np.testing.assert_array_equal(counts, long[place][: len(counts)])
    # Otherwise little is compared: some streams stopped at the first look, some later, some never.
    lengths = {len(counts) for (_, stream), counts in short.items() if stream.part is Part.ESTIMATION}
    assert {1, 40} < lengths
    assert len(lengths) > 3


def test_certificates_are_those_of_the_rule_at_the_looks_of_the_plan(whole):
    with Ledger.open(whole) as ledger:
        votes, kept = ledger.votes(DATA.ids), ledger.certificates()
        assert votes.router.plan == ADAPTIVE
        derived = rule("fusion").certify(votes, ALPHA)
        assert [kept[i].certificate for i in DATA.ids] == list(derived)
    assert 0 < derived.abstained.sum() < 8


def test_ledger_holds_what_certify_says(whole):
    said = dual().certify(IMAGES, n=N, n0=N0, alpha=ALPHA, seed=SEED, ids=DATA.ids, budget="adaptive", target=GRID)
    with Ledger.open(whole) as ledger:
        assert [c.certificate for c in ledger.certificates().values()] == list(said)


def test_fewer_votes_are_taken_and_the_grid_is_certified_nearly_as_at_the_fixed_n(whole, everything):
    taken, all_of_them = (sum(r[5] - r[4] for r in rows(path)["votes"]) for path in (whole, everything))
    assert taken < all_of_them / 2
    with Ledger.open(whole) as some, Ledger.open(everything) as every:
        short, long = (rule("fusion").certify(ledger.votes(DATA.ids), ALPHA) for ledger in (some, every))
    reached = [[(c.radius[:, None] >= r) & (c.radius[:, None] > 0) for r in GRID.radii] for c in (short, long)]
    assert np.not_equal(*reached).sum() <= 3  # of 8 inputs at 7 radii


def test_header_records_looks_and_target(whole):
    with Ledger.open(whole) as ledger:
        header = ledger.header
    assert header.looks == planned_looks(4000)
    assert header.target == "radii 0.0,0.1,0.2,0.3,0.5,0.75,1.0"
    assert header.plan == ADAPTIVE
    assert header.noise == NOISE + SHARED


def test_header_of_a_fixed_run_says_nothing_of_looks(everything):
    with closing(sqlite3.connect(everything)) as file:
        fields = json.loads(file.execute("SELECT fields FROM header").fetchone()[0])
    assert not {"looks", "target"} & set(fields)


@pytest.mark.parametrize("name", ["paper", "nosplit", "fusion-pair"])
def test_every_rule_of_two_stages_has_it(name, tmp_path):
    path = run(tmp_path / "run.ledger", name=name, indices=range(4))
    assert problems(path) == []


def test_one_sigma_has_it_too(tmp_path):
    model = Smoothed(Small(7), 0.5, batch_size=100)
    path = run(tmp_path / "one.ledger", model, name="cohen", target=Tolerance(0.05))
    assert problems(path) == []
    said = model.certify(
        IMAGES, n=N, n0=N0, alpha=ALPHA, seed=SEED, ids=DATA.ids, budget="adaptive", target=Tolerance(0.05)
    )
    with Ledger.open(path) as ledger:
        assert [c.certificate for c in ledger.certificates().values()] == list(said)
        assert ledger.header.target == "tolerance 0.05"


@pytest.mark.parametrize("batch_size", [37, 256])
def test_batch_size_changes_no_vote_of_an_adaptive_run(batch_size, tmp_path, whole):
    path = run(tmp_path / "run.ledger", dual(batch_size=batch_size))
    assert [r[:7] for r in rows(path)["votes"]] == [r[:7] for r in rows(whole)["votes"]]


def test_order_of_inputs_changes_nothing(tmp_path, whole):
    assert rows(run(tmp_path / "run.ledger", indices=[5, 2, 7, 0, 1, 6, 4, 3])) == rows(whole)


def test_two_shards_merged_are_one_run(tmp_path, whole):
    paths = [run(tmp_path / f"{k}.ledger", indices=range(k, 8, 2)) for k in range(2)]
    with Ledger.open(paths[0]) as shard:
        header = shard.header
    with Ledger.create_or_resume(tmp_path / "merged.ledger", header) as merged:
        for path in paths:
            with Ledger.open(path) as shard:
                merged.absorb(shard)
    assert rows(tmp_path / "merged.ledger") == rows(whole)
    assert problems(tmp_path / "merged.ledger") == []


# Resuming


FINE = Tolerance(0.02)
WIDE = SamplingPlan(N0, N, (100, 200, 400, 800, 1600, 3200, N))  # apart enough for several units between two looks


@pytest.fixture(scope="module", params=[True, False], ids=["shared", "apart"])
def unbroken(request, folder):
    """Whether copies are shared, a run with many looks, and of how many batches it was."""
    path, batches = folder / f"unbroken {request.param}.ledger", []
    run(path, dual(request.param), target=FINE, plan=WIDE, report=batches.append)
    assert any(start not in (0, *WIDE.looks) for start in (r[4] for r in rows(path)["votes"]))
    return request.param, path, len(batches)


@pytest.mark.parametrize("moment", [0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9], ids=lambda m: f"at {m:.0%}")
def test_stopped_run_goes_on_where_it_was(moment, unbroken, tmp_path):
    """Also in the middle of a look: those beyond 1,600 votes are of several units."""
    share, expected, batches = unbroken
    path, reports = tmp_path / "run.ledger", count()

    def stop(progress):
        if next(reports) == int(moment * batches):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(path, dual(share), target=FINE, plan=WIDE, report=stop)
    before = set(rows(path)["votes"]) if moment else set()
    assert path.exists() == (moment > 0)  # a run without votes leaves nothing
    run(path, dual(share), target=FINE, plan=WIDE)
    assert before <= set(rows(path)["votes"])
    assert rows(path) == rows(expected)
    assert problems(path) == []


def test_run_stopped_within_a_look_goes_on_within_it(unbroken, tmp_path):
    """The look from 1,600 to 3,200 votes has two units; one of them is on record, and no bound may use it yet."""
    share, expected, _ = unbroken
    path = tmp_path / "run.ledger"

    def half_done():
        held = {(row[:4], row[4]) for row in rows(path)["votes"] if row[2] == "estimation"}
        return any(start == 1600 and (stream, 2600) not in held for stream, start in held)

    def stop(progress):
        if half_done():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(path, dual(share), target=FINE, plan=WIDE, report=stop)
    assert half_done()
    assert problems(path) == []
    run(path, dual(share), target=FINE, plan=WIDE)
    assert rows(path) == rows(expected)


def test_finished_run_is_not_run_again(earlier, whole):
    run(earlier)
    assert rows(earlier) == rows(whole)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        pytest.param({"target": Grid()}, "target is radii 0.0,0.1,.* on record but radii 0.0,0.25", id="another grid"),
        pytest.param({"target": Tolerance(0.1)}, "target is radii .* on record but tolerance 0.1", id="a tolerance"),
        pytest.param(
            {"plan": SamplingPlan(N0, N, (100, 1000, N))},
            r"looks is \(100, 200.* on record but \(100, 1000",
            id="looks",
        ),
        pytest.param({"plan": FIXED}, r"looks is .* on record but \(\) was given", id="a fixed n"),
        pytest.param({"model": dual(share=False)}, "noise is .*shared at sigma_e on record but", id="noise apart"),
    ],
)
def test_another_run_is_refused_and_the_file_stays_as_it_is(other, message, earlier):
    before = earlier.read_bytes()
    with pytest.raises(ForeignLedger, match=message):
        run(earlier, **other)
    assert earlier.read_bytes() == before


def test_fixed_run_is_no_beginning_of_an_adaptive_one(tmp_path):
    path = run(tmp_path / "run.ledger", plan=FIXED, indices=[0])
    with pytest.raises(ForeignLedger, match=r"looks is \(\) on record but \(100, 200"):
        run(path)


def test_adaptive_run_does_not_ask_for_all_votes(tmp_path):
    with pytest.raises(BadSetting, match="does not ask for all votes"):
        run(tmp_path / "run.ledger", all_votes=True)
    assert list(tmp_path.iterdir()) == []


# What verify finds


def test_verify_is_content(whole, everything):
    assert problems(whole) == []
    assert problems(everything) == []


def forge(path, name, add=(), remove=()):
    """Add and remove units of an input, derive its certificate again, and seal all: as one who knows how would."""
    with closing(sqlite3.connect(path)) as file, Ledger.open(path) as ledger:
        tally, kept = ledger.tally(name), ledger.certificates()[name]
        for unit, counts in add:
            row = ledger.rows.of_unit(unit, counts)
            file.execute(f"INSERT INTO votes VALUES ({','.join('?' * len(row))})", row)
            tally.add(unit, counts)
        for unit in remove:
            s = unit.stream
            hit = file.execute(
                "DELETE FROM votes WHERE input = ? AND stage = ? AND part = ? AND sigma = ? AND start = ?",
                (name, s.stage.value, s.part.value, s.sigma, unit.start),
            )
            assert hit.rowcount == 1
            del tally.counts[s][unit.start]
        certificate = rule("fusion").certify(ledger.header.scheme.gather([tally], ledger.header.plan), ALPHA)[0]
        units = sum(len(parts) for parts in tally.counts.values())
        row = ledger.rows.of_certificate(name, Concluded(certificate, kept.seconds, units))
        file.execute(f"REPLACE INTO certificates VALUES ({','.join('?' * len(row))})", row)
        file.commit()
    return certificate


def sampled(path, name):
    """Units of the estimation streams of an input, stream by stream, in order."""
    with Ledger.open(path) as ledger:
        units = [unit for unit, _ in ledger.units() if unit.input_id == name and unit.stream.part is Part.ESTIMATION]
    return {stream: sorted(u for u in units if u.stream == stream) for stream in dict.fromkeys(u.stream for u in units)}


def next_look(path, name, stream, source):
    """The units up to the next look of a stream, with the true votes."""
    held = {u.start for u in sampled(path, name).get(stream, [])}
    reached = max((u.stop for u in sampled(path, name).get(stream, [])), default=0)
    look = min(look for look in ADAPTIVE.looks if look > reached)
    true = blocks(source)[name, stream]
    missing = [u for u in ADAPTIVE.units(name, stream, look) if u.start not in held]
    return [(u, true[u.start // 100 : u.stop // 100]) for u in missing]


def open_streams(path):
    """Inputs and streams that stopped before the last look."""
    return [(name, stream) for name in DATA.ids for stream, units in sampled(path, name).items() if units[-1].stop < N]


def test_verify_finds_votes_beyond_what_the_policy_asked_for(earlier, everything):
    """True votes, honestly sealed: but the run stopped before them, and one more look is one more chance."""
    places = open_streams(earlier)
    assert len(places) >= 8
    for name, stream in places[:: len(places) // 6]:
        copy = earlier.with_name(f"{name} {stream.stage} {stream.sigma}.ledger")
        copy.write_bytes(earlier.read_bytes())
        forge(copy, name, add=next_look(copy, name, stream, everything))
        assert problems(copy) == [f"input {name}: from these votes, the run would have asked for others"]


def test_verify_finds_votes_that_were_taken_away(earlier):
    """A run that stops before it is done keeps what looks best; the votes that are left do not explain the stop."""
    places = [(n, s) for n in DATA.ids for s, units in sampled(earlier, n).items() if units[-1].stop > 100]
    assert len(places) >= 4
    for name, stream in places[:: max(1, len(places) // 6)]:
        copy = earlier.with_name(f"{name} {stream.stage} {stream.sigma}.ledger")
        copy.write_bytes(earlier.read_bytes())
        units = sampled(copy, name)[stream]
        look = max(look for look in ADAPTIVE.looks if look < units[-1].stop)
        forge(copy, name, remove=[u for u in units if u.start >= look])
        assert problems(copy) == [f"input {name}: from these votes, the run would have asked for others"]


def test_verify_finds_a_rival_that_nobody_asked(earlier, everything):
    with Ledger.open(earlier) as ledger:
        held = {name: {s.sigma for s in ledger.tally(name).counts if s.stage is Stage.CLASS} for name in DATA.ids}
    name = next(n for n in DATA.ids if len(held[n]) < 3)
    sigma = next(s for s in SIGMAS if s not in held[name])
    stream = next(
        s for n, s in blocks(everything) if s.stage is Stage.CLASS and s.sigma == sigma and s.part == "estimation"
    )
    forge(earlier, name, add=next_look(earlier, name, stream, everything))
    assert problems(earlier) == [f"input {name}: from these votes, the run would have asked for others"]


def test_verify_finds_a_look_that_is_cut_short(earlier, everything):
    name, stream = open_streams(earlier)[0]
    unit, _ = next_look(earlier, name, stream, everything)[0]
    half = Unit(name, stream, unit.start, unit.start + 50)
    with closing(sqlite3.connect(earlier)) as file, Ledger.open(earlier) as ledger:
        row = ledger.rows.of_unit(half, np.array([[50, 0, 0]]))
        file.execute(f"INSERT INTO votes VALUES ({','.join('?' * len(row))})", row)
        file.commit()
    assert any(f"input {name}: " in p for p in problems(earlier))


def test_verify_finds_another_target_on_record(earlier):
    with closing(sqlite3.connect(earlier)) as file:
        file.execute("UPDATE header SET fields = replace(fields, '0.75,1.0', '0.75,1.1')")
        file.commit()
    assert problems(earlier)[0] == "header: a field that decides votes or certificates was changed after the run began"


# Shared copies


class CountingDenoiser(nn.Module):
    """Pulls everything to grey; counts the batches that it sees."""

    def __init__(self):
        super().__init__()
        self.calls = 0
        self.eval()

    def forward(self, noisy, sigma):
        self.calls += 1
        return (noisy + 0.5) / 2


class Mostly(nn.Module):
    """A head with one answer, but where a pixel is dark; of the first image, about one copy in nine at sigma 1."""

    def __init__(self, answer, pixel):
        super().__init__()
        self.answer, self.pixel = answer, pixel
        self.cut = (float(IMAGES[0].flatten()[pixel]) / 255 - 1.2 + 0.5) / 2
        self.eval()

    def forward(self, x):
        given = torch.where(x.flatten(1)[:, self.pixel] > self.cut, self.answer, 0)
        return nn.functional.one_hot(given, 3).float()


def denoised(choice, share):
    denoiser = CountingDenoiser()
    model = dual(share, Denoised(denoiser, Mostly(choice, 0)), Denoised(denoiser, Mostly(1, 1)))
    model.engine.prepare(IMAGES[0])
    denoiser.calls = 0
    return model, denoiser


@pytest.mark.parametrize(
    ("choice", "share", "calls"),
    [
        # Of 100 votes a batch: one of selection for each stage, forty of estimation, which may serve both.
        pytest.param(2, True, 1 + 1 + 40, id="the expert at sigma_e, shared"),
        pytest.param(2, False, 2 * (1 + 40), id="the expert at sigma_e, apart"),
        pytest.param(1, True, 2 * (1 + 40), id="another expert"),
    ],
)
def test_denoiser_works_once_for_both_stages(choice, share, calls, tmp_path):
    model, denoiser = denoised(choice, share)
    run(tmp_path / "run.ledger", model, plan=SamplingPlan(100, N), name="nosplit", indices=[0])
    trials = 4 * 3  # batches of trial copies, for each of four stages and sigmas
    assert denoiser.calls == calls + trials


def test_denoiser_works_once_for_both_stages_in_an_adaptive_run(tmp_path):
    """From the second look on, as far as router and expert go on together: here to the last look but one at least."""
    calls, votes = {}, {}
    for share in (True, False):
        model, denoiser = denoised(2, share)
        path = run(tmp_path / f"{share}.ledger", model, target=Tolerance(1e-6), name="nosplit", indices=[0])
        calls[share] = denoiser.calls
        votes[share] = sum(r[5] - r[4] for r in rows(path)["votes"])
    assert calls[False] >= votes[False] / 100
    assert calls[True] <= calls[False] - (3200 - 100) / 100


def test_sharing_changes_the_votes_of_the_class_at_sigma_e_and_no_others(everything, tmp_path):
    apart = blocks(run(tmp_path / "apart.ledger", dual(share=False), plan=FIXED, all_votes=True))
    together = blocks(everything)
    assert apart.keys() == together.keys()
    differing = {stream for name, stream in apart if not np.array_equal(apart[name, stream], together[name, stream])}
    assert differing == {s for _, s in apart if s.stage is Stage.CLASS and s.sigma == SIGMA_E}


@pytest.mark.parametrize("plan", [FIXED, ADAPTIVE], ids=["fixed", "adaptive"])
def test_run_that_was_begun_apart_stays_apart(plan, tmp_path):
    """As ledgers from before there was sharing: a model that would share goes on as they began."""
    path = run(tmp_path / "run.ledger", dual(share=False), plan=plan, indices=range(2))
    model = dual()
    run(path, model, plan=plan, indices=range(4))
    assert model.engine.noise == NOISE
    with Ledger.open(path) as ledger:
        assert ledger.header.noise == NOISE
        assert verify(ledger) == []
    assert rows(path) == rows(run(tmp_path / "at once.ledger", dual(share=False), plan=plan, indices=range(4)))


def test_only_a_model_with_an_expert_at_sigma_e_shares(tmp_path):
    lower = DualSmoothed(Small(9, answers=2), Small(7), (0.25, 0.5), SIGMA_E, batch_size=100)
    assert lower.engine.noise == NOISE
    assert Smoothed(Small(7), 0.5).engine.noise == NOISE
    assert dual().engine.noise == NOISE + SHARED
    assert dual(share=False).engine.noise == NOISE
