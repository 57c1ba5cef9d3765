"""Chooses a provider's endpoint for a request: the client's own format, or one that can carry its reasoning.

A row lists it for some models (`ProviderRow.doors`), a refusal that names another endpoint teaches it, and a provider's
`door` setting decides it for all of its requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.gateway.choosing import Target, asked_in
from thoughtline.providers import maker_of
from thoughtline.providers.row import Door
from thoughtline.replay.findings import Finding
from thoughtline.replay.refusals import Correction
from thoughtline.values.turns import FormatName

_TOOLS = re.compile(rb'"(?:tools|functions)"\s*:\s*\[\s*[^\]\s]')
"""A list of tools that is not empty. Inside a text of the conversation its quotes would be escaped."""


def has_tools(body: bytes) -> bool:
    return _TOOLS.search(body) is not None


def says_thinking(body: bytes, format: FormatName) -> bool:
    """Whether a request has a thinking setting."""
    return any(f'"{name}"'.encode() in body for name in FORMATS[format].switches)


def door_for(target: Target, body: bytes, learned: Sequence[Correction]) -> Target | None:
    """Return the target in a better format for the request; None if its own is right."""
    if target.provider.door is not None:
        return None
    found = next((door.goes_up for door in target.provider.doors if _opens(door, target, body)), None)
    for lesson in learned:
        if lesson.change == "opens" and (lesson.scope == "" or has_tools(body)):
            found = next((name for name in FORMATS if name == lesson.field), found)
    return through(target, found) if found is not None else None


def _opens(door: Door, target: Target, body: bytes) -> bool:
    if door.comes_in != target.format or not door.is_for(target.model):
        return False
    if door.needs == "tools":
        return has_tools(body)
    return door.needs == "" or not says_thinking(body, target.format)


def through(target: Target, format: FormatName) -> Target | None:
    """Return the target in another format, if its provider speaks that."""
    if format == target.format or format not in target.provider.formats:
        return None
    return replace(target, provider=asked_in(target.provider, format), format=format)


def door_named(target: Target, offered: Iterable[str], closed: Sequence[str]) -> Target | None:
    """Return the target in the first format that a refusal offers. If it only rules out this one, use the one that the
    model's maker prefers."""
    if target.provider.door is not None:
        return None
    for path in offered:
        for name in target.provider.formats:
            if _ends_in(name, path) and (other := through(target, name)) is not None:
                return other
    if not any(_ends_in(target.format, path) for path in closed):
        return None
    maker = maker_of(target.model)
    usual = (name for name in target.provider.formats if FORMATS[name].has_openai_tools)
    others = (through(target, name) for name in (*(maker.formats if maker is not None else ()), *usual))
    return next(filter(None, others), None)


def _ends_in(format: FormatName, path: str) -> bool:
    return FORMATS[format].upstream_path("https://host/v1", "m", False).endswith(f"/{path}")


def reported(came: FormatName, target: Target) -> Finding:
    """Return the finding for a request that is sent in another format than it arrived in."""
    why = f"{target.model} can't be asked in {came} with its reasoning: it was asked in {target.format}"
    return Finding("door", f"/{target.format}", why, f"set door in [providers.{target.provider.name}] to keep one")
