"""A client's request as a request of the upstream's format.

The conversation and what is asked for beside it are translated each by their own module; here they become one body,
which is read back by the upstream's format. So the planner sees what it would see of a client that speaks that format,
and the same conversation translated again has the same keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from thoughtline.formats import FORMATS, Wire
from thoughtline.formats.json_text import members, object_of
from thoughtline.providers import Contract
from thoughtline.replay.findings import Finding
from thoughtline.replay.keys import walk
from thoughtline.replay.visible import is_same_call
from thoughtline.translation.asking import LONGEST_KEPT, Target, TranslatedOptions, translate_options
from thoughtline.translation.calls import CallIds, rule_of
from thoughtline.translation.conversation import NOTES_STAY, TranslatedTurns, translate_turns
from thoughtline.translation.envelopes import NO_SEALER, Place, Sealer, letters_of
from thoughtline.translation.runs import Placed
from thoughtline.translation.tools import NO_NAMES, ToolNames, without_tools
from thoughtline.values.errors import Untranslatable
from thoughtline.values.identity import Identity
from thoughtline.values.items import REASONING_KINDS, Item, Seal, Text, ToolCall
from thoughtline.values.options import MissingTools, Options
from thoughtline.values.records import Record, RecordId, digest
from thoughtline.values.turns import FormatName, Transcript

_OFFERS_TOOLS = (b"additional_tools", b"tool_search_output")
"""Items of a Responses conversation in which tools stand, and words that may be such."""


class TranslatedRequest(NamedTuple):
    """The request for the upstream, what was lost on the way, how ids and names of tools go back, and what the client's
    envelopes held.

    `records` are as good as what a store finds; `options` are what the client asked for.
    """

    transcript: Transcript
    findings: tuple[Finding, ...]
    call_ids: CallIds
    options: Options
    records: tuple[Record, ...] = ()
    tools: ToolNames = NO_NAMES


def translate_request(
    transcript: Transcript,
    to: FormatName,
    contract: Contract,
    model: str,
    identity: Identity | None = None,
    sealer: Sealer = NO_SEALER,
    *,
    is_streaming: bool | None = None,
    missing_tools: MissingTools = "leave_out",
) -> TranslatedRequest:
    """A request for `model` at an upstream that speaks `to` and has this contract.

    `is_streaming` overrides what the body says, for formats that say it in the address. A request that can't be
    carried without changing what it means raises `Untranslatable`; `missing_tools` says whether a tool that the
    upstream lacks does.
    """
    client, upstream = FORMATS[transcript.format], FORMATS[to]
    streams = transcript.is_streaming if is_streaming is None else is_streaming
    ids = _call_ids(transcript)
    if transcript.format == to:
        options = client.options.decode_options(transcript.body).options
        return TranslatedRequest(transcript, (), ids, replace(options, model=model, is_streaming=streams))
    if "untranslated" in client.quirks | upstream.quirks:
        raise _untranslated(client, to)
    target = Target(to, contract, model, is_streaming=streams, missing_tools=missing_tools)
    wanted = options_of(transcript.body, client, target)
    conversation = translate_turns(transcript, to, contract, sealer, wanted.offered.names)
    if "tools_needed" in upstream.quirks:
        wanted = wanted.offering(without_tools(wanted.offered, wanted.read, conversation.turns), target)
    draft = Transcript(to, conversation.turns, wanted.body, model=model, is_reshaped=True)
    final = upstream.bodies.decode_request(upstream.bodies.encode_request(draft, contract.dialect), contract.dialect)
    final = replace(final, model=model, is_streaming=streams)
    names = set(map(attrgetter("id"), _calls(final)))
    if names & {None, ""}:
        final = _with_made_ids(final, draft)
    records = _records(final, conversation, identity or Identity("")) if conversation.opened else ()
    found = (*conversation.findings, *wanted.offered.findings, *wanted.findings, *_left_behind(transcript, to))
    ids = ids._replace(used=frozenset(filter(None, names)))
    return TranslatedRequest(final, found, ids, wanted.options, records=records, tools=wanted.offered.names)


def _untranslated(client: Wire, to: FormatName) -> Untranslatable:
    remedy = f"ask in {to}, or a provider that speaks {client.name}"
    return Untranslatable(f"{client.name} is not translated to {to}", "", remedy)


def options_of(body: bytes, client: Wire, target: Target) -> TranslatedOptions:
    """What a client's body asks for beside its conversation; with that where it may offer tools, as Codex's does."""
    known = members(body)
    conversation = bytes(known.pop(client.list_member, b""))
    offers_tools = "items_are_elements" in client.quirks and any(word in conversation for word in _OFFERS_TOOLS)
    frame = body if offers_tools or not conversation else object_of(known.items())
    made = translate_options if len(frame) <= LONGEST_KEPT else translate_options.__wrapped__
    return made(frame, client.name, target)


def _call_ids(transcript: Transcript) -> CallIds:
    turns = 0
    for turn in transcript.turns:
        turns += turn.role == "assistant"
    client = FORMATS[transcript.format]
    salt = digest(transcript.body).hex()
    return CallIds(rule_of(client.name, client.dialect), turns, frozenset(), salt)


def _calls(transcript: Transcript) -> list[ToolCall]:
    calls: list[ToolCall] = []
    for turn in transcript.turns:
        for item in turn.items:
            if isinstance(item, ToolCall):
                calls.append(item)
    return calls


def _with_made_ids(final: Transcript, draft: Transcript) -> Transcript:
    """With the ids that we gave to calls whose maker gave none: not sent, they tell which answer a call is of."""
    made = [call.item_id if call.id is None else None for call in _calls(draft)]
    if not any(made) or len(made) != len(_calls(final)):
        return final
    names = iter(made)
    turns = tuple(replace(turn, items=tuple(_with_name(item, names) for item in turn.items)) for turn in final.turns)
    return replace(final, turns=turns)


def _with_name(item: Item, names: Iterator[str | None]) -> Item:
    return replace(item, item_id=next(names) or item.item_id) if isinstance(item, ToolCall) else item


def _left_behind(transcript: Transcript, to: FormatName) -> list[Finding]:
    """What stands around the conversation and is not sent: marks for caching; notes beside messages, of which those on
    items are found with them."""
    found: list[Finding] = []
    if b'"cache_control"' in transcript.body:
        found.append(Finding("untranslatable", "", f"{to} has no marks for prompt caching", ""))
    in_history = FORMATS[transcript.format].notes.in_history
    for place in in_history(transcript.body)[:1] if in_history is not None else ():
        found.append(Finding("untranslatable", place, NOTES_STAY, ""))
    return found


# --- envelopes --------------------------------------------------------------------------------------------------------


def _records(transcript: Transcript, conversation: TranslatedTurns, identity: Identity) -> tuple[Record, ...]:
    """The records that the client's envelopes amount to: what was sealed, in its place among what the client shows."""
    opened: dict[int, list[Placed]] = {}
    for one in conversation.opened:
        opened.setdefault(one.turn, []).append(one)
    records = []
    for step in walk(transcript, identity).steps:
        placed = [one for position in step.positions for one in opened.get(position, ())]
        if not placed:
            continue
        items = tuple(
            item
            for position in step.positions
            for item in _whole(conversation.turns[position].items, opened.get(position, []))
        )
        first = placed[0].held
        keys = tuple(dict.fromkeys((*step.keys, first.prefix))) if first.prefix else step.keys
        name = RecordId(digest(" ".join(keys).encode()).hex())
        records.append(Record(name, first.provenance, items, keys, first.created_at))
    return tuple(records)


