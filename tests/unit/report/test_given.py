"""What a word of the command line names."""

from pathlib import Path

import pytest

from dualrs.errors import BadSetting
from dualrs.report.given import Given, names_of


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("a.tsv", Given((Path("a.tsv"),))),
        ("cohen=logs/a.tsv", Given((Path("logs/a.tsv"),), "cohen")),
        ("cohen@0.25=a.tsv", Given((Path("a.tsv"),), "cohen", 0.25)),
        ("@1=a.tsv", Given((Path("a.tsv"),), "", 1.0)),
        ("me@home@1=a.tsv", Given((Path("a.tsv"),), "me@home", 1.0)),
        ("cohen=noise=1.tsv", Given((Path("noise=1.tsv"),), "cohen")),
        ("s,c", Given((Path("s"), Path("c")))),
        ("aces=s,c,core", Given((Path("s"), Path("c"), Path("core")), "aces")),
    ],
)
def test_words(word, expected):
    assert Given.parse(word) == expected


@pytest.mark.parametrize("name", ["a=b.tsv", "a,b.tsv", "a@1=b,c.tsv"])
def test_a_file_of_that_name_goes_before_the_grammar(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    Path(name).touch()
    assert Given.parse(name) == Given((Path(name),))


@pytest.mark.parametrize("sigma", ["", "x", "0", "-1", "nan", "inf"])
def test_no_sigma(sigma):
    with pytest.raises(BadSetting, match=f"after @ stands a sigma above 0, as in NAME@0.5=FILE; got '{sigma}'"):
        Given.parse(f"a@{sigma}=b.tsv")


def test_names():
    words = ("a/one.ledger", "b/one.ledger", "two=c/one.ledger", "noise_0.25", "x.tsv")
    assert names_of([Given.parse(word) for word in words]) == ["a/one.ledger", "b/one.ledger", "two", "noise_0.25", "x"]
