"""The page as a reader uses it: curves, filters, an input, keys, narrow and dark."""

import numpy as np
import pytest
from chromium import choose, move

from dualrs.report.accuracy import certified_accuracy
from dualrs.report.compare import compare
from dualrs.report.diagnostics import fixed_radii, p_a, slack
from dualrs.report.gallery import BY_CORE, FLAGS, LIMITED_BY_STAGE, WRONG
from dualrs.storage import Ledger, derive
from dualrs.storage.results import read_sampled

CARDS = "document.querySelectorAll('#cards button')"
TIP = "document.querySelector('#accuracy-chart .tip')"


CELLS = "[...document.querySelectorAll('{} tbody tr')].map((r) => [...r.children].map((c) => c.textContent))"
CURVES = "document.querySelectorAll('#accuracy-chart [data-curve]').length"


def test_curves_are_drawn_and_the_legend_switches_them(browser, report):
    _, runs = report
    every = sum(len(run.methods) + 1 for run in runs)  # and the envelope of each
    assert browser.evaluate("document.querySelectorAll('#legend button').length") == every
    # The own rule, three sigmas, the cascade, envelope and oracle of the run that is looked at; the rule of the other.
    assert browser.evaluate(CURVES) == 8
    browser.click("#legend summary")
    browser.click("#legend button[aria-pressed=false]")
    assert browser.evaluate(CURVES) == 9
    browser.click("#legend button[aria-pressed=true]")
    assert browser.evaluate(CURVES) == 8
    longest = "Math.max(...[...document.querySelectorAll('#accuracy-chart path')].map((p) => p.getTotalLength()))"
    assert browser.evaluate(longest) > 1000


def test_it_opens_with_what_came_out(browser, report):
    _, (run, _) = report
    own, fixed = run.methods["fusion"].results, [m.results for m in run.methods.values() if m.sigma]
    said = browser.evaluate("document.querySelector('#sentence').textContent")
    reach = [int((r.correct & (r.radius >= 0.5)).sum()) for r in (own, *fixed)]
    assert f"the dual predictor (fusion) of all certifies {reach[0]} of 40 images" in said
    assert f"certifies {max(reach[1:])} (difference" in said


def test_the_sentence_follows_its_radius(browser, report):
    _, (run, _) = report
    move(browser, "radius", 0)
    own = run.methods["fusion"].results
    said = browser.evaluate("document.querySelector('#sentence').textContent")
    assert f"At L2 radius 0.00 the dual predictor (fusion) of all certifies {int((own.correct).sum())} of 40" in said


def test_the_table_has_own_methods_first_and_folds_the_others(browser, report):
    _, (run, _) = report
    names = "[...document.querySelectorAll('#table tbody th[scope=row]')].map((c) => c.textContent)"
    first = browser.evaluate(names)
    assert first[:2] == ["dual, rule fusion", "cascade, no router"]
    assert "dual, rule nosplit" not in first
    browser.click("#table [data-fold='0']")
    unfolded = browser.evaluate(names)
    assert "dual, rule nosplit" in unfolded
    rows = browser.evaluate(CELLS.format("#table"))
    cells = {row[0]: row[1:] for row in rows[: rows.index(next(r for r in rows if r[0] == "few"))]}
    for method in run.methods.values():
        accuracy = certified_accuracy(method.results)
        assert cells[method.title][:4] == [f"{100 * a:.1f}" for a in accuracy[:4]]
        assert cells[method.title][-1] == f"{method.votes_per_input.mean():,.0f}"


def test_differences_have_the_intervals_of_the_library(browser, report):
    _, (run, _) = report
    choose(browser, "baseline", "sigma-0.5")
    rows = browser.evaluate(CELLS.format("#difference-table"))
    radii = [float(row[0]) for row in rows]
    table = compare(run.methods, radii, "sigma-0.5")
    (row,) = (row for row in table.rows if row.name == "fusion")
    for (_, points, interval), expected in zip(rows, row.differences, strict=True):
        found = [float(text.replace("−", "-")) for text in (points, *interval.split(" to "))]
        # 10,000 resamples find the ends of the exact law up to one input of 40.
        assert found == pytest.approx([100 * v for v in (expected.value, expected.low, expected.high)], abs=2.51)


