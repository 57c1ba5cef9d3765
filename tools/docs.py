"""Docs that come from the code.

python -m tools.docs            write them
python -m tools.docs --check    fail if any of them is not what the code says
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

from msgspec import Struct
from msgspec.structs import fields

from thoughtline.clients import CLIENTS, DEFAULT_URL, Client, address_of, fill_words, lines_of
from thoughtline.commands.parser import parser
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.engine.heal import heal
from thoughtline.engine.replayer import Replayer
from thoughtline.engine.request import planned
from thoughtline.facts.listing import listed
from thoughtline.facts.sheets import written as sheets_of_facts
from thoughtline.formats import FORMATS
from thoughtline.gateway import request_stages as stages
from thoughtline.gateway.admin.table import TABLE
from thoughtline.gateway.answer_stages import down
from thoughtline.gateway.attempt import Attempt
from thoughtline.gateway.proxy import Exchange
from thoughtline.gateway.relay import Relay
from thoughtline.providers import BUILT_IN, CONTRACTS, DIALECTS, Contract, host_named
from thoughtline.providers.knobs import Knob
from thoughtline.providers.thinking import BUDGETS
from thoughtline.replay.matching import match_by_evidence
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
from tools.listed_changes import NOT_PUT_BACK, REWRITTEN, SHOWN_BY_THE_REQUEST
from tools.verified import kept

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
            "\nThe words of a script, one per line; `---` begins the next turn.\n",
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


def _code(word: str) -> str:
    return f"`{word}`" if word else "no path"


def _client(row: Client) -> str:
    address = address_of(row, DEFAULT_URL)
    fence = {"words": "", "shell": "sh"}
    steps = [
        f"{step.where}\n\n```{fence.get(step.language, step.language)}\n{lines_of(row, step, address)}\n```\n"
        for step in row.steps
    ]
    spelled = []
    if row.spellings:
        spelled = ["`connect` and `run` set the provider's own format, if it is one of these:\n"]
        spelled += ["| format | what is set |\n|---|---|"]
        spelled += [f"| `{each.format}` | {', '.join(map(_code, each.words.values()))} |" for each in row.spellings]
        spelled += [""]
    notes = [f"- {fill_words(row, note, address)}" for note in row.notes]
    steps += spelled
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
        "| contract | kind | which turns | when thinking | accepts | reasoning is in | on a miss | source |\n"
        + "|---" * 8
        + "|"
    )
    rows = [
        f"| `{row.name}` | {row.kind} | {row.scope} | {_when(row)} | {row.takes} "
        f"| `{row.dialect.carrier}` | {', '.join(row.ladder) or '—'} | {_source(row)} |"
        for row in CONTRACTS.values()
    ]
    text = (
        "A contract says what a provider and its model demand back:\n\n"
        "- presence: a field must be present, but its text is not checked;\n"
        "- authenticity: what is sent is checked;\n"
        "- advisory: nothing is refused;\n"
        "- forbidden: sending reasoning is the error.\n\n"
        "The provider's name, its host or the model's name decide which contract applies "
        "(`thoughtline.replay.detection`). Each is in its provider's file (`thoughtline.providers`), with its source "
        "and the day that was read.\n\n"
        "If a chat server is not the model's maker (vLLM, LM Studio, aggregators, unlisted servers), reasoning goes "
        "back in the member that the server's own answers use, whatever this table says. What a client keeps stays "
        "where it is."
    )
    return "\n".join([f"{NOTE}\n# Contracts\n", text, "", head, *rows, ages(), efforts()])


def ages() -> str:
    """How old the facts of each provider are, counted from the day on which the newest of them was read."""
    sheets = sheets_of_facts(BUILT_IN)
    newest = date.fromisoformat(max(one.read for one in listed(sheets, date.max) if len(one.read) == 10))
    every = list(listed(sheets, newest))
    rows = []
    for row in BUILT_IN.rows:
        own = [one for one in every if row.name in (one.name, sheets[one.kind][one.name].get("provider"))]
        contracts = {contract.name for contract in row.contracts}
        own += [one for one in every if one.kind == "contracts" and one.name in contracts and one not in own]
        read = sorted(one.read for one in own if one.read)
        unverified = sum(not one.read for one in own)
        rows.append(f"| `{row.name}` | {len(own)} | {unverified} | {read[0] if read else '—'} |")
    return "\n".join(
        [
            "\n## How old these facts are\n",
            f"The newest was read on {newest}. `thoughtline facts list` has each with its source and its age today; "
            "[facts](facts.md) says how to correct one.\n",
            "| provider | facts | unverified | oldest |\n|---|---|---|---|",
            *rows,
        ]
    )


def _source(row: Contract) -> str:
    found = row.source
    return str(found).replace(found.link, f"[source]({found.link})") if found.link.startswith("https:") else str(found)


def _when(row: Contract) -> str:
    return "only then" if row.only_when_thinking else "always"


def rules() -> str:
    """The auditor's rules, from their docstrings."""
    return "\n".join(f"### {rule.code}\n\n{inspect.getdoc(rule.check)}\n" for rule in RULES)


