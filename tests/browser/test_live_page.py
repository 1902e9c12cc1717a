"""What the page works out itself is what the library gives at the same settings, for every rule."""

import json
from pathlib import Path

import numpy as np
import pytest
from chromium import choose, move
from report_cases import ACE, BACKED, MIXED, a_header, made
from scipy.special import ndtri

from dualrs.certificates import Certificates
from dualrs.certificates.cascade import cascade
from dualrs.report.methods import methods
from dualrs.report.page import Pictures, read_run, write_page
from dualrs.schemes import ORACLE
from dualrs.storage import Ledger
from dualrs.storage.results import read_sampled
from dualrs.theory.bounds import lower, upper
from dualrs.theory.radius import round_down
from dualrs.votes import SamplingPlan, Tally

RESULTS = Path(__file__).parents[2] / "results"
ACES = {"rule": "aces-0.5", "sigmas": (0.5,), "sigma_e": 0.5, "thresholds": (0.5, 1.0)}
SETTINGS = {
    "dual": ({}, ("paper-1:4", "paper-9:1", "fusion-pair", "cascade@0.6", "cascade@0.5,0.5,0.7")),
    "two": ({"sigmas": (0.5, 1.0)}, ("fusion", "cascade@0.55")),
    "single": ({"rule": "cohen", "sigmas": (0.5,), "sigma_e": None}, ()),
    "aces": (ACES, ("aces-1",)),
    "ace": (ACE, ("fusion-pair",)),
    "mixed": (MIXED, ("paper-1:4", "fusion-pair")),
    "backed": (BACKED, ("cascade-0.4", "cascade-0.4,0.6@0.6", "cascade@0.5,0.5,0.7")),
}


def test_bounds_and_quantiles_to_nine_digits(browser):
    rng = np.random.default_rng(0)
    n = np.concatenate([rng.integers(1, 200, 2000), rng.choice([100, 500, 1_000, 10_000, 100_000], 3000)])
    few = n - rng.integers(0, np.minimum(n, 20) + 1)
    k = np.where(rng.random(5000) < 0.3, few, (rng.beta(0.5, 0.5, 5000) * n).astype(int))
    level = 10 ** rng.uniform(-8, -0.31, 5000)
    given = json.dumps([k.tolist(), n.tolist(), level.tolist()])
    script = (
        f"((k, n, level) => [lower, upper].map((bound) => k.map((_, i) => bound(k[i], n[i], level[i]))))(...{given})"
    )
    for found, expected in zip(browser.evaluate(script), (lower(k, n, level), upper(k, n, level)), strict=True):
        assert np.abs(np.array(found) - expected).max() < 1e-11
        inner = (expected > 0) & (expected < 1)
        radii = [ndtri(np.array(bounds)[inner]) for bounds in (found, expected)]
        assert np.abs(radii[0] - radii[1]).max() < 1e-9
    p = np.concatenate([10 ** rng.uniform(-15, -0.01, 1000), 1 - 10 ** rng.uniform(-12, -0.01, 1000)])
    assert np.abs(np.array(browser.evaluate(f"{json.dumps(p.tolist())}.map(quantile)")) - ndtri(p)).max() < 1e-12


def test_radii_are_rounded_down_as_the_library_does(browser):
    rng = np.random.default_rng(1)
    radii = np.concatenate([rng.normal(0, 1, 2000), rng.integers(0, 20_000, 2000) / 10_000]).tolist()
    assert browser.evaluate(f"{json.dumps(radii)}.map((r) => roundDown(r))") == [round_down(r) for r in radii]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("live")


def opened(chromium, folder, path):
    """The page of one ledger, opened; and its run."""
    with Ledger.open(path) as ledger:
        run = read_run(ledger, "run")
    page = folder / f"{path.stem}.html"
    page.write_text(write_page([run], [Pictures({})], command="dualrs report", version="0"), encoding="utf-8")
    chromium.errors.clear()
    chromium.open(page)
    chromium.wait("document.querySelectorAll('#controls *').length > 0")
    return run


def claims(chromium, name, settings=""):
    """What the script claims of every input under a rule, as columns."""
    found = chromium.evaluate(
        f"(() => {{ const look = new Look(data.runs[0]); Object.assign(look.settings, {{rule: {json.dumps(name)}, "
        f"{settings}}}); look.update(); return look.methods.get({json.dumps(name)}).claims.map((c) => [c.prediction, "
        "c.radius, c.sigma, String(c.rClass), String(c.rBefore), c.limit, c.outcome]); })()"
    )
    return [*zip(*found, strict=True)]