def test_pointing_at_the_curves_gives_their_values(browser, report):
    assert browser.evaluate(f"{TIP}.hidden")
    browser.click("#accuracy-chart svg")
    assert not browser.evaluate(f"{TIP}.hidden")
    assert "all · dual, rule fusion" in browser.evaluate(f"{TIP}.textContent")


def test_arrow_keys_read_the_curves(browser, report):
    _, (run, _) = report
    browser.evaluate("document.querySelector('#accuracy-chart svg').focus()")
    for _ in range(3):
        browser.press("ArrowRight")
    results = run.methods["fusion"].results
    expected = 100 * (results.correct & (results.radius >= 0.15)).mean()
    assert "L2 radius 0.15" in browser.evaluate(f"{TIP}.textContent")
    rows = browser.evaluate(f"[...{TIP}.children].map((row) => row.textContent)")
    assert f"all · dual, rule fusion{expected:.1f}%" in rows


def test_diagnostics_are_drawn(browser):
    drawn = browser.evaluate("[...document.querySelectorAll('[data-diagnostic]')].map((p) => p.dataset.diagnostic)")
    assert set(drawn) == {"radii", "best", "regret", "slack", "p_a"}
    assert browser.evaluate("document.querySelectorAll('[data-diagnostic=regret] .chart > svg path').length") == 2


def test_diagnostics_are_those_of_the_library(browser, ledgers):
    with Ledger.open(ledgers["all"]) as ledger:
        fixed, sampled = fixed_radii(ledger), read_sampled(ledger)
        routed = slack(derive(ledger, "paper")[1])
    shown = browser.evaluate("[regrets, slacks, shares].map((measure) => [...measure(current())])")
    for found, expected in zip(shown, (fixed.regret, routed, p_a(sampled)), strict=True):
        assert found == pytest.approx(np.sort(expected), abs=1e-9)
    best = browser.evaluate("[...document.querySelectorAll('[data-diagnostic=best] span')].map((s) => s.textContent)")
    assert [int(text.split()[0]) for text in best[:3]] == fixed.best_counts.tolist()


@pytest.mark.parametrize("flag", [flag for flag in FLAGS if flag not in (BY_CORE, LIMITED_BY_STAGE)])
def test_filters_show_just_their_inputs(browser, report, flag):
    _, (run, _) = report
    expected = [why.id for why in run.whys if flag in why.flags]
    if not expected:
        assert browser.evaluate(f"document.querySelector(\"[data-flag='{flag}']\")") is None
        return
    browser.click(f"#filters button[data-flag='{flag}']")
    shown = browser.evaluate(f"[...{CARDS}].map((b) => b.dataset.input)")
    assert shown == expected
    assert browser.evaluate("document.querySelector('#found').textContent") == f"{len(shown)} of 40 inputs."
    browser.click(f"#filters button[data-flag='{flag}']")
    assert browser.evaluate(f"{CARDS}.length") == 40


def test_an_input_opens_and_says_why(browser, report):
    _, (run, _) = report
    names = ("cat", "dog", "owl", "<b>emu</b>")
    browser.click("#cards button[data-input='toy/5']")
    assert browser.evaluate("document.querySelector('#why').open")
    assert browser.evaluate("document.querySelector('#why-reason').textContent") == run.whys[5].reason(names)
    assert browser.evaluate("document.querySelector('#why img').naturalWidth") == 8
    assert browser.evaluate("document.querySelectorAll('#why .track').length") > 10
    browser.press("ArrowRight")
    assert browser.evaluate("document.querySelector('#why-title').textContent") == "Input toy/6"
    browser.press("Escape")
    assert not browser.evaluate("document.querySelector('#why').open")


def test_an_attack_shows_its_image_its_difference_and_a_scale(browser):
    browser.click("#cards button[data-input='toy/5']")
    text = browser.evaluate("document.querySelector('#why .attack').textContent")
    assert "another answer, owl, is at distance 0.7500; it aimed at class at sigma 0.5" in text
    shown = "[...document.querySelectorAll('#why .attack img')].map((i) => [i.alt, i.naturalWidth])"
    assert browser.evaluate(shown) == [["answered with owl", 8], ["the difference, times 14", 8]]
    part = "document.querySelector('#why .known').offsetWidth / document.querySelector('#why .range').clientWidth"
    assert browser.evaluate(part) == pytest.approx(1 / 3, abs=0.01)
    browser.press("ArrowRight")
    assert browser.evaluate("document.querySelector('#why .attack')") is None


