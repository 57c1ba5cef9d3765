"""The turns of a client's conversation as turns of the upstream's format: who says what, in which order.

In formats whose turns are made of blocks (Anthropic, Converse, Gemini) neighbours of one role are one turn, results
come first in the turn that answers calls, and system messages after the first turn stand as the user's. In the others
(chat, Responses, Ollama) each result is a turn of its own, right after the calls it answers.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from thoughtline.errors import Untranslatable
from thoughtline.formats.json_text import NULL, is_given, is_json, members
from thoughtline.items import (
    REASONING_KINDS,
    Item,
    Reasoning,
    ReasoningSummary,
    ReasoningText,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    is_envelope,
    seal_of,
)
from thoughtline.options import Media, ResultContent
from thoughtline.replay.contracts import Contract
from thoughtline.replay.findings import Finding, place_of
from thoughtline.translation.calls import OutgoingIds, rule_of
from thoughtline.translation.envelopes import NO_SEALER, Opened, Place, Sealer, letters_of
from thoughtline.translation.spokes import SPOKES, Spoke
from thoughtline.turns import NOWHERE, SYSTEM_MEMBER, FormatName, Transcript, Turn

NOTES_STAY = "citations and probabilities of earlier words are not sent: they are for the client"
_OPENING = "(The conversation goes on.)"
"""What a user says where a wire wants the user to speak first, and nobody did."""


class Placed(NamedTuple):
    """What an envelope held. `base` is what is visible in its turn of earlier turns of the client's; `turn` is the
    position of that turn."""

    base: Place
    held: Opened
    turn: int = 0


class Conversation(NamedTuple):
    """Turns of another format, what was lost on the way, and what the client's envelopes held."""

    turns: tuple[Turn, ...]
    findings: tuple[Finding, ...]
    opened: tuple[Placed, ...]


class _Part(NamedTuple):
    """Items of one role, on their way to a turn, and the envelopes that stood among them.

    `order` of a result is that of the call it answers: tools end in any order, and a wire without ids goes by it.
    """

    role: Role
    items: tuple[Item, ...]
    opened: tuple[Placed, ...] = ()
    order: int = 0


def translate_turns(
    transcript: Transcript, to: FormatName, contract: Contract, sealer: Sealer = NO_SEALER
) -> Conversation:
    """A conversation for another format."""
    work = _Work(transcript, to, contract, sealer)
    parts = [part for turn in transcript.turns for part in work.parts_of(turn)]
    lead, rest = _split_system(_results_first(parts))
    system = _system_turns(lead, to)
    shaped = work.blocks(rest) if work.is_blocks else work.flat(rest)
    turns = [Turn(part.role, part.items, NOWHERE) for part in shaped]
    opened = [
        placed._replace(turn=len(system) + number) for number, part in enumerate(shaped) for placed in part.opened
    ]
    return Conversation((*system, *turns), tuple(work.findings), tuple(opened))


def _results_first(parts: list[_Part]) -> list[_Part]:
    """What follows a turn of the model's: its results in the order of its calls, then all the rest."""
    ordered: list[_Part] = []
    results: list[_Part] = []
    others: list[_Part] = []
    for part in (*parts, _Part("assistant", ())):
        if part.role == "assistant":
            ordered += [*sorted(results, key=lambda one: one.order), *others, part]
            results, others = [], []
        else:
            (results if part.role == "tool" else others).append(part)
    return ordered[:-1]


def _split_system(parts: list[_Part]) -> tuple[list[_Part], list[_Part]]:
    """The system messages before anybody speaks, and all the rest."""
    count = next((at for at, part in enumerate(parts) if part.role != "system"), len(parts))
    return parts[:count], parts[count:]


def _system_turns(lead: list[_Part], to: FormatName) -> tuple[Turn, ...]:
    if not lead:
        return ()
    if to in ("openai_chat", "ollama_chat"):
        return tuple(Turn("system", part.items, NOWHERE) for part in lead)
    items: list[Item] = [item for part in lead for item in part.items]
    if to == "openai_responses":  # `instructions` is one text
        items = [Text("\n\n".join(item.text for item in items if isinstance(item, Text)))]
    return (Turn("system", tuple(items), SYSTEM_MEMBER, is_edited=True),)


