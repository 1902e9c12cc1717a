"""The commands report, figure and why, used as a user would."""

import json
import re

import pytest

from dualrs.cli.why import _print_bars
from dualrs.report.methods import methods
from dualrs.storage import Ledger

DENOISED = '''
import torch
from torch import nn

from net import Half, data


class Halved(nn.Module):
    """A denoiser that greys everything, so that its copies are known."""

    def forward(self, noisy, sigma):
        return torch.full_like(noisy, 0.5)


denoiser = Halved().eval()
'''

RECIPE = """
data = "net.py:data"
[model]
router = "net.py:router"
classifier = "den.py:denoiser | net.py:classifier"
sigmas = [0.1, 0.2]
sigma_e = 0.2
[certify]
n = 100
n0 = 20
"""


def content(page):
    found = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.S)
    return json.loads(found[1])


def test_report_without_the_data_says_how_to_add_images(dualrs, ledger, folder):
    code, out, err = dualrs("report", ledger, "-o", "new/page.html")
    assert code == 0, err
    assert re.fullmatch(r"wrote new/page.html, 0.\d MB\n", out)
    assert content(folder / "new" / "page.html")["runs"][0]["gallery_notes"] == [
        "No images: say where net.py:data is with --data."
    ]
    assert f"dualrs report {ledger} -o new/page.html" in (folder / "new" / "page.html").read_text()


def test_report_with_the_data_has_an_image_of_every_input(dualrs, ledger, folder):
    code, _, err = dualrs("report", f"mine={ledger}", "--data", "net.py:data")
    assert code == 0, err
    found = content(folder / "report.html")
    assert found["runs"][0]["name"] == "mine"
    assert len(found["images"]) == 12


def test_other_data_are_refused(dualrs, ledger):
    code, _, err = dualrs("report", ledger, "--data", "net.py:unlabelled")
    assert code == 2
    assert "is not the data of the run, net.py:data" in err


def test_two_ledgers_of_one_name_are_refused(dualrs, ledger):
    code, _, err = dualrs("report", ledger, ledger)
    assert code == 2
    assert "two files are called run; give them names, as NAME=FILE" in err


@pytest.fixture
def table(dualrs, ledger, folder):
    """Results of the same inputs as another project would report them, last input first."""
    assert dualrs("export", ledger, "peer.tsv", "--rule", "paper")[0] == 0
    head, *rows = (folder / "peer.tsv").read_text().splitlines()
    (folder / "peer.tsv").write_text("\n".join([head, *reversed(rows), ""]))
    return "peer.tsv"


def test_report_puts_a_table_of_others_among_the_methods(dualrs, ledger, folder, table):
    code, _, err = dualrs("report", ledger, f"theirs={table}")
    assert code == 0, err
    (run,) = content(folder / "report.html")["runs"]
    (theirs,) = (method for method in run["methods"] if method["fixed"])
    assert theirs["title"] == "theirs, as reported"
    with Ledger.open(ledger) as opened:
        results = methods(opened, ["paper"])["paper"].results
    assert [prediction for prediction, _ in theirs["fixed"]] == results.prediction.tolist()
    assert [radius for _, radius in theirs["fixed"]] == pytest.approx(results.radius, abs=1e-9)
    assert "as its authors say" in (folder / "report.html").read_text()


def test_a_table_stands_beside_the_first_ledger_only(dualrs, ledger, folder, table):
    assert dualrs("report", ledger, f"again={ledger}", table)[0] == 0
    first, second = content(folder / "report.html")["runs"]
    assert "peer, as reported" in [method["title"] for method in first["methods"]]
    assert "peer, as reported" not in [method["title"] for method in second["methods"]]


def test_a_table_about_other_inputs_is_refused(dualrs, ledger, folder, table):
    (folder / "few.tsv").write_text("".join((folder / table).read_text().splitlines(keepends=True)[:5]))
    code, _, err = dualrs("report", ledger, "few.tsv")
    assert code == 2
    assert "few.tsv is about other inputs than" in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(("report", "peer.tsv"), "there is no ledger among the files", id="a page of tables alone"),
        pytest.param(("figure", "regret", "peer.tsv"), "is drawn from votes, and peer.tsv is a table", id="regret"),
        pytest.param(("figure", "accuracy", "peer.tsv", "--methods", "paper"), "no ledger among", id="methods of none"),
        pytest.param(("report", "run.ledger", "paper=peer.tsv"), "two methods are called paper", id="a method's name"),
        pytest.param(("figure", "accuracy", "none.tsv"), "there is no file none.tsv", id="no file"),
        pytest.param(
            ("report", "run.ledger", "@1=peer.tsv"), "a page takes a table as FILE or NAME=FILE", id="a sigma"
        ),
        pytest.param(("report", "run.ledger", *["a=peer.tsv"] * 2), "two files are called a; give them", id="twice"),
    ],
)
def test_tables_are_refused_where_votes_are_needed(dualrs, ledger, table, words, sentence):
    code, _, err = dualrs(*words)
    assert code == 2
    assert sentence in err


