"""A client's request as a request of the upstream's format.

The conversation, the options and the way to think are translated each by their own module; here they become one body,
which is read back by the upstream's format. So the planner sees what it would see of a client that speaks that format,
and the same conversation translated again has the same keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import encode, members, object_of
from thoughtline.providers import Contract, maker_of
from thoughtline.providers.thinking import Settled, knob_for, settle
from thoughtline.replay.findings import Finding
from thoughtline.replay.keys import walk
from thoughtline.replay.pausing import CIPHERTEXT
from thoughtline.replay.visible import is_same_call
from thoughtline.translation.calls import CallIds, rule_of
from thoughtline.translation.conversation import NOTES_STAY, TranslatedTurns, translate_turns
from thoughtline.translation.envelopes import NO_SEALER, Place, Sealer, letters_of
from thoughtline.translation.runs import Placed
from thoughtline.translation.sampling import sampled
from thoughtline.translation.tools import NO_NAMES, ToolNames, offer, without_tools
from thoughtline.values.digests import digest
from thoughtline.values.errors import Untranslatable
from thoughtline.values.identity import Identity
from thoughtline.values.items import REASONING_KINDS, Item, Seal, Text, ToolCall
from thoughtline.values.options import FunctionTool, MissingTools, Options, ReadOptions, Thinking, ToolChoice
from thoughtline.values.records import Record, RecordId
from thoughtline.values.turns import FormatName, Transcript

_LONGEST_USER = 64
"""OpenAI refuses a longer name for an end user; Claude Code's is one. A digest tells users apart as well."""

DEFAULT_MAX_TOKENS = 32_000
"""Anthropic must be told a limit. All models since Claude Opus 4 can write as much."""


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
    read = FORMATS[transcript.format].options.decode_options(transcript.body)
    streams = transcript.is_streaming if is_streaming is None else is_streaming
    options = replace(read.options, model=model, is_streaming=streams)
    ids = _call_ids(transcript)
    if transcript.format == to:
        return TranslatedRequest(transcript, (), ids, options)
    _refuse_what_is_kept(read, to)
    offered = offer(read, options, FORMATS[to], contract, missing_tools)
    conversation = translate_turns(transcript, to, contract, sealer, offered.names)
    offered = without_tools(offered, read, FORMATS[to], conversation.turns)
    body, findings = _body(read, _asking_for_seals(offered.options, to, contract), to, contract)
    marks = (*_cache_marks(transcript, to), *_history_notes(transcript))
    draft = Transcript(to, conversation.turns, body, is_reshaped=True)
    bodies = FORMATS[to].bodies
    final = bodies.decode_request(bodies.encode_request(draft, contract.dialect), contract.dialect)
    final = _with_made_ids(replace(final, model=model, is_streaming=streams), draft)
    who = identity or Identity("")
    records = _records(final, conversation, who)
    used = frozenset(call.id for call in _calls(final) if call.id)
    found = (*conversation.findings, *offered.findings, *findings, *marks)
    return TranslatedRequest(
        final, found, ids._replace(used=used), options=options, records=records, tools=offered.names
    )


def _asking_for_seals(options: Options, to: FormatName, contract: Contract) -> Options:
    """Where nothing is kept at the provider, encrypted reasoning comes to those who ask; some models refuse to be."""
    gives = contract.takes == "own" or (contract.may_seal and contract.takes != "nothing")
    if "seals_on_request" not in FORMATS[to].quirks or options.store or not gives:
        return options
    return replace(options, include=tuple(dict.fromkeys((*options.include, CIPHERTEXT))))


def _call_ids(transcript: Transcript) -> CallIds:
    turns = sum(1 for turn in transcript.turns if turn.role == "assistant")
    client = FORMATS[transcript.format]
    salt = digest(transcript.body).hex()
    return CallIds(rule_of(client.name, client.dialect), turns, frozenset(), salt)


def _calls(transcript: Transcript) -> Iterable[ToolCall]:
    return (item for turn in transcript.turns for item in turn.items if isinstance(item, ToolCall))


def _with_made_ids(final: Transcript, draft: Transcript) -> Transcript:
    """With the ids that we gave to calls whose maker gave none: not sent, they tell which answer a call is of."""
    made = [call.item_id if call.id is None else None for call in _calls(draft)]
    if not any(made) or len(made) != sum(1 for _ in _calls(final)):
        return final
    names = iter(made)
    turns = tuple(replace(turn, items=tuple(_with_name(item, names) for item in turn.items)) for turn in final.turns)
    return replace(final, turns=turns)


def _with_name(item: Item, names: Iterator[str | None]) -> Item:
    return replace(item, item_id=next(names) or item.item_id) if isinstance(item, ToolCall) else item


def _refuse_what_is_kept(read: ReadOptions, to: FormatName) -> None:
    if read.options.previous_response_id is not None and "stored_responses" not in FORMATS[to].quirks:
        place = read.places.get("previous_response_id", "/previous_response_id")
        remedy = "send the whole conversation in `input`"
        raise Untranslatable("the upstream keeps no responses", place, remedy)


# --- the body -------------------------------------------------------------------------------------------------------


