"""Votes drawn again: invented ones are found though every seal fits, and other networks or data are named."""

import random
import secrets
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from dualrs import DualSmoothed
from dualrs.cli import main
from dualrs.data.dataset import ArrayDataset
from dualrs.errors import BadSetting, ForeignLedger, LedgerError
from dualrs.jobs import assign_dataset, certify_dataset, label_dataset, redraw
from dualrs.jobs.recount import noise_of
from dualrs.sampling.noise import FIRST_NOISE, NOISE, SHARED, NoiseSource
from dualrs.schemes import rule
from dualrs.smoothed import Pool, RouterAlone
from dualrs.storage import Ledger, verify
from dualrs.storage.database import APPLICATION, SCHEMA
from dualrs.storage.rows import Concluded, Rows
from dualrs.votes import Part, Purpose, SamplingPlan, Stage
from small import Small

IMAGES = np.random.default_rng(0).integers(0, 256, (4, 1, 6, 6), dtype=np.uint8)
LABELS = [0, 1, 2, 0]
DATA = ArrayDataset(IMAGES, LABELS, name="four images")
SIGMAS, SIGMA_E = (0.25, 0.5), 0.5
PLAN = SamplingPlan(n0=30, n=1200)
ALL = 10**6  # more units than there are
RESULTS = Path(__file__).parents[3] / "results"


def dual(router=None, classifier=None, sigmas=SIGMAS, sigma_e=SIGMA_E, **options):
    return DualSmoothed(
        router or Small(6, answers=2), classifier or Small(7), sigmas, sigma_e, **({"batch_size": 100} | options)
    )


@pytest.fixture(scope="module")
def made_once(tmp_path_factory):
    path, model = tmp_path_factory.mktemp("whole") / "run.ledger", dual()
    certify_dataset(
        model, DATA, path, plan=PLAN, alpha=0.01, rule=model.rule(), indices=range(4), all_votes=True, seed=3
    )
    return path


@pytest.fixture
def path(made_once, tmp_path):
    copy = tmp_path / "run.ledger"
    copy.write_bytes(made_once.read_bytes())
    return copy


def redrawn(path, model=None, count=ALL, data=DATA):
    with Ledger.open(path) as ledger:
        return redraw(model or dual(), data, ledger, count)


def problems(path):
    with Ledger.open(path) as ledger:
        return verify(ledger)


def invent(path, input_id="2", start=1000):
    """Give a class all votes of a unit, and put every seal, count and certificate right; says which unit it was."""
    with Ledger.open(path) as ledger:
        held = list(ledger._units("SELECT * FROM votes WHERE input = ?", (input_id,)))
        unit, counts = next((u, c) for u, c in held if _is_estimation(u) and u.start == start)
        invented = np.zeros_like(counts)
        invented[:, 0] = counts.sum(axis=1)
        assert not np.array_equal(invented, counts)
        row = ledger.rows.of_unit(unit, invented)
    write(path, "votes", row)
    with Ledger.open(path) as ledger:
        kept = ledger.certificates()[input_id]
        certificate = rule(ledger.header.rule).certify(ledger.votes([input_id]), ledger.header.alpha)[0]
        row = ledger.rows.of_certificate(input_id, Concluded(certificate, kept.seconds, kept.units))
    write(path, "certificates", row)
    return unit


def _is_estimation(unit):
    return (unit.stream.stage, unit.stream.part) == (Stage.CLASS, Part.ESTIMATION)


def write(path, table, row):
    """Put a row into a ledger, behind its back, in place of the one that is there."""
    with closing(sqlite3.connect(path)) as connection, connection:
        put(connection, table, row)


def put(connection, table, row):
    connection.execute(f"REPLACE INTO {table} VALUES ({', '.join('?' * len(row))})", row)


# Honest ledgers


def test_untouched_ledger_comes_out_the_same(path):
    before = path.read_bytes()
    found = redrawn(path)
    # four inputs, at three stages 30 selection votes and 1,200 of estimation: in units of 1,000 at most
    assert (found.units, found.drawn, found.problems) == (4 * 3 * 3, 4 * 3 * 3, [])
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["run.ledger"]


def test_some_units_are_drawn_and_the_chance_is_theirs(path):
    found = redrawn(path, count=5)
    assert (found.units, found.drawn, found.problems) == (36, 5, [])
    assert found.chance(0.1) == pytest.approx(1 - 0.9**5)
    assert found.chance(1.0) == 1.0
    assert found.chance(0.0) == 0.0


def test_batch_size_is_that_of_the_run(path):
    model = dual(batch_size=64)
    assert redrawn(path, model).problems == []
    assert model.engine.batch_size == 100


