"""Writes settings as a file: an example with every key, made from the rows."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import asdict

from thoughtline.settings.keys import DEFAULTS, TABLES, Key
from thoughtline.settings.kinds import DURATION, SIZE, SIZE_OR_ZERO

_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
_SIZES = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("", 1))

_NAMED = """\
[providers.deepseek]                    # changes a built-in provider
api_key = "${DEEPSEEK_API_KEY:-}"       # empty: the caller's own credential goes up

[providers.my-server]                   # adds one
base_url = "http://127.0.0.1:8000/v1"
formats = ["openai_chat", "anthropic_messages"]
contract = "reasoning-content"
dialect = "reasoning_content"
door = "openai_chat"
api_key = ["first-key", "second-key"]
auth = "bearer"
streams_only = false
websocket = false
continuity = "handoff"
tags = "markers"
content = "native"
replay = "on"
keeps = []
headers = { x-team = "blue" }
timeout = { connect = "5s", first_byte = "2m", read = "1m", total = "1h" }
bases = { anthropic_messages = "http://127.0.0.1:8000/anthropic" }
paths = { openai_chat = "/chat/completions" }

[routes.smart]                          # the model `smart`: fails over in order
targets = ["deepseek/deepseek-v4-pro", "anthropic/claude-opus-5-5"]
weights = [3, 1]
continuity = "handoff"

[continuity.models]                     # checkpoints for some models, overriding their providers and [continuity]
"deepseek/deepseek-v4-*" = "always"
"moonshot/kimi-k3" = "off"

[contracts."kimi"]                      # changes what a provider demands
kind = "presence"
scope = "calls"
takes = "text"
dialect = "kimi"
ladder = ["empty", "blank", "pause_thinking"]
filler = " "
thinks_by_default = true
only_when_thinking = true
binds_prefix = false
binds_model = false
"""


def defaults() -> dict[str, dict[str, object]]:
    """The default of each value, by its table and its member."""
    return {name: asdict(table) for name, table in DEFAULTS.items()}


def example_settings() -> str:
    """A file with every key; the plain ones are commented out and show their defaults."""
    values = defaults()
    tables = [_table(name, keys, values[name]) for name, keys in TABLES.items()]
    return "\n".join([*tables, _NAMED])


def commented_settings() -> str:
    """The same file with every setting commented out."""
    lines = ["# Settings of thoughtline. Commented-out lines show the defaults.", ""]
    for line in example_settings().splitlines():
        lines.append(f"# {line}" if line and not line.startswith("#") else line)
    return "\n".join(lines) + "\n"


def written(key: Key, value: object) -> str:
    """A value as it is written in a file."""
    if value is None:
        return '""'
    if key.kind is DURATION and isinstance(value, float):
        return _amount(int(value), _UNITS)
    if key.kind in (SIZE, SIZE_OR_ZERO) and isinstance(value, int):
        return _amount(value, _SIZES)
    return msgspec.json.encode(value).decode()


def _amount(value: int, units: tuple[tuple[str, int], ...]) -> str:
    unit, size = next((unit, size) for unit, size in units if value % size == 0 and value >= size)
    return f'"{value // size}{unit}"'


def _table(name: str, keys: tuple[Key, ...], values: Mapping[str, object]) -> str:
    lines = [f"# {key.name} = {written(key, values.get(key.stands_in))}" for key in keys]
    width = max(map(len, lines)) + 2
    rows = [f"{line:{width}}# {key.meaning}" for line, key in zip(lines, keys, strict=True)]
    return "\n".join([f"[{name}]", *rows, ""])