def test_figure_accuracy_draws_tables_of_others(dualrs, ledger, folder, table):
    (folder / "rounded.tsv").write_text("idx\tlabel\tpredict\tradius\n0\t1\t1\t0.25\n")
    code, out, err = dualrs("figure", "accuracy", f"ours={ledger}", table, "rounded.tsv", "-o", "a.svg")
    assert code == 0, err
    assert "rounded: radii have at most 3 significant digits" in " ".join(out.split())
    assert dualrs("figure", "accuracy", table, "-o", "b.svg")[0] == 0
    assert (folder / "b.svg").stat().st_size < (folder / "a.svg").stat().st_size


@pytest.mark.parametrize("command", [("report",), ("figure", "accuracy"), ("why",)])
def test_a_foreign_file_is_refused(dualrs, folder, command):
    (folder / "foreign.ledger").write_text("no ledger")
    code, _, err = dualrs(*command, "foreign.ledger", *(("3",) if command == ("why",) else ()))
    assert code == 2
    assert "foreign.ledger" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("name", ["accuracy", "best-sigma", "radius-sigma", "regret", "slack", "p-a"])
def test_figures_are_drawn_from_a_ledger(dualrs, ledger, folder, name):
    code, out, err = dualrs("figure", name, ledger, "-o", "out/figure.svg")
    assert code == 0, err
    assert out == "drew out/figure.svg\n"
    assert (folder / "out" / "figure.svg").stat().st_size > 2000


def test_penalty_needs_no_ledger(dualrs, folder):
    assert dualrs("figure", "penalty")[:2] == (0, "drew penalty.png\n")
    assert (folder / "penalty.png").exists()


def test_several_ledgers_are_several_curves(dualrs, ledger, monkeypatch):
    from dualrs.report import figures

    drawn, grey = {}, []

    def draw(methods, path, title, *, behind):
        drawn.update(methods)
        grey[:] = behind

    monkeypatch.setattr(figures, "draw_accuracy", draw)
    assert dualrs("figure", "accuracy", f"weak={ledger}", f"strong={ledger}")[0] == 0
    assert list(drawn) == ["weak", "strong"]
    drawn.clear()
    assert dualrs("figure", "accuracy", f"a={ledger}", f"b={ledger}", "--methods", "sigma-0.1,paper")[0] == 0
    assert list(drawn) == ["a, sigma-0.1", "a, paper", "b, sigma-0.1", "b, paper"]
    assert grey == ["a, sigma-0.1", "b, sigma-0.1"]  # what the others are measured by
    drawn.clear()
    assert dualrs("figure", "accuracy", f"a={ledger}", f"b={ledger}", "--methods", "sigma-0.1, b/paper")[0] == 0
    assert list(drawn) == ["a, sigma-0.1", "b, sigma-0.1", "b, paper"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nothing", "run.ledger"), "there is no figure 'nothing'; choose among accuracy, best-sigma"),
        (("accuracy",), "say of which ledgers to draw accuracy"),
        (("penalty", "run.ledger"), "leave out the ledgers"),
        (("p-a", "run.ledger", "--rule", "paper"), "figure p-a takes no --rule"),
        (("radius-sigma", "a=run.ledger", "b=run.ledger"), "about the inputs of one ledger"),
        (("radius-sigma", "run.ledger", "--inputs", "99"), "there is no input 99 with all votes"),
        (("accuracy", "run.ledger", "-o", "a.gif"), "a picture ends in .png, .svg, .pdf"),
    ],
)
def test_misuse_of_figure_is_one_sentence(dualrs, ledger, words, sentence):
    code, _, err = dualrs("figure", *words)
    assert code == 2
    assert sentence in err


