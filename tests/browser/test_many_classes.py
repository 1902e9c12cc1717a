"""A thousand classes with long names on the page: nothing hangs out of its panel, and names can be read in full."""

import numpy as np
import pytest
from report_cases import a_header, made

from dualrs.report.page import Pictures, read_run, write_page
from dualrs.storage import Ledger

NAMES = tuple(f"American short-haired terrier, cassette player of kind {number}" for number in range(1000))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("thousand")
    header = a_header(classes=len(NAMES), class_names=NAMES, confidences=(0.4, 0.6))
    with Ledger.open(made(folder / "thousand.ledger", header, count=6)) as ledger:
        run = read_run(ledger, "thousand")
    image = np.zeros((3, 8, 8), dtype=np.uint8)
    path, pictures = folder / "report.html", Pictures({why.id: image for why in run.whys}, NAMES)
    path.write_text(write_page([run], [pictures], command="dualrs report", version="0"), encoding="utf-8")
    return path


@pytest.fixture
def opened(chromium, page):
    chromium.errors.clear()
    chromium.resize(1280)
    chromium.open(page)
    chromium.wait("document.querySelectorAll('#cards button').length === 6")
    yield chromium
    assert chromium.errors == []


@pytest.mark.parametrize("width", [1280, 700, 390])
def test_no_panel_is_too_narrow_for_what_is_in_it(opened, width):
    opened.resize(width)
    opened.click("#cards button")
    wide = "[...document.querySelectorAll('#why .panel')].filter((p) => p.scrollWidth > p.clientWidth)"
    assert opened.evaluate(f"{wide}.map((p) => p.querySelector('h3').textContent)") == []
    assert opened.evaluate("document.getElementById('why').scrollWidth <= document.getElementById('why').clientWidth")


def test_every_number_of_votes_is_seen_beside_a_bar(opened):
    opened.click("#cards button")
    cut = "[...document.querySelectorAll('#why .bars span')].filter((s) => s.scrollWidth > s.clientWidth)"
    assert opened.evaluate(f"{cut}.length") == 0
    tracks = "[...document.querySelectorAll('#why .bars .track')].map((t) => t.clientWidth)"
    assert opened.evaluate(f"Math.min(...{tracks})") >= 30


def test_a_card_tells_the_whole_name(opened):
    titles = opened.evaluate(
        "[...document.querySelectorAll('#cards button')].map((c) => c.querySelector('span').title)"
    )
    assert any(title in NAMES for title in titles)
    assert set(titles) <= {*NAMES, "abstains"}
