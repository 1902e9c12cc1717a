"""References to networks: their grammar, and that they mean the same from any folder."""

import subprocess
import sys

import pytest

from dualrs.errors import BadRecipe
from dualrs.models.reference import Reference

DENOISER = Reference("d.py:make", "d.safetensors")


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("a:b", Reference("a:b")),
        ("  w.safetensors ", Reference("w.safetensors")),
        ("net.py:x<w.safetensors", Reference("net.py:x", "w.safetensors")),
        ("zoo:d|a:b", Reference("a:b", front=Reference("zoo:d"))),
        ("zoo:d | net.py:x < w.safetensors", Reference("net.py:x", "w.safetensors", Reference("zoo:d"))),
        ("d.py:make < d.safetensors | a:b", Reference("a:b", front=DENOISER)),
        ("net.py:x < odd<name.safetensors", Reference("net.py:x", "odd<name.safetensors")),
    ],
)
def test_text_is_taken_apart(text, reference):
    assert Reference.parse(text) == reference
    assert Reference.parse(str(reference)) == reference


@pytest.mark.parametrize("text", ["a:b | c:d | e:f", "| a:b", "a:b |", "|", " ", ""])
def test_other_forms_are_refused_by_name(text):
    with pytest.raises(BadRecipe, match=r"is neither one network nor DENOISER \| NETWORK \(with") as refusal:
        Reference.parse(text)
    assert str(refusal.value).startswith(repr(text))


def test_denoiser_and_network_are_told_apart_and_put_together():
    whole = Reference.parse("zoo:d | net.py:x < w.safetensors")
    assert (str(whole.front), str(whole.bare)) == ("zoo:d", "net.py:x < w.safetensors")
    assert whole.bare.behind("zoo:d") == whole.bare.behind(whole.front) == whole
    assert whole.behind(None) == whole
    assert whole.bare.front is None


def test_second_denoiser_is_refused():
    with pytest.raises(BadRecipe, match="neither one network nor DENOISER"):
        Reference.parse("zoo:d | a:b").behind("zoo:e")


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("net.py:x", "{}/net.py:x"),
        ("w.safetensors", "{}/w.safetensors"),
        ("/elsewhere/w.safetensors", "/elsewhere/w.safetensors"),
        ("net.py:x < w.safetensors", "{}/net.py:x < {}/w.safetensors"),
        ("openai:absent.pt | net.py:x", "openai:{}/absent.pt | {}/net.py:x"),
        ("d.py:make < d.safetensors | transformers:saved", "{}/d.py:make < {}/d.safetensors | transformers:{}/saved"),
        ("diffusers:saved", "diffusers:{}/saved"),
        ("diffusers:some/id", "diffusers:some/id"),
        ("transformers:", "transformers:"),
        ("zoo:saved", "zoo:saved"),
        ("lean-resnet", "lean-resnet"),
        ("package.module:make", "package.module:make"),
    ],
)
def test_anchored_references_mean_the_same_from_any_folder(tmp_path, text, whole):
    (tmp_path / "saved").mkdir()
    found = Reference.parse(text).anchored(tmp_path)
    assert str(found) == whole.replace("{}", str(tmp_path))
    assert found.anchored(tmp_path / "saved") == found


def test_names_are_read_without_torch():
    program = "import sys; sys.modules['torch'] = None; import dualrs.config, dualrs.models.reference"
    subprocess.run([sys.executable, "-c", program], check=True)