def untouched() -> str:
    """Why the gateway changes recorded requests that lost nothing, or does not mend them."""
    changed = [f"- {why}" for why in dict.fromkeys((*SHOWN_BY_THE_REQUEST, *REWRITTEN.values()))]
    lost = [f"- {why}" for why in dict.fromkeys(NOT_PUT_BACK.values())]
    return "\n".join(["Why it is changed:\n", *changed, "\nWhy lost reasoning is not put back:\n", *lost, ""])


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
    head = "| key | type | meaning |\n|---|---|---|"
    return "\n".join(
        [
            f"{NOTE}\n# Settings\n",
            _SETTINGS,
            *pages,
            f"## [continuity.models]\n\n{_MODELS}\n",
            f"## [providers.NAME]\n\n{_PROVIDERS}\n",
            "\n".join([head, *rows, ""]),
            "The built-in providers:\n\n| name | aliases | address | formats | key sent as |\n|---|---|---|---|---|",
            *[_provider_row(name) for name in PROVIDERS],
            "\n## [routes.NAME]\n",
            "A model alias with several targets, tried in order.\n",
            "\n".join([head, *_plain_rows(ROUTE), ""]),
            '## [contracts."NAME"]\n',
            "Changes a row of [contracts](contracts.md). `[replay.on_miss]` changes a contract's ladder only, by name."
            "\n",
            "\n".join([head, *_plain_rows(CONTRACT), ""]),
            f"## All of it\n\n```toml\n{example_settings()}```\n",
        ]
    )


_SETTINGS = f"""\
No settings file is needed. If there is one, it is the first of:

- the file named by `--config FILE`;
- the file named by `{FILE_VARIABLE}`;
- `{FILE_NAME}` in your configuration folder: `$XDG_CONFIG_HOME/thoughtline` (`~/.config/thoughtline`), on macOS also
  `~/Library/Application Support/thoughtline`, on Windows first `%APPDATA%\\thoughtline`.

A `{FILE_NAME}` in the working directory is **not** read unless you name it, because a repository you have cloned may
contain one that sends your keys elsewhere. Every command warns about it and says how to use it.

The environment overrides the file, and flags override both. If there is an unknown key, a wrong value or an unset
variable, nothing starts, and all mistakes are listed with their lines and remedies.

`${{NAME}}` in any text is replaced by that environment variable. Write `${{NAME:-default}}` if it may be unset or
empty, and `$$` for a dollar sign.

Every value below, except tables, can also be set by a variable: `{variable("server", "max_body")}`, and for providers
`{PREFIX}PROVIDERS__NAME__API_KEY`, with `_` for a dash. The tables list the shorter names. Separate the items of a list
by commas.
"""

_MODELS = f"""\
Checkpoints for some models, by `"PROVIDER/MODEL"`, where `*` matches any characters: {CONTINUITY_WORDS.expected}. A
name without `*` beats one with it, and a longer name beats a shorter one. These settings override the provider's
`continuity` and `[continuity]`; a route's own `continuity` and a request's header override them."""

_PROVIDERS = """\
A table changes a built-in provider or adds one.

An address without a path gets the version of each format (`/v1`, `/v1beta`). One with a path or a version is used as it
is, and no version is doubled. If you change the address of a built-in provider, the addresses of its other formats are
expected in the same places relative to the new one; name them under `bases` if they are not. An address together with
`formats` is the address of all these formats. If only the address of an upstream is known, it is assumed to speak what
clients speak: OpenAI's two formats, Anthropic's, Google's and Ollama's."""

_ELSEWHERE = {
    "dialect": "one of those in [formats](translation.md#formats-and-dialects)",
    "contract": "one of those in [contracts](contracts.md)",
}


def _table_page(name: str, keys: tuple[Key, ...]) -> str:
    head = "| key | type | default | variable | meaning |\n|---|---|---|---|---|"
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


