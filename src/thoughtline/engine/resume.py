"""Processes the end of a conversation whose beginning is cached (`replay/remembering.py`).

begun           decodes and walks the short body
gone_on         plans and encodes it, and joins it to what was sent before
conversation    what of a request, processed in full, can be cached for the next one
"""

from __future__ import annotations

from msgspec.structs import replace

from thoughtline.engine.request import Original, Prepared, edited, planned
from thoughtline.engine.sessions import unnamed_session
from thoughtline.formats.weighing import decode_bounded
from thoughtline.replay.planner import needs
from thoughtline.replay.plans import NO_PAST, Past, Policy
from thoughtline.replay.remembering import (
    Cut,
    KnownConversation,
    Segment,
    Span,
    conversation_of,
    found_list,
    premises_of,
    surroundings_of,
)
from thoughtline.replay.segments import Worked, segments_of, settles_all
from thoughtline.values.errors import DecodeError, EncodeError

FEWEST_STEPS = 8
"""A shorter conversation is processed in less time than it takes to cache it."""


def begun(original: Original, cut: Cut) -> tuple[Prepared, Cut] | None:
    """Decode and walk the end of a conversation whose beginning is cached."""
    premises = cut.conversation.premises
    contract, identity = premises.contract, original.identity
    try:
        transcript = decode_bounded(cut.short, premises.destination.format, contract.dialect)
    except DecodeError:
        return None
    if original.user is not None:
        transcript = replace(transcript, user=original.user)
    name = cut.conversation.begun
    if cut.head:
        name = "" if identity.session is not None else unnamed_session(transcript)
        moved = cut.moved(transcript, identity)
        if moved is None:
            return None
        cut, transcript = moved
    if not cut.fits(transcript):
        return None
    prepared = Prepared(
        original.destination,
        identity,
        b"",
        contract=contract,
        policy=Policy(premises.ladder, premises.refused),
        transcript=edited(transcript, original),
        needed=needs(transcript, contract, identity, cut.standing),
        carried=original.carried,
        begun=name,
    )
    return prepared, cut


def gone_on(prepared: Prepared, cut: Cut, body: bytes) -> tuple[Prepared, list[Segment]] | None:
    """Plan it and apply the plan; also return what can be cached of it."""
    needed = prepared.needed
    assert needed is not None
    if not settles_all(needed, prepared.found, cut.past, cut.segments):
        return None
    try:
        whole = planned(prepared, cut.past)
    except EncodeError:
        return None
    segments = _segments(whole, cut.listed, cut.past, cut.head, cut.elements)
    joined = cut.joined(body, whole.body)
    return None if segments is None or joined is None else (replace(whole, body=joined), segments)


def _segments(
    prepared: Prepared, listed: Span, past: Past = NO_PAST, head: bytes = b"", elements: int = 0
) -> list[Segment] | None:
    transcript, needed, trace = prepared.transcript, prepared.needed, prepared.trace() if prepared.trace else None
    if transcript is None or needed is None or trace is None:
        return None
    contract = prepared.contract
    return segments_of(
        Worked(
            transcript,
            needed,
            prepared.found,
            trace,
            sent=prepared.body,
            dialect=contract.dialect,
            listed=listed,
            past=past,
            head=head,
            elements=elements,
            is_bound=contract.binds_prefix or contract.binds_chain,
        )
    )


def is_worth_remembering(prepared: Prepared) -> bool:
    """Whether it is a conversation that is long enough, settled by the store alone, and could be encoded."""
    needed = prepared.needed
    if needed is None or needed.settled is None:
        return False
    return len(needed.steps) >= FEWEST_STEPS and prepared.problem is None


def conversation(prepared: Prepared, body: bytes) -> KnownConversation | None:
    """Return what can be cached of a request that was processed in full."""
    transcript, needed, who = prepared.transcript, prepared.needed, prepared.identity
    if transcript is None or needed is None or transcript.has_lone_surrogates:
        return None
    listed = found_list(body, transcript.format) if settles_all(needed, prepared.found) else None
    segments = _segments(prepared, listed) if listed is not None else None
    if listed is None or not segments:
        return None
    begun = "" if who.session is not None else unnamed_session(transcript)
    premises = premises_of(prepared.destination, who, prepared.contract, prepared.policy)
    surroundings = surroundings_of(transcript, premises)
    return conversation_of(body, listed[0], premises, surroundings=surroundings, begun=begun).with_segments(
        tuple(segments)
    )
