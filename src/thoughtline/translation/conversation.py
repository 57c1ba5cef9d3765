"""Translates the turns of a conversation: who says what, in which order.

In formats whose turns consist of blocks (Anthropic, Converse, Gemini), neighbours of one role are one turn, results
come first in the turn that answers calls, and system messages after the first turn become the user's. In the others
(chat, Responses, Ollama) each result is a turn of its own, right after the calls it answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import NULL, as_text, is_given, is_json, members
from thoughtline.formats.openai_responses.elements import AGENT_MESSAGE, COMPACTIONS, agent_words
from thoughtline.formats.openai_responses.options import TOOL_ITEMS
from thoughtline.providers import Contract
from thoughtline.replay.findings import Finding, place_of
from thoughtline.translation.cache_marks import marks_of, taken_marks
from thoughtline.translation.calls import OutgoingIds, upstream_rule
from thoughtline.translation.envelopes import NO_SEALER, Sealer
from thoughtline.translation.runs import Part, Placed, in_runs
from thoughtline.translation.searches import CALL, OUTPUT, searched
from thoughtline.translation.tools import NO_NAMES, ToolNames, wrapped_text
from thoughtline.values.errors import Untranslatable
from thoughtline.values.items import (
    REASONING_KINDS,
    Item,
    Reasoning,
    ReasoningText,
    Role,
    Seal,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    is_envelope,
    readable_text,
    seal_of,
)
from thoughtline.values.options import Media, ResultContent
from thoughtline.values.turns import NOWHERE, SYSTEM_MEMBER, FormatName, Transcript, Turn

NOTES_STAY = "citations and probabilities of earlier words are not sent: they are for the client"
_REASONING = frozenset(REASONING_KINDS)
_OPENING = "(The conversation goes on.)"
"""The user's first message for formats that require one, if the conversation has none."""


class TranslatedTurns(NamedTuple):
    """Turns in another format, what was lost, and the contents of the client's envelopes."""

    turns: tuple[Turn, ...]
    findings: tuple[Finding, ...]
    opened: tuple[Placed, ...]


class _Result(NamedTuple):
    """The result that was sent for one call, under its id at the upstream."""

    id: str | None
    tool: str | None
    contents: list[ResultContent]


def translate_turns(
    transcript: Transcript,
    to: FormatName,
    contract: Contract,
    sealer: Sealer = NO_SEALER,
    tools: ToolNames = NO_NAMES,
    *,
    is_blind: bool = False,
) -> TranslatedTurns:
    """Translate a conversation. For a model that `is_blind`, pictures and files are only mentioned."""
    work = _Work(transcript, to, contract, sealer, tools)
    work.is_blind = is_blind
    parts: list[Part] = []
    for turn in transcript.turns:
        parts += work.parts_of(turn)
    if work.has_split_results:
        parts = work.rejoined(parts)
    parts = work.steps(_results_first(parts))
    lead = 0  # system messages before any other
    while lead < len(parts) and parts[lead].role == "system":
        lead += 1
    turns = _system_turns(parts[:lead], to) if lead else []
    opened: list[Placed] = []
    for part in work.blocks(parts[lead:]) if FORMATS[to].has_turns_of_blocks else parts[lead:]:
        if part.items:
            for placed in part.opened:
                opened.append(placed._replace(turn=len(turns)))
            turns.append(Turn(part.role, part.items, NOWHERE))
    return TranslatedTurns(tuple(turns), tuple(work.findings), tuple(opened))


def _results_first(parts: list[Part]) -> list[Part]:
    """The parts after a turn of the model: its results in the order of its calls, then the rest."""
    ordered: list[Part] = []
    results: list[Part] = []
    others: list[Part] = []
    for part in (*parts, Part("assistant", ())):
        if part.role == "assistant":
            ordered += [*sorted(results, key=attrgetter("order")), *others, part]
            results, others = [], []
        else:
            (results if part.role == "tool" else others).append(part)
    return ordered[:-1]


def _system_turns(lead: list[Part], to: FormatName) -> list[Turn]:
    if FORMATS[to].system == "messages":
        return [Turn("system", part.items, NOWHERE) for part in lead]
    items: list[Item] = [item for part in lead for item in part.items]
    if FORMATS[to].system == "text":
        items = [Text("\n\n".join(item.text for item in items if isinstance(item, Text)))]
    return [Turn("system", tuple(items), SYSTEM_MEMBER, is_edited=True)]