def _whole(shown: tuple[Item, ...], placed: list[Placed]) -> list[Item]:
    """A turn as it was: sealed reasoning where it stood among what is visible, seals back on the items they were on,
    blanks around the words that had some."""
    sealed = [
        ((one.base[0] + place[0], one.base[1] + place[1]), item)
        for one in placed
        for place, item in zip(one.held.places, one.held.items, strict=False)
    ]
    thoughts = [(place, item) for place, item in sealed if isinstance(item, REASONING_KINDS)]
    whole: list[Item] = []
    letters = calls = 0
    for item in shown:
        if isinstance(item, REASONING_KINDS):
            continue
        if isinstance(item, (Text, ToolCall)):
            while thoughts and thoughts[0][0][0] <= letters and thoughts[0][0][1] <= calls:
                whole.append(thoughts.pop(0)[1])
        whole.append(_resealed(item, (letters, calls), sealed))
        letters += letters_of(item.text) if isinstance(item, Text) else 0
        calls += isinstance(item, ToolCall)
    return [*whole, *(thought for _, thought in thoughts)]


def _resealed(item: Item, place: Place, sealed: list[tuple[Place, Item]]) -> Item:
    for its_place, known in sealed:
        match known, item:
            case ToolCall(), ToolCall() if is_same_call(known, item):
                return replace(item, seal=known.seal)
            case Text(seal=None), Text() if its_place == place and known.text.split() == item.text.split():
                return replace(item, text=known.text)
            case Text(seal=Seal()), Text() if known.text == item.text:
                return replace(item, seal=known.seal)
            case _:
                pass
    return item
