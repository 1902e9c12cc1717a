"""Edits of JSON, TOML and tab-separated tables: other types, huge numbers, NaN, strange letters, deep nesting.

Enters: a text and randomness. Leaves: another text, which mostly still parses, and words for what was done.
"""

import json
from random import Random
from typing import Any

_PLACE = "@@HERE@@"

LETTERS = (
    "",
    " ",
    "ü",
    "\u202e",
    "😀",
    "\ufeff",
    "a" * 70_000,
    "../../etc/passwd",
    "-1",
    "nan",
    "None",
    "%s%n",
    "{0.__class__}",
)

NUMBERS = (
    *(
        "0",
        "-0.0",
        "-1",
        "1",
        "2",
        "7",
        "100000",
        "1.5",
        "1e-320",
        "1e308",
        "-1e308",
        "0.999999999999999999999",
        "1e-9",
    ),
    *("9" * 19, "-" + "9" * 19, str(2**63), str(2**64), "9" * 400, "9" * 5000, "123456789.123456789"),
)
JSON_VALUES = (
    *NUMBERS,
    *("null", "true", "false", "NaN", "Infinity", "-Infinity", "1e999", '"\\ud800"', '"\\u0000"', "[]", "{}", "[null]"),
    *("[1, 2, 3]", '{"a": {"b": []}}', '[""]', '"lean-resnet"', '"resnet50"', "[8]", "[8, 8]", "[0]", "[1.5]", '["x"]'),
    *("[" * 500 + "]" * 500, "[" * 100_000 + "]" * 100_000, '{"a":' * 3000 + "1" + "}" * 3000, "[100000000]", "[-8]"),
    *(json.dumps(letters) for letters in LETTERS),
)
TOML_VALUES = (
    *NUMBERS,
    *(
        "inf",
        "-inf",
        "nan",
        "true",
        "1979-05-27",
        "1979-05-27T07:32:00Z",
        "07:32:00",
        "0x10",
        "1_000",
        "[]",
        "{}",
        "[[]]",
    ),
    *("[1, 2, 3]", "[0.25, 0.25]", "[1.0, 0.5]", "[nan, nan]", '["a", 1]', "{ a = { b = 1 } }", '{ "0.5" = "x.py:y" }'),
    *("[" * 300 + "]" * 300, "[" * 5000 + "]" * 5000, "{ a = " * 3000 + "1" + " }" * 3000, '"""', "'", '"a\\u0000b"'),
    *(
        '"x.py:y | z.py:w"',
        '"| |"',
        '"<"',
        '"a < b < c"',
        '"zoo:x"',
        '"hub:a:b"',
        '"transformers:/"',
        '"\\u0000"',
        '"."',
    ),
    *(json.dumps(letters, ensure_ascii=False) for letters in LETTERS),
)
CELLS = (
    *NUMBERS,
    *LETTERS,
    *(
        "NaN",
        "inf",
        "-inf",
        "Infinity",
        "1e400",
        "0x10",
        "1_000",
        "١٢",
        "½",
        "1,5",
        "true",
        "False",
        "\0",
        "\r",
        "\x85",
    ),
    *(
        "0:00:01",
        "1 day, 0:00:01",
        "9" * 400 + ":00:00",
        "9" * 5000 + ":00:00",
        "9" * 400 + " days, 0:00:00",
        "1:2:3:4",
    ),
)


def edited_json(text: str, rng: Random) -> tuple[str, str]:
    """One or several places of a JSON document replaced, removed or added."""
    content, done = json.loads(text), []
    raw: list[str] = []
    for _ in range(rng.choice((1, 1, 2, 4))):
        holder, key = _some_place(content, rng)
        where = f"{key!r}"
        what = rng.random()
        if what < 0.75:
            raw.append(rng.choice(JSON_VALUES))
            holder[key] = f"{_PLACE}{len(raw) - 1}{_PLACE}"
            done.append(f"{where} is {raw[-1][:40]}")
        elif what < 0.9:
            del holder[key]
            done.append(f"{where} is gone")
        elif isinstance(holder, dict):
            holder[f"{key}-"] = holder[key]
            done.append(f"{where} stands twice")
    written = json.dumps(content, indent=rng.choice((None, 2)))
    for number, value in enumerate(raw):
        written = written.replace(f'"{_PLACE}{number}{_PLACE}"', value)
    return written, "; ".join(done) or "spelled otherwise"


