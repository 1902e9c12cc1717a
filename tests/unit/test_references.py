"""References: from module:attribute, or file.py:attribute, to an object; or to one clear sentence."""

import sys
from collections import OrderedDict

import pytest

from dualrs.errors import BadRecipe
from dualrs.references import resolve

MODULE = """
import itertools

VALUE = 41
calls = itertools.count()


def make():
    return {"made": next(calls)}


def with_default(size=3, *rest, key=None, **others):
    return size


def needs_size(size):
    return size


def needs_keyword(*, size):
    return size


class Thing:
    shelf = {"a": 1}

    @staticmethod
    def made():
        return "static"


class Callable:
    def __call__(self):
        return "called"


thing = Thing()
callable_object = Callable()
nothing = None
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a module; nothing of it stays behind."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    (tmp_path / "recipe_net.py").write_text(MODULE)
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "deep.py").write_text("VALUE = 'deep'")
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


# What is found


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        pytest.param("recipe_net:VALUE", 41, id="a module in the folder"),
        pytest.param("recipe_net.py:VALUE", 41, id="a file in the folder"),
        pytest.param("pack.deep:VALUE", "deep", id="a module in a package"),
        pytest.param("pack/deep.py:VALUE", "deep", id="a file in a subfolder"),
        pytest.param("recipe_net:Thing.shelf", {"a": 1}, id="an attribute of an attribute"),
        pytest.param("recipe_net.py:Thing.made", "static", id="a function inside a class"),
        pytest.param("recipe_net.py:with_default", 3, id="a function whose arguments have defaults"),
        pytest.param("recipe_net:nothing", None, id="an attribute that is None"),
        pytest.param("collections:OrderedDict", OrderedDict, id="an installed module, and a class as it is"),
    ],
)
def test_reference_leads_to_its_object(reference, value, folder):
    assert resolve(reference, folder) == value


def test_absolute_path_leads_there_from_any_folder(folder, tmp_path_factory):
    assert resolve(f"{folder / 'recipe_net.py'}:VALUE", tmp_path_factory.mktemp("elsewhere")) == 41


def test_folder_is_the_current_one_unless_given(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert resolve("recipe_net.py:VALUE") == 41


def test_function_is_called_and_an_object_is_not(folder):
    assert resolve("recipe_net.py:make", folder) == {"made": 0}
    assert type(resolve("recipe_net.py:callable_object", folder)).__name__ == "Callable"


def test_file_is_loaded_once(folder):
    """Two names of one file must come from one module: a router and a classifier share what it caches."""
    assert resolve("recipe_net.py:make", folder) == {"made": 0}
    assert resolve("recipe_net.py:make", folder) == {"made": 1}
    assert resolve("recipe_net.py:thing", folder) is resolve("pack/../recipe_net.py:thing", folder)


def test_files_of_one_name_in_two_folders_are_two_modules(folder):
    (folder / "pack" / "recipe_net.py").write_text("VALUE = 'other'")
    assert resolve("recipe_net.py:VALUE", folder) == 41
    assert resolve("pack/recipe_net.py:VALUE", folder) == "other"
    assert resolve("recipe_net.py:VALUE", folder) == 41


# What is refused


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        pytest.param("recipe_net", "is not of the form module:attribute or path/to/file.py:attribute", id="no colon"),
        pytest.param("recipe_net:", "is not of the form", id="no attribute"),
        pytest.param(":VALUE", "is not of the form", id="no module"),
        pytest.param("", "is not of the form", id="nothing at all"),
        pytest.param("recipe_net:VALEU", "recipe_net has no attribute 'VALEU'", id="an attribute misspelt"),
        pytest.param("recipe_net.py:Thing.shelves", "has no attribute 'Thing.shelves'", id="a deeper one misspelt"),
        pytest.param("recipe_net:Thing.", "has no attribute", id="a dot at the end"),
        pytest.param("recipe_nets:VALUE", "there is no module recipe_nets; run from the folder", id="module misspelt"),
        pytest.param("pack.deeper:VALUE", "there is no module pack.deeper", id="a submodule misspelt"),
        pytest.param("recipe_nets.py:VALUE", "there is no file .*recipe_nets.py", id="a file misspelt"),
        pytest.param("pack:deep.py:VALUE", "there is no file", id="a colon too many"),
        pytest.param("./recipe_net:VALUE", "there is no module ./recipe_net", id="a path without .py"),
        pytest.param("pack/deep:VALUE", "there is no module pack/deep", id="a deeper path without .py"),
        pytest.param("..recipe_net:VALUE", "there is no module", id="a relative module"),
        pytest.param("recipe_net.py:needs_size", "is a function that needs arguments", id="an argument needed"),
        pytest.param("recipe_net.py:needs_keyword", "is a function that needs arguments", id="a keyword needed"),
    ],
)
def test_bad_reference_is_refused_in_a_sentence(reference, message, folder):
    with pytest.raises(BadRecipe, match=message) as refusal:
        resolve(reference, folder)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("reference", ["needy:VALUE", "needy.py:VALUE"], ids=["as a module", "as a file"])
def test_module_that_lacks_another_says_which(reference, folder):
    (folder / "needy.py").write_text("import a_module_that_nobody_has\nVALUE = 1")
    with pytest.raises(BadRecipe, match="needs a_module_that_nobody_has, which is not installed"):
        resolve(reference, folder)


@pytest.mark.parametrize("reference", ["failing:VALUE", "failing.py:VALUE"], ids=["as a module", "as a file"])
@pytest.mark.parametrize(
    "trouble",
    ["import a_module_that_nobody_has", "raise LookupError('own trouble')", "VALUE ="],
    ids=["needs", "raises", "syntax"],
)
def test_module_that_failed_is_loaded_again_once_it_is_mended(reference, trouble, folder, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # both versions are of one second
    (folder / "failing.py").write_text(trouble)
    with pytest.raises((BadRecipe, LookupError, SyntaxError)):
        resolve(reference, folder)
    (folder / "failing.py").write_text("VALUE = 'mended'")
    assert resolve(reference, folder) == "mended"


def test_error_inside_a_function_comes_out_as_it_is(folder):
    """It is the user's own code: a traceback helps, a sentence would hide the place."""
    (folder / "failing.py").write_text("def make():\n    raise LookupError('own trouble')")
    with pytest.raises(LookupError, match="own trouble"):
        resolve("failing.py:make", folder)


def test_file_may_import_what_lies_beside_it(folder):
    (folder / "beside_it.py").write_text("VALUE = 7\n")
    (folder / "uses_it.py").write_text("from beside_it import VALUE\n")
    assert resolve("uses_it.py:VALUE", folder) == 7


def test_cached_function_is_called(folder):
    (folder / "cached.py").write_text("import functools\n\n\n@functools.cache\ndef make():\n    return 5\n")
    assert resolve("cached.py:make", folder) == 5
