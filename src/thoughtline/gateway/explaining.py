"""Describes a served request in words: the answers of the admin API, built on demand."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from thoughtline.clients import client_of
from thoughtline.formats import FORMATS
from thoughtline.gateway.admin.answers import Place, moment
from thoughtline.gateway.admin.request_answers import (
    AttemptView,
    Bodies,
    ContractUsed,
    Phase,
    RefusalView,
    RequestOutcome,
    RequestRow,
    RequestView,
    Tokens,
    TurnView,
)
from thoughtline.gateway.masking import masked_body, masked_url, masked_words
from thoughtline.gateway.recent import AttemptNote, KeptBodies, RefusalNote, Served
from thoughtline.replay.refusal_words import meaning_of
from thoughtline.replay.refusals import Correction
from thoughtline.values.outcome import TurnNote
from thoughtline.values.outcome_words import count_words, words_of
from thoughtline.values.turns import FormatName

WORDS = 500
"""Characters of a provider's error that are shown."""


def row_of(served: Served, worker: str) -> RequestRow:
    return RequestRow(**_members(served, worker))


def view_of(
    served: Served,
    worker: str,
    *,
    bodies: KeptBodies | None,
    learned: dict[str, list[str]],
    overridden: frozenset[str],
    expired: frozenset[str] = frozenset(),
) -> RequestView:
    """Build the admin API's view of a request. `learned` are sentences by target name, `expired` lineages of deleted
    turns."""
    last = served.attempts[-1] if served.attempts else None
    notes = sorted(last.notes or (), key=lambda note: note.at) if last is not None else ()
    return RequestView(
        **_members(served, worker),
        tried=[_attempt(one, learned.get(one.target.name, []), overridden) for one in served.attempts],
        ended_ms=None if served.ended_seconds is None else round(served.ended_seconds * 1000, 2),
        hold_ms=round(served.end_seconds * 1000, 2),
        save_ms=round(served.save_seconds * 1000, 2),
        turns=[_turn(note, last, expired, served.line.mode) for note in notes if last is not None],
        findings=[Place(rule, place) for rule, place in served.line.findings],
        bodies=None if bodies is None else _bodies(bodies),
    )


def phase_of(served: Served) -> Phase:
    if served.is_over:
        return "done"
    return "begun" if served.first_byte_seconds is None else "streaming"


def outcome_of(served: Served) -> RequestOutcome:
    """Return the outcome in one word, by the provider's last answer rather than by what replaced it for the client."""
    line = served.line
    if not served.is_over:
        return "pending"
    if line.code == "client_gone":
        return "gone"
    if line.code:
        return "failed" if line.code.startswith("upstream_") else "declined"
    if line.status >= 500 or (line.verdict and line.status < 400):
        return "failed"
    if line.status >= 400:
        return "refused"
    if line.healed:
        return "healed"
    if line.missing or line.dropped:
        return "lost"
    if line.blank:
        return "blank"
    if line.late:
        return "late"
    return "restored" if line.restored or line.inherited or line.stripped else "ok"


_AS_LOGGED = (
    *("verdict", "mode", "would", "status", "method", "tenant", "session", "agent", "format", "provider", "model"),
    *("is_streaming", "attempts", "captured", "own_ms", "upstream_ms", "bytes_up", "bytes_down", "store"),
)
"""Members of a row that the log also has."""


def _members(served: Served, worker: str) -> dict[str, Any]:
    line = served.line
    last = served.attempts[-1] if served.attempts else None
    refusal = last.refusals[-1] if last is not None and last.refusals else None
    outcome = outcome_of(served)
    return {
        "id": line.request,
        "at": moment(served.began_at),
        "phase": phase_of(served),
        "outcome": outcome,
        "summary": _summary(served, outcome),
        "code": line.code or (refusal.code if refusal is not None and outcome in ("refused", "failed") else ""),
        "message": _message(served, outcome, refusal),
        **{name: getattr(line, name) for name in _AS_LOGGED},
        "path": served.path,
        "action": line.route,
        "caller": served.caller,
        "client": client_of(served.user_agent),
        "route": line.via,
        "kept": sum(note.treatment == "kept" for note in last.notes or ()) if last is not None else 0,
        **line.counted,
        "total_ms": round(served.seconds * 1000, 1),
        "first_byte_ms": None if served.first_byte_seconds is None else round(served.first_byte_seconds * 1000, 1),
        "tokens": None if served.tokens is None else Tokens(*served.tokens),
        "worker": worker,
    }