def agree(found, certificates):
    """Whether columns of the script are those of certificates."""
    prediction, radius, sigma, r_c, r_sigma, limit, outcome = found
    assert list(prediction) == certificates.prediction.tolist()
    assert np.abs(np.array(radius) - certificates.radius).max() < 1e-9
    for ours, theirs in ((r_c, certificates.r_c), (r_sigma, certificates.r_sigma)):
        numbers = np.array([float(text.replace("Infinity", "inf")) for text in ours])
        assert np.allclose(numbers, theirs, rtol=0, atol=1e-9)
    assert list(sigma) == certificates.sigma_c.tolist()
    assert list(limit) == certificates.limited_by.tolist()
    assert list(outcome) == certificates.outcome.tolist()


def demand_same(chromium, path, names=(), alphas=(None, 0.05, 0.0001)):
    with Ledger.open(path) as ledger:
        own = [name for name in methods(ledger) if name != ORACLE]
        for alpha in alphas:
            for name, method in methods(ledger, [*dict.fromkeys((*own, *names))], alpha).items():
                agree(claims(chromium, name, "" if alpha is None else f"alpha: {alpha}"), method.certificates)


@pytest.mark.parametrize("kind", SETTINGS)
def test_every_rule_gives_what_the_library_gives(chromium, folder, kind):
    changes, names = SETTINGS[kind]
    path = made(folder / f"{kind}.ledger", a_header(**changes), count=40)
    run = opened(chromium, folder, path)
    demand_same(chromium, path, names)
    explained = chromium.evaluate(
        "data.runs[0].ids.map((_, i) => { const look = current(), claim = look.own.claims[i]; return [reason("
        "look.hearing, look.settings.rule, i, claim, look.settings), look.flags(i), claimed(look.run, claim)]; })"
    )
    assert explained == [[why.reason(), list(why.flags), why.claim()] for why in run.whys]
    assert chromium.errors == []


EXPLAINED = """(() => {
  const look = new Look(data.runs[0]), worst = [0, 0];
  const off = (a, b) => a === b ? 0 : Math.abs(a - b);
  for (const rule of %s) {
    Object.assign(look.settings, { rule });
    look.update();
    look.own.claims.forEach((claim, i) => {
      if (claim.choice === 1) return;
      const least = Math.min(...termsOf(look, claim).map((term) => term.upTo));
      worst[0] = Math.max(worst[0], off(least, Math.min(claim.rClass, claim.rBefore)));
      if (claim.sigma) worst[1] = Math.max(worst[1], off(radiusOf(boundOf(look, i, claim)), claim.rClass));
      stepsOf(look, i, claim);
    });
  }
  return worst;
})()"""


@pytest.mark.parametrize("kind", SETTINGS)
def test_what_explains_a_radius_adds_up_to_it(chromium, folder, kind):
    changes, names = SETTINGS[kind]
    path = made(folder / f"explained-{kind}.ledger", a_header(**changes), count=30)
    run = opened(chromium, folder, path)
    rules = [name for name in (*run.methods, *names) if name != ORACLE]
    assert chromium.evaluate(EXPLAINED % json.dumps(rules)) == pytest.approx([0, 0], abs=1e-12)


def test_votes_that_pass(chromium, folder):
    path = RESULTS / "cascade" / "calibration.ledger"
    run = opened(chromium, folder, path)
    demand_same(chromium, path, ("cascade-0.4", "cascade-0.4,0.3@0.6", "cascade-0,0.5"), (None,))
    found = chromium.evaluate(
        "data.runs[0].ids.map((_, i) => reason(current().hearing, data.runs[0].rule, i, current().own.claims[i], "
        "current().settings))"
    )
    assert found == [why.reason() for why in run.whys]


def test_an_adaptive_run_keeps_its_looks(chromium, folder, adaptive_ledger):
    run = opened(chromium, folder, adaptive_ledger)
    (own,) = run.methods.values()
    agree(claims(chromium, own.name), own.certificates)
    assert chromium.evaluate("document.getElementById('n')") is None


def test_fewer_votes_are_the_first_blocks_of_the_run(chromium, folder):
    path = made(folder / "blocks.ledger", count=20)
    opened(chromium, folder, path)
    with Ledger.open(path) as ledger:
        scheme, ids = ledger.header.scheme, [row.id for row in ledger.inputs()]
        tallies = {name: Tally() for name in ids}
        for unit, counts in ledger.units():
            for block, row in enumerate(counts):
                if unit.stream.part == "selection" or unit.start + 100 * block < 200:
                    tallies[unit.input_id].put(unit.stream, unit.start + 100 * block, row)
        votes = scheme.gather([tallies[name] for name in ids], SamplingPlan(50, 200))
    for name in ("fusion", "cascade", "multiscale", "sigma-0.5"):
        agree(claims(chromium, name, "step: 1"), scheme.rule(name).certify(votes, 0.01))


