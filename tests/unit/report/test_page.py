"""The page: one file, every number in it the number that the library gives. tests/browser uses it as a reader would."""

import json
import re

import numpy as np
import pytest
from report_cases import a_header, made

from dualrs.errors import BadTable
from dualrs.report import page
from dualrs.report.accuracy import certified_accuracy
from dualrs.report.methods import methods
from dualrs.report.page import Pictures, read_run, write_page
from dualrs.storage import Ledger

NONE = Pictures({}, note="No images: they are elsewhere.")


def run_of(path, name="run"):
    with Ledger.open(path) as ledger:
        return read_run(ledger, name)


def text_of(*runs, pictures=NONE):
    return write_page(runs, [pictures] * len(runs), command="dualrs report <x>", version="0.1")


def data_of(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])


def rows_of(text):
    """The headline table: method -> cells."""
    table = re.search(r'<table class="headline">.*?</table>', text, re.S)[0]
    rows = re.findall(r'<tr[^>]*><th scope="row">(.*?)</th>(.*?)</tr>', table)
    return {name: re.findall(r"<td([^>]*)>(.*?)</td>", cells) for name, cells in rows}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return made(tmp_path_factory.mktemp("page") / "run.ledger", count=40)


def test_table_has_every_method_with_its_accuracy(path):
    with Ledger.open(path) as ledger:
        found = methods(ledger)
    rows = rows_of(text_of(run_of(path)))
    assert len(found) == 10
    assert [*rows][10:] == ["best fixed sigma at each radius"]
    for method in found.values():
        cells = [value for _, value in rows[method.title.replace("'", "&#x27;")]]
        accuracy = certified_accuracy(method.results)
        assert cells[:4] == [f"{100 * a:.1f}" for a in accuracy[:4]]
        assert cells[-1] == f"{method.votes_per_input.mean():,.0f}"


def test_the_best_of_a_column_is_marked_among_certificates_only(path):
    with Ledger.open(path) as ledger:
        found = methods(ledger)
    rows = rows_of(text_of(run_of(path)))
    marked = {name for name, cells in rows.items() if 'class="best"' in cells[0][0]}
    sound = {
        m.title: certified_accuracy(m.results)[0] for n, m in found.items() if n not in ("oracle", "multiscale-authors")
    }
    assert marked == {title for title, accuracy in sound.items() if accuracy == max(sound.values())}


def test_runs_over_other_inputs_have_their_own_best(path, tmp_path):
    other = made(tmp_path / "other.ledger", a_header(seed=3), count=10)
    alone = rows_of(text_of(run_of(other)))
    both = text_of(run_of(path), run_of(other, "other"))
    last = re.search(r"rowgroup\">other</th>.*?</table>", both, re.S)[0]
    first_column = re.findall(r'<th scope="row">.*?</th><td([^>]*)>', last)
    assert first_column == [cells[0][0] for cells in alone.values()]


def test_votes_and_labels_are_those_of_the_ledger(path):
    run = run_of(path)
    shown = data_of(text_of(run))["runs"][0]
    assert shown["ids"] == [why.id for why in run.whys]
    assert shown["label"] == [why.label for why in run.whys]
    assert [method["name"] for method in shown["methods"]] == list(run.methods)
    assert shown["votes"] == json.loads(json.dumps(run.votes))
    assert all(method["fixed"] is None for method in shown["methods"])  # the script derives them from the votes


def test_names_are_text_and_never_markup(path):
    text = text_of(run_of(path, "<b>run</b>"), pictures=Pictures({}, ("</script>", "b", "c", "d"), "<i>"))
    assert "<b>run" not in text
    assert "toy </script> set" not in text
    assert "dualrs certify &lt;toy&gt;" in text
    assert "dualrs report &lt;x&gt;" in text
    assert data_of(text)["runs"][0]["classes"][0] == "</script>"


def test_a_header_names_the_first_of_many_classes(tmp_path):
    names = tuple(f"kind {number}" for number in range(1000))
    text = text_of(run_of(made(tmp_path / "run.ledger", a_header(classes=1000, class_names=names), count=3)))
    markup = text[: text.index('id="data"')]
    assert "kind 9, and 990 more</dd>" in markup
    assert "kind 10" not in markup


def test_the_page_names_nothing_outside_itself(path):
    image = np.zeros((3, 8, 8), dtype=np.uint8)
    text = text_of(run_of(path), pictures=Pictures({"toy/0": image}))
    assert "default-src 'none'" in text
    addresses = set(re.findall(r"[a-z]+://[^\s\"'<]+", text)) - {"http://www.w3.org/2000/svg"}  # a name, not a place
    assert not addresses
    assert not re.findall(r"<link|<iframe|@import|url\(", text)


def test_images_are_there_once_for_runs_over_the_same_data(path, tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (3, 8, 8), dtype=np.uint8)
    run = run_of(path)
    content = data_of(text_of(run, run_of(path, "again"), pictures=Pictures({"toy/3": image})))
    assert len(content["images"]) == 1
    assert [entry["image"] for entry in content["runs"][1]["gallery"][2:5]] == [None, 0, None]


def test_missing_votes_and_images_are_said(tmp_path):
    header = a_header(rule="paper", votes="needed")
    run = run_of(made(tmp_path / "run.ledger", header, only_chosen=True))
    shown = data_of(text_of(run))["runs"][0]
    assert "--all-votes" in shown["notes"][0]
    assert shown["gallery_notes"] == ["No images: they are elsewhere."]
    assert [method["name"] for method in shown["methods"]] == ["paper", "nosplit"]


def test_one_sigma_and_no_labels_make_a_page_too(tmp_path):
    header = a_header(rule="cohen", sigmas=(0.5,), sigma_e=None)
    text = text_of(run_of(made(tmp_path / "run.ledger", header, labelled=False)))
    assert "no labels" in text
    shown = data_of(text)["runs"][0]
    assert set(shown["label"]) == {-2}
    assert [network["stage"] for network in shown["votes"]["networks"]] == ["class"]


def test_a_ledger_without_certificates_is_refused(tmp_path):
    with Ledger.create_or_resume(tmp_path / "run.ledger", a_header()) as ledger:
        ledger.add_inputs([("a", 0, 0)])
    with pytest.raises(BadTable, match=r"no input of .*run\.ledger has a certificate yet"):
        run_of(tmp_path / "run.ledger")


def test_500_inputs_with_noisy_images_would_stay_below_15_megabytes(tmp_path):
    run = run_of(made(tmp_path / "run.ledger", a_header(n0=10, n=100), count=50))
    rng = np.random.default_rng(0)  # noise is what PNG packs worst
    images = {why.id: rng.integers(0, 256, (3, 224, 224), dtype=np.uint8) for why in run.shown}
    assert len(text_of(run, pictures=Pictures(images)).encode()) < 15e6 / 10  # a tenth of the inputs


def test_of_very_many_inputs_the_gallery_shows_some_and_says_so(path, monkeypatch):
    monkeypatch.setattr(page.run, "MOST_INPUTS", 15)
    shown = data_of(text_of(run_of(path)))["runs"][0]
    assert len(shown["ids"]) == 40  # all votes are there
    assert [entry["number"] for entry in shown["gallery"]] == list(range(0, 40, 3))
    assert "One of 3 inputs is here" in shown["gallery_notes"][1]