class _Work:
    """A conversation being translated: what is needed of both sides, and what was found."""

    def __init__(self, transcript: Transcript, to: FormatName, contract: Contract, sealer: Sealer) -> None:
        self._from = SPOKES[transcript.format]
        self._to: Spoke = SPOKES[to]
        self._format = transcript.format
        self._target = to
        self._contract = contract
        self._sealer = sealer
        self._ids = OutgoingIds(rule_of(to, contract.dialect))
        self._was_model = False
        self._has_notes = False
        self._has_spoken = False
        self.findings: list[Finding] = []

    @property
    def is_blocks(self) -> bool:
        return self._to.has_turns_of_blocks

    def _find(self, turn: Turn, at: int | None, message: str, remedy: str = "") -> None:
        place = place_of(self._format, turn, at) if turn.at >= 0 else "/system"
        self.findings.append(Finding("untranslatable", place, message, remedy))

    # --- items ---------------------------------------------------------------------------------------------------

    def parts_of(self, turn: Turn) -> list[_Part]:
        """One turn of the client's: what the model said, or what somebody said to it, results apart from words."""
        if turn.role == "assistant":
            if not self._was_model:
                self._ids.begin_turn()
            self._was_model = True
            return self._model_part(turn)
        self._was_model = False
        parts: list[_Part] = []
        words: list[Item] = []
        for at, item in enumerate(turn.items):
            if isinstance(item, ToolResult):
                parts += self._result(turn, item)
            else:
                words += self._said(turn, at, item)
        role: Role = turn.role if turn.role in ("system", "user") else "user"
        return [*parts, *([_Part(role, tuple(words))] if words else [])]

    def _said(self, turn: Turn, at: int, item: Item) -> list[Item]:
        match item:
            case Text():
                return [Text(item.text)] if item.text else []
            case Unknown():
                return self._media(turn, at, item)
            case _:
                self._find(turn, at, f"a {type(item).__name__} that is not the model's can't be carried")
                return []

    def _media(self, turn: Turn, at: int, item: Unknown) -> list[Item]:
        media = self._from.decode_media(item)
        if self._from.notes.wants(item):
            self._find(turn, at, f"{self._target} does not cite documents")
        if isinstance(media, str):
            return [Text(media)]
        encoded = self._to.encode_media(media) if media is not None else None
        if encoded is not None:
            return [encoded]
        self._lost(turn, at, item, media)
        return []

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

    def _model_part(self, turn: Turn) -> list[_Part]:
        items: list[Item] = []
        opened: list[Placed] = []
        for at, item in enumerate(turn.items):
            opened += [Placed((0, 0), held) for held in self._open(turn, at, item)]
            match item:
                case Text():
                    self._has_spoken = True
                    self._note(turn, at, item)
                    items += [self._to.encode_words(item.text)] if item.text else []
                case ToolCall():
                    self._has_spoken = True
                    items.append(self._call(turn, at, item))
                case Unknown(kind="refusal"):
                    items.append(self._to.encode_words(refusal_of(item)))
                case Unknown(kind="compaction"):
                    words = self._compacted(turn, at, item)
                    items += [self._to.encode_words(words)] if words else []
                case Unknown():
                    items += self._media(turn, at, item)
                case ToolResult():
                    self._find(turn, at, "a result among what the model said can't be carried")
                case _:
                    items += self._reasoning(turn, at, item)
        if all(isinstance(item, REASONING_KINDS) for item in items):
            return []  # a turn that was cut before it said anything: no wire takes one
        return [_Part("assistant", tuple(items), tuple(opened))]

    def _compacted(self, turn: Turn, at: int, item: Unknown) -> str:
        """A conversation in few words. Anthropic's are in the clear and go on as words; what is sealed only its maker
        can read: without it, and without the turns that it stands for, the model would know nothing of them."""
        known = members(item.raw)
        content = known.get("content", NULL)
        if bytes(content)[:1] == b'"':
            self._find(turn, at, "a compaction stands as words; what is sealed in it is not sent")
            return msgspec.json.decode(content, type=str)
        if is_given(known.get("encrypted_content", NULL)) and not self._has_spoken:
            problem = "a compacted conversation that only its maker can read"
            remedy = "send the turns that it stands for, or ask the provider that made it"
            raise Untranslatable(problem, place_of(self._format, turn, at), remedy)
        self._find(turn, at, "a compaction is not sent: only its maker can read it; the turns before it are")
        return ""

    def _note(self, turn: Turn, at: int, item: Text) -> None:
        """Notes on what the model said are for the client and stay behind; the first of them is found."""
        if not self._has_notes and item.raw and self._from.notes.decode(item):
            self._has_notes = True
            self._find(turn, at, NOTES_STAY)

    def _open(self, turn: Turn, at: int, item: Item) -> list[Opened]:
        seal = seal_of(item)
        if seal is None or not is_envelope(seal.data):
            return []
        held = self._sealer.open(seal.data)
        if held is None:
            place = place_of(self._format, turn, at)
            self.findings.append(Finding("unopened", place, "an envelope that is not ours, or was changed", "drop it"))
            return []
        return [held]

    def _reasoning(self, turn: Turn, at: int, item: Reasoning) -> list[Item]:
        """Words that the client kept, for a model that takes words. Seals never: they are others', or ours."""
        text = readable(item)
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
        name = self._ids.call(call)
        arguments = call.arguments
        if call.is_custom and not self._to.custom_tools:
            self._find(turn, at, "a call with free text stands as one with an object")
            return ToolCall(call.name, msgspec.json.encode({"input": arguments}).decode(), name)
        if self._to.is_object and not call.is_custom:
            arguments = self._object(turn, at, arguments)
        return ToolCall(call.name, arguments, name, is_custom=call.is_custom)

    def _object(self, turn: Turn, at: int, arguments: str) -> str:
        made = as_object(arguments)
        if made not in (arguments, "{}"):
            self._find(turn, at, "arguments that are no object stand inside one")
        return made

    def _result(self, turn: Turn, item: ToolResult) -> list[_Part]:
        name, tool, order = self._ids.result(item)
        written = self._to.encode_result(self._content(item), name, tool or item.name)
        parts = [_Part("tool", (written.item,), order=order)]
        beside: list[Item] = []
        for media in written.rest:
            encoded = self._to.encode_media(media)
            if encoded is None:
                self._find(turn, None, f"{self._target} has no place for the {media.kind} of a result")
            else:
                beside += [Text(f"(The {media.kind} that {tool or 'the tool'} gave back:)"), encoded]
        return [*parts, *([_Part("user", tuple(beside))] if beside else [])]

    def _content(self, item: ToolResult) -> ResultContent:
        try:
            return self._from.decode_result(item)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return ResultContent((str(bytes(item.content), "utf-8", "replace"),))

    # --- shapes --------------------------------------------------------------------------------------------------

    def flat(self, parts: list[_Part]) -> list[_Part]:
        """Each result a turn of its own. In a Responses list what the model says next to itself is one step."""
        joins: tuple[Role, ...] = ("assistant",) if self._target == "openai_responses" else ()
        return _in_runs([part for part in parts if part.items], joins)

    def blocks(self, parts: list[_Part]) -> list[_Part]:
        """Turns of user and model in alternation, results first in the user's."""
        ours: list[_Part] = []
        for part in parts:
            if not part.items:
                continue
            if part.role == "system":
                message = "a system message in mid conversation stands as the user's"
                self.findings.append(Finding("untranslatable", "", message, ""))
            ours.append(part if part.role == "assistant" else _Part("user", part.items))
        shaped = _in_runs(ours, ("assistant", "user"))
        if shaped and shaped[0].role == "assistant":
            shaped.insert(0, _Part("user", (Text(_OPENING),)))
        return shaped