def _message(served: Served, outcome: RequestOutcome, refusal: RefusalNote | None) -> str:
    if served.message:
        return served.message
    return masked_words(refusal.words, 200) if refusal is not None and outcome in ("refused", "failed") else ""


def _summary(served: Served, outcome: RequestOutcome) -> str:
    """Return one sentence for people; for a failure, its verdict."""
    line = served.line
    done = count_words(line)
    match outcome:
        case "refused" | "failed" | "declined" | "gone":
            return line.verdict
        case "healed":
            first = next((one for attempt in served.attempts for one in attempt.refusals), None)
            about = meaning_of(first.refusal) if first is not None and first.refusal is not None else "refused"
            return f"{line.provider} refused it first ({about}); corrected, sent again and answered"
        case _ if line.mode == "observe":
            return f"only observed; would have been: {line.would}" if line.would else "only observed; nothing to do"
        case _:
            return done or ("passed on" if served.is_over else "under way")


def _attempt(one: AttemptNote, learned: list[str], overridden: frozenset[str]) -> AttemptView:
    contract = one.contract
    now = [correction_words(correction) for correction in one.corrections]
    used = (
        None
        if contract is None
        else ContractUsed(
            contract.name,
            contract.kind,
            contract.scope,
            takes=contract.takes,
            carrier=contract.dialect.carrier,
            source=str(contract.source),
            is_overridden=contract.name in overridden,
            learned=[*now, *(words for words in learned if words not in now)],
        )
    )
    return AttemptView(
        one.target.provider.name,
        one.target.model,
        masked_url(one.endpoint),
        format=one.target.format,
        is_translated=one.is_translated,
        contract=used,
        status=one.status,
        error=one.error,
        prepared_ms=None if one.prepared_seconds is None else round(one.prepared_seconds * 1000, 2),
        look_up_ms=round(one.look_up_seconds * 1000, 2),
        started_ms=round(one.started_seconds * 1000, 2),
        upstream_ms=round(one.upstream_seconds * 1000, 2),
        bytes_up=one.bytes_up,
        sends=one.sends,
        refusals=[_refusal(refusal, one.was_healed) for refusal in one.refusals],
    )


def correction_words(one: Correction) -> str:
    """Return a correction as a sentence."""
    what = " ".join(filter(None, (one.change.replace("_", " "), one.field, one.scope)))
    if one.rule is not None:
        how = " ".join((one.rule.do.replace("_", " "), *one.rule.values))
        what = f"setting {one.field}: {how}" + (f" where {one.rule.when}" if one.rule.when else "")
    return f"{what} (learned from a {one.evidence.status} on {moment(one.learned_at):%Y-%m-%d})"


def _refusal(one: RefusalNote, was_healed: bool) -> RefusalView:
    refusal = one.refusal
    return RefusalView(
        status=one.status,
        at_ms=round(one.seconds * 1000, 1),
        words=masked_words(one.words, WORDS),
        code=one.code,
        rule=refusal.rule if refusal is not None else "",
        remedy=refusal.remedy if refusal is not None else "",
        place=refusal.place if refusal is not None else "",
        meaning=meaning_of(refusal) if refusal is not None else "",
        was_healed=was_healed,
    )


def _turn(note: TurnNote, attempt: AttemptNote, expired: frozenset[str], mode: str) -> TurnView:
    why = "expired" if note.why == "no_record" and note.record in expired else note.why
    view = turn_view(TurnNote(note.at, note.treatment, why, note.record), attempt.target.format)
    return view if mode == "on" or note.treatment == "kept" else replace(view, words=f"not {view.words}")


def turn_view(note: TurnNote, format: FormatName) -> TurnView:
    """Return what was done for a turn, in words."""
    return TurnView(
        f"{FORMATS[format].list_place}/{note.at}",
        note.at,
        note.treatment,
        why=note.why,
        words=words_of(note.treatment, note.why),
        record=note.record or None if note.treatment in ("kept", "restored") else None,
    )


def _bodies(kept: KeptBodies) -> Bodies:
    return Bodies(masked_body(kept.client), masked_body(kept.upstream), kept.is_cut)