def test_copies_that_stages_share_or_not_are_those_of_the_run(tmp_path):
    path, model = tmp_path / "apart.ledger", dual(share=False)
    certify_dataset(model, DATA, path, plan=PLAN, alpha=0.01, rule=model.rule(), indices=range(2), seed=3)
    assert redrawn(path, dual(share=True)).problems == []


def test_unfinished_ledger_and_one_of_a_secret_seed_come_out_the_same(tmp_path):
    path, model = tmp_path / "run.ledger", dual()

    def stop(progress):
        if progress.votes > 3000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        certify_dataset(model, DATA, path, plan=PLAN, alpha=0.01, rule=model.rule(), indices=range(4), report=stop)
    found = redrawn(path)
    assert 0 < found.units < 36
    assert found.problems == []


def test_labels_and_assigned_sigmas_are_drawn_again_on_their_own_noise(tmp_path):
    labels, assigned = tmp_path / "labels.ledger", tmp_path / "assigned.ledger"
    pool = Pool(Small(7), SIGMAS, batch_size=100)
    router = RouterAlone(Small(6, answers=2), SIGMAS, SIGMA_E, batch_size=100)
    label_dataset(pool, DATA, labels, n=300, alpha=0.01, indices=range(4), seed=3)
    assign_dataset(router, DATA, assigned, n=300, alpha=0.01, indices=range(4), seed=3)
    for ledger, model, units in ((labels, pool, 8), (assigned, router, 4)):
        found = redrawn(ledger, model)
        assert (found.units, found.drawn, found.problems) == (units, units, [])


def test_progress_is_reported(path):
    told = []
    with Ledger.open(path) as ledger:
        redraw(dual(), DATA, ledger, ALL, report=lambda progress: told.append((progress.checked, progress.to_check)))
    assert told[-1] == (4 * 3 * 1230, 4 * 3 * 1230)
    assert all(before[0] <= after[0] for before, after in pairwise(told))


# Invented votes


def test_invented_votes_are_found_though_every_seal_fits(path):
    unit = invent(path)
    assert problems(path) == []  # nothing in the file gives them away
    stream = unit.stream
    assert redrawn(path).problems == [
        f"input 2, {stream.part} votes 1000 to 1200 of class at sigma {stream.sigma}: drawn again, they come out "
        "differently"
    ]


def test_invented_votes_of_several_inputs_are_all_named(path):
    for input_id in ("0", "2", "3"):
        invent(path, input_id)
    assert problems(path) == []
    assert [sentence.split(",")[0] for sentence in sorted(redrawn(path).problems)] == ["input 0", "input 2", "input 3"]


def test_every_unit_is_as_likely_to_be_drawn_as_any_other(path, monkeypatch):
    """Nine of 36 units in 400 draws each; one of 36 fair ones is rejected with probability below 36 * 1e-8."""
    generator, drawn, times = random.Random(0), {}, 400
    monkeypatch.setattr(secrets, "SystemRandom", lambda: generator)
    with Ledger.open(path) as ledger:
        for _ in range(times):
            units = [unit for unit, _ in ledger.random_units(9)]
            assert len(set(units)) == 9
            for unit in units:
                drawn[unit] = drawn.get(unit, 0) + 1
    assert len(drawn) == 36
    assert all(binomtest(often, times, 9 / 36).pvalue > 1e-8 for often in drawn.values())


def test_which_units_are_drawn_cannot_be_foreseen(path, monkeypatch):
    """The choice is the operating system's: no seed of anybody decides it."""
    asked, honest = [], secrets.SystemRandom
    monkeypatch.setattr(secrets, "SystemRandom", lambda: asked.append(1) or honest())
    redrawn(path, count=1)
    assert asked


# Other networks, other data


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        pytest.param({"classifier": Small(8)}, "the network 'class 0.25' is not the one that voted", id="classifier"),
        pytest.param({"router": Small(8, answers=2)}, "the network 'router' is not the one that voted", id="router"),
        pytest.param(
            {"classifier": Small(7, shift=0.6)}, "the networks answer otherwise than those that voted", id="constant"
        ),
    ],
)
def test_another_network_is_named(other, sentence, path):
    found = redrawn(path, dual(**other)).problems
    assert found[0].startswith(sentence)
    assert any("drawn again, they come out differently" in problem for problem in found)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param({"data": ArrayDataset(IMAGES ^ 1, LABELS, name="ours")}, "ours is other data", id="pixels"),
        pytest.param({"data": ArrayDataset(IMAGES, LABELS[::-1], name="ours")}, "ours is other data", id="labels"),
        pytest.param(
            {"model": dual(dtype="bfloat16")},
            "was voted in float32, and the networks run in bfloat16",
            id="precision",
        ),
    ],
)
def test_other_data_or_precision_is_refused(given, message, path):
    with pytest.raises(ForeignLedger, match=message):
        redrawn(path, **given)