def _in_runs(parts: list[_Part], joins: tuple[Role, ...]) -> list[_Part]:
    """With neighbours of these roles joined: all of a run at once, so that a long one costs what it is long."""
    runs: list[list[_Part]] = []
    for part in parts:
        if part.role in joins and runs and runs[-1][0].role == part.role:
            runs[-1].append(part)
        else:
            runs.append([part])
    return [run[0] if len(run) == 1 else _joined(run) for run in runs]


def _joined(run: list[_Part]) -> _Part:
    items: list[Item] = []
    opened: list[Placed] = []
    letters = calls = 0
    for part in run:
        items += part.items
        opened += [placed._replace(base=(placed.base[0] + letters, placed.base[1] + calls)) for placed in part.opened]
        letters += sum(letters_of(item.text) for item in part.items if isinstance(item, Text))
        calls += sum(1 for item in part.items if isinstance(item, ToolCall))
    return _Part(run[0].role, tuple(items), tuple(opened))


def refusal_of(item: Unknown) -> str:
    """The words of a refusal, which stands in a member or in a part of its own."""
    value = msgspec.json.decode(item.raw)
    words = value.get("refusal") if isinstance(value, dict) else value
    return words if isinstance(words, str) else ""


def readable(item: Item) -> str:
    """The words of a piece of reasoning."""
    match item:
        case ReasoningText():
            return item.text
        case ReasoningSummary():
            return item.summary
        case _:
            return ""


def as_object(arguments: str) -> str:
    """Arguments for a wire that holds an object: those of a call cut short, or of another kind, stand inside one."""
    text = arguments.strip()
    if text.startswith("{") and is_json(text):
        return arguments
    return "{}" if text in ("", "null") else msgspec.json.encode({"arguments": arguments}).decode()
