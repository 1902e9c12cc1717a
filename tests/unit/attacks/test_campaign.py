"""Campaigns on ledgers: which certificates are attacked, resuming, refusals, and the file."""

import json

import numpy as np
import pytest

from dualrs import Cascade, DualSmoothed, Effort, Sample, Smoothed, attack_ledger, certify_dataset
from dualrs.attacks import campaign
from dualrs.data.dataset import ArrayDataset
from dualrs.errors import BadSetting, BadTable, ForeignLedger
from dualrs.smoothed import answering
from dualrs.storage.attacks import read_attacks
from small import Small

QUICK = Effort(steps=2, restarts=1, copies=4, walk_votes=8, votes=50, verdict=50)


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    return ArrayDataset(rng.integers(0, 256, (6, 1, 6, 6), dtype=np.uint8), labels=[0, 1, 2, 0, 1, 2])


@pytest.fixture
def run(tmp_path, images):
    """A ledger of a fixed sigma, its model and how to attack it."""
    model = Smoothed(Small(), sigma=0.1)
    path = tmp_path / "run.ledger"
    certify_dataset(model, images, path, n=100, n0=20, seed=1)

    def attacked(out="run.attack", model=model, data=images, **settings):
        return attack_ledger(model, data, path, tmp_path / out, **{"effort": QUICK, "bracket": False} | settings)

    attacked.path = path
    attacked.out = tmp_path / "run.attack"
    return attacked


class TestCampaign:
    def test_attacks_what_is_certified(self, run):
        certificates = Sample.open(run.path).certify()
        found = run()
        assert [row.radius for row in found] == [c.radius for c in certificates if not c.abstained]
        assert [row.id for row in read_attacks(run.out)] == [row.id for row in found]
        assert found.broken == 0

    def test_only_some_inputs(self, run):
        whole = {row.id for row in run("whole.attack")}
        assert {row.id for row in run(indices={0, 1})} <= whole
        assert len(read_attacks(run.out)) <= 2

    def test_resumes_after_a_line_that_was_cut_off(self, run):
        first = run()
        lines = run.out.read_bytes().splitlines(keepends=True)
        run.out.write_bytes(b"".join(lines[:2]) + lines[2][:10])
        again = run()
        assert [row.id for row in again] == [row.id for row in first]
        assert run.out.read_bytes().splitlines(keepends=True)[:2] == lines[:2]
        assert len(run.out.read_bytes().splitlines()) == len(lines)

    def test_parts_agree_on_the_number_of_certificates(self, run, monkeypatch):
        """A verdict's level is alpha over all certificates of the ledger, whatever part is attacked."""
        count = len(run("whole.attack"))
        levels, made = [], campaign.Attacker
        monkeypatch.setattr(campaign, "Attacker", lambda model, terms: levels.append(terms.count) or made(model, terms))
        run(indices={0, 1})
        assert read_attacks(run.out).settings["count"] == count
        whole = run(indices={2, 3, 4, 5})
        assert levels == [count, count]
        assert whole.settings["count"] == count
        assert len(read_attacks(run.out)) == count

    def test_other_number_of_certificates_is_refused(self, run):
        run()
        line, rest = run.out.read_text().split("\n", 1)
        run.out.write_text(json.dumps(json.loads(line) | {"count": 2}) + "\n" + rest)
        with pytest.raises(ForeignLedger, match="another count"):
            run()

    def test_other_settings_are_refused(self, run):
        run()
        with pytest.raises(ForeignLedger, match="another effort"):
            run(effort=Effort(steps=1))

    def test_another_version_of_the_attack_is_refused(self, run, monkeypatch):
        """Constants of the attack are not in its file; its version stands for them."""
        run()
        monkeypatch.setattr(campaign, "VERSION", campaign.VERSION + 1)
        with pytest.raises(ForeignLedger, match="another version of the attack"):
            run()

    def test_a_file_from_before_versions_is_refused(self, run):
        run()
        line, rest = run.out.read_text().split("\n", 1)
        old = {k: v for k, v in json.loads(line).items() if k != "version"} | {"bracket": False}
        run.out.write_text(json.dumps(old) + "\n" + rest)
        with pytest.raises(ForeignLedger, match="another version of the attack"):
            run()

    def test_other_network_is_refused(self, run):
        with pytest.raises(ForeignLedger, match="not the one that voted"):
            run(model=Smoothed(Small(seed=1), sigma=0.1))

    def test_other_data_are_refused(self, run, images):
        with pytest.raises(ForeignLedger, match="other data"):
            run(data=ArrayDataset(np.zeros((6, 1, 6, 6), dtype=np.uint8)))

    @pytest.mark.parametrize(
        "content", [b"", b"{}\n", b'{"format":"other"}\n', b"\x00\n", b'{"format":"dualrs attack 1"}\n']
    )
    def test_other_files_are_refused(self, tmp_path, content):
        path = tmp_path / "x.attack"
        path.write_bytes(content)
        with pytest.raises(BadTable, match="not a file of `dualrs attack`"):
            read_attacks(path)

    def test_nearest_image_is_kept(self, run, images):
        found = run(bracket=True)
        for row, kept in zip(found, read_attacks(run.out), strict=True):
            assert json.dumps(row.line()) == json.dumps(kept.line())
            if row.upper is not None:
                assert np.sqrt((kept.change.astype(np.int64) ** 2).sum()) / 255 == row.upper


