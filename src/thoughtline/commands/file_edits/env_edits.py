"""A `.env` file: a variable on each line."""

from __future__ import annotations

from collections.abc import Mapping

from thoughtline.commands.file_edits.merging import lines_in


def edited_env(text: str, variables: Mapping[str, str]) -> str:
    """A line that sets one of them is replaced; of several the last, since it counts. New variables are appended."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = lines_in(text)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += newline
    for name, value in variables.items():
        line = f"{name}={value}{newline}"
        places = [at for at, each in enumerate(lines) if _name(each) == name]
        if places:
            lines[places[-1]] = line
        else:
            lines.append(line)
    return "".join(lines)


def _name(line: str) -> str:
    """The variable that a line sets; empty if none."""
    before, equals, _ = line.partition("=")
    return before.strip().removeprefix("export ").strip() if equals else ""
