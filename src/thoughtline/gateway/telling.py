"""What an exchange leaves behind: the value that explains it, made of what there is when it is asked."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec import Struct

from thoughtline.gateway.attempt import Attempt
from thoughtline.gateway.incoming import Incoming
from thoughtline.gateway.journal import Line
from thoughtline.gateway.relay import Relay
from thoughtline.gateway.served import AttemptNote, Served
from thoughtline.values.outcome import Outcome
from thoughtline.watching import session_of

_MAX_PATH = 300
_MAX_AGENT = 200


class SoFar(Struct, frozen=True, gc=False):
    """What the exchange itself knows of how it goes; `store` is how that is, `code` and `message` are those of an error
    of ours."""

    status: int
    captured: int
    store: str
    code: str
    message: str
    is_over: bool


def told(
    outcome: Outcome, incoming: Incoming, attempts: Sequence[Attempt], *, relay: Relay | None, so_far: SoFar
) -> Served:
    """All there is to say of an exchange by now."""
    line = _line(outcome, incoming, attempts, relay=relay, so_far=so_far)
    seconds, key = time.perf_counter() - incoming.began, incoming.caller.key
    notes = []
    for attempt in attempts:
        note = AttemptNote(
            attempt.target,
            attempt.destination.endpoint,
            attempt.is_translated,
            status=attempt.status,
            error=attempt.error,
            started_seconds=attempt.started_at - incoming.began if attempt.started_at else 0.0,
            upstream_seconds=attempt.upstream_seconds,
            bytes_up=attempt.bytes_up,
            sends=attempt.sends,
            refusals=attempt.refusals,
            was_healed=attempt.was_healed,
            contract=attempt.contract,
            corrections=attempt.corrections,
            notes=attempt.notes,
        )
        notes.append(note)
    return Served(
        line,
        so_far.is_over,
        line.at - seconds,
        seconds=seconds,
        first_byte_seconds=relay.started_at - incoming.began if relay is not None and relay.started_at else None,
        path=incoming.scope["path"][:_MAX_PATH],
        user_agent=str(incoming.user_agent[:_MAX_AGENT], "latin-1"),
        client_key=key.id if key is not None else "",
        message=so_far.message,
        tokens=relay.tokens if relay is not None else None,
        attempts=tuple(notes),
    )


def _line(
    outcome: Outcome, incoming: Incoming, attempts: Sequence[Attempt], *, relay: Relay | None, so_far: SoFar
) -> Line:
    """An exchange as its line in the journal."""
    last = attempts[-1] if attempts else None
    session = incoming.identity.session or (last.session if last is not None else None)
    if not session and last is not None and last.prepared is not None:
        session = session_of(last.prepared)  # by which its turns would be kept, if its client does not name it
    is_unread = incoming.is_passed_on or (last is not None and last.problem is not None)
    return Line(
        **outcome.counted,
        at=incoming.state.clock(),
        request=outcome.request,
        tenant=incoming.caller.tenant,
        method=incoming.scope["method"],
        route=incoming.route.action,
        provider=last.target.provider.name if last else "",
        format=incoming.route.format or "",
        model=last.target.model if last else "",
        status=so_far.status,
        avoided=so_far.status == 200 and last is not None and last.is_mended,
        session=session,
        agent=incoming.identity.agent,
        is_streaming=last.is_streaming if last else incoming.route.is_streaming,
        via=outcome.route,
        handoff=outcome.handoff,
        added_chars=outcome.added_chars,
        findings=outcome.findings,
        captured=so_far.captured,
        upstream_ms=outcome.upstream_ms,
        own_ms=outcome.own_ms,
        bytes_up=last.bytes_up if last and len(attempts) == 1 else sum([attempt.bytes_up for attempt in attempts]),
        bytes_down=relay.bytes_down if relay else 0,
        attempts=len(attempts),
        store=so_far.store,
        late=relay.late if relay else 0,
        code=so_far.code,
        note=(relay.note if relay else "") or ("unread" if is_unread else ""),
    )
