"""Translates a client's request to the upstream's format.

The conversation and the options are translated by their own modules. Here they become one body, which is decoded again
by the upstream's format. The planner therefore sees the same as for a client of that format, and the same conversation
translated again has the same keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from msgspec import Raw
from msgspec.structs import replace

from thoughtline.formats import FORMATS, Wire
from thoughtline.formats.cache_marks import USUAL_MARK
from thoughtline.formats.json_text import members, object_of
from thoughtline.providers import Contract
from thoughtline.replay.bounds import unattributed
from thoughtline.replay.findings import Finding
from thoughtline.replay.keys import walk
from thoughtline.replay.visible import is_same_call
from thoughtline.translation.cache_marks import has_marks, needs_mark, taken_marks, with_last_marked
from thoughtline.translation.calls import CallIds, rule_of
from thoughtline.translation.conversation import NOTES_STAY, TranslatedTurns, translate_turns
from thoughtline.translation.envelopes import NO_SEALER, Place, Sealer, letters_of
from thoughtline.translation.runs import Placed
from thoughtline.translation.tools import NO_NAMES, ToolNames, without_deferred, without_tools
from thoughtline.translation.translated_options import LONGEST_KEPT, TargetModel, TranslatedOptions, translate_options
from thoughtline.values.errors import Untranslatable
from thoughtline.values.identity import Identity
from thoughtline.values.items import REASONING_KINDS, Item, Seal, Text, ToolCall
from thoughtline.values.options import MissingTools, Options
from thoughtline.values.records import Record, RecordId, digest
from thoughtline.values.turns import FormatName, Transcript, Turn

_OFFERS_TOOLS = (b"additional_tools", b"tool_search_output")
"""Items of a Responses conversation that contain tools, and texts that may be such."""


class TranslatedRequest(NamedTuple):
    """The request for the upstream, what was lost, how ids and names of tools are mapped back, and the contents of the
    client's envelopes.

    `records` are equivalent to those that a store finds; `options` are those that the client set.
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
    marks_prompts: bool = True,
    asks_to_think: bool = False,
) -> TranslatedRequest:
    """A request for `model` at an upstream that speaks `to` and has this contract.

    `is_streaming` overrides the body, for formats that say it in the URL. Raises `Untranslatable` if the request would
    change its meaning; `missing_tools` says whether a tool that the upstream lacks is such a change. `marks_prompts`:
    set a mark for caching on a prompt without one if the model needs it. `asks_to_think`: ask a model to think that
    only does so on request, for a client whose own provider thinks by default.
    """
    client, upstream = FORMATS[transcript.format], FORMATS[to]
    streams = transcript.is_streaming if is_streaming is None else is_streaming
    ids = _call_ids(transcript)
    if transcript.format == to:
        options = client.options.decode_options(transcript.body).options
        return TranslatedRequest(transcript, (), ids, replace(options, model=model, is_streaming=streams))
    if "untranslated" in client.quirks | upstream.quirks:
        raise _untranslated(client, to)
    # An answer that the client began itself has no thinking before it: the provider would reject it.
    may_ask = asks_to_think and bool(transcript.turns) and transcript.turns[-1].role != "assistant"
    target = TargetModel(to, contract, model, streams, missing_tools, may_ask_to_think=may_ask)
    wanted = options_of(transcript.body, client, target)
    transcript = unattributed(transcript)
    is_blind = re.search(contract.forms.sees, model.lower()) is None
    conversation = translate_turns(transcript, to, contract, sealer, wanted.offered.names, is_blind=is_blind)
    wanted = _offering(wanted, target, transcript, conversation.turns)
    mark = _prompt_mark(transcript, wanted, target, conversation.turns, is_ours=marks_prompts)
    turns = conversation.turns
    if mark is not None:
        is_ours = wanted.options.cache_mark is None
        turns = with_last_marked(turns, upstream, contract, mark, marks_beginning=is_ours)
    draft = Transcript(to, turns, wanted.body, model=model, is_streaming=streams, is_reshaped=True)
    final = replace(_read_back(draft, contract), user=transcript.user)
    records = _records(final, conversation, identity or Identity("")) if conversation.opened else ()
    found = (*conversation.findings, *wanted.offered.findings, *wanted.findings)
    found += _left_behind(transcript, upstream, contract)
    ids = ids._replace(used=frozenset(call.id for call in _calls(final) if call.id))
    return TranslatedRequest(final, found, ids, wanted.options, records=records, tools=wanted.offered.names)


