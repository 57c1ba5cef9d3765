"""Converts a history for another model: removes what its maker would refuse, and quotes the reasoning to it.

Reasoning that is still in the history is used; the rest comes from the store. Reasoning that the new model accepts as
its own stays in place; the rest goes into a checkpoint, like in the gateway's continuity.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from thoughtline.continuity.memory import Memory
from thoughtline.continuity.terms import Terms
from thoughtline.destinations.catalogue import Provider
from thoughtline.engine.audit import guess_format
from thoughtline.engine.capture import captured_at
from thoughtline.engine.replayer import Replayer
from thoughtline.engine.request import Carried, Prepared
from thoughtline.formats import FORMATS, USUAL
from thoughtline.library.decoded import json_of
from thoughtline.providers import canonical_name
from thoughtline.replay.bounds import bound_of
from thoughtline.replay.keys import Trail, walk
from thoughtline.settings import Settings
from thoughtline.stores import Store
from thoughtline.translation import translate_request
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.items import REASONING_KINDS, Item, ReasoningText, Text, ToolCall, is_reasoning
from thoughtline.values.records import Record
from thoughtline.values.turns import Candidate, Finish, FormatName, Provenance, Reply, Transcript


def destination_of(to: str, providers: dict[str, Provider], format: FormatName | None) -> Destination:
    """Return the destination for `provider/model`, in a given format or the provider's first."""
    name, _, model = to.partition("/")
    row = providers.get(canonical_name(name))
    if row is None or not model:
        raise ValueError(f"{to!r} names no known provider and model: write it as provider/model")
    chosen = format or row.formats[0]
    return Destination(row.name, row.bases.get(chosen, row.base_url), model, chosen)


def body_of(messages: Sequence[Any]) -> bytes:
    """Return a request with this history, in the history's own format."""
    elements = msgspec.json.decode(json_of(list(messages)), type=list[dict[str, Any]])
    has = {name for element in elements for name in element}
    # Bare items last: the `type` that identifies them is a word that other elements may also have.
    wires = sorted(FORMATS.values(), key=lambda wire: "items_are_elements" in wire.quirks)
    found = next((wire for wire in wires if wire.telling_element in has), USUAL)
    return msgspec.json.encode({"model": "", found.list_member: elements})


async def translated(
    replayer: Replayer, store: Store, settings: Settings, *, body: bytes, to: Destination, who: Identity
) -> dict[str, Any]:
    """Return the members of a request that hold the history."""
    wire = FORMATS[guess_format(body)]
    transcript = wire.bodies.decode_request(body, wire.dialect)
    of_all, contract = settings.continuity, replayer.contract_for(to)
    terms = Terms(of_all.mode, of_all.count, of_all.max_chars, after_compaction=False)
    brought = _records(transcript, who)
    transcript = _unsealed(transcript) if wire.name == to.format else transcript
    request = translate_request(transcript, to.format, contract, to.model, who, marks_prompts=False)
    carried = Carried((*brought, *request.records), request.findings, request.call_ids)
    prepared = await replayer.prepare_decoded(
        request.transcript,
        to,
        who,
        contract=contract,
        carried=carried,
        recall=partial(Memory(store, time.time).recall, target=to, terms=terms),
    )
    return _history(prepared)


def _records(transcript: Transcript, who: Identity) -> tuple[Record, ...]:
    """Return records of the turns that still have their reasoning, from an invented provider, so that seals are never
    sent."""
    somebody = {"account": "", "model_asked": "model", "model_answered": "model", "dialect": ""}
    made = Provenance(who.tenant, "earlier", "", format=transcript.format, **somebody)
    found: list[Record] = []
    for step in walk(transcript, who, bound_of(transcript)).steps:
        trail = Trail(who, step.standing)
        for position in step.positions:
            turn = transcript.turns[position]
            if any(isinstance(item, REASONING_KINDS) for item in turn.items):
                reply = Reply(transcript.format, (Candidate(turn, 0, Finish("stop", "stop")),), b"")
                found += captured_at(trail.end(), reply, made, time.time())
            trail.add_step((position,), transcript.turns)
    return tuple(found)


def _unsealed(transcript: Transcript) -> Transcript:
    """Remove all seals: many providers share a format, and a history does not say who made its seals, which other
    providers refuse. The new provider's own turns come from the store."""
    turns = (
        turn.with_items(tuple(_open_items(turn.items))) if any(map(is_reasoning, turn.items)) else turn
        for turn in transcript.turns
    )
    return replace(transcript, turns=tuple(turns))


def _open_items(items: tuple[Item, ...]) -> Iterator[Item]:
    for item in items:
        if isinstance(item, (Text, ToolCall)):
            yield replace(item, seal=None)
        elif not is_reasoning(item) or (isinstance(item, ReasoningText) and not item.signature):
            yield item


def _history(prepared: Prepared) -> dict[str, Any]:
    wire = FORMATS[prepared.destination.format]
    members: dict[str, Any] = msgspec.json.decode(prepared.body)
    members = members[wire.inside] if wire.inside else members
    kept = (wire.list_member, *wire.system_members)
    return {name: value for name, value in members.items() if name in kept}