def test_a_subset_of_sigmas_is_a_cascade_over_them(chromium, folder):
    path = made(folder / "subset.ledger", count=20)
    opened(chromium, folder, path)
    with Ledger.open(path) as ledger:
        votes = read_sampled(ledger).votes
    for kept in ((0.25, 1.0), (0.5,)):
        stages = sorted((e for e in votes.experts if e.sigma in kept), key=lambda e: -e.sigma)
        agree(claims(chromium, "cascade", f"sigmas: {list(kept)}"), Certificates.conclude(cascade(stages, 0.01)))


class TestControls:
    def test_alpha_moves_everything_and_says_that_it_is_a_look(self, browser, ledgers):
        chosen = browser.evaluate("(() => { const e = document.getElementById('alpha'); return [e.value, e.max]; })()")
        before = browser.evaluate("document.querySelector('#table tr.own').textContent")
        assert "Its guarantee: wrong with probability at most 0.01" in standing(browser)
        move(browser, "alpha", chosen[1])
        with Ledger.open(ledgers["all"]) as ledger:
            found = methods(ledger, ["fusion"], 0.1)["fusion"].results
        row = browser.evaluate("[...document.querySelector('#table tr.own').children].map((c) => c.textContent)")
        assert row[1] == f"{100 * (found.correct & (found.radius > 0)).mean():.1f}"
        assert browser.evaluate("document.querySelector('#table tr.own').textContent") != before
        assert "You look at: rule fusion, alpha 0.1" in standing(browser)
        assert "after the fact" in standing(browser)
        browser.click("#cards button[data-input='toy/0']")
        said = browser.evaluate("document.querySelector('#why').textContent")
        assert "A look after the fact: rule fusion, alpha 0.1" in said
        assert found.prediction[0] < 0 or f"within L2 radius {round_down(found.radius[0])}" in said
        browser.press("Escape")
        browser.click("#reset")
        assert browser.evaluate("document.querySelector('#table tr.own').textContent") == before
        assert browser.evaluate("document.getElementById('alpha').value") == chosen[0]

    def test_rule_split_and_thresholds_are_names_of_rules(self, browser):
        choose(browser, "rule", "paper")
        move(browser, "split", 0)
        assert browser.evaluate("current().settings.rule") == "paper-9:1"
        choose(browser, "rule", "cascade")
        move(browser, "threshold-0", 2)
        assert browser.evaluate("current().settings.rule") == "cascade@0.6"
        move(browser, "threshold-2", 1)
        assert browser.evaluate("current().settings.rule") == "cascade@0.6,0.5,0.5"
        move(browser, "threshold-2", 0)
        move(browser, "threshold-0", 0)
        assert browser.evaluate("current().settings.rule") == "cascade"

    def test_confidences_of_stages(self, chromium, cascade_page):
        chromium.errors.clear()
        chromium.open(cascade_page[0])
        chromium.wait("document.querySelectorAll('#controls *').length > 0")
        move(chromium, "confidence-0", 0)
        move(chromium, "confidence-1", 0)
        assert chromium.evaluate("current().settings.rule") == "cascade"
        move(chromium, "confidence-1", 2)
        assert chromium.evaluate("current().settings.rule") == "cascade-0,0.4"
        assert chromium.errors == []

    def test_one_sigma_is_always_left(self, browser):
        for sigma in ("0.25", "0.5", "1"):
            browser.click(f"#controls input[type=checkbox][value='{sigma}']")
        assert browser.evaluate("current().settings.sigmas") == [1]

    def test_keys_move_a_slider(self, browser):
        browser.evaluate("document.getElementById('n').focus()")
        browser.press("ArrowLeft")
        assert "n 200" in standing(browser)
        assert browser.evaluate("document.activeElement.id") == "n"
        assert browser.evaluate("document.activeElement.getAttribute('aria-valuetext')") == "200"

    def test_everything_that_can_be_moved_has_a_name(self, browser):
        nameless = (
            "[...document.querySelectorAll('input, select, button')].filter((e) => !(e.labels?.length || "
            "e.textContent.trim() || e.getAttribute('aria-label'))).map((e) => e.outerHTML)"
        )
        assert browser.evaluate(nameless) == []


def standing(browser):
    return browser.evaluate("document.getElementById('standing').textContent")
