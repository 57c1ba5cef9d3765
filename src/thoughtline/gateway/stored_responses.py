"""Conversations of clients that send only new content, for providers that don't have the rest.

`previous_response_id` and `item_reference` are resolved from the store:

    request  {"previous_response_id": X, "input": new}   ─▶   {"input": [what led to X …, X's output …, new …]}
             {"input": [{"type": "item_reference", "id": Y}]}  ─▶  {"input": [the element Y itself]}
    answer   stored whole under its id and those of its elements, unless the client sent `"store": false`

Each is a record like any other: it belongs to its tenant, and is packed, encrypted, expired and deleted in the same
way.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial

import msgspec
from msgspec import Raw, Struct

from thoughtline.destinations.catalogue import Provider, listed
from thoughtline.engine.threads import Work, at_once
from thoughtline.formats.json_text import NULL, array, elements, is_given, members, object_of, set_members
from thoughtline.formats.lone_surrogates import readable
from thoughtline.formats.openai_responses.elements import input_elements
from thoughtline.formats.wire import HeldConversation
from thoughtline.replay.findings import Finding
from thoughtline.stores import Store
from thoughtline.values.errors import Declined, StoreError
from thoughtline.values.items import Unknown
from thoughtline.values.records import Key, Record, RecordId, digest
from thoughtline.values.turns import Provenance

KIND = "conversation"
MAX_BYTES = 4 * 2**20
"""The longest conversation that is stored under a response's id; a longer one has to be sent whole."""

MAX_LOOKED_UP = 64
"""Lookups for the references of one request. Each conversation includes everything that led to it."""

_OWN_ID = "resp_"
_NOTHING = Raw(b"null")


async def unfolded(store: Store, tenant: str, body: bytes, work: Work = at_once) -> bytes:
    """Return a request with its whole conversation in `input`; the same object if it names no earlier response."""
    try:
        request = await work(partial(members, body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        spelled = readable(body)
        # Otherwise the translation reports what is wrong.
        return body if spelled is None else await unfolded(store, tenant, spelled, work)
    if b"item_reference" in bytes(request.get("input", _NOTHING)):
        request["input"] = Raw(array(await _looked_up(store, tenant, await work(partial(input_of, request)), work)))
        body = await work(partial(set_members, body, [("input", bytes(request["input"]))]))
    previous = request.get("previous_response_id", _NOTHING)
    if not is_given(previous):
        return body
    name = name_of(previous)
    earlier = await _kept(store, tenant, name)
    if earlier is None:
        raise not_found(name)
    whole = array((*earlier, *input_of(request)))
    return set_members(body, [("input", whole), ("previous_response_id", None)])


def not_found(name: str) -> Declined:
    """Return OpenAI's own error: Codex then sends its conversation whole."""
    return Declined(
        400,
        "previous_response_not_found",
        f"Previous response with id {name[:100]!r} not found.",
        "Send the whole conversation in `input`.",
    )


async def keep(store: Store, made: Provenance, request: bytes, answer: bytes, now: float) -> None:
    """Store an answer, and everything that led to it, under its id."""
    try:
        given, response = members(request), members(answer)
        if bytes(given.get("store", _NOTHING)) == b"false" or not is_given(response.get("id", _NOTHING)):
            return
        output = elements(response.get("output", Raw(b"[]")))
        conversation = (*input_of(given), *output)
        names = [_id_of(one) for one in output]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    whole = array(conversation)
    if len(whole) > MAX_BYTES:
        return
    item = Unknown(KIND, Raw(object_of([("input", whole)])))
    own = name_of(response["id"])
    key = _key(own)
    keys = (key, *(_key(name) for name in names if own in name))  # an id of ours, and therefore unique
    record = Record(RecordId(digest(key.encode() + whole).hex()), made, (item,), keys, now)
    with contextlib.suppress(StoreError):  # the store itself counts and reports it
        await store.save((record,))


async def _kept(store: Store, tenant: str, name: str, work: Work = at_once) -> list[Raw] | None:
    key = _key(name)
    try:
        found = (await store.find(tenant, [key])).get(key, ())
    except StoreError:
        return None
    for record in found:
        for item in record.items:
            if isinstance(item, Unknown) and item.kind == KIND:
                return await work(partial(_elements_stored, item))
    return None


def _elements_stored(item: Unknown) -> list[Raw]:
    return elements(members(item.raw)["input"])


async def _looked_up(store: Store, tenant: str, given: list[Raw], work: Work) -> list[Raw]:
    """Return an input with its references replaced by the elements. Unknown references stay: the translation reports
    them.

    Goes from last to first, because a conversation stored under a late element's id includes the earlier ones.
    """
    names = await work(lambda: [_referred(one) for one in given])
    known: dict[str, Raw] = {}
    looked_up = 0
    for name in reversed(names):
        if name and name not in known and looked_up < MAX_LOOKED_UP:
            looked_up += 1
            kept = await _kept(store, tenant, name, work)
            known = {**await work(partial(_by_id, kept or [])), **known}
            await asyncio.sleep(0)
    return [known.get(name, one) if name else one for name, one in zip(names, given, strict=True)]


def _by_id(kept: list[Raw]) -> dict[str, Raw]:
    """Return the elements whose ids are ours, and therefore unique."""
    named = ((_id_of(one), one) for one in kept)
    return {name: one for name, one in named if _OWN_ID in name}


class _Element(Struct, gc=False):
    type: str = ""
    id: str = ""


_element = msgspec.json.Decoder(_Element)


def _id_of(one: Raw) -> str:
    return _decoded(one).id


def _referred(one: Raw) -> str:
    """Return the id that an element refers to; empty if it is not a reference."""
    element = _decoded(one)
    return element.id if element.type == "item_reference" else ""


def _decoded(one: Raw) -> _Element:
    try:
        return _element.decode(one)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Element()


def input_of(request: dict[str, Raw]) -> list[Raw]:
    return input_elements(request.get("input", _NOTHING))


def name_of(raw: Raw) -> str:
    try:
        return msgspec.json.decode(raw, type=str)
    except msgspec.DecodeError:
        raise Declined(400, "bad_previous_response_id", "previous_response_id is not a string.") from None


def _key(name: str) -> Key:
    return Key(f"response-v1:{digest(name.encode('utf-8', 'replace')).hex()}")


# --- conversations that a client leaves at its provider ---------------------------------------------------------------
#
#   Messages       "thread": {"type": "create"}, then {"type": "continue", "previous_message_id": …} with new content
#   Responses      "conversation": "conv_…"
#   Interactions   "previous_interaction_id": "v1_…"
#
# A provider that ignores one would answer from the end of a conversation alone, with a 200. `thread` is refused like
# Anthropic refuses one that it can't keep: its SDK's tool runner and Claude Code then send the whole conversation.


def held_state(body: bytes, held: HeldConversation, provider: Provider, *, is_translated: bool) -> tuple[Finding, ...]:
    """Raise if a request relies on messages that its provider does not have; return a finding on state that it has."""
    named = _named(body, held.member)
    if not is_given(named):
        return ()
    is_kept = held.kept_as in provider.keeps or (held.is_usual and provider.name not in listed())
    if is_translated or not is_kept:
        raise Declined(400, held.code, f"{provider.name} keeps no {held.title}.", held.remedy)
    if not held.goes_on(named):
        return ()
    return (Finding("held-state", f"/{held.member}", f"earlier turns are at the provider, in its {held.title}", ""),)


def _named(body: bytes, member: str) -> Raw:
    try:
        return members(body).get(member, NULL)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return NULL  # the reader of the whole body reports what is wrong
