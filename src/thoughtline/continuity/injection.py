"""What to quote into a request, and how it gets into the system prompt of each format.

    quote(checkpoints, told, …)      which checkpoints: those that were told before, and new ones behind them
    inject(transcript, text)         the system prompt with the text at its end; every other byte stays

What was quoted in a request is quoted again, identical, in the requests that go on from its answer: `Told` says what
that was. It starts over only where it would grow beyond its bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.continuity.checkpoints import MOST_CHECKPOINTS, Checkpoint
from thoughtline.continuity.framing import frame
from thoughtline.formats.json_text import members
from thoughtline.providers import Contract
from thoughtline.replay.findings import Finding
from thoughtline.values.items import REASONING_KINDS, Item, Text, seal_of
from thoughtline.values.turns import SYSTEM_MEMBER, FormatName, Transcript, Turn

Mode = Literal["handoff", "always"]

_BESIDE: frozenset[FormatName] = frozenset(
    {"anthropic_messages", "bedrock_converse", "gemini_generate", "openai_responses"}
)
"""Formats whose system prompt stands beside the conversation. In the others it is the first message."""


class Terms(Struct, frozen=True, gc=False):
    """What settings and the request's header say: how many checkpoints at once, when, and of what size.

    `after_compaction`: also the last ones of a session of which no turn is left in the request.
    """

    mode: Mode = "handoff"
    count: int = 3
    max_chars: int = 64_000
    after_compaction: bool = True


class Told(NamedTuple):
    """What was quoted in the request whose answer this one goes on from, to the same target.

    `is_known`: there is a note of such a request. `is_whole`: every record that it quoted is still there.
    """

    quotes: tuple[Checkpoint, ...] = ()
    is_known: bool = False
    is_whole: bool = True


NOTHING_TOLD = Told()


class Quotation(NamedTuple):
    """What is quoted in a request, oldest first, and what there is to say about it."""

    quotes: tuple[Checkpoint, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def text(self) -> str:
        return frame(self.quotes) if self.quotes else ""


def quote(
    checkpoints: Sequence[Checkpoint],
    told: Told,
    planned: Transcript,
    contract: Contract,
    terms: Terms,
) -> Quotation:
    """What to quote in a request: what was told before, then what is wanted and new."""
    wanted = _wanted(checkpoints, terms)
    if contract.binds_prefix and _has_bound_blocks(planned):
        return _bound(wanted, told, planned)
    known = {one.record for one in told.quotes}
    quotes = (*told.quotes, *(one for one in wanted if one.record not in known))
    return Quotation(quotes if _is_within(quotes, terms) else wanted)


def _wanted(checkpoints: Sequence[Checkpoint], terms: Terms) -> tuple[Checkpoint, ...]:
    if terms.mode == "handoff":
        checkpoints = [one for one in checkpoints if not one.is_carried and not one.is_own]
    return tuple(checkpoints[-terms.count :])


def _is_within(quotes: Sequence[Checkpoint], terms: Terms) -> bool:
    """Whether this may still grow: as many as a session has, as long as `count` of the longest together."""
    chars = sum(len(one.text) for one in quotes)
    return len(quotes) <= MOST_CHECKPOINTS and chars <= terms.count * terms.max_chars


def _bound(wanted: Sequence[Checkpoint], told: Told, planned: Transcript) -> Quotation:
    """Blocks are bound to the system prompt they were made under: exactly that one goes out again, or they are lost."""
    place = "/system"
    if not told.is_whole:
        why = "a record that was quoted when these blocks were made is gone"
        return Quotation((), (Finding("bound-prefix-changed", place, why, "drop the thinking blocks"),))
    known = {one.record for one in told.quotes}
    new = [one for one in wanted if one.record not in known]
    if not new:
        return Quotation(told.quotes)
    why = f"{len(new)} checkpoints are not quoted: thinking in this request is bound to an unchanged system prompt"
    return Quotation(told.quotes, (Finding("checkpoint-withheld", place, why, "none is needed"),))


def _has_bound_blocks(planned: Transcript) -> bool:
    return any(
        isinstance(item, REASONING_KINDS) and seal_of(item) is not None
        for turn in planned.turns
        if turn.role == "assistant"
        for item in turn.items
    )


# --- into the request -------------------------------------------------------------------------------------------------


def inject(transcript: Transcript, text: str) -> Transcript:
    """The request with a text at the end of its system prompt. No text: the very same request."""
    if not text:
        return transcript
    at = _system_position(transcript)
    if at is None:
        return _with_new_system(transcript, text)
    return transcript.with_items(at, _extended(transcript.turns[at].items, text))


def _system_position(transcript: Transcript) -> int | None:
    """The system prompt: the member beside the conversation, else the last of the system messages that open it."""
    for position, turn in enumerate(transcript.turns):
        if turn.at == SYSTEM_MEMBER:
            return None if _is_unreadable(transcript, turn) else position
    if transcript.format in _BESIDE:
        return None
    last = None
    for position, turn in enumerate(transcript.turns):
        if turn.role != "system":
            break
        last = position
    return last


def _is_unreadable(transcript: Transcript, turn: Turn) -> bool:
    """Responses take `instructions` as a list too: nothing that a text could be added to."""
    return transcript.format == "openai_responses" and not turn.items


def _extended(items: tuple[Item, ...], text: str) -> tuple[Item, ...]:
    """One more text. What stood as a string stays one; blocks keep their bytes, with the marks they carry."""
    last = next((at for at in range(len(items) - 1, -1, -1) if isinstance(items[at], Text)), None)
    known = items[last] if last is not None else None
    if last is None or not isinstance(known, Text) or known.raw:
        return (*items, Text(text))
    longer = replace(known, text=f"{known.text}\n\n{text}" if known.text else text)
    return (*items[:last], longer, *items[last + 1 :])


def _with_new_system(transcript: Transcript, text: str) -> Transcript:
    """A system prompt where there was none: beside the conversation, or as its first message."""
    has_member = any(turn.at == SYSTEM_MEMBER for turn in transcript.turns)
    if not has_member and (transcript.format in _BESIDE or _is_prompt(transcript)):
        turn = Turn("system", (Text(text),), SYSTEM_MEMBER, is_edited=True)
        return replace(transcript, turns=(turn, *transcript.turns))
    head = transcript.turns[: int(has_member)]
    return transcript.with_turns((*head, Turn("system", (Text(text),)), *transcript.turns[len(head) :]))


def _is_prompt(transcript: Transcript) -> bool:
    """Ollama's older address has one `prompt`, and `system` beside it."""
    return transcript.format == "ollama_chat" and "prompt" in members(transcript.body)
