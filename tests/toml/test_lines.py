"""Lines of keys: against documents written so that each line is known."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.toml.lines import KeyPath, key_lines

BARE = st.text(st.sampled_from(list("abcXYZ019_-")), min_size=1, max_size=5)
QUOTED = st.sampled_from(['"a.b"', "'c = d'", '"[e]"', '"#f"', '"g\\"h"', '"\\u0069"'])
NUMBERS = ["1", "1.5", "-2", "1e6", "true", "1979-05-27", "1979-05-27T07:32:00.5Z", "1979-05-27 07:32:00"]
TEXTS = ['"a = b"', "'[x]'", '"#"', '"\\""', '"""a\n[b]\nc = 1\n"""', "'''\nd = 2'''", '"""e"""""']
NESTED = ["[]", "{}", "[1, [2], 'k = 3']", '[\n  "l = 4", # m = 5\n  6,\n]']
SCALAR = st.sampled_from([*NUMBERS, *TEXTS, *NESTED])


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, dict[KeyPath, int]]:
    """A document with unique keys, and the line of each."""
    lines: list[str] = []
    known: dict[KeyPath, int] = {}
    words = draw(st.lists(st.one_of(BARE, QUOTED), min_size=1, max_size=12, unique_by=_decoded))
    within: KeyPath = ()
    for word in words:
        path = _decoded(word)
        match draw(st.sampled_from(["header", "pair", "pair", "comment", "inline", "dotted"])):
            case "header":
                within = (path,)
                known[within] = _next_line(lines)
                lines.append(f"[{word}]  # {word} = 1")
            case "pair":
                known[(*within, path)] = _next_line(lines)
                lines.append(f"  {word} = {draw(SCALAR)}")
            case "comment":
                lines.append(f"# {word} = 1")
            case "inline":
                known |= dict.fromkeys(
                    ((*within, path), (*within, path, "n"), (*within, path, "n", "o")), _next_line(lines)
                )
                lines.append(f"{word} = {{ n = {{ o = 'p' }} }}")
            case "dotted":
                known |= dict.fromkeys(((*within, path), (*within, path, "q")), _next_line(lines))
                lines.append(f"{word} . q = 1")
    return "\n".join(lines), known


def _next_line(lines: list[str]) -> int:
    return "\n".join([*lines, ""]).count("\n") + 1


def _decoded(word: str) -> str:
    return str(next(iter(tomllib.loads(f"{word} = 1"))))


def paths_of(values: Mapping[str, object], within: KeyPath = ()) -> set[KeyPath]:
    found: set[KeyPath] = set()
    for name, value in values.items():
        found.add((*within, name))
        if isinstance(value, dict):
            found |= paths_of(value, (*within, name))
    return found


@given(documents())
def test_every_key_has_its_line(written: tuple[str, dict[KeyPath, int]]) -> None:
    """Each key and table stands on the line it was written on; nothing in a string or comment is taken for one."""
    document, known = written
    found = key_lines(document)
    assert found == known
    assert set(found) == paths_of(tomllib.loads(document))


@pytest.mark.parametrize(
    ("document", "path", "line"),
    [
        ("a = 1", ("a",), 1),
        ("\r\n[b]\r\nc = 2\r\n", ("b", "c"), 3),
        ('[x."y.z"]\nw = 1', ("x", "y.z", "w"), 2),
        ("[a.b]\n[a]\nc = 1", ("a", "c"), 3),
        ("[[t]]\nu = 1\n[[t]]\nu = 2", ("t", "u"), 2),
        ("a = [\n{ b = 1 },\n]\nc = 2", ("c",), 4),
    ],
)
def test_some_documents(document: str, path: KeyPath, line: int) -> None:
    """Line ends of both kinds, quoted names, tables before their parents, lists of tables."""
    assert key_lines(document)[path] == line
