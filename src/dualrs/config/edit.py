"""Editing recipes: a few settings put into the text of one, with all else, comments among it, as it was.

Enters: the text of a recipe, and settings. Leaves: the text with them. What comes out is read again, so that a text
that is laid out in an unforeseen way is refused, and never spoiled.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from dualrs.errors import BadRecipe

Value = str | float | Sequence[str] | Sequence[float]


def with_settings(text: str, table: str, settings: Mapping[str, Value], where: str) -> str:
    """The text of a recipe where a table has these settings; its other keys stay. ``where`` is for the refusal."""
    edited = text.replace("\r\n", "\n")
    for key, value in settings.items():
        edited = _with_setting(edited, table, key, value)
    held = tomllib.loads(text).get(table, {})
    return _checked(text, edited, table, {**held, **settings} if isinstance(held, dict) else settings, where)


def with_table(text: str, table: str, settings: Mapping[str, Value], where: str) -> str:
    """The text of a recipe where a table is exactly these settings, at the end if it was not there."""
    edited = text.replace("\r\n", "\n")
    lines = "".join(f"{key} = {_spelled(value)}\n" for key, value in settings.items())
    if (found := _place(edited, table)) is None:
        edited = f"{_ended(edited)}\n[{table}]\n{lines}"
    else:
        start, stop = found
        own = edited[start:stop]
        rest = re.search(r"^[ \t]*(#.*)?$", own, re.MULTILINE)  # what comes before the next table
        edited = f"{edited[:start]}{lines}{own[rest.start() :] if rest else ''}{edited[stop:]}"
    return _checked(text, edited, table, settings, where)


def _with_setting(text: str, table: str, key: str, value: Value) -> str:
    if (found := _place(text, table)) is None:
        return f"{_ended(text)}\n[{table}]\n{key} = {_spelled(value)}\n"
    start, stop = found
    own = text[start:stop]
    there = re.search(rf"""^([ \t]*{key}[ \t]*=[ \t]*)(\[[^\]]*\]|"[^"\n]*"|'[^'\n]*'|[^\s#]+)""", own, re.MULTILINE)
    if there is None:
        return f"{text[:start]}{key} = {_spelled(value)}\n{text[start:]}"
    return f"{text[:start]}{own[: there.start()]}{there[1]}{_spelled(value)}{own[there.end() :]}{text[stop:]}"


def _place(text: str, table: str) -> tuple[int, int] | None:
    """Where the lines of a table begin and end, after its own; None if there is none."""
    begun = re.search(rf"^[ \t]*\[[ \t]*{table}[ \t]*\][ \t]*(#.*)?(\n|\Z)", text, re.MULTILINE)
    if begun is None:
        return None
    following = re.compile(r"^[ \t]*\[", re.MULTILINE).search(text, begun.end())
    return begun.end(), len(text) if following is None else following.start()


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _spelled(value: Value) -> str:
    """As TOML writes it, which for texts, numbers and lists of them is as JSON does; many texts get a line each."""
    if isinstance(value, Sequence) and not isinstance(value, str) and value and isinstance(value[0], str):
        return "[\n" + "".join(f"  {json.dumps(one)},\n" for one in value) + "]"
    return json.dumps(value)


def _checked(before: str, after: str, table: str, wanted: Mapping[str, Any], where: str) -> str:
    """The new text with the ends of lines of the old, if it says what that did but for the table."""
    expected = {key: list(v) if isinstance(v, tuple) else v for key, v in wanted.items()}
    try:
        if tomllib.loads(after) == tomllib.loads(before) | {table: expected}:
            return after.replace("\n", "\r\n") if "\r\n" in before else after
    except tomllib.TOMLDecodeError:
        pass
    raise BadRecipe(f"{where} cannot be changed and otherwise kept: give [{table}] lines of its own, one for each key")