def test_pixels_that_a_dataset_denies_having_changed_are_found(path):
    """Its fingerprint is a claim; votes are not."""
    data = ArrayDataset(IMAGES ^ 128, LABELS, name=DATA.name)
    data.fingerprint = DATA.fingerprint
    found = redrawn(path, data=data).problems
    assert found[0].startswith("the networks answer otherwise")  # as the first image is another
    assert len(found) > 1


def test_a_model_of_another_kind_is_named_and_draws_nothing(path):
    found = redrawn(path, dual(sigmas=(0.125, 0.5))).problems
    assert any("the network 'class 0.125' is not the one that voted" in problem for problem in found)
    assert not any("drawn again" in problem for problem in found)


def test_copies_that_only_the_run_shares_are_no_invention(tmp_path):
    made = tmp_path / "shared.ledger"
    certify_dataset(dual(), DATA, made, plan=PLAN, alpha=0.01, rule=dual().rule(), seed=3, indices=[0])
    with pytest.raises(ForeignLedger, match="share noisy copies at sigma_e, and those of this model do not"):
        redrawn(made, dual(share=False))


def test_input_that_was_removed_is_a_sentence(path):
    with closing(sqlite3.connect(path)) as file:
        file.execute("DELETE FROM inputs")
        file.commit()
    with pytest.raises(LedgerError, match="has votes but is not among the inputs"):
        redrawn(path)
    with pytest.raises(LedgerError, match="has votes but is not among the inputs"):
        certify_dataset(
            dual(), DATA, path, plan=PLAN, alpha=0.01, rule=dual().rule(), seed=3, indices=[0], all_votes=True
        )


@pytest.mark.parametrize("count", [0, -1])
def test_number_of_units_must_be_positive(count, path):
    with pytest.raises(BadSetting, match=rf"at least 1, got {count}"):
        redrawn(path, count=count)


