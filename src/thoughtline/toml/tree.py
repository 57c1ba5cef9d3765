"""A document as a tree: each value with its position, and with environment variables filled in."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias, Union

from thoughtline.toml.lines import KeyPath, key_lines
from thoughtline.values.errors import InputProblem
from thoughtline.values.nearest import did_you_mean

_VARIABLE = re.compile(r"\$\$|\$\{(?P<name>[^}:]*)(?::-(?P<default>[^}]*))?\}|\$\{[^}]*\}?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Given(NamedTuple):
    """A value as it was written. `is_text`: it always comes as text, as from the environment."""

    value: object
    place: str
    is_text: bool = False


Tree: TypeAlias = dict[str, Union[Given, "Table"]]


class Table(NamedTuple):
    """A table, and its first line."""

    members: Tree
    place: str


class Problems:
    """The problems found so far: reading continues, so that the user can fix all of them at once."""

    def __init__(self) -> None:
        self.found: list[InputProblem] = []

    def add(self, place: str, key: str, message: str, remedy: str) -> None:
        self.found.append(InputProblem(place, key, message, remedy))

    def unknown(self, place: str, key: str, known: Iterable[str], what: str = "key") -> None:
        """An unknown word, and the nearest known one. `key` ends in the word."""
        self.add(place, key, f"there is no such {what}", did_you_mean(key.rpartition(".")[2], known))


def read_file(path: Path, environment: Mapping[str, str], problems: Problems) -> Table:
    """The tree of a file; empty if it can't be read at all, which is a problem."""
    name = str(path)
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        problems.add(name, "", f"the file can't be read: {error.strerror}", "name another with --config")
    except UnicodeDecodeError:
        problems.add(name, "", "the file is not UTF-8 text", "save it as UTF-8")
    else:
        return read_text(text, name, problems, environment)
    return Table({}, name)


def read_text(text: str, name: str, problems: Problems, environment: Mapping[str, str] | None = None) -> Table:
    """The tree of a document. Without an environment no variables are filled in: `${` is text."""
    try:
        values, lines = tomllib.loads(text), key_lines(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"line (\d+)", str(error))  # or "at end of document"
        place = f"{name}:{line[1] if line else len(text.splitlines())}"
        remedy = "write strings in quotes, tables in [brackets], each key once"
        problems.add(place, "", "this is not valid TOML", remedy)
        return Table({}, name)
    return _Reader(name, lines, environment, problems).table((), values)


class _Reader:
    def __init__(
        self, name: str, lines: dict[KeyPath, int], environment: Mapping[str, str] | None, problems: Problems
    ) -> None:
        self._name, self._lines, self._environment, self._problems = name, lines, environment, problems

    def table(self, path: KeyPath, values: Mapping[str, object]) -> Table:
        return Table({key: self._node((*path, key), value) for key, value in values.items()}, self._place(path))

    def _node(self, path: KeyPath, value: object) -> Given | Table:
        if isinstance(value, dict):
            return self.table(path, value)
        filled = self._filled(path, value)
        return Given(filled, self._place(path), filled != value)

    def _place(self, path: KeyPath) -> str:
        while path and path not in self._lines:
            path = path[:-1]
        return f"{self._name}:{self._lines[path]}" if path else self._name

    def _filled(self, path: KeyPath, value: object) -> object:
        if self._environment is None:
            return value
        if isinstance(value, list):
            return [self._filled(path, item) for item in value]
        return _VARIABLE.sub(lambda match: self._variable(path, match), value) if isinstance(value, str) else value

    def _variable(self, path: KeyPath, match: re.Match[str]) -> str:
        name, default = match["name"], match["default"]
        if match[0] == "$$":
            return "$"
        if name is None or not _NAME.fullmatch(name):
            remedy = "write ${NAME}, ${NAME:-default}, $$ for $"
            self._problems.add(self._place(path), ".".join(path), "a variable needs a name", remedy)
            return ""
        value = (self._environment or {}).get(name)
        if value is None and default is None:
            remedy = f"set {name}, or write ${{{name}:-default}}"
            self._problems.add(self._place(path), ".".join(path), f"the variable {name} is not set", remedy)
        return value or default or ""
