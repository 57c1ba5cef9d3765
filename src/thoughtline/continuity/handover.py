"""Continues a conversation with other models' reasoning: which of it is quoted, in each plan of the request.

    handover = await memory.recall(…)                        everything that must be fetched, once
    continued = handover.carry_on(planned, contract)         pure: a second plan carries on again
    await memory.remember(handover, continued.quotation)     the request was answered

The quotes of a request are repeated unchanged in the requests that continue from its answer: `Quoted` has them. They
are replaced only when they would grow beyond their bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from msgspec.structs import replace

from thoughtline.continuity.checkpoints import MAX_CHECKPOINTS, Checkpoint, checkpoints_of, quoted
from thoughtline.continuity.terms import Terms
from thoughtline.engine.sessions import unnamed_session
from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import members
from thoughtline.providers import Contract
from thoughtline.replay.findings import Finding
from thoughtline.replay.keys import evidence_of
from thoughtline.replay.known import Known
from thoughtline.replay.planner import Needs
from thoughtline.replay.visible import packed
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.items import REASONING_KINDS, Item, Text, seal_of
from thoughtline.values.records import Key, digest
from thoughtline.values.turns import SYSTEM_MEMBER, Transcript, Turn


class Quoted(NamedTuple):
    """The quotes in the request before this one, to the same target.

    `is_known`: there is a note of such a request. `is_whole`: every record that it quoted still exists.
    """

    quotes: tuple[Checkpoint, ...] = ()
    is_known: bool = False
    is_whole: bool = True


NOTHING_QUOTED = Quoted()


class Quotation(NamedTuple):
    """The quotes in a request, oldest first, and their findings."""

    quotes: tuple[Checkpoint, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def text(self) -> str:
        return quoted(self.quotes) if self.quotes else ""


class HandoverLine(NamedTuple):
    """The position of a request: its tenant and session, its target, and the places it went through, newest first."""

    tenant: str
    session: str
    target: str
    places: tuple[Key, ...]


class Handover(NamedTuple):
    """The known turns of a request, and the quotes `before` it. `session` names the conversation.

    `past` has the last reasoning of its session and agent, if none of their turns is left in the request.
    """

    known: tuple[Known, ...]
    line: HandoverLine
    before: Quoted
    target: Destination
    terms: Terms
    past: tuple[Checkpoint, ...] = ()

    @property
    def session(self) -> str:
        return self.line.session.rpartition("/")[0]

    def carry_on(self, planned: Transcript, contract: Contract) -> Continued:
        """The planned request with the quotes in its system prompt; the same object if there are none."""
        found = checkpoints_of(self.known, planned, self.target, self.terms.max_chars)
        wanted = _wanted((*self.past, *found.taken), self.terms)
        if contract.binds_prefix and not contract.binds_silently and _has_bound_blocks(planned):
            quotation = _bound(wanted, self.before)
        else:
            quotation = _grown(wanted, self.before, self.terms)
        quotation = Quotation(quotation.quotes, (*found.findings, *quotation.findings))
        return Continued(inject(planned, quotation.text), quotation)


class Continued(NamedTuple):
    """A request as it is sent, and the quotes in it."""

    transcript: Transcript
    quotation: Quotation


def line_of(needed: Needs, known: Sequence[Known], transcript: Transcript, target: Destination) -> HandoverLine:
    """The position of a request, from the answers before it, as the client shows them and as they were recorded."""
    who = needed.identity
    places = [needed.end.place()] if needed.end is not None else []
    made = {one.step.positions: one.record for one in known}
    for step in reversed(needed.steps):
        for part in (*reversed(step.parts), step):
            record = made.get(part.positions)
            places += [one for one in record.keys if evidence_of(one) == "place"] if record else []
            places.append(part.spot.place())
    session = _session_name(who, known, transcript)
    aim = digest(packed("target", target.provider, target.endpoint, target.account, target.model)).hex()
    return HandoverLine(who.tenant, f"{session}/{who.agent or ''}", aim, tuple(dict.fromkeys(places)))


def _session_name(identity: Identity, known: Sequence[Known], transcript: Transcript) -> str:
    """The client's name for it; else the one in the records of its turns, which survives a compaction; else one made
    from the beginning of the conversation.
    """
    if identity.session is not None:
        return identity.session
    recorded = next((one.record.provenance.session for one in reversed(known) if one.record.provenance.session), None)
    return recorded or unnamed_session(transcript)


def _wanted(checkpoints: Sequence[Checkpoint], terms: Terms) -> tuple[Checkpoint, ...]:
    if terms.mode == "handoff":
        checkpoints = [one for one in checkpoints if not one.is_carried and not one.is_own]
    return tuple(checkpoints[-terms.count :])


def _grown(wanted: tuple[Checkpoint, ...], before: Quoted, terms: Terms) -> Quotation:
    """The earlier quotes, then the new ones."""
    quotes = (*before.quotes, *_new(wanted, before))
    return Quotation(quotes if _is_within(quotes, terms) else wanted)


def _new(wanted: Sequence[Checkpoint], before: Quoted) -> list[Checkpoint]:
    known = {one.record for one in before.quotes}
    return [one for one in wanted if one.record not in known]


def _is_within(quotes: Sequence[Checkpoint], terms: Terms) -> bool:
    """Whether the quotes may grow: up to the maximum of a session, and the length of `count` checkpoints of maximum
    size.
    """
    chars = sum(len(one.text) for one in quotes)
    return len(quotes) <= MAX_CHECKPOINTS and chars <= terms.count * terms.max_chars


def _bound(wanted: Sequence[Checkpoint], before: Quoted) -> Quotation:
    """Thinking blocks are bound to the system prompt of their request: it must be sent unchanged, or they are lost."""
    place = "/system"
    if not before.is_whole:
        why = "a record that was quoted when these blocks were made is gone"
        return Quotation((), (Finding("bound-prefix-changed", place, why, "drop the thinking blocks"),))
    new = _new(wanted, before)
    if not new:
        return Quotation(before.quotes)
    why = f"{len(new)} checkpoints are not quoted: thinking in this request is bound to an unchanged system prompt"
    return Quotation(before.quotes, (Finding("checkpoint-withheld", place, why, "none is needed"),))


def _has_bound_blocks(planned: Transcript) -> bool:
    return any(
        isinstance(item, REASONING_KINDS) and seal_of(item) is not None
        for turn in planned.turns
        if turn.role == "assistant"
        for item in turn.items
    )


# --- adding a text to the end of the system prompt, in each format; every other byte stays ----------------------------


def inject(transcript: Transcript, text: str) -> Transcript:
    """The request with a text at the end of its system prompt. Without a text: the same object."""
    if not text:
        return transcript
    at = _system_position(transcript)
    if at is None:
        return _with_new_system(transcript, text)
    return transcript.with_items(at, _extended(transcript.turns[at].items, text))


def _system_position(transcript: Transcript) -> int | None:
    """The position of the system prompt: the member outside the conversation, else the last of the leading system
    messages.
    """
    for position, turn in enumerate(transcript.turns):
        if turn.at == SYSTEM_MEMBER:
            return None if _is_unreadable(transcript, turn) else position
    if FORMATS[transcript.format].system != "messages":
        return None
    opening = len(list(takewhile(lambda turn: turn.role == "system", transcript.turns)))
    return opening - 1 if opening else None


def _is_unreadable(transcript: Transcript, turn: Turn) -> bool:
    """Responses also accepts a list as `instructions`: no text can be added to it."""
    return FORMATS[transcript.format].system == "text" and not turn.items


def _extended(items: tuple[Item, ...], text: str) -> tuple[Item, ...]:
    """Add a text. A string stays a string; blocks keep their bytes and their marks."""
    last = next((at for at in range(len(items) - 1, -1, -1) if isinstance(items[at], Text)), None)
    known = items[last] if last is not None else None
    if last is None or not isinstance(known, Text) or known.raw:
        return (*items, Text(text))
    longer = replace(known, text=f"{known.text}\n\n{text}" if known.text else text)
    return (*items[:last], longer, *items[last + 1 :])


def _with_new_system(transcript: Transcript, text: str) -> Transcript:
    """Add a system prompt where there was none: outside the conversation, or as its first message."""
    has_member = any(turn.at == SYSTEM_MEMBER for turn in transcript.turns)
    if not has_member and (FORMATS[transcript.format].system != "messages" or _is_prompt(transcript)):
        turn = Turn("system", (Text(text),), SYSTEM_MEMBER, is_edited=True)
        return replace(transcript, turns=(turn, *transcript.turns))
    head = transcript.turns[: int(has_member)]
    return transcript.with_turns((*head, Turn("system", (Text(text),)), *transcript.turns[len(head) :]))


def _is_prompt(transcript: Transcript) -> bool:
    """Ollama's older API has a single `prompt`, with `system` next to it."""
    return "single_prompt" in FORMATS[transcript.format].quirks and "prompt" in members(transcript.body)
