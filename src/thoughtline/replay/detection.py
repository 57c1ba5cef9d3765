"""Finds the contract for a provider, host, model and format.

A provider that makes its own models decides itself. An aggregator or unknown host serves models whose makers may be
strict, so there the model's name decides. An unknown model gets the contract that changes nothing.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from thoughtline import providers
from thoughtline.formats import FORMATS
from thoughtline.providers import UNKNOWN, Contract, ProviderRow
from thoughtline.providers.thinking import switches_of
from thoughtline.values.destination import Destination
from thoughtline.values.turns import FormatName


def host_of(target: Destination) -> ProviderRow:
    """Return the provider row of a target, by name or by the host of its endpoint."""
    return providers.host_named(target.provider) or providers.host_at(target.endpoint) or providers.facts().unlisted


def resolve(target: Destination) -> Contract:
    """Return the built-in contract for a target."""
    host = host_of(target)
    found = with_tools(_found(host, target.model.lower(), target.format), host)
    if "dialects" in FORMATS[target.format].quirks and (host.rules != "makers" or host.switches):
        found = replace(found, switches=host.switches if host.rules == "makers" else switches_of(found, target.model))
    if host.is_lenient and found.kind == "presence":
        return replace(found, kind="advisory", ladder=())
    return found


def _found(host: ProviderRow, model: str, format: FormatName) -> Contract:
    owner = next((row for row in providers.facts().rows if format in row.owns), None)
    if owner is not None:
        return owner.row_for(model, format) or UNKNOWN
    own = host.row_for(model, format)
    if own is None or host.rules != "own":
        theirs = _of_maker(host, model, format)
        is_weak = host.rules == "strict makers" and own is not None and theirs is not None and theirs.kind != "presence"
        own = own if theirs is None or is_weak else theirs
    if format in providers.UNKNOWN_IN:
        return own or providers.UNKNOWN_IN[format]
    return _in_chat(own or UNKNOWN, host)


def _of_maker(host: ProviderRow, model: str, format: FormatName) -> Contract | None:
    """Return the contract of the model's maker, as far as it holds at this host."""
    maker = providers.maker_of(model)
    found = maker.row_for(model, format, is_maker=False) if maker is not None else None
    return found if found is None or host.obeys(found) else None


def _in_chat(found: Contract, host: ProviderRow) -> Contract:
    """Return the contract with the member in which this server keeps text, and its knobs, as far as they are known."""
    if host.knobs:
        found = replace(found, knobs=host.knobs)
    if host.dialect is not None and found.takes == "text":
        found = replace(found, dialect=host.dialect)
    return found if host.has_documented_field else replace(found, follows_answers=True, may_seal=host.may_seal)


def with_tools(contract: Contract, host: ProviderRow) -> Contract:
    """Return the contract with the tools that this server accepts, and their form."""
    return replace(contract, tools=host.tools_for(contract), forms=host.tool_forms)


_SPLITS = re.compile(rb'"reasoning_split"\s*:\s*true')


def as_asked(contract: Contract, body: bytes) -> Contract:
    """Return the contract in the dialect that a request asks for: some servers split reasoning from text on request."""
    if contract.when_split is not None and _SPLITS.search(body):
        return replace(contract, dialect=contract.when_split)
    return contract
