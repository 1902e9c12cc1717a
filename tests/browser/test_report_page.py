"""The page as a reader uses it: curves, filters, an input, keys, narrow and dark."""

import pytest

from dualrs.report.gallery import BY_CORE, FLAGS, LIMITED_BY_STAGE, WRONG

CARDS = "document.querySelectorAll('#cards button')"
TIP = "document.querySelector('#accuracy-chart .tip')"


def test_curves_are_drawn_and_the_legend_switches_them(browser, report):
    _, runs = report
    every = sum(len(run.methods) + 1 for run in runs)  # and the envelope of each
    assert browser.evaluate("document.querySelectorAll('#legend button').length") == every
    curves = "document.querySelectorAll('#accuracy-chart path').length"
    assert browser.evaluate(curves) == 2  # of several runs, each one's own rule
    browser.click("#legend button[aria-pressed=false]")
    assert browser.evaluate(curves) == 3
    browser.click("#legend button[aria-pressed=true]")
    assert browser.evaluate(curves) == 2
    longest = "Math.max(...[...document.querySelectorAll('#accuracy-chart path')].map((p) => p.getTotalLength()))"
    assert browser.evaluate(longest) > 1000


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
    assert set(drawn) == {"best", "regret", "slack", "p_a"}
    assert browser.evaluate("document.querySelectorAll('[data-diagnostic=regret] path').length") == 2


@pytest.mark.parametrize("flag", [flag for flag in FLAGS if flag not in (BY_CORE, LIMITED_BY_STAGE)])
def test_filters_show_just_their_inputs(browser, report, flag):
    _, (run, _) = report
    browser.click(f"#filters button[data-flag='{flag}']")
    shown = browser.evaluate(f"[...{CARDS}].map((b) => b.dataset.input)")
    assert shown == [why.id for why in run.whys if flag in why.flags]
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
    browser.evaluate("const e = document.querySelector('#run'); e.value = '1'; e.dispatchEvent(new Event('change'))")
    assert browser.evaluate(f"{CARDS}.length") == len(few.whys)
    assert "No images." in browser.evaluate("document.querySelector('#gallery-note').textContent")
    wrong = sum(WRONG in why.flags for why in few.whys)
    assert browser.evaluate(f"document.querySelector(\"[data-flag='{WRONG}']\").textContent") == f"{WRONG} {wrong}"


@pytest.mark.parametrize("width", [1280, 400])
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