class _Work:
    """The state of a translation: the facts about both sides, and the findings."""

    def __init__(
        self, transcript: Transcript, to: FormatName, contract: Contract, sealer: Sealer, tools: ToolNames
    ) -> None:
        self._from = FORMATS[transcript.format]
        self._to = FORMATS[to]
        self._format = transcript.format
        self._target = to
        self._contract = contract
        self._sealer = sealer
        self._tools = tools
        self._has_custom = self._to.has_openai_tools and contract.tools.takes("custom")
        self._ids = OutgoingIds(upstream_rule(to, contract.dialect))
        self._takes_marks = taken_marks(self._to, contract)
        self._marks = marks_of(transcript) if self._takes_marks is not None else {}
        self._results: dict[int, _Result] = {}
        self._was_model = False
        self._has_notes = False
        self._has_phases = False
        self.has_split_results = False
        self.is_blind = False
        self.findings: list[Finding] = []

    def _find(self, turn: Turn, at: int | None, message: str, remedy: str = "") -> None:
        place = place_of(self._format, turn, at) if turn.at >= 0 else "/system"
        self.findings.append(Finding("untranslatable", place, message, remedy))

    # --- items ---------------------------------------------------------------------------------------------------

    def parts_of(self, turn: Turn) -> list[Part]:
        """The parts of one turn of the client, with results apart from text."""
        if turn.role == "assistant":
            if not self._was_model:
                self._ids.begin_turn()
            self._was_model = True
            if "items_are_elements" in self._from.quirks:  # texts of other agents may be among them
                return self._model_parts(turn)
            return [self._model_part(turn, 0, len(turn.items))]
        self._was_model = False
        parts: list[Part] = []
        words: list[Item] = []
        for at, item in enumerate(turn.items):
            search = searched(item.raw, self._tools) if isinstance(item, Unknown) and item.kind == OUTPUT else None
            if isinstance(item, ToolResult):
                parts += self._marked_part(turn, at, self._result(turn, item))
            elif search is not None:
                parts += self._result(turn, search.result)
            else:
                words += self._marked(turn, at, self._words_of(turn, at, item))
        role: Role = turn.role if turn.role in ("system", "user") else "user"
        return [*parts, *([Part(role, tuple(words))] if words else [])]

    def _marked(self, turn: Turn, at: int, items: list[Item]) -> list[Item]:
        """The translated items, with the original's mark for prompt caching."""
        mark = self._marks.get((turn.at, at)) if self._marks else None
        if mark is None or not items or self._takes_marks is None:
            return items
        put = self._takes_marks.put(items[-1], mark, self._contract.dialect)
        if put is None:
            self._find(turn, at, f"{self._target} has no mark for prompt caching here")
            return items
        return [*items[:-1], *put]

    def _marked_part(self, turn: Turn, at: int, parts: list[Part]) -> list[Part]:
        if not self._marks or not parts:
            return parts
        return [parts[0]._replace(items=tuple(self._marked(turn, at, list(parts[0].items)))), *parts[1:]]

    def _words_of(self, turn: Turn, at: int, item: Item) -> list[Item]:
        match item:
            case Text():
                return [Text(item.text)] if item.text else []
            case Unknown() if item.kind in TOOL_ITEMS:
                return []  # its tools are offered (`tools.offer`)
            case Unknown():
                return self._media(turn, at, item)
            case _:
                self._find(turn, at, f"a {type(item).__name__} that is not the model's can't be carried")
                return []

    def _media(self, turn: Turn, at: int, item: Unknown) -> list[Item]:
        marks = self._from.cache_marks
        if marks is not None and marks.stands_apart and marks.of(item) is not None:
            return []  # it belongs to the item before it
        media = self._from.options.decode_media(item)
        if self._from.notes.wants(item):
            self._find(turn, at, f"{self._target} does not cite documents")
        if isinstance(media, str):
            return [Text(media)]
        if media is not None and self.is_blind:
            return [Text(self._unseen(turn, at, media))]
        encoded = self._to.options.encode_media(media) if media is not None else None
        if encoded is not None:
            return [encoded]
        self._lost(turn, at, item, media)
        return []

    def _unseen(self, turn: Turn, at: int | None, media: Media) -> str:
        """The text in place of a picture or file for which the provider would reject the whole conversation."""
        self._find(turn, at, f"this model takes no {media.kind}: it is only mentioned")
        return f"(Here was a file of kind {media.kind}, which this model can't be shown.)"

    def _lost(self, turn: Turn, at: int, item: Unknown, media: Media | None) -> None:
        if item.kind == "item_reference":
            problem = "an item kept at the provider can't be looked up by another"
            raise Untranslatable(problem, place_of(self._format, turn, at), "send the item itself")
        if item.kind == "compaction_trigger":
            problem = "the upstream compacts no conversations"
            raise Untranslatable(
                problem, place_of(self._format, turn, at), "ask a provider that does, or sum up yourself"
            )
        what = media.kind if media is not None else f"part of kind {item.kind or 'unknown'}"
        self._find(turn, at, f"{self._target} has no place for this {what}")

    def _model_parts(self, turn: Turn) -> list[Part]:
        """What the model said, and messages of other agents among it."""
        parts: list[Part] = []
        start = 0
        for at, item in enumerate(turn.items):
            if isinstance(item, Unknown) and item.kind == AGENT_MESSAGE:
                words, is_whole = agent_words(item.raw)
                if not is_whole:
                    self._find(turn, at, "what is sealed in an agent's message is not sent: only its maker can read it")
                parts += [self._model_part(turn, start, at), Part("user", (Text(words),) if words else ())]
                start = at + 1
        return [*parts, self._model_part(turn, start, len(turn.items))]

    def _model_part(self, turn: Turn, start: int, end: int) -> Part:
        items: list[Item] = []
        opened: list[Placed] = []
        for at, item in enumerate(turn.items[start:end], start):
            before = len(items)
            seal = seal_of(item)
            if seal is not None and is_envelope(seal.data):
                opened += self._open(turn, at, seal)
            match item:
                case Text():
                    self._note(turn, at, item)
                    items += [self._to.encode_words(item.text)] if item.text else []
                case ToolCall():
                    items.append(self._call(turn, at, item))
                case Unknown(kind="refusal"):
                    items.append(self._to.encode_words(refusal_of(item)))
                case Unknown(kind="additional_tools"):
                    continue  # its tools are offered (`tools.offer`)
                case Unknown() if item.kind == CALL:
                    search = searched(item.raw, self._tools)
                    items += [self._call(turn, at, search.call)] if search is not None else []
                case Unknown() if item.kind in COMPACTIONS:
                    words = self._compacted(turn, at, item)
                    items += [self._to.encode_words(words)] if words else []
                case Unknown():
                    items += self._media(turn, at, item)
                case ToolResult():
                    self._find(turn, at, "a result among what the model said can't be carried")
                case _:
                    items += self._reasoning(turn, at, item)
            if self._marks:
                items[before:] = self._marked(turn, at, items[before:])
        return Part("assistant", tuple(items), tuple(opened))

    def _compacted(self, turn: Turn, at: int, item: Unknown) -> str:
        """A summarized conversation. Anthropic's are readable and are sent as text; only the maker can read sealed
        ones.
        """
        known = members(item.raw)
        content = known.get("content", NULL)
        if bytes(content)[:1] == b'"':
            self._find(turn, at, "a compaction stands as words; what is sealed in it is not sent")
            return msgspec.json.decode(content, type=str)
        self._find(turn, at, "a compaction is not sent: only its maker can read it")
        return ""

    def _note(self, turn: Turn, at: int, item: Text) -> None:
        """Notes on the model's text are for the client and stay behind, as does its phase; each is reported once."""
        place = self._from.notes
        if not self._has_notes and place.mark.search(item.raw) and place.decode(item):
            self._has_notes = True
            self._find(turn, at, NOTES_STAY)
        if not self._has_phases and b'"phase"' in bytes(item.raw) and is_given(members(item.raw).get("phase", NULL)):
            self._has_phases = True
            self._find(turn, at, f"{self._target} does not tell commentary from answers: the words are sent")

    def _open(self, turn: Turn, at: int, seal: Seal) -> list[Placed]:
        held = self._sealer.open(seal.data)
        if held is None:
            place = place_of(self._format, turn, at)
            self.findings.append(Finding("unopened", place, "an envelope that is not ours, or was changed", "drop it"))
            return []
        return [Placed((0, 0), held)]

    def _reasoning(self, turn: Turn, at: int, item: Reasoning) -> list[Item]:
        """Text that the client kept, for a model that accepts it. Never seals: they belong to others, or to us."""
        text = readable_text(item)
        seal = seal_of(item)
        is_ours = seal is not None and is_envelope(seal.data)
        if self._contract.takes == "text" and text:
            return [ReasoningText(text, None, self._contract.dialect.reasoning_format)]
        if seal is not None and not is_ours:
            place = place_of(self._format, turn, at)
            self.findings.append(
                Finding("foreign", place, "sealed for another provider; only its maker can read it", "")
            )
        return []

    def _call(self, turn: Turn, at: int, call: ToolCall) -> ToolCall:
        known = self._tools.of_call(call.name, call.namespace)
        if known != call.name or call.namespace is not None:
            call = replace(call, name=known, namespace=None)
        name = self._ids.call(call)
        made = call.id if name is None else None  # our id for a call that had none
        arguments = call.arguments
        if call.is_custom and not self._has_custom:
            return ToolCall(call.name, wrapped_text(arguments), name, made)
        if self._to.has_object_arguments and not call.is_custom:
            arguments = self._object(turn, at, arguments)
        return ToolCall(call.name, arguments, name, made, is_custom=call.is_custom)

    def _object(self, turn: Turn, at: int, arguments: str) -> str:
        made = as_object(arguments)
        if made not in (arguments, "{}"):
            self._find(turn, at, "arguments that are no object stand inside one")
        return made

    def _result(self, turn: Turn, item: ToolResult) -> list[Part]:
        """The part for a result. A repeated one is dropped: every format allows one result per call."""
        found = self._ids.result(item)
        try:
            content = self._from.options.decode_result(item)
        except (msgspec.DecodeError, UnicodeDecodeError):
            content = ResultContent((str(bytes(item.content), "utf-8", "replace"),))
        if self.is_blind and any(isinstance(part, Media) for part in content.parts):
            shown = [self._unseen(turn, None, part) if isinstance(part, Media) else part for part in content.parts]
            content = replace(content, parts=tuple(shown))
        if found.repeats and any(content in self._results[number].contents for number in found.repeats):
            return []
        written = self._to.options.encode_result(content, found.id, found.tool or item.name)
        beside = self._beside(turn, written.rest, found.tool) if written.rest else []
        if found.repeats and item.call_id:
            self.has_split_results = True
            self._results[found.number].contents.append(content)
            return beside
        self._results[found.number] = _Result(found.id, found.tool or item.name, [content])
        return [Part("tool", (written.item,), order=found.number), *beside]

    def _beside(self, turn: Turn, rest: Sequence[Media], tool: str | None) -> list[Part]:
        """The media of a result that can't hold them, as content of the user."""
        beside: list[Item] = []
        for media in rest:
            encoded = self._to.options.encode_media(media)
            if encoded is None:
                self._find(turn, None, f"{self._target} has no place for the {media.kind} of a result")
            else:
                beside += [Text(f"(The {media.kind} that {tool or 'the tool'} gave back:)"), encoded]
        return [Part("user", tuple(beside))] if beside else []

    def rejoined(self, parts: list[Part]) -> list[Part]:
        """The parts, with all that was sent for a call joined in its one result."""
        return [self._whole_result(part) if part.role == "tool" else part for part in parts]

    def _whole_result(self, part: Part) -> Part:
        known = self._results[part.order]
        if len(known.contents) < 2:
            return part
        whole = ResultContent(
            tuple(one for content in known.contents for one in content.parts),
            any(content.is_error for content in known.contents),
        )
        return part._replace(items=(self._to.options.encode_result(whole, known.id, known.tool).item,))

    # --- shapes --------------------------------------------------------------------------------------------------

    def steps(self, parts: list[Part]) -> list[Part]:
        """Join consecutive parts of the model to one step, however a client has split it. A step that was cut off
        before it said anything is dropped: no format accepts it.
        """
        # google-genai keeps each chunk of a stream as its own content: join what was split.
        glue = self._to.encode_words if "answers_in_pieces" in self._from.quirks else None
        if ("assistant", "assistant") in pairwise(map(attrgetter("role"), parts)):
            parts = in_runs(parts, ("assistant",), glue)
        kept: list[Part] = []
        for part in parts:
            if part.role != "assistant" or not _REASONING.issuperset(map(type, part.items)):
                kept.append(part)
        return kept

    def blocks(self, parts: list[Part]) -> list[Part]:
        """Alternating turns of user and model, with results first in the user's."""
        ours: list[Part] = []
        for part in parts:
            if not part.items:
                continue
            if part.role == "system":
                message = "a system message in mid conversation stands as the user's"
                self.findings.append(Finding("untranslatable", "", message, ""))
            ours.append(part if part.role == "assistant" else Part("user", part.items))
        shaped = in_runs(ours, ("assistant", "user"))
        if shaped and shaped[0].role == "assistant":
            shaped.insert(0, Part("user", (Text(_OPENING),)))
        return shaped


def refusal_of(item: Unknown) -> str:
    """The text of a refusal, from a member or from a part of its own."""
    value = msgspec.json.decode(as_text(item.raw))
    words = value.get("refusal") if isinstance(value, dict) else value
    return words if isinstance(words, str) else ""


def as_object(arguments: str) -> str:
    """Arguments for a format that needs an object: text that is not a JSON object is wrapped in one."""
    text = arguments.strip()
    if text.startswith("{") and is_json(text):
        return arguments
    return "{}" if text in ("", "null") else msgspec.json.encode({"arguments": arguments}).decode()
