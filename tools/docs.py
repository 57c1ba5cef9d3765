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

from msgspec import Struct
from msgspec.structs import fields

from thoughtline.catalogue import PROVIDERS
from thoughtline.cli import parser
from thoughtline.clients import CLIENTS, DEFAULT_URL, Client, address_of, fill, lines_of
from thoughtline.formats import FORMATS
from thoughtline.gateway.admin.table import TABLE
from thoughtline.providers import CONTRACTS, DIALECTS, Contract, host_named
from thoughtline.providers.knobs import Knob
from thoughtline.providers.thinking import BUDGETS
from thoughtline.replay.rules import RULES
from thoughtline.settings import FILE_NAME, FILE_VARIABLE
from thoughtline.settings.example import defaults, example_settings, written
from thoughtline.settings.keys import (
    CONTINUITY_WORDS,
    CONTRACT,
    PREFIX,
    PROVIDER,
    PROVIDER_TABLES,
    ROUTE,
    TABLES,
    Key,
)
from thoughtline.settings.overlay import variable
from thoughtline_sim.exchange import Simulator
from thoughtline_sim.script import WORDS
from thoughtline_sim.simulators import SIMULATORS

DOCS = Path(__file__).parents[1] / "docs"
NOTE = "<!-- Made by `make docs`. Change the code, not this file. -->"
BEGIN = "<!-- begin {name}: made by `make docs`, change the code -->\n"
END = "<!-- end -->"


def cli() -> str:
    """The help of the command line."""
    os.environ["COLUMNS"] = "100"  # argparse wraps by the width of the terminal; a page has one of its own
    root = parser()
    helps = [root.format_help(), *(command.format_help() for command in _commands(root))]
    return f"{NOTE}\n# Command line\n\n" + "\n".join(f"```\n{text}```\n" for text in helps)


