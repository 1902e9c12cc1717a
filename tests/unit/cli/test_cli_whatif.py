"""compare over tables of other projects: several sigmas, and the parts of ACES, as a user would give them."""

import csv

import pytest

HEAD = "idx\tlabel\tpredict\tradius\tcorrect\ttime"
SIGMAS = ("@0.25=a.tsv", "@0.5=b.tsv")


@pytest.fixture(autouse=True)
def logs(folder):
    rows = {
        "a.tsv": ["0\t3\t3\t0.9412\t1\t1", "1\t7\t-1\t0.0\t0\t1"],
        "b.tsv": ["0\t3\t3\t0.3\t1\t1", "1\t7\t7\t1.2\t1\t1"],
    }
    for name, lines in rows.items():
        (folder / name).write_text("\n".join([HEAD, *lines]) + "\n")
    (folder / "selection_0.50").write_text("idx\tpredict\tradius\ttime\n0\t1\t0.5\t1\n1\t0\t0.4\t1\n")
    (folder / "core").write_text("idx\tlabel\tpredict\tcorrect\ttime\n0\t3\t3\t1\t1\n1\t7\t7\t1\t1\n")


def test_before_anything_is_trained(dualrs):
    code, out, _ = dualrs("compare", *SIGMAS, "--radii", "0,0.5,1")
    assert code == 0
    for words in ("│ oracle     │ 100.0 │ 100.0 │ 50.0 │", "│ envelope   │ 100.0 │  50.0 │ 50.0 │", "│ router-0.7 │"):
        assert words in out
    assert "│ % of inputs │ 50.0 │ 50.0 │  0.0 │" in out
    assert "needed: how often a router has to name the best sigma" in out
    assert "votes mean" not in out


def test_routers_as_asked(dualrs):
    code, out, _ = dualrs("compare", *SIGMAS, "--router-accuracy", "0.8,1", "--format", "csv", "--radii", "0,0.5,1")
    assert code == 0
    rows = {row["method"]: row for row in csv.DictReader(out.splitlines())}
    assert [name for name in rows if name.startswith("router")] == ["router-0.8", "router-1"]
    assert rows["router-1"]["accuracy at 0.5"] == rows["oracle"]["accuracy at 0.5"] == "1.0"
    assert float(rows["router-0.8"]["accuracy at 0.5"]) == pytest.approx(0.8)


def test_the_parts_of_aces_beside_a_certifier(dualrs):
    code, out, _ = dualrs("compare", "aces=selection_0.50,b.tsv,core", "b.tsv", "--radii", "0,0.25,0.5")
    assert code == 0
    assert "│ aces   │ 100.0 │  50.0 │" in out
    assert "1 - alpha for both radii together if each holds with 1 - alpha/2" in " ".join(out.split())


def test_what_was_written_is_made_again(dualrs, folder):
    files = (*SIGMAS, "aces=selection_0.50,b.tsv,core")
    assert dualrs("compare", *files, "--router-accuracy", "0.8", "-o", "table.csv")[0] == 0
    code, out, _ = dualrs("verify", *files, "--table", "table.csv")
    assert code == 0
    assert "table.csv: 6 rows follow from the votes" in out
    (folder / "b.tsv").write_text((folder / "b.tsv").read_text().replace("1.2", "0.2"))
    code, out, _ = dualrs("verify", *files, "--table", "table.csv")
    assert code == 1
    assert "row router-0.8: accuracy at 0.25" in out


def test_the_figure_has_them_too(dualrs, folder, monkeypatch):
    monkeypatch.setitem(pytest.importorskip("matplotlib").rcParams, "svg.fonttype", "none")  # letters, not outlines
    parts = "aces=selection_0.50,b.tsv,core"
    code, out, _ = dualrs("figure", "accuracy", *SIGMAS, parts, "cohen@1=a.tsv", "-o", "a.svg")
    assert code == 0
    assert "aces: its selector: radii have at most 3 significant digits" in " ".join(out.split())
    drawn = (folder / "a.svg").read_text()
    assert all(f">{name}<" in drawn for name in ("sigma-0.25", "sigma-0.5", "oracle", "aces", "cohen/sigma-1"))
    code, _, err = dualrs("figure", "accuracy", "a.tsv", "a.tsv")
    assert (code, "two curves are called a; give the files names" in err) == (2, True)


def test_misuse_is_a_sentence(dualrs):
    def refused(*words):
        code, _, err = dualrs("compare", *words)
        assert code == 2
        assert "Traceback" not in err
        return err.splitlines()[-1].removeprefix("error: ")

    assert "after @ stands a sigma above 0" in refused("a@b=a.tsv")
    assert "sigma 0.5 stands twice: a.tsv and b.tsv" in refused("@0.5=a.tsv", "@0.5=b.tsv")
    assert "--router-accuracy takes numbers" in refused(*SIGMAS, "--router-accuracy", "high")
    assert "between 0 and 1, got 70" in refused(*SIGMAS, "--router-accuracy", "70")
    assert "there are not several" in refused("a.tsv", "--router-accuracy", "0.7")
    assert "that of its certifier, as SELECTOR,CERTIFIER" in refused("selection_0.50")
    assert "there is no file absent" in refused("aces=selection_0.50,absent")
