"""One input on the page: its radius seen, its path, its certificate step by step, and words that explain themselves."""

import re
from pathlib import Path

import pytest
from chromium import choose, move

from dualrs.theory.radius import round_down

GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"


@pytest.fixture
def certified(browser, report):
    """The page with an input open that has a certificate, and its why."""
    _, (run, _) = report
    why = next(why for why in run.whys if 0.1 < why.certificate.radius < 1 and why.id not in ("toy/3", "toy/5"))
    browser.click(f"#cards button[data-input='{why.id}']")
    return browser, why


def text(browser, selector):
    return browser.evaluate(f"document.querySelector({selector!r}).textContent")


def test_a_slider_says_when_the_answer_is_no_longer_certain(certified):
    browser, why = certified
    radius = why.certificate.radius
    move(browser, "distance", round(radius - 0.02, 2))
    assert "the answer is still certain" in text(browser, ".seeing p")
    assert browser.evaluate("document.querySelectorAll('.terms .fails').length") == 0
    move(browser, "distance", round(radius + 0.02, 2))
    assert "it is no longer certain that" in text(browser, ".seeing p")
    assert f"(certain up to {round_down(radius)})" in text(browser, ".seeing p")
    assert browser.evaluate("document.querySelectorAll('.terms .fails').length") >= 1


def test_pictures_of_distance_and_of_noise(certified):
    browser, _ = certified
    browser.wait("document.querySelectorAll('.seeing canvas').length === 4")  # a direction, and three sigmas
    captions = browser.evaluate("[...document.querySelectorAll('.seeing figcaption')].map((c) => c.textContent)")
    assert "in a random direction" in captions[0]
    assert captions[1:] == [
        f"noise of sigma {sigma}: an illustration, not the noise that voted" for sigma in (0.25, 0.5, 1)
    ]


def test_copies_that_voted_take_the_place_of_illustrations(browser):
    browser.click("#cards button[data-input='toy/3']")
    browser.wait("document.querySelectorAll('.seeing canvas').length === 1")
    shown = browser.evaluate("[...document.querySelectorAll('.seeing img')].map((i) => [i.alt, i.naturalWidth])")
    assert shown == [
        ["the first copy that voted at sigma 0.25", 8],
        ["what the denoiser made of it", 8],
        ["the first copy that voted at sigma 0.5", 8],
        ["the first copy that voted at sigma 1", 8],
    ]


def test_a_random_direction_is_as_long_as_it_says(certified):
    browser, _ = certified
    browser.wait("document.querySelectorAll('.seeing canvas').length === 4")
    move(browser, "distance", 0.4)
    length = browser.evaluate(
        "pixelsOf(data.runs[0].gallery.find((g) => data.runs[0].ids[g.number] === document.querySelector('#why-title')"
        ".textContent.slice(6)).image).then((base) => { const c = document.querySelector('.seeing canvas'); "
        "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let sum = 0; base.levels.forEach("
        "(level, k) => { sum += (d[4 * Math.floor(k / 3) + k % 3] - level) ** 2; }); return Math.sqrt(sum) / 255; })"
    )
    assert length == pytest.approx(0.4, rel=0.1)  # colours end at 0 and 255, and are whole


def test_an_attack_is_a_direction_too(browser):
    browser.click("#cards button[data-input='toy/5']")
    browser.wait("document.querySelectorAll('.seeing canvas').length === 5")
    move(browser, "distance", 0.8)
    captions = browser.evaluate("[...document.querySelectorAll('.seeing figcaption')].map((c) => c.textContent)")
    assert captions[1] == "at distance 0.80, where the attack on fusion went: answered with owl"


def test_the_certificate_step_by_step(certified):
    browser, why = certified
    browser.wait("document.querySelectorAll('.seeing canvas').length === 4")  # they come late, and move what is below
    steps = browser.evaluate("[...document.querySelectorAll('.steps [data-step]')].map((b) => b.dataset.step)")
    assert steps == ["Selection", "Estimation", "Bound", "Radius", "Minimum"]
    seen = [text(browser, ".steps p")]
    for _ in range(4):
        browser.click(".steps > button")
        seen.append(text(browser, ".steps p"))
    assert browser.evaluate("document.querySelector('.steps > button').disabled")
    assert "only choose" in seen[0]
    assert re.search(r"at least 0\.\d{6}", seen[2])
    assert f"The radius is {round_down(why.certificate.radius)}." in seen[4]
    assert "docs/guarantees.md" in text(browser, ".steps details")


def test_every_section_that_a_step_names_is_there(browser):
    sections = browser.evaluate("Object.values(REASONS).map(([, section]) => section)")
    headings = re.findall(r"^## (.*)$", (GLOSSARY.parent / "guarantees.md").read_text(), re.MULTILINE)
    assert set(sections) <= set(headings)


def test_the_path_through_the_stages_of_a_cascade(browser):
    choose(browser, "rule", "cascade")
    browser.click("#cards button[data-input='toy/0']")
    stages = browser.evaluate("[...document.querySelectorAll('.path li')].map((li) => li.textContent)")
    assert [stage.split()[1] for stage in stages] == ["1", "0.5", "0.25"]
    assert browser.evaluate("document.querySelectorAll('.path .here').length") == 1


def test_words_explain_themselves(certified):
    browser, _ = certified
    said = text(browser, "#why-reason")
    browser.click("#why-reason .term")
    word = browser.evaluate("document.querySelector('#why-reason .term').textContent").rstrip("s")
    meaning = browser.evaluate(f"GLOSSARY['{word}'].replaceAll('`', '')")
    assert meaning in text(browser, "#why-reason")
    browser.click("#why-reason .term")
    assert text(browser, "#why-reason") == said


def test_the_glossary_of_the_page_is_that_of_the_documents(browser):
    rows = re.findall(r"^\| \*\*(\w+)\*\* \| (.*) \|$", GLOSSARY.read_text(), re.MULTILINE)
    written = dict(rows)
    for word, meaning in browser.evaluate("Object.entries(GLOSSARY)"):
        assert written[word] == meaning


def test_an_arrow_key_on_the_slider_stays_with_the_input(certified):
    browser, why = certified
    browser.evaluate("document.getElementById('distance').focus()")
    browser.press("ArrowRight")
    assert text(browser, "#why-title") == f"Input {why.id}"