def _commands(root: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    found = [action for action in root._actions if isinstance(action, argparse._SubParsersAction)]
    commands = [command for action in found for command in action.choices.values()]
    return [each for command in commands for each in (command, *_commands(command))]


def simulators() -> str:
    """The simulators and the words of their scripts."""
    rows = [
        f"| `{row.name}` | {row.about} | {_apis(row)} | {', '.join(row.profiles) if len(row.profiles) > 1 else ''} |"
        for row in SIMULATORS.values()
    ]
    words = [f"| `{word.name}` | `{word.example}` | {word.meaning} |" for word in WORDS]
    return "\n".join(
        [
            "| name | what it is | formats | profiles |\n|---|---|---|---|",
            *rows,
            "\nThe words of a script, one a line; `---` begins the next turn.\n",
            "| word | example | meaning |\n|---|---|---|",
            *words,
            "",
        ]
    )


def clients() -> str:
    """What to set in each client."""
    names = [f"| `{row.name}` | {_spoken(row)} | {row.habit} | {row.tried} |" for row in CLIENTS]
    text = (
        "Three ways to point a client at the gateway:\n\n"
        f"- `thoughtline run CLIENT --provider P --model M -- ARGS` starts it with everything set: {_started()}. "
        "Its own files are not changed, and its exit status becomes yours. The key is `$THOUGHTLINE_KEY`, else the "
        "provider's usual variable. `--serve` also starts a gateway for as long as the client runs.\n"
        f"- `thoughtline connect CLIENT --write` edits the client's own file and shows the change: {_written()}. "
        "Everything else in the file stays, comments included. `--undo` restores it byte for byte, unless it has been "
        "changed since.\n"
        "- `thoughtline connect CLIENT --provider P --model M --url U` prints the settings below, for you to make.\n\n"
        "Under `/{provider}`, use the provider's own model name; at the gateway's root, use `provider/model`.\n"
        "\nThe last column names the versions that held a conversation with tools through the gateway, against the "
        "strict simulators, with these settings. For the other clients, settings come from documentation and habits "
        "from reports, or from running them without a gateway.\n"
    )
    head = "| client | speaks | what it does to reasoning | tested |\n|---|---|---|---|"
    return "\n".join([f"{NOTE}\n# Clients\n", text, head, *names, "", *(_client(row) for row in CLIENTS)])


def _started() -> str:
    return ", ".join(f"`{row.name}`" for row in CLIENTS if row.program is not None)


def _written() -> str:
    return ", ".join(f"`{row.name}`" for row in CLIENTS if any(step.file for step in row.steps))


def _spoken(row: Client) -> str:
    return ", ".join(f"`{name}`" for name in row.formats)


def _client(row: Client) -> str:
    address = address_of(row, DEFAULT_URL)
    fence = {"words": "", "shell": "sh"}
    steps = [
        f"{step.where}\n\n```{fence.get(step.language, step.language)}\n{lines_of(row, step, address)}\n```\n"
        for step in row.steps
    ]
    notes = [f"- {fill(note, address)}" for note in row.notes]
    return "\n".join([f"## {row.title}\n", *steps, *notes, *([""] if notes else [])])


def addresses() -> str:
    """Every fixed address of the gateway."""
    rows = [f"| `{row.method} {row.path}` | {row.access} | {_parameters(row.query)} | {row.summary} |" for row in TABLE]
    return "\n".join(["| address | who may | parameters | what it does |\n|---|---|---|---|", *rows, ""])


def _parameters(query: type[Struct]) -> str:
    return ", ".join(f"`{field.encode_name}`" for field in fields(query))


def contracts() -> str:
    """What each provider demands back."""
    head = (
        "| contract | kind | which turns | when thinking | takes | stands in | on a miss | source |\n"
        + "|---" * 8
        + "|"
    )
    rows = [
        f"| `{row.name}` | {row.kind} | {row.scope} | {_when(row)} | {row.takes} "
        f"| `{row.dialect.carrier}` | {', '.join(row.ladder) or '—'} | {_source(row)} |"
        for row in CONTRACTS.values()
    ]
    text = (
        "A contract is what a provider and its model demand back. Presence: a field must be there, its text is not "
        "checked. Authenticity: what is sent is checked. Advisory: nothing is refused. Forbidden: sending it is the "
        "error. The provider's name, its host or the model's name decide which holds (`thoughtline.replay.detection`); "
        "each stands in its provider's file (`thoughtline.providers`), with the page it rests on and the day that was "
        "read. "
        "Where a chat server is not the model's maker (vLLM, LM Studio, aggregators, servers that nobody lists), the "
        "member that its own answers have reasoning in is the one it gets back, whatever stands in this table; and "
        "what a client keeps stays where it is."
    )
    return "\n".join([f"{NOTE}\n# Contracts\n", text, "", head, *rows, efforts()])


def _source(row: Contract) -> str:
    found = row.source
    return f"{found.says} ([source]({found.link}), {found.day})" if found.link else f"{found.says} (unverified)"


def _when(row: Contract) -> str:
    return "only then" if row.only_when_thinking else "always"


def rules() -> str:
    """The auditor's rules, from their docstrings."""
    return "\n".join(f"### {rule.code}\n\n{inspect.getdoc(rule.check)}\n" for rule in RULES)


def formats() -> str:
    """The wire formats and the dialects of them."""
    rows = [f"| `{name}` | {_first_line(name)} | `{row.dialect.name}` |" for name, row in FORMATS.items()]
    names = [f"| `{item.name}` | `{item.carrier}` | `{item.reasoning_format}` |" for item in DIALECTS.values()]
    return "\n".join(
        [
            "A format is a wire API. Each is a package of `thoughtline.formats` that ends in one value, its `Wire`, "
            "which holds all that differs between formats.\n",
            "| format | what it is | default dialect |\n|---|---|---|",
            *rows,
            "\nA dialect says where a server of a format keeps reasoning, and who made that reasoning.\n",
            "| dialect | reasoning is in | made by |\n|---|---|---|",
            *names,
            "",
        ]
    )


def settings() -> str:
    """Every key that can be set."""
    pages = [_table_page(name, keys) for name, keys in TABLES.items()]
    rows = _plain_rows(PROVIDER)
    rows += [f"| `{name}` | a table | {meaning} |" for name, meaning in PROVIDER_TABLES.items()]
    head = "| key | what it is | meaning |\n|---|---|---|"
    return "\n".join(
        [
            f"{NOTE}\n# Settings\n",
            _SETTINGS,
            *pages,
            f"## [continuity.models]\n\n{_MODELS}\n",
            f"## [providers.NAME]\n\n{_PROVIDERS}\n",
            "\n".join([head, *rows, ""]),
            "The built-in ones:\n\n| name | also | address | formats | key shown as |\n|---|---|---|---|---|",
            *[_provider_row(name) for name in PROVIDERS],
            "\n## [routes.NAME]\n",
            "A model's name that stands for several, tried in order.\n",
            "\n".join([head, *_plain_rows(ROUTE), ""]),
            '## [contracts."NAME"]\n',
            "Changes a row of [contracts](contracts.md); `[replay.on_miss]` gives one, by its name, another ladder.\n",
            "\n".join([head, *_plain_rows(CONTRACT), ""]),
            f"## All of it\n\n```toml\n{example_settings()}```\n",
        ]
    )


_SETTINGS = f"""\
No file is needed. `--config FILE` names one, else `{FILE_VARIABLE}`; else `{FILE_NAME}` in your own configuration
folder is read: `$XDG_CONFIG_HOME/thoughtline` (`~/.config/thoughtline`), on macOS also
`~/Library/Application Support/thoughtline`, on Windows first `%APPDATA%\\thoughtline`. A `{FILE_NAME}` in the working
directory is **not** read unless you name it, since a strange checkout may hold one that sends your keys elsewhere;
every command warns of it and says how to use it. The environment goes over the file, flags go over both. An unknown
key, a wrong value, a variable that is not set: nothing starts, and all of it is said, with lines and remedies.

`${{NAME}}` in any text is the environment's; `${{NAME:-default}}` where it may be unset or empty; `$$` is a dollar
sign.

Every value below that is no table is also a variable: `{variable("server", "max_body")}`, and for providers
`{PREFIX}PROVIDERS__NAME__API_KEY` with `_` for a dash. The shorter names are in the tables. Lists have commas.
"""

_MODELS = f"""\
Checkpoints for some models, by `"PROVIDER/MODEL"`, where `*` stands for any letters: {CONTINUITY_WORDS.expected}.
A name without `*` stands over one with it, a name with more letters over one with fewer. They stand over the provider's
`continuity` and over `[continuity]`; a route's own, and a request's header, stand over them."""

_PROVIDERS = """\
A table changes a built-in provider or adds one. An address without a path gets the version of each format (`/v1`,
`/v1beta`), one with a path or a version is taken as it is, and no version is doubled. When the address of a built-in
provider is set, its other faces are expected beside the new one as they were beside the old; name them under `bases`
where that is not so. An address together with `formats` is the address of all of these. An upstream of which only the
address is known is taken to speak what clients speak: OpenAI's two, Anthropic's, Google's and Ollama's formats."""

_ELSEWHERE = {
    "dialect": "one of those in [formats](translation.md#formats-and-dialects)",
    "contract": "one of those in [contracts](contracts.md)",
}


def _table_page(name: str, keys: tuple[Key, ...]) -> str:
    head = "| key | what it is | if unset | variable | meaning |\n|---|---|---|---|---|"
    rows = [
        f"| `{key.name}` | {key.kind.expected} | {_default(name, key)} | {_variable(name, key)} | {key.meaning} |"
        for key in keys
    ]
    return "\n".join([f"## [{name}]\n", head, *rows, ""])


def _default(table: str, key: Key) -> str:
    value = defaults()[table].get(key.stands_in)
    return "—" if value is None else f"`{written(key, value)}`"


def _variable(table: str, key: Key) -> str:
    return f"`{PREFIX}{key.short}`" if key.short else f"`{variable(table, key.name)}`"


def _plain_rows(keys: tuple[Key, ...]) -> list[str]:
    return [f"| `{key.name}` | {_ELSEWHERE.get(key.name, key.kind.expected)} | {key.meaning} |" for key in keys]


def _provider_row(name: str) -> str:
    row = PROVIDERS[name]
    known = host_named(name)
    also = ", ".join(f"`{alias}`" for alias in known.aliases) if known is not None else ""
    faces = ", ".join(f"`{face}`" for face in row.formats)
    address = f"`{row.base_url}`" if row.base_url else "— (set `base_url`)"
    return f"| `{name}` | {also} | {address} | {faces} | {row.auth} |"


def efforts() -> str:
    """How much to think, in every model's own terms."""
    words = [f"| `{word}` | {tokens:,} |" for word, tokens in BUDGETS.items()]
    rows = [
        f"| {', '.join(f'`{name}`' for name in names)} | {_models(knob)} "
        f"| `{knob.style}` | {', '.join(knob.efforts) or '—'} | {_budgets(knob)} "
        f"| {'yes' if knob.can_be_off else 'no'} | {', '.join('.'.join(path) for path, _ in knob.keeps) or '—'} "
        f"| {', '.join(knob.modes) or '—'} |"
        for knob, names in _knobs().items()
    ]
    text = (
        "What a client says of thinking, in one table for all ways to say it. A word becomes tokens, and tokens the "
        "lowest word that covers them; a word that a model does not know becomes the nearest below, else its lowest. "
        "A budget that stands for a word leaves a fifth of `max_tokens` to the answer; one that the client gave stays "
        "below `max_tokens`. What was not said stays unsaid. A Claude that can't think in the way that a request of "
        "its own format says (`modes`) is told to in one that it has: a finding (`forbidden`, at `/thinking`).\n"
    )
    return "\n".join(
        [
            "\n## Effort and budgets\n",
            text,
            "| effort | tokens |\n|---|---|",
            *words,
            "\nThe knob of a model: of its contract, the first row that fits. `keeps` is the switch that has earlier "
            "thinking used.\n",
            "| contract | model | knob | words | budget | off | keeps | modes |\n" + "|---" * 8 + "|",
            *rows,
            "",
        ]
    )


def _knobs() -> dict[Knob, list[str]]:
    """Every knob, and the contracts that have it."""
    found: dict[Knob, list[str]] = {}
    for contract in CONTRACTS.values():
        for knob in contract.knobs:
            found.setdefault(knob, []).append(contract.name)
    return found


def _models(knob: Knob) -> str:
    pattern = knob.models.replace("|", "\\|")
    return f"`{pattern}`" if pattern else "any"


def _budgets(knob: Knob) -> str:
    return f"{knob.budgets[0]:,} to {knob.budgets[1]:,}" if knob.style in _WITH_BUDGETS else "—"


_WITH_BUDGETS = ("claude_budget", "gemini_budget", "enable_thinking", "token_budget", "reasoning")


def _apis(row: Simulator) -> str:
    return ", ".join(f"`{api.wire.format}`" for api in row.apis if api.counts is None)


def _first_line(name: str) -> str:
    module = sys.modules[f"thoughtline.formats.{name}"]
    text = (module.__doc__ or "").strip().split("\n\n")[0]
    return " ".join(text.split())


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli,
    "clients.md": clients,
    "contracts.md": contracts,
    "settings.md": settings,
}
PARTS: dict[tuple[str, str], Callable[[], str]] = {
    ("admin.md", "addresses"): addresses,
    ("findings.md", "rules"): rules,
    ("simulators.md", "tables"): simulators,
    ("translation.md", "formats"): formats,
}
"""What stands between two marks of a page that people write."""


def main(arguments: list[str]) -> int:
    """Write the pages, or say which are out of date."""
    texts = {name: page() for name, page in PAGES.items()}
    for (name, part), text in PARTS.items():
        texts[name] = _with_part(texts.get(name) or (DOCS / name).read_text(), part, text())
    stale = [name for name, text in texts.items() if not _is_current(name, text)]
    if "--check" in arguments:
        for name in stale:
            print(f"docs/{name} is not what the code says: run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        (DOCS / name).write_text(texts[name])
        print(f"wrote docs/{name}")
    return 0


def _with_part(page: str, part: str, text: str) -> str:
    before, begin, rest = page.partition(BEGIN.format(name=part))
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"there are no marks for {part}: write {BEGIN.format(name=part).strip()} and {END}")
    return f"{before}{begin}{text}{end}{after}"


def _is_current(name: str, text: str) -> bool:
    path = DOCS / name
    return path.exists() and path.read_text() == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