def test_keys_alone_open_and_close_an_input(browser):
    browser.evaluate("document.querySelector('#cards button').focus()")
    browser.press("Enter")
    assert browser.evaluate("document.querySelector('#why').open")
    browser.press("Escape")
    assert browser.evaluate("document.activeElement.dataset.input") == "toy/0"  # focus is back where it was


def test_search_and_order(browser, report):
    _, (run, _) = report
    change = "{0}.value = '{1}'; {0}.dispatchEvent(new Event('{2}'))"
    browser.evaluate(change.format("document.querySelector('#order')", "falling", "change"))
    largest = max(run.whys, key=lambda why: why.certificate.radius)
    assert browser.evaluate(f"{CARDS}[0].dataset.input") == largest.id
    browser.evaluate(change.format("document.querySelector('#find')", "toy/3", "input"))
    assert browser.evaluate(f"{CARDS}.length") == 11  # 3 and 30 to 39


def test_another_run_is_chosen(browser, report):
    _, (_, few) = report
    choose(browser, "run", "1")
    assert browser.evaluate(f"{CARDS}.length") == len(few.whys)
    assert "No images." in browser.evaluate("document.querySelector('#gallery-note').textContent")
    wrong = sum(WRONG in why.flags for why in few.whys)
    assert browser.evaluate(f"document.querySelector(\"[data-flag='{WRONG}']\").textContent") == f"{WRONG} {wrong}"


@pytest.mark.parametrize("width", [1600, 1280, 760, 400])
def test_nothing_sticks_out_at_the_side(browser, width):
    browser.resize(width)
    browser.wait(f"document.querySelector('#accuracy-chart svg').clientWidth < {width}")
    browser.evaluate("document.querySelectorAll('#legend [aria-pressed=false]').forEach((button) => button.click())")
    browser.click("#accuracy-chart svg")  # the values, with the longest names, are in view now
    assert browser.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    browser.click("#cards button")
    assert browser.evaluate("document.querySelector('#why').getBoundingClientRect().right <= window.innerWidth")


def test_dark_and_light_differ_and_are_readable(browser):
    lightness = (
        "['color', 'backgroundColor'].map((key) => getComputedStyle(document.body)[key].match(/\\d+/g).slice(0, 3)"
        ".reduce((sum, v) => sum + +v, 0) / 765)"
    )
    ink, paper = browser.evaluate(lightness)
    assert paper - ink > 0.7
    browser.prefer("dark")
    ink, paper = browser.evaluate(lightness)
    assert ink - paper > 0.7


def test_a_run_with_a_core_network_says_who_answers(chromium, aces_page):
    page, run = aces_page
    chromium.errors.clear()
    chromium.open(page)
    chromium.wait("document.querySelectorAll('#accuracy-chart path').length > 0")
    chromium.click(f"#filters button[data-flag='{BY_CORE}']")
    shown = chromium.evaluate(f"[...{CARDS}].map((b) => b.dataset.input)")
    assert shown == [why.id for why in run.whys if BY_CORE in why.flags]
    chromium.click(f"#cards button[data-input='{shown[0]}']")
    text = chromium.evaluate("document.querySelector('#why').textContent")
    why = next(why for why in run.whys if why.id == shown[0])
    assert f"class {why.core} without a radius · by the core network" in text
    assert why.reason() in text
    assert "Selector votes at sigma 0.5" in text
    assert "entropy above 1" in text
    assert f"Core network, without noiseclass {why.core}" in text
    assert chromium.errors == []


def test_a_cascade_says_which_stage_limits_it(chromium, cascade_page):
    page, run = cascade_page
    chromium.errors.clear()
    chromium.open(page)
    chromium.wait("document.querySelectorAll('#accuracy-chart path').length > 0")
    chromium.click(f"#filters button[data-flag='{LIMITED_BY_STAGE}']")
    shown = chromium.evaluate(f"[...{CARDS}].map((b) => b.dataset.input)")
    assert shown == [why.id for why in run.whys if LIMITED_BY_STAGE in why.flags][: len(shown)]
    assert shown
    chromium.click(f"#cards button[data-input='{shown[0]}']")
    text = chromium.evaluate("document.querySelector('#why').textContent")
    why = next(why for why in run.whys if why.id == shown[0])
    assert why.reason() in text
    assert f"Class votes at sigma {why.certificate.rival:g}" in text
    assert chromium.errors == []