def _some_place(content: Any, rng: Random) -> tuple[Any, Any]:
    """A container within a document, and a key of it."""
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, value in pairs:
            places.append((node, key))
            walk(value)

    walk(content)
    return rng.choice(places) if places else ({"a": 1}, "a")


def edited_toml(text: str, rng: Random) -> tuple[str, str]:
    """Lines of a recipe changed, removed, repeated, moved or added."""
    lines, done = text.split("\n"), []
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = rng.randrange(len(lines))
        settings = [i for i, line in enumerate(lines) if "=" in line and not line.startswith("#")]
        what = rng.random()
        if what < 0.6 and settings:
            place = rng.choice(settings)
            key, value = lines[place].split("=", 1)[0], rng.choice(TOML_VALUES)
            lines[place] = f"{key}= {value}"
            done.append(f"{key.strip()} = {value[:40]}")
        elif what < 0.7:
            done.append(f"no line {lines.pop(place)[:40]!r}" if len(lines) > 1 else "nothing")
        elif what < 0.8:
            lines.insert(rng.randrange(len(lines)), lines[place])
            done.append(f"again {lines[place][:40]!r}")
        else:
            line = rng.choice(_LINES).replace("@VALUE@", rng.choice(TOML_VALUES))
            lines.insert(place, line)
            done.append(f"also {line[:40]!r}")
    return rng.choice(("\n", "\n", "\n", "\r\n", "\r")).join(lines), "; ".join(done)


_LINES = (
    *(
        'base = "quickstart.toml"',
        'base = "."',
        'base = "nowhere.toml"',
        'base = "\\u0000"',
        "base = @VALUE@",
        "[model]",
    ),
    *("[[model]]", "[start]", "[model.experts]", '"0.5" = @VALUE@', "[x]", "seed = @VALUE@", "title = @VALUE@"),
    *("data = @VALUE@", "test = @VALUE@", "sigmas = @VALUE@", "experts = @VALUE@", "a.b.c.d = @VALUE@", "[certify]"),
    *(
        "rounds = @VALUE@",
        "radii = @VALUE@",
        "thresholds = @VALUE@",
        ".".join(["a"] * 3000) + " = 1",
        "[start.experts]",
    ),
)


def edited_table(text: str, rng: Random) -> tuple[str, str]:
    """Cells, lines and columns of a tab-separated table changed, removed, repeated or moved."""
    rows, done = [line.split("\t") for line in text.split("\n")], []
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = rng.randrange(len(rows))
        what, column = rng.random(), rng.randrange(len(rows[0]))
        if what < 0.6:
            row = rows[place]
            row[rng.randrange(len(row))] = value = rng.choice(CELLS)
            done.append(f"line {place + 1} has {value[:40]!r}")
        elif what < 0.7:
            rows.insert(rng.randrange(len(rows)), list(rows[place]))
            done.append(f"line {place + 1} again")
        elif what < 0.8 and len(rows) > 1:
            rows.pop(place)
            done.append(f"no line {place + 1}")
        elif what < 0.9:
            rows = [row[:column] + row[column + 1 :] for row in rows]
            done.append(f"no column {column + 1}")
        else:
            rows[0][rng.randrange(len(rows[0]))] = rng.choice(
                ("idx", "label", "predict", "radius", "correct", "time", "")
            )
            done.append("a column has another name")
        rows = [row or [""] for row in rows]
    return rng.choice(("\n", "\n", "\r\n", "\r")).join("\t".join(row) for row in rows), "; ".join(done)