class TestBracketLater:
    """Certificates are tried first; the search beyond their radii is added to the same file."""

    def test_is_added_without_another_verdict_inside(self, run, monkeypatch):
        tried = run()
        before = run.out.read_bytes()
        monkeypatch.setattr(campaign.Attacker, "_try", None)  # it would be called for an input that is tried again
        whole = run(bracket=True)
        assert run.out.read_bytes().startswith(before)  # lines are only ever added
        assert [row.id for row in whole] == [row.id for row in tried]
        assert len(whole.bracketed) == len(whole)
        for was, now in zip(tried, whole, strict=True):
            assert (was.flipped, was.radius) == (now.flipped, now.radius)
            assert now.backward > was.backward  # the cost of both
        assert [row.line() for row in read_attacks(run.out)] == [row.line() for row in whole]

    def test_of_some_inputs(self, run):
        run()
        run(bracket=True, indices={0, 1, 2})
        found = read_attacks(run.out)
        assert 0 < len(found.bracketed) < len(found)
        assert np.isfinite(found.ratio) or any(row.upper is None for row in found.bracketed)
        assert f"of {len(found.bracketed)}" in str(found)

    def test_what_has_a_bracket_keeps_it(self, run):
        run(bracket=True)
        content = run.out.read_bytes()
        run()
        run(bracket=True)
        assert run.out.read_bytes() == content


class TestAnswering:
    """Which model a method of a run is about."""

    def test_of_a_dual_model(self):
        dual = DualSmoothed(Small(answers=2), Small(), sigmas=(0.1, 0.2), sigma_e=0.2, confidences=(0.5,))
        assert answering(dual, "paper") == (dual, "paper")
        alone, rule = answering(dual, "sigma-0.2")
        assert (type(alone), alone.sigmas, rule) == (Smoothed, (0.2,), None)
        assert alone.classifier.module is dual.experts[0.2].module.network
        stages, rule = answering(dual, "cascade-0.5")
        assert (type(stages), stages.sigmas, stages.kind.confidences, rule) == (
            Cascade, (0.1, 0.2), (0.5,), "cascade-0.5",
        )  # fmt: skip

    def test_runs_as_the_model_does(self):
        """In another number format the networks would answer otherwise than those that were certified."""
        dual = DualSmoothed(Small(answers=2), Small(), sigmas=(0.1, 0.2), sigma_e=0.2, batch_size=7, dtype="bfloat16")
        for method in ("sigma-0.2", "cascade", "paper"):
            engine = answering(dual, method)[0].engine
            assert (engine.batch_size, engine.dtype, engine.device) == (7, "bfloat16", dual.engine.device)

    def test_method_without_a_model_is_refused(self):
        dual = DualSmoothed(Small(answers=2), Small(), sigmas=(0.1, 0.2), sigma_e=0.2)
        with pytest.raises(BadSetting):
            answering(dual, "multiscale")