def test_a_figure_whose_votes_are_missing_says_what_to_run(dualrs, two_stages):
    assert dualrs("certify", *two_stages, "--rule", "paper", "-o", "few.ledger")[0] == 0
    code, _, err = dualrs("figure", "regret", "few.ledger")
    assert code == 2
    assert "dualrs certify --all-votes" in err


def test_figure_1_reads_labels_too(dualrs, folder):
    words = ("--classifier", "net.py:classifier", "--sigmas", "0.1,0.2,0.4", "--data", "net.py:data", "--n", "100")
    code, _, err = dualrs("label", *words, "-o", "labels.ledger")
    assert code == 0, err
    assert dualrs("figure", "best-sigma", "labels.ledger")[0] == 0
    assert dualrs("figure", "radius-sigma", "labels.ledger", "--inputs", "0,3")[0] == 0


def test_why_prints_votes_radii_and_limit(dualrs, ledger):
    code, out, err = dualrs("why", ledger, "0")
    assert code == 0, err
    assert "label: class 0" in out
    assert "limits it" in out
    assert re.search(r"votes of the router\n +sigma 0.1 █+ \d+", out)
    assert re.search(r"class votes at sigma 0.1, chosen\n +class 0 █+ \d+", out)
    assert re.search(r"certified +0\.\d{4}", out)
    assert re.search(r"label at sigma 0.2 +0\.\d{4}", out)


