"""Docs that come from the code.

python -m tools.docs            write them
python -m tools.docs --check    fail if any of them is not what the code says
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path

from thoughtline import providers
from thoughtline.cli import parser
from thoughtline.clients import CLIENTS, DEFAULT_URL, Client, address_of, fill
from thoughtline.formats import FORMATS
from thoughtline.providers import Dialect
from thoughtline.replay.contracts import ROWS, Contract
from thoughtline.replay.rules import RULES
from thoughtline.sim.exchange import Simulator
from thoughtline.sim.script import WORDS
from thoughtline.sim.simulators import SIMULATORS

DOCS = Path(__file__).parents[1] / "docs"
NOTE = "<!-- Made by `make docs`. Change the code, not this file. -->"


def cli() -> str:
    """The help of the command line."""
    os.environ["COLUMNS"] = "100"  # argparse wraps by the width of the terminal; a page has one of its own
    root = parser()
    helps = [root.format_help(), *(command.format_help() for command in _commands(root))]
    return f"{NOTE}\n# Command line\n\n" + "\n".join(f"```\n{text}```\n" for text in helps)


def _commands(root: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    found = [action for action in root._actions if isinstance(action, argparse._SubParsersAction)]
    return [command for action in found for command in action.choices.values()]


def simulators() -> str:
    """The simulators and the words of their scripts."""
    rows = [
        f"| `{row.name}` | {row.about} | {_faces(row)} | {', '.join(row.profiles) if len(row.profiles) > 1 else ''} |"
        for row in SIMULATORS.values()
    ]
    words = [f"| `{word.name}` | `{word.example}` | {word.meaning} |" for word in WORDS]
    return "\n".join(
        [
            f"{NOTE}\n# Simulators: the tables\n",
            "How to use them: [simulators](simulators.md). A face is a wire format that the provider speaks; the first "
            "profile is the one used if none is named.\n",
            "| name | what it is | faces | profiles |\n|---|---|---|---|",
            *rows,
            "\nThe words of a script, one a line; `---` begins the next turn.\n",
            "| word | example | meaning |\n|---|---|---|",
            *words,
            "",
        ]
    )


def clients() -> str:
    """What to set in each client."""
    names = [f"| `{row.name}` | {_spoken(row)} | {row.habit} |" for row in CLIENTS]
    text = (
        "`thoughtline connect CLIENT --provider P --model M --url U` prints this for your provider, model and address. "
        "Under `/{provider}` a model has the provider's own name; at the gateway's root it is `provider/model`.\n"
    )
    head = "| client | speaks | what it does to reasoning |\n|---|---|---|"
    return "\n".join([f"{NOTE}\n# Clients\n", text, head, *names, "", *(_client(row) for row in CLIENTS)])


def _spoken(row: Client) -> str:
    return ", ".join(f"`{name}`" for name in row.formats)


def _client(row: Client) -> str:
    address = address_of(row, DEFAULT_URL)
    fence = {"words": "", "shell": "sh"}
    steps = [
        f"{step.where}\n\n```{fence.get(step.language, step.language)}\n{fill(step.lines, address).strip()}\n```\n"
        for step in row.steps
    ]
    notes = [f"- {fill(note, address)}" for note in row.notes]
    return "\n".join([f"## {row.title}\n", *steps, *notes, *([""] if notes else [])])


def contracts() -> str:
    """What each provider demands back."""
    head = (
        "| contract | kind | which turns | when thinking | takes | stands in | on a miss | source |\n"
        + "|---" * 8
        + "|"
    )
    rows = [
        f"| `{row.name}` | {row.kind} | {row.scope} | {_when(row)} | {row.takes} "
        f"| `{row.dialect.carrier}` | {', '.join(row.ladder) or '—'} | {row.source} |"
        for row in ROWS
    ]
    text = (
        "A contract is what a provider and its model demand back. Presence: a field must be there, its text is not "
        "checked. Authenticity: what is sent is checked. Advisory: nothing is refused. Forbidden: sending it is the "
        "error. The provider's name, its host or the model's name decide which holds (`thoughtline.replay.detection`)."
    )
    return "\n".join([f"{NOTE}\n# Contracts\n", text, "", head, *rows, ""])


def _when(row: Contract) -> str:
    return "only then" if row.only_when_thinking else "always"


def rules() -> str:
    """The auditor's rules, from their docstrings."""
    pages = [f"## {rule.code}\n\n{inspect.getdoc(rule.check)}\n" for rule in RULES]
    text = (
        "What `thoughtline audit` looks for. Codes are stable; each finding names the place, the answer and a remedy.\n"
    )
    return "\n".join([f"{NOTE}\n# Rules\n", text, *pages])


def formats() -> str:
    """The wire formats and the dialects of them."""
    rows = [f"| `{name}` | {_first_line(name)} | `{row.dialect.name}` |" for name, row in FORMATS.items()]
    dialects = [value for value in vars(providers).values() if isinstance(value, Dialect)]
    names = [f"| `{item.name}` | `{item.carrier}` | `{item.reasoning_format}` |" for item in dialects]
    return "\n".join(
        [
            f"{NOTE}\n# Formats and dialects\n",
            "A format is a wire API; each is a module of `thoughtline.formats` with the same six names.\n",
            "| format | what it is | dialect if none is named |\n|---|---|---|",
            *rows,
            "\nA dialect is where a server of a format keeps reasoning, and whose reasoning it is.\n",
            "| dialect | reasoning stands in | made by |\n|---|---|---|",
            *names,
            "",
        ]
    )


def _faces(row: Simulator) -> str:
    return ", ".join(f"`{face.wire.format}`" for face in row.faces if face.counts is None)


def _first_line(name: str) -> str:
    module = sys.modules[f"thoughtline.formats.{name}"]
    text = (module.__doc__ or "").strip().split("\n\n")[0]
    return " ".join(text.split())


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli,
    "clients.md": clients,
    "contracts.md": contracts,
    "formats.md": formats,
    "rules.md": rules,
    "simulator-tables.md": simulators,
}


def main(arguments: list[str]) -> int:
    """Write the pages, or say which are out of date."""
    stale = [name for name, page in PAGES.items() if not _is_current(name, page())]
    if "--check" in arguments:
        for name in stale:
            print(f"docs/{name} is not what the code says: run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        (DOCS / name).write_text(PAGES[name]())
        print(f"wrote docs/{name}")
    return 0


def _is_current(name: str, text: str) -> bool:
    path = DOCS / name
    return path.exists() and path.read_text() == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
