"""Runs whose rules the page does not know: what it shows is what was derived, it says so, and nothing moves it."""

import pytest
from chromium import move
from report_cases import ASCENT, NEAR, a_header, made

from dualrs.report.page import Pictures, read_run, write_page
from dualrs.storage import Ledger
from dualrs.theory.radius import round_down

SETTINGS = {"near": NEAR, "ascent": ASCENT, "single": {"rule": "cohen", "sigmas": (0.5,), "sigma_e": None}}


@pytest.fixture(scope="module")
def settled(chromium, tmp_path_factory):
    """A page of a run by neighbours, one by ascent and one that can be moved, opened; and the runs."""
    folder, runs = tmp_path_factory.mktemp("settled"), []
    for name, changes in SETTINGS.items():
        with Ledger.open(made(folder / f"{name}.ledger", a_header(**changes), count=20)) as ledger:
            runs.append(read_run(ledger, name))
    page = folder / "report.html"
    page.write_text(write_page(runs, [Pictures({})] * 3, command="dualrs report", version="0"), encoding="utf-8")
    chromium.errors.clear()
    chromium.resize(1280)
    chromium.open(page)
    chromium.wait("document.querySelectorAll('#accuracy-chart path').length > 0")
    yield chromium, runs
    assert chromium.errors == []


def choose_run(browser, number):
    browser.evaluate(
        f"(() => {{ const e = document.getElementById('run'); e.value = '{number}'; "
        "e.dispatchEvent(new Event('change')); })()"
    )


def text(browser, selector):
    return browser.evaluate(f"document.querySelector({selector!r}).textContent")


def test_certificates_and_reasons_are_those_that_were_derived(settled):
    browser, runs = settled
    for place, run in enumerate(runs[:2]):
        for name, method in run.methods.items():
            found = browser.evaluate(
                f"state.looks[{place}].methods.get('{name}').claims.map((c) => [c.prediction, c.radius, c.sigma, "
                "c.limit, c.outcome])"
            )
            derived = method.certificates
            columns = ("prediction", "radius", "sigma_c", "limited_by", "outcome")
            assert found == [[*row] for row in zip(*(getattr(derived, c).tolist() for c in columns), strict=True)]
        choose_run(browser, place)
        for why in run.whys[:6]:
            browser.click(f"#cards button[data-input='{why.id}']")
            assert browser.evaluate("document.querySelector('#why-reason').textContent") == why.reason()
            shown = text(browser, "#why")
            assert f"Class votes at sigma {why.certificate.sigma_c:g}" in shown
            assert all(f"{name}{round_down(radius)}" in shown for name, radius in why.radii().items())
            browser.press("Escape")


def test_no_slider_but_the_reason_why(settled):
    browser, _ = settled
    choose_run(browser, 0)
    assert browser.evaluate("document.querySelectorAll('#controls input').length") == 0
    assert "The formula of rule sukenik is not among those that this page works out" in text(browser, "#standing")
    choose_run(browser, 2)
    assert browser.evaluate("document.querySelectorAll('#controls input').length") > 0


def test_what_has_no_guarantee_says_so_wherever_a_radius_stands(settled):
    browser, runs = settled
    choose_run(browser, 1)
    assert "claims, without a guarantee," in text(browser, "#sentence p:nth-child(2)")
    assert "Its guarantee: none at level 0.01" in text(browser, "#standing")
    cards = browser.evaluate("[...document.querySelectorAll('#cards button')].map((card) => card.textContent)")
    certified = [why for why in runs[1].whys if not why.certificate.abstained]
    assert sum(", no guarantee" in card for card in cards) == len(certified) > 0
    browser.click(f"#cards button[data-input='{certified[0].id}']")
    shown = text(browser, "#why")
    for said in (
        ", without a guarantee",
        "claimed, no guarantee",
        " class 0, no guarantee",
        "nothing is guarantee",
    ):
        assert said in shown
    assert "still certain" not in shown
    browser.press("Escape")


def test_runs_that_cannot_follow_say_so_beside_one_that_is_moved(settled):
    browser, _ = settled
    choose_run(browser, 2)
    assert "cannot follow" not in text(browser, "#table")
    move(browser, "alpha", 0)
    groups = browser.evaluate("[...document.querySelectorAll('#table tr.group')].map((row) => row.textContent)")
    assert [group.startswith(name) for name, group in zip(SETTINGS, groups, strict=True)] == [True] * 3
    assert [("cannot follow" in group, "you look at" in group) for group in groups] == [(True, False)] * 2 + [
        (False, True)
    ]
    assert browser.evaluate("document.querySelectorAll('#table tr.left').length") == 2
    assert browser.evaluate("document.querySelectorAll('#accuracy-chart path.left').length") == 2
    browser.click("#reset")
    assert browser.evaluate("document.querySelectorAll('#table tr.left').length") == 0