def _body(read: ReadOptions, options: Options, to: FormatName, contract: Contract) -> tuple[bytes, tuple[Finding, ...]]:
    """The body without its conversation."""
    findings: list[Finding] = []
    options = _with_limit(_without_defaults(options, to), contract)
    options = _narrowed(options, to)
    options, thinking = _unforced(options, contract, read, findings)
    settled = settle(thinking, contract, options.model, options.max_tokens)
    findings += [_finding(read, "thinking", problem) for problem in settled.problems]
    options, lost = sampled(options, contract, is_thinking=settled.is_thinking)
    findings += [_finding(read, name, why) for name, why in lost]
    written = FORMATS[to].options.encode_options(options, contract.dialect)
    findings += [_finding(read, name, _why_dropped(name, to)) for name in written.dropped]
    findings += [Finding("untranslatable", place, "a member nobody here knows", "") for place in read.leftovers]
    is_strict = any(isinstance(tool, FunctionTool) and tool.strict for tool in options.tools)
    if is_strict and not FORMATS[to].has_openai_tools:
        findings.append(_finding(read, "tools", f"{to} has no strict tools"))
    return _merged(dict(written.members), settled), tuple(findings)


def _why_dropped(name: str, to: FormatName) -> str:
    if name in ("logprobs", "top_logprobs"):
        return f"{name}: log probabilities are not converted between formats"
    return f"{to} has no member for {name}"


def _finding(read: ReadOptions, name: str, message: str) -> Finding:
    return Finding("untranslatable", read.places.get(name, ""), message, "")


def _without_defaults(options: Options, to: FormatName) -> Options:
    """What every upstream does unasked need not be said."""
    wire, changes = FORMATS[to], dict[str, object]()
    if options.n == 1:
        changes["n"] = None
    if not options.logprobs:
        changes["logprobs"] = None
    if not options.top_logprobs:
        changes["top_logprobs"] = None
    if options.store is False:
        changes["store"] = None
    if options.truncation == "disabled":
        changes["truncation"] = None
    if (options.parallel_tool_calls and not wire.has_openai_tools) or not options.tools:
        changes["parallel_tool_calls"] = None
    if options.service_tier in ("auto", "default") and "usual_tier" not in wire.quirks:
        changes["service_tier"] = None
    if options.user is not None and len(options.user) > _LONGEST_USER:
        changes["user"] = digest(options.user.encode()).hex()
    return replace(options, **changes)


def _narrowed(options: Options, to: FormatName) -> Options:
    """A choice among some of the tools, for a format that can't say it: the others are not offered."""
    choice = options.tool_choice
    if choice is None or not choice.allowed or FORMATS[to].has_openai_tools:
        return options
    tools = tuple(tool for tool in options.tools if isinstance(tool, FunctionTool) and tool.name in choice.allowed)
    return replace(options, tools=tools, tool_choice=replace(choice, allowed=()))


def _with_limit(options: Options, contract: Contract) -> Options:
    if options.max_tokens is not None or "max_tokens_needed" not in FORMATS[contract.format].quirks:
        return options
    maker = maker_of(options.model)
    known = maker.most_output if maker is not None else ()
    limit = next((most for name, most in known if name in options.model), DEFAULT_MAX_TOKENS)
    return replace(options, max_tokens=limit)


def _unforced(
    options: Options, contract: Contract, read: ReadOptions, findings: list[Finding]
) -> tuple[Options, Thinking]:
    """A forced tool wins over thinking where both can't be had; where thinking can't be off, the model is free."""
    thinking = options.thinking
    choice = options.tool_choice
    thinks = contract.thinks_by_default if thinking.switch == "unsaid" else thinking.switch != "off"
    is_clash = choice is not None and choice.is_forced and bool(options.tools)
    if not is_clash or not thinks or not contract.forces_no_tool_while_thinking:
        return options, thinking
    if knob_for(contract, options.model).can_be_off:
        findings.append(
            _finding(read, "thinking", "thinking is off: this upstream forces no tool on a model that thinks")
        )
        return options, Thinking("off")
    findings.append(_finding(read, "tool_choice", "this upstream forces no tool on a model that always thinks"))
    return replace(options, tool_choice=ToolChoice("auto")), thinking


def _merged(written: dict[str, bytes], settled: Settled) -> bytes:
    """The written members with those of thinking among them."""
    nested: dict[str, object] = {}
    for path, value in settled.members:
        inner = nested
        for step in path[:-1]:
            held = inner.setdefault(step, {})
            inner = held if isinstance(held, dict) else {}
        inner[path[-1]] = value
    for name, value in nested.items():
        written[name] = _deep(written.get(name), value)
    return object_of(written.items())


def _deep(before: bytes | None, value: object) -> bytes:
    """An object with the members of another set in it; anything else takes its place."""
    if before is None or not isinstance(value, dict):
        return encode(value)
    inner = {name: bytes(raw) for name, raw in members(before).items()}
    for name, held in value.items():
        inner[name] = _deep(inner.get(name), held)
    return object_of(inner.items())


def _cache_marks(transcript: Transcript, to: FormatName) -> tuple[Finding, ...]:
    if b'"cache_control"' not in transcript.body:
        return ()
    return (Finding("untranslatable", "", f"{to} has no marks for prompt caching", ""),)


def _history_notes(transcript: Transcript) -> tuple[Finding, ...]:
    """Notes that stand beside messages; those on items are found with them."""
    places = FORMATS[transcript.format].notes.in_history(transcript.body)
    return tuple(Finding("untranslatable", place, NOTES_STAY, "") for place in places[:1])


# --- envelopes --------------------------------------------------------------------------------------------------------


def _records(transcript: Transcript, conversation: TranslatedTurns, identity: Identity) -> tuple[Record, ...]:
    """The records that the client's envelopes amount to: what was sealed, in its place among what the client shows."""
    if not conversation.opened:
        return ()
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
