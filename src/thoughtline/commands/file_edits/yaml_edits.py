"""A YAML file, as people write them: keys at the margin, with a value on their line or a list of objects below.
None of our dependencies parses YAML, so only plain forms are edited; any other file stays as it is.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from thoughtline.commands.file_edits.merging import NAMES, Uneditable, lines_in

_KEY = re.compile(r"(?P<key>[A-Za-z_][\w-]*):(?:[ ](?P<value>.*))?$")
_ITEM = re.compile(r"(?P<indent> *)- ")
_NAME = re.compile(rf" *(?:- )?(?:{'|'.join(NAMES)}): (?P<value>.*)")
_NOT_PLAIN = tuple("[{&*!|>%@`")


class YamlEntry(NamedTuple):
    """A key at the margin with all its lines; without a key, the lines above the first."""

    key: str
    lines: list[str]


def edited_yaml(text: str, lines: str, kept: tuple[str, ...] = ()) -> str:
    """Values are replaced on their lines, items of a list by name; new keys are appended, new items come first."""
    newline = "\r\n" if "\r\n" in text else "\n"
    present = [line.rstrip("\r\n") for line in lines_in(text)]
    entries = _entries(present)
    for added in _entries(lines.strip().splitlines())[1:]:
        at = next((place for place, entry in enumerate(entries) if entry.key == added.key), None)
        if at is None:
            entries.append(added)
        elif added.key not in kept:
            joined = _with_items if len(added.lines) > 1 else _with_value
            entries[at] = YamlEntry(added.key, joined(entries[at].lines, added.lines))
    result = [line for entry in entries for line in entry.lines]
    return text if result == present else "".join(f"{line}{newline}" for line in result)


def _entries(lines: list[str]) -> list[YamlEntry]:
    """Split at the margin."""
    entries = [YamlEntry("", [])]
    for line in lines:
        found = _KEY.match(line)
        if found:
            if any(entry.key == found["key"] for entry in entries):
                raise Uneditable(f"{found['key']} stands there twice")
            entries.append(YamlEntry(found["key"], [line]))
        elif "\t" in line or not (line[:1] in ("", " ", "#") or line.startswith("- ") or line == "---"):
            raise Uneditable("it is not written in plain lines")
        elif line == "---" and entries[-1].key:
            raise Uneditable("it holds more than one document")
        elif line.startswith("- ") and not entries[-1].key:
            raise Uneditable("it is a list")
        else:
            entries[-1].lines.append(line)
    return entries


def _rest(lines: list[str]) -> list[str]:
    """Blank lines and comments at the margin, which end an entry and belong to the next one."""
    at = len(lines)
    while at > 1 and (not lines[at - 1].strip() or lines[at - 1].startswith("#")):
        at -= 1
    return lines[at:]


def _with_value(lines: list[str], added: list[str]) -> list[str]:
    rest = _rest(lines)
    plain = _parted(_KEY.match(lines[0])["value"] or "")  # type: ignore[index]  # an entry begins with its key
    if plain is None or len(lines) - len(rest) > 1:
        raise Uneditable(f"{lines[0].partition(':')[0]} has no plain value")
    return [added[0] + plain[1], *rest]


def _parted(value: str) -> tuple[str, str] | None:
    """A value on its line without quotes, and the comment after it; None if it is not a plain value."""
    quote = value[:1]
    if value.startswith(_NOT_PLAIN):
        return None
    if quote in ('"', "'"):
        text, closing, rest = value[1:].partition(quote)
        is_plain = closing and "\\" not in text and (not rest.strip() or rest.startswith(" #"))
        return (text, rest.rstrip()) if is_plain else None
    text, mark, comment = f" {value}".partition(" #")
    return text.strip(), f"{mark}{comment}".rstrip()


def _with_items(lines: list[str], added: list[str]) -> list[str]:
    value = _KEY.match(lines[0])["value"] or ""  # type: ignore[index]  # likewise
    body, rest = lines[1 : len(lines) - len(_rest(lines))], _rest(lines)
    head = lines[0]
    if value.strip() == "[]" and not body:
        head = lines[0].partition(":")[0] + ":"
    elif value.strip() and not value.lstrip().startswith("#"):
        raise Uneditable(f"{head.partition(':')[0]} has no list below it")
    items, indent = _items(body)
    for item in _items(added[1:])[0]:
        block = _indented(item, indent)
        same = [place for place, known in enumerate(items) if _name(known) == _name(block)]
        if same:
            items[same[0]] = _replaced(items[same[0]], block)
        else:
            items.insert(0, block)
    return [head, *(line for item in items for line in item), *rest]


def _items(body: list[str]) -> tuple[list[list[str]], int]:
    """The items of a list, each with its lines, and their indentation."""
    first = next((found for line in body if (found := _ITEM.match(line))), None)
    indent = len(first["indent"]) if first else 2
    items: list[list[str]] = []
    above: list[str] = []
    for line in body:
        found = _ITEM.match(line)
        if found and len(found["indent"]) == indent:
            items.append([*above, line])
            above = []
        elif items:
            items[-1].append(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            above.append(line)
        else:
            raise Uneditable("it has no list where one is wanted")
    return items or ([above] if above else []), indent


def _replaced(item: list[str], block: list[str]) -> list[str]:
    """The block in place of an item; comments above and below stay."""
    begin = next(at for at, line in enumerate(item) if _ITEM.match(line))
    end = max(at for at, line in enumerate(item) if line.strip() and not line.lstrip().startswith("#")) + 1
    return [*item[:begin], *block, *item[end:]]


def _indented(item: list[str], indent: int) -> list[str]:
    own = len(item[0]) - len(item[0].lstrip())
    return [" " * indent + line[own:] for line in item]


def _name(item: list[str]) -> str | None:
    """The name of an item; only at its own level."""
    start = next((line for line in item if _ITEM.match(line)), "")
    level = len(start) - len(start.lstrip()) + 2
    for line in item:
        at = len(line) - len(line.lstrip(" -")) if line == start else len(line) - len(line.lstrip())
        found = _NAME.match(line)
        plain = _parted(found["value"].strip()) if found and at == level else None
        if plain is not None:
            return plain[0]
    return None