def test_altered_header_is_refused(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("""UPDATE header SET fields = replace(fields, '"seed":3', '"seed":4')""")
    with pytest.raises(LedgerError, match="header"):
        redrawn(path)


# The noise of a header


def changed_header(path, **changes):
    with Ledger.open(path) as ledger:
        return replace(ledger.header, **changes)


@pytest.mark.parametrize(("shared", "by_name"), [(s, b) for s in ("", SHARED) for b in (False, True)])
def test_noise_of_a_run_is_that_of_its_format(shared, by_name, made_once):
    noise = (FIRST_NOISE if by_name else NOISE) + shared
    source = noise_of(changed_header(made_once, noise=noise, format=1 if by_name else 2))
    assert (source.purpose, source.seed, source.by_name) == (Purpose.CERTIFY, 3, by_name)


def test_noise_of_committed_results_is_by_name_where_the_format_is_the_first():
    first = sorted((RESULTS.parent / "tests" / "fixtures").glob("*.ledger"))
    ledgers = sorted(RESULTS.rglob("*.ledger"))
    assert len(first) == 2
    assert ledgers
    for ledger in (*first, *ledgers):
        with Ledger.open(ledger) as opened:
            assert noise_of(opened.header).by_name == (opened.header.format == 1) == (ledger in first), ledger


@pytest.fixture
def first_format(tmp_path, monkeypatch):
    """A ledger as dualrs wrote it at first: a header without a list of inputs, and noise by name."""
    recent, path, model, honest = tmp_path / "recent.ledger", tmp_path / "first.ledger", dual(), NoiseSource.address
    with monkeypatch.context() as patch:
        patch.setattr(NoiseSource, "address", lambda self, *place: honest(replace(self, by_name=True), *place))
        certify_dataset(model, DATA, recent, plan=PLAN, alpha=0.01, rule=model.rule(), indices=range(2), seed=3)
    header = changed_header(recent, noise=FIRST_NOISE + SHARED, format=1, identity={})
    rows = Rows(header, header.fingerprint)
    with Ledger.open(recent) as ledger, closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE header (fingerprint TEXT NOT NULL, fields TEXT NOT NULL, seal TEXT NOT NULL)")
        for statement in (f"PRAGMA application_id = {APPLICATION}", "PRAGMA user_version = 1", *SCHEMA[1:]):
            connection.execute(statement)
        put(connection, "header", (header.fingerprint, header.to_json(), rows.seal("header", header.to_json())))
        for row in ledger.inputs():
            put(connection, "inputs", rows.of_input(row))
        for unit, counts in ledger._units("SELECT * FROM votes"):
            put(connection, "votes", rows.of_unit(unit, counts))
        for input_id, concluded in ledger.certificates().items():
            put(connection, "certificates", rows.of_certificate(input_id, concluded))
    return path


def test_ledger_of_the_first_format_is_drawn_again_on_its_own_noise(first_format):
    assert problems(first_format) == []
    found = redrawn(first_format)
    assert found.drawn == found.units > 0
    assert found.problems == []
    invent(first_format, "1")
    assert problems(first_format) == []
    assert len(redrawn(first_format).problems) == 1


def test_noise_that_nobody_draws_any_more_is_refused(path):
    other = path.parent / "other.ledger"
    Ledger.create_or_resume(other, changed_header(path, noise="dice")).close()
    with pytest.raises(ForeignLedger, match=r"the noise of .* is dice, which this dualrs does not draw"):
        redrawn(other)


# The command line

NETWORKS = '''
import torch
from torch import nn


class Levels(nn.Module):
    """Answers by the mean of the image: one logit per answer, each highest at its own grey level."""

    def __init__(self, levels, shift=0.0):
        super().__init__()
        self.levels, self.shift = nn.Parameter(torch.tensor(levels)), shift

    def forward(self, x):
        return -(x.mean(dim=(1, 2, 3))[:, None] - self.shift - self.levels).abs()


router = Levels([0.2, 0.8]).eval()
classifier = Levels([0.1, 0.5, 0.9]).eval()
other = Levels([0.1, 0.4, 0.9]).eval()
constant = Levels([0.1, 0.5, 0.9], shift=0.1).eval()


def data():
    grey = torch.linspace(0, 255, 4).byte()
    return grey[:, None, None, None].expand(4, 1, 4, 4), [0, 1, 1, 2]


def bright():
    return data()[0] // 2 + 100
'''
RUN = ("--router", "net.py:router", "--classifier", "net.py:classifier", "--data", "net.py:data")


@pytest.fixture
def dualrs(tmp_path, monkeypatch, capsys):
    """Run the command line in this process; returns exit code, standard output, standard error."""
    (tmp_path / "net.py").write_text(NETWORKS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["dualrs", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return command


@pytest.fixture
def certified(dualrs, tmp_path):
    """A run by the command line; its seed is secret."""
    settings = ("--sigmas", "0.1,0.2", "--sigma-e", "0.2", "--n", "200", "--n0", "20", "--alpha", "0.01")
    code, _, err = dualrs("certify", *RUN, *settings, "--all-votes", "-o", "run.ledger")
    assert code == 0, err
    return tmp_path / "run.ledger"


def test_command_says_what_was_drawn_and_with_what_chance(certified, dualrs):
    code, out, err = dualrs("verify", certified.name, "--redraw", "5", *RUN)
    assert code == 0, err
    assert out.splitlines() == [
        "run.ledger: 4 certificates follow from their votes; nothing was altered",
        "run.ledger: 5 of 24 units of votes, drawn again, came out the same; invented units would have been found with "
        "probability 41.0% had it been one in 10 and 4.9% had it been one in 100",
    ]


def test_command_names_invented_votes(certified, dualrs):
    invent(certified, start=0)
    code, out, _ = dualrs("verify", certified.name)
    assert code == 0, out
    code, out, _ = dualrs("verify", certified.name, "--redraw", "100", *RUN)
    assert code == 1
    assert "run.ledger: 4 certificates follow from their votes; nothing was altered" in out
    assert "input 2, estimation votes 0 to 200 of class at sigma 0.1: drawn again, they come out differently" in out
    assert out.endswith("run.ledger: 1 problems\n")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("other", "the network 'class 0.1' is not the one that voted: it has other weights or another shape"),
        ("constant", "the networks answer otherwise than those that voted: their code, a library or the hardware"),
    ],
)
def test_command_names_another_network(name, sentence, certified, dualrs):
    code, out, _ = dualrs("verify", certified.name, "--redraw", "100", *RUN, "--classifier", f"net.py:{name}")
    assert code == 1
    assert sentence in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param((*RUN[:4], "--data", "net.py:bright"), "is other data; give the same", id="other data"),
        pytest.param(RUN[:4], "name the images: --data, --recipe or --model", id="no data"),
        pytest.param(RUN[2:], "name its router: --router, --recipe or --model", id="no router"),
        pytest.param(
            (*RUN[:2], *RUN[4:]), "name its classifier: --classifier, --recipe or --model", id="no classifier"
        ),
    ],
)
def test_command_without_what_it_needs_says_so(words, sentence, certified, dualrs):
    before = certified.read_bytes()
    code, _, err = dualrs("verify", certified.name, "--redraw", "5", *words)
    assert code == 2
    assert sentence in " ".join(err.split())
    assert "Traceback" not in err
    assert certified.read_bytes() == before
