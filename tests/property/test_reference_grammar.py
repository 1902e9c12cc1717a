"""Whatever a reference is made of: what is written is read again, and anchoring twice is anchoring once."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from dualrs.models.between import DensePure, DiffSmooth
from dualrs.models.reference import Reference

WORDS = st.text(st.characters(exclude_characters="|<", exclude_categories=["C", "Z"]), min_size=1, max_size=20)
MAKERS = WORDS | st.builds(
    "{}{}".format, st.sampled_from(["zoo:", "transformers:", "diffusers:", "openai:", "a/b.py:", "../"]), WORDS
)
BARE = st.builds(Reference, MAKERS, st.none() | WORDS)
SETTINGS = st.integers(1, 99), st.floats(0.001, 99)
BETWEEN = st.builds(DiffSmooth, *SETTINGS) | st.builds(DensePure, SETTINGS[0], SETTINGS[0])
REFERENCES = st.builds(Reference, MAKERS, st.none() | WORDS, st.none() | BARE)
BY_METHOD = st.builds(Reference, MAKERS, st.none() | WORDS, BARE, BETWEEN)
FOLDERS = st.sampled_from([Path("/"), Path("/some/folder"), Path(__file__).parent])


@given(REFERENCES | BY_METHOD)
def test_what_is_written_is_read_again(reference):
    assert Reference.parse(str(reference)) == reference


@given(REFERENCES)
def test_denoiser_and_network_make_the_whole(reference):
    assert reference.bare.behind(reference.front) == reference


@given(REFERENCES | BY_METHOD, FOLDERS, FOLDERS)
def test_anchoring_twice_is_anchoring_once(reference, folder, other):
    once = reference.anchored(folder)
    assert once.anchored(folder) == once
    assert Reference.parse(str(once)) == once
    if not any("transformers:" in maker or "diffusers:" in maker for maker in str(reference).split()):
        assert once.anchored(other) == once  # a hub's id may be a folder elsewhere
