"""A TOML file: keys above the tables, and tables of our own."""

from __future__ import annotations

import tomllib
from typing import Any

from thoughtline.commands.file_edits.merging import Uneditable, lines_in, merged
from thoughtline.toml.lines import KeyPath, key_lines


def edited_toml(text: str, lines: str) -> str:
    """Keys are replaced on their lines or added at the top; a table is replaced entirely or appended."""
    try:
        old, new = tomllib.loads(text), tomllib.loads(lines)
    except tomllib.TOMLDecodeError as error:
        raise Uneditable(f"it is not valid TOML: {error}") from None
    keys, tables = _parted(lines)
    result = text.replace("\r\n", "\n")
    for path, table in tables:
        result = _with_table(result, path, table)
    for key, line in reversed(keys):
        result = _with_key(result, key, line, old.get(key))
    if "\r\n" in text:
        result = result.replace("\n", "\r\n")
    try:
        if tomllib.loads(result) == merged(old, new):
            return result
    except tomllib.TOMLDecodeError:
        pass
    raise Uneditable("its keys can't be changed safely")


def _parted(lines: str) -> tuple[list[tuple[str, str]], list[tuple[KeyPath, str]]]:
    """Our own lines: keys, and tables with their headers."""
    top, *parts = ("\n" + lines.strip()).split("\n[")
    keys = [(line.partition("=")[0].strip(), line) for line in top.splitlines() if line.strip()]
    return keys, [(tuple(part.partition("]")[0].split(".")), f"[{part.rstrip()}\n") for part in parts]


def _headers(text: str) -> dict[KeyPath, int]:
    """The lines, from 0, on which tables begin."""
    every = lines_in(text)
    found = {path: line - 1 for path, line in key_lines(text).items()}
    return {path: line for path, line in found.items() if every[line].lstrip().startswith("[")}


def _with_key(text: str, key: str, line: str, old: Any) -> str:
    at = key_lines(text).get((key,))
    if old is None or at is None:
        apart = "" if not text or _starts_with_key(text) else "\n"
        return f"{line}\n{apart}{text}"
    every = lines_in(text)
    every[at - 1] = f"{line}{_comment(every[at - 1], {key: old})}\n"
    return "".join(every)


def _starts_with_key(text: str) -> bool:
    return 1 in key_lines(text).values() and not text.startswith("[")


def _comment(line: str, assignment: dict[str, Any]) -> str:
    """The text after a value on its line."""
    for at, letter in enumerate(line):
        if letter == "#" and _says(line[:at], assignment):
            return f"  {line[at:].rstrip()}"
    return ""


def _says(line: str, assignment: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(line) == assignment
    except tomllib.TOMLDecodeError:
        return False


def _with_table(text: str, path: KeyPath, table: str) -> str:
    headers = _headers(text)
    begin = headers.get(path)
    if begin is None:
        apart = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{apart}{table}"
    every = lines_in(text)
    end = min((line for line in headers.values() if line > begin), default=len(every))
    while end > begin + 1 and (not every[end - 1].strip() or every[end - 1].lstrip().startswith("#")):
        end -= 1  # comments before the next table belong to that
    return "".join([*every[:begin], table, *every[end:]])