def verified() -> str:
    """What was proved with a real key, by whom it could be: maintainers with keys of their own."""
    seen = kept()
    by_provider: dict[str, list[str]] = {}
    for name, entry in seen.items():
        provider, _, rest = name.partition("/")
        differs = ", ".join(entry["differs"]) or "nothing"
        by_provider.setdefault(provider, []).append(f"| {rest} | {entry['day']} | {entry['agrees']} | {differs} |")
    rows = []
    for name in PROVIDERS:
        rows += [f"| `{name}` {row}" for row in by_provider.get(name, ["| | never | | |"])]
    text = (
        "What maintainers have proved with a key of their own, by `make verify`: the day, how many facts were as "
        "believed, and which were not. `never` means that nobody has: the facts then rest on the sources in "
        "[contracts](contracts.md), and on the simulators, which are written from the same pages.\n\n"
        "With a key of yours, `thoughtline verify PROVIDER` proves them for you ([facts](facts.md#verify)).\n"
    )
    head = "| provider | model and format | day | as believed | differs |\n|---|---|---|---|---|"
    return "\n".join([f"{NOTE}\n# Verified\n", text, head, *rows, ""])


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
        "Clients ask for thinking by an effort or a budget, and models accept one or the other. An effort becomes "
        "tokens, and tokens become the lowest effort that covers them. An effort that a model does not know becomes "
        "the nearest lower one, otherwise the model's lowest. A budget made from an effort leaves a fifth of "
        "`max_tokens` to the answer; a client's own budget stays below `max_tokens`. If the client asks for nothing, "
        "nothing is sent. If a Claude model does not accept the mode of thinking that a Messages request asks for "
        "(`modes`), the request gets one that it accepts, with a finding (`forbidden`, at `/thinking`).\n"
    )
    return "\n".join(
        [
            "\n## Effort and budgets\n",
            text,
            "| effort | tokens |\n|---|---|",
            *words,
            "\nThe first row of its contract that matches a model says how its thinking is set. `keeps` is the switch "
            "that makes the model use earlier thinking.\n",
            "| contract | model | set by | efforts | budget | off | keeps | modes |\n" + "|---" * 8 + "|",
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


STORIES: tuple[tuple[str, Callable[..., object]], ...] = (
    ("a request is served: one target after the other, until one answers", Exchange._converse),
    ("it passes through its stages, for one target", stages.prepare),
    ("the engine decides what to send", Replayer.prepare),
    ("only the end is worked through, where the rest is remembered", Replayer._resumed),
    ("the record of a step is found among those that look like it", match_by_evidence),
    ("a plan is made, carried out, and written", planned),
    ("it is sent, corrected if it is refused, and sent again", Attempt.get_answer),
    ("a refusal is read, and says what to change", heal),
    ("the stages of an answer are chosen", down),
    ("an answer is pumped through them to the client, and its turns are saved", Relay._run),
)


def stories() -> str:
    """The central functions, each with its file and line."""
    rows = ((text, told, inspect.getsourcefile(told) or "", inspect.getsourcelines(told)[1]) for text, told in STORIES)
    lines = (
        f"| {text} | `{told.__qualname__}` | `{path.rpartition('/thoughtline/')[2]}:{line}` |\n"
        for text, told, path, line in rows
    )
    return "| story | function | where |\n|---|---|---|\n" + "".join(lines)


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli,
    "clients.md": clients,
    "contracts.md": contracts,
    "settings.md": settings,
    "verified.md": verified,
}
PARTS: dict[tuple[str, str], Callable[[], str]] = {
    ("admin.md", "addresses"): addresses,
    ("architecture.md", "stories"): stories,
    ("findings.md", "rules"): rules,
    ("simulators.md", "tables"): simulators,
    ("translation.md", "formats"): formats,
    ("untouched.md", "reasons"): untouched,
}
"""What stands between two marks of a page that people write."""


def main(arguments: list[str]) -> int:
    """Write the pages, or say which are out of date."""
    texts = {name: page() for name, page in PAGES.items()}
    for (name, part), text in PARTS.items():
        texts[name] = _with_part(texts.get(name) or (DOCS / name).read_text(), part, text())
    stale = [name for name, text in texts.items() if not _is_current(name, text)]
    if "--check" not in arguments:
        stale = sorted({*stale, *(name for name, _ in PARTS if (DOCS / name).read_text() != texts[name])})
    else:
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
    """Whether it says the same: argparse sets its columns otherwise from Python 3.13 on. A line of code may move
    as far as `tests/test_docs.py` allows."""
    path = DOCS / name
    return path.exists() and _words(path.read_text()) == _words(text)


def _words(text: str) -> list[str]:
    return re.sub(r"(\.py):\d+", r"\1", text).split()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