def test_why_keeps_a_bar_on_the_line_of_a_long_name(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _print_bars("votes", [(f"American short-haired terrier, one of kind {kind}", 50_000) for kind in range(2)])
    bar = "█" * 20
    assert capsys.readouterr().out.splitlines() == ["votes", *[f"  American short-haired ter… {bar} 50,000"] * 2]


def test_why_under_another_rule(dualrs, ledger):
    assert dualrs("why", ledger, "0", "--rule", "paper", "--alpha", "0.1")[1] != dualrs("why", ledger, "0")[1]


def test_why_of_an_input_that_is_not_there(dualrs, ledger):
    code, _, err = dualrs("why", ledger, "77")
    assert code == 2
    assert "has no finished input 77, neither by id nor by position; the first is 0 at position 0" in err


def test_why_draws_images_from_the_data(dualrs, ledger, folder, monkeypatch):
    drawn = spy_on_copies(monkeypatch)
    code, out, err = dualrs("why", ledger, "4", "-o", "why.png", "--data", "net.py:data")
    assert code == 0, err
    assert out.endswith("drew why.png.\n")
    (copies,) = drawn
    assert (copies.image == copies.image.flat[0]).all()
    assert len(copies.noisy) == 3  # router, and two sigmas
    assert all(noisy.std() > 5 for noisy in copies.noisy)
    assert copies.denoised == [None, None, None]
    router, _, expert = copies.noisy  # the expert at the router's sigma votes on the router's copies
    assert (router == expert).all()


def test_why_without_data_draws_votes_and_says_so(dualrs, ledger, folder):
    code, out, _ = dualrs("why", ledger, "4", "-o", "why.png")
    assert code == 0
    assert out.endswith("drew why.png. No images: say where net.py:data is with --data.\n")
    assert (folder / "why.png").exists()


def test_why_shows_what_the_denoiser_made(dualrs, folder, monkeypatch):
    (folder / "den.py").write_text(DENOISED)
    (folder / "denoised.toml").write_text(RECIPE)
    code, _, err = dualrs("certify", "denoised.toml", "--inputs", "0:2", "-o", "run.ledger")
    assert code == 0, err
    drawn = spy_on_copies(monkeypatch)
    code, _, err = dualrs("why", "run.ledger", "1", "-o", "why.png", "--recipe", "denoised.toml")
    assert code == 0, err
    (copies,) = drawn
    assert copies.denoised[0] is None  # the router stands behind no denoiser
    assert all((denoised == 128).all() for denoised in copies.denoised[1:])


def test_why_shows_what_a_denoiser_made_that_draws(dualrs, folder, monkeypatch):
    drawing = DENOISED.replace("(self, noisy, sigma)", "(self, noisy, sigma, randomness)").replace(
        "torch.full_like(noisy, 0.5)", "randomness.rand(*noisy.shape)"
    )
    assert "randomness.rand" in drawing
    (folder / "den.py").write_text(drawing)
    (folder / "denoised.toml").write_text(RECIPE)
    code, _, err = dualrs("certify", "denoised.toml", "--inputs", "0:2", "-o", "run.ledger")
    assert code == 0, err
    drawn = spy_on_copies(monkeypatch)
    for _ in range(2):
        code, _, err = dualrs("why", "run.ledger", "1", "-o", "why.png", "--recipe", "denoised.toml")
        assert code == 0, err
    first, again = ([image for image in copies.denoised if image is not None] for copies in drawn)
    assert all((one == other).all() for one, other in zip(first, again, strict=True))
    assert all(image.std() > 50 for image in first)


def test_the_page_shows_copies_that_voted_and_what_the_denoiser_made(dualrs, folder):
    (folder / "den.py").write_text(DENOISED)
    (folder / "denoised.toml").write_text(RECIPE)
    code, _, err = dualrs("certify", "denoised.toml", "--inputs", "0:2", "-o", "run.ledger")
    assert code == 0, err
    code, _, err = dualrs("report", "run.ledger", "--recipe", "denoised.toml")
    assert code == 0, err
    found = content(folder / "report.html")
    for entry in found["runs"][0]["gallery"]:
        assert [copy["sigma"] for copy in entry["copies"]] == [0.1, 0.2]
        (grey,) = {copy["denoised"] for copy in entry["copies"]}  # one picture, as this denoiser greys everything
        assert grey not in {copy["noisy"] for copy in entry["copies"]} | {entry["image"]}
    code, _, err = dualrs("report", "run.ledger", "again=run.ledger", "--recipe", "denoised.toml")
    assert code == 2
    assert "the networks of one run; give one ledger" in err


def test_without_networks_the_page_has_no_copies(dualrs, ledger, folder):
    assert dualrs("report", ledger, "--data", "net.py:data")[0] == 0
    assert all(not entry["copies"] for entry in content(folder / "report.html")["runs"][0]["gallery"])


def test_why_takes_the_networks_of_a_bundle(dualrs, folder, monkeypatch):
    (folder / "den.py").write_text(DENOISED)
    (folder / "denoised.toml").write_text(RECIPE)
    bundle = folder / "bundle"
    bundle.mkdir()
    (bundle / "bundle.toml").write_text(
        "\n".join(RECIPE.splitlines()[2:]).replace("net.py", "../net.py").replace("den.py", "../den.py")
    )
    code, _, err = dualrs("certify", "--model", bundle, "--data", "net.py:data", "--inputs", "0:2", "-o", "run.ledger")
    assert code == 0, err
    drawn = spy_on_copies(monkeypatch)
    code, _, err = dualrs("why", "run.ledger", "1", "-o", "why.png", "--model", bundle, "--data", "net.py:data")
    assert code == 0, err
    assert all((denoised == 128).all() for denoised in drawn[0].denoised[1:])
    # A bundle knows networks and no data: without --data there are no images.
    code, out, _ = dualrs("why", "run.ledger", "1", "-o", "why.png", "--model", bundle)
    assert code == 0
    assert "No images: say where net.py:data is with --data." in out
    other = (bundle / "bundle.toml").read_text().replace("net.py:classifier", "net.py:router")
    (bundle / "bundle.toml").write_text(other)
    code, _, err = dualrs("why", "run.ledger", "1", "-o", "why.png", "--model", bundle)
    assert code == 2
    assert "of bundle is not the one that voted in this ledger" in err.replace(f"{folder}/", "")


def test_why_refuses_networks_that_did_not_vote(dualrs, ledger, folder):
    (folder / "den.py").write_text(DENOISED)
    (folder / "denoised.toml").write_text(RECIPE)
    code, _, err = dualrs("why", ledger, "1", "-o", "why.png", "--recipe", "denoised.toml")
    assert code == 2
    assert "is not the one that voted in this ledger" in err


def test_why_wants_a_place_to_draw(dualrs, ledger):
    code, _, err = dualrs("why", ledger, "1", "--data", "net.py:data")
    assert code == 2
    assert "say where to draw: -o FILE.png" in err


def spy_on_copies(monkeypatch):
    from dualrs.report import figures

    drawn = []
    real = figures.draw_why

    def draw(why, path, copies, names, nearest):
        drawn.append(copies)
        real(why, path, copies, names, nearest)

    monkeypatch.setattr(figures, "draw_why", draw)
    return drawn
