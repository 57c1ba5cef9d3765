"""A request that goes on with what other models thought: which of it is quoted, in each plan of the request.

    handover = await memory.recall(…)                        all that has to be fetched, once
    continued = handover.carry_on(planned, contract)         pure: planning again carries on again
    await memory.remember(handover, continued.quotation)     the request was answered

What was quoted in a request is quoted again, identical, in the requests that go on from its answer: `Quoted` says what
that was. It starts over only where it would grow beyond its bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from msgspec.structs import replace

from thoughtline.continuity.checkpoints import MOST_CHECKPOINTS, Checkpoint, checkpoints_of, quoted
from thoughtline.continuity.terms import Terms
from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import members
from thoughtline.providers import Contract
from thoughtline.replay.findings import Finding
from thoughtline.replay.keys import evidence_of
from thoughtline.replay.known import Known
from thoughtline.replay.planner import Needs
from thoughtline.replay.visible import packed
from thoughtline.sessions import unnamed_session
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.items import REASONING_KINDS, Item, Text, seal_of
from thoughtline.values.records import Key, digest
from thoughtline.values.turns import SYSTEM_MEMBER, Transcript, Turn


class Quoted(NamedTuple):
    """What was quoted in the request whose answer this one goes on from, to the same target.

    `is_known`: there is a note of such a request. `is_whole`: every record that it quoted is still there.
    """

    quotes: tuple[Checkpoint, ...] = ()
    is_known: bool = False
    is_whole: bool = True


NOTHING_QUOTED = Quoted()


class Quotation(NamedTuple):
    """What is quoted in a request, oldest first, and what there is to say about it."""

    quotes: tuple[Checkpoint, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def text(self) -> str:
        return quoted(self.quotes) if self.quotes else ""


class HandoverLine(NamedTuple):
    """Where a request stands: whose it is, what it goes to, and the places it has come through, newest first."""

    tenant: str
    session: str
    target: str
    places: tuple[Key, ...]


class Handover(NamedTuple):
    """What is known about a request's turns, and what was quoted `before`. `session` names the conversation.

    `past` is what its session and agent thought last, where no turn of it is left in the request.
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
        """The planned request with what is to be quoted in its system prompt; the very same one if that is nothing."""
        found = checkpoints_of(self.known, planned, self.target, self.terms.max_chars)
        wanted = _wanted((*self.past, *found.taken), self.terms)
        if contract.binds_prefix and not contract.binds_silently and _has_bound_blocks(planned):
            quotation = _bound(wanted, self.before)
        else:
            quotation = _grown(wanted, self.before, self.terms)
        quotation = Quotation(quotation.quotes, (*found.findings, *quotation.findings))
        return Continued(inject(planned, quotation.text), quotation)


class Continued(NamedTuple):
    """A request as it goes out, and what is quoted in it."""

    transcript: Transcript
    quotation: Quotation


def line_of(needed: Needs, known: Sequence[Known], transcript: Transcript, target: Destination) -> HandoverLine:
    """The line of a request, by the answers it goes on from, as the client shows them and as they were made."""
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
    """What the client says; else what the records of its turns say, which outlives a compaction; else how it began."""
    if identity.session is not None:
        return identity.session
    recorded = next((one.record.provenance.session for one in reversed(known) if one.record.provenance.session), None)
    return recorded or unnamed_session(transcript)


def _wanted(checkpoints: Sequence[Checkpoint], terms: Terms) -> tuple[Checkpoint, ...]:
    if terms.mode == "handoff":
        checkpoints = [one for one in checkpoints if not one.is_carried and not one.is_own]
    return tuple(checkpoints[-terms.count :])


def _grown(wanted: tuple[Checkpoint, ...], before: Quoted, terms: Terms) -> Quotation:
    """What was quoted before, then what is wanted and new."""
    quotes = (*before.quotes, *_new(wanted, before))
    return Quotation(quotes if _is_within(quotes, terms) else wanted)


def _new(wanted: Sequence[Checkpoint], before: Quoted) -> list[Checkpoint]:
    known = {one.record for one in before.quotes}
    return [one for one in wanted if one.record not in known]


def _is_within(quotes: Sequence[Checkpoint], terms: Terms) -> bool:
    """Whether this may still grow: as many as a session has, as long as `count` of the longest together."""
    chars = sum(len(one.text) for one in quotes)
    return len(quotes) <= MOST_CHECKPOINTS and chars <= terms.count * terms.max_chars


def _bound(wanted: Sequence[Checkpoint], before: Quoted) -> Quotation:
    """Blocks are bound to the system prompt they were made under: exactly that one goes out again, or they are lost."""
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


# --- the system prompt of a request with a text at its end, in each format; every other byte stays --------------------


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
    if FORMATS[transcript.format].system != "messages":
        return None
    opening = len(list(takewhile(lambda turn: turn.role == "system", transcript.turns)))
    return opening - 1 if opening else None


def _is_unreadable(transcript: Transcript, turn: Turn) -> bool:
    """Responses take `instructions` as a list too: nothing that a text could be added to."""
    return FORMATS[transcript.format].system == "text" and not turn.items


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
    if not has_member and (FORMATS[transcript.format].system != "messages" or _is_prompt(transcript)):
        turn = Turn("system", (Text(text),), SYSTEM_MEMBER, is_edited=True)
        return replace(transcript, turns=(turn, *transcript.turns))
    head = transcript.turns[: int(has_member)]
    return transcript.with_turns((*head, Turn("system", (Text(text),)), *transcript.turns[len(head) :]))


def _is_prompt(transcript: Transcript) -> bool:
    """Ollama's older address has one `prompt`, and `system` beside it."""
    return "single_prompt" in FORMATS[transcript.format].quirks and "prompt" in members(transcript.body)