def _read_back(draft: Transcript, contract: Contract) -> Transcript:
    """The request as the upstream's format decodes it."""
    bodies = FORMATS[draft.format].bodies
    final = bodies.decode_request(bodies.encode_request(draft, contract.dialect), contract.dialect)
    final = replace(final, model=draft.model, is_streaming=draft.is_streaming)
    return final if all(map(attrgetter("id"), _calls(final))) else _with_made_ids(final, draft)


def _untranslated(client: Wire, to: FormatName) -> Untranslatable:
    remedy = f"ask in {to}, or a provider that speaks {client.name}"
    return Untranslatable(f"{client.name} is not translated to {to}", "", remedy)


def options_of(body: bytes, client: Wire, target: TargetModel) -> TranslatedOptions:
    """The options of a client's body, with those parts of the conversation that may offer tools, as Codex's does."""
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
    """Add the ids that we gave to calls without one: they are not sent, but identify the answer of a call."""
    made = [call.item_id if call.id is None else None for call in _calls(draft)]
    if not any(made) or len(made) != len(_calls(final)):
        return final
    names = iter(made)
    turns = tuple(replace(turn, items=tuple(_with_name(item, names) for item in turn.items)) for turn in final.turns)
    return replace(final, turns=turns)


def _with_name(item: Item, names: Iterator[str | None]) -> Item:
    return replace(item, item_id=next(names) or item.item_id) if isinstance(item, ToolCall) else item


def _offering(
    wanted: TranslatedOptions, target: TargetModel, transcript: Transcript, turns: tuple[Turn, ...]
) -> TranslatedOptions:
    """The options, with the tools that remain to be offered in this conversation."""
    if b'"defer_loading"' in transcript.body:
        wanted = wanted.offering(without_deferred(wanted.offered, wanted.options, transcript.body), target)
    if "tools_needed" in FORMATS[target.to].quirks:
        wanted = wanted.offering(without_tools(wanted.offered, wanted.read, turns), target)
    return wanted


def _prompt_mark(
    transcript: Transcript, wanted: TranslatedOptions, target: TargetModel, turns: tuple[Turn, ...], *, is_ours: bool
) -> Raw | None:
    """The mark for the whole prompt: the client's own, or ours for a client that can't set any."""
    own = FORMATS[transcript.format].cache_marks
    is_left = not is_ours or has_marks(transcript) or (own is not None and own.is_needed)
    if wanted.options.cache_mark is not None or is_left:
        return wanted.options.cache_mark
    is_needed = needs_mark(target.contract, target.model, turns, has_tools=bool(wanted.options.tools))
    return USUAL_MARK if is_needed else None


def _left_behind(transcript: Transcript, upstream: Wire, contract: Contract) -> tuple[Finding, ...]:
    """Findings for what is outside the conversation and not sent: marks for caching, and notes on messages. Notes on
    items are reported with their items.
    """
    found: list[Finding] = []
    if has_marks(transcript) and taken_marks(upstream, contract) is None:
        found.append(Finding("untranslatable", "", "this upstream takes no marks for prompt caching", ""))
    in_history = FORMATS[transcript.format].notes.in_history
    for place in in_history(transcript.body)[:1] if in_history is not None else ():
        found.append(Finding("untranslatable", place, NOTES_STAY, ""))
    return tuple(found)


# --- envelopes --------------------------------------------------------------------------------------------------------


def _records(transcript: Transcript, conversation: TranslatedTurns, identity: Identity) -> tuple[Record, ...]:
    """The records in the client's envelopes: what was sealed, at its place among the visible items."""
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
    """The original turn: sealed reasoning at its place among the visible items, seals on their items, and white space
    restored around trimmed texts.
    """
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
