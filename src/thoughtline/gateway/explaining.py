"""A request that was served, in words: the answers of the admin API, made when somebody asks."""

from __future__ import annotations

from typing import Any

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
from thoughtline.providers.refusals import Remedy, Rule
from thoughtline.replay.refusals import Correction, Refusal
from thoughtline.values.outcome import Deed, Reason, TurnNote

WORDS = 500
"""Characters of what a provider says that are shown."""


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
    """`learned` are sentences by the name of a target, `expired` lineages of turns that were forgotten."""
    last = served.attempts[-1] if served.attempts else None
    notes = sorted(last.notes or (), key=lambda note: note.at) if last is not None else ()
    return RequestView(
        **_members(served, worker),
        tried=[_attempt(one, learned.get(one.target.name, []), overridden) for one in served.attempts],
        turns=[_turn(note, last, expired) for note in notes if last is not None],
        findings=[Place(rule, place) for rule, place in served.line.findings],
        bodies=None if bodies is None else _bodies(bodies),
    )


def phase_of(served: Served) -> Phase:
    if served.is_over:
        return "done"
    return "begun" if served.first_byte_seconds is None else "streaming"


def outcome_of(served: Served) -> RequestOutcome:
    """In one word. What the provider said to the end counts, not what was said to the client in its place."""
    line = served.line
    if not served.is_over:
        return "pending"
    if line.code == "client_gone":
        return "gone"
    if line.code:
        return "failed" if line.code.startswith("upstream_") else "declined"
    if line.status >= 500:
        return "failed"
    if line.status >= 400:
        return "refused"
    if line.healed:
        return "healed"
    return "restored" if line.restored or line.inherited or line.blank or line.stripped else "ok"


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
        "summary": _summary(served, outcome, refusal),
        "status": line.status,
        "code": line.code or (refusal.code if refusal is not None and outcome in ("refused", "failed") else ""),
        "message": _message(served, outcome, refusal),
        "method": line.method,
        "path": served.path,
        "action": line.route,
        "tenant": line.tenant,
        "session": line.session,
        "agent": line.agent,
        "client": client_of(served.user_agent),
        "format": line.format,
        "provider": line.provider,
        "model": line.model,
        "route": line.via,
        "is_streaming": line.is_streaming,
        "attempts": line.attempts,
        "kept": sum(note.deed == "kept" for note in last.notes or ()) if last is not None else 0,
        **line.counted,
        "captured": line.captured,
        "total_ms": round(served.seconds * 1000, 1),
        "own_ms": line.own_ms,
        "upstream_ms": line.upstream_ms,
        "first_byte_ms": None if served.first_byte_seconds is None else round(served.first_byte_seconds * 1000, 1),
        "bytes_up": line.bytes_up,
        "bytes_down": line.bytes_down,
        "tokens": None if served.tokens is None else Tokens(*served.tokens),
        "store": line.store,
        "worker": worker,
    }


def _message(served: Served, outcome: RequestOutcome, refusal: RefusalNote | None) -> str:
    if served.message:
        return served.message
    return masked_words(refusal.words, 200) if refusal is not None and outcome in ("refused", "failed") else ""


def _summary(served: Served, outcome: RequestOutcome, refusal: RefusalNote | None) -> str:
    """One sentence for people."""
    line = served.line
    done = ", ".join(f"{number} {words}" for name, words in COUNTED_AS if (number := getattr(line, name)))
    match outcome:
        case "refused":
            about = f": {meaning_of(refusal.refusal)}" if refusal is not None and refusal.refusal is not None else ""
            return f"{line.provider} refused it with {line.status}{about}"
        case "healed":
            first = next((one for attempt in served.attempts for one in attempt.refusals), None)
            about = meaning_of(first.refusal) if first is not None and first.refusal is not None else "refused"
            return f"{line.provider} refused it first ({about}); corrected, sent again and answered"
        case "failed":
            return f"no answer of {line.provider or 'any provider'}: {line.code or line.status}"
        case "declined":
            return f"declined here: {served.message or line.code}"
        case "gone":
            return "the client left before the end"
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
        started_ms=round(one.started_seconds * 1000, 1),
        upstream_ms=round(one.upstream_seconds * 1000, 1),
        bytes_up=one.bytes_up,
        sends=one.sends,
        refusals=[_refusal(refusal, one.was_healed) for refusal in one.refusals],
    )


def correction_words(one: Correction) -> str:
    """What a refusal taught, as a sentence."""
    what = " ".join(filter(None, (one.change.replace("_", " "), one.field, one.scope)))
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


def _turn(note: TurnNote, attempt: AttemptNote, expired: frozenset[str]) -> TurnView:
    why = "expired" if note.why == "no_record" and note.record in expired else note.why
    wire = FORMATS[attempt.target.format]
    is_record = note.deed in ("kept", "restored")
    return TurnView(
        f"{wire.list_place}/{note.at}",
        note.at,
        note.deed,
        why=why,
        words=words_of(note.deed, why),
        record=note.record or None if is_record else None,
    )


def _bodies(kept: KeptBodies) -> Bodies:
    return Bodies(masked_body(kept.client), masked_body(kept.upstream), kept.is_cut)


# --- rules, remedies, deeds and reasons as people read them -----------------------------------------------------------


COUNTED_AS = (
    ("restored", "restored"),
    ("inherited", "with borrowed reasoning"),
    ("blank", "blank"),
    ("stripped", "stripped"),
    ("missing", "missing"),
    ("checkpoints", "checkpoints quoted"),
)

RULES: dict[Rule, str] = {
    "missing": "a turn lacks the reasoning that it must carry",
    "misplaced": "reasoning is where it must not be",
    "reordered": "the reasoning of a turn is not in the order in which the model gave it",
    "altered": "reasoning came back changed",
    "foreign": "a signature or ciphertext that this provider, account or model did not make",
    "truncated": "a signature that is cut short",
    "unpaired": "an item without the one it belongs to",
    "duplicated": "the same reasoning twice",
    "forbidden": "a member that this provider does not accept",
    "stale-id": "an id that the provider no longer keeps",
    "bound-prefix-changed": "something before a thinking block was changed",
    "thinking-off": "thinking is off, and the last turn has thinking",
    "thinking-last": "a turn ends with thinking",
    "thinking-conflict": "another parameter excludes thinking",
    "thinking-mode": "this model does not accept that mode of thinking",
    "thinking-unsupported": "this model never thinks",
}

REMEDIES: dict[Remedy, str] = {
    "restore": "put back what was lost",
    "restore_exact": "send the blocks as the model gave them",
    "strip_field": "leave the member out",
    "drop_member": "leave the member out",
    "strip_seal": "leave the signature out",
    "unpair": "leave the ids of items out",
    "drop_item": "leave the item out",
    "drop_block": "leave the thinking block out",
    "bare_loop": "leave out the thinking of the turn that is continued",
    "add_filler_text": "add the least text that is accepted",
    "pause_thinking": "switch thinking off for this request",
    "stop_asking": "don't ask for thinking",
    "adapt_thinking": "use the model's own thinking mode",
    "pass_on": "only the client can fix it",
}

_DEEDS: dict[Deed, str] = {
    "kept": "kept: the client sent it",
    "restored": "restored",
    "inherited": "borrowed from an earlier turn",
    "blank": "replaced by a blank",
    "stripped": "removed",
    "missing": "missing",
}

REASONS: dict[Reason, str] = {
    "": "",
    "lineage": "found by the whole conversation before it",
    "outline": "found by the conversation without tool results",
    "call": "found by the id, name and arguments of a call",
    "item": "found by the id of an item",
    "seal": "found by its signature",
    "context": "found by its text and the three turns before",
    "before": "found by its text and the turn before",
    "session": "found by its text within the session",
    "place": "found by what is before it",
    "prefix": "found by everything before it",
    "merged": "found as several turns that the client merged into one",
    "no_record": "there is no record of this turn: it was never seen here, was seen with another key, or was forgotten",
    "ambiguous": "several records match and differ, so none was used",
    "text_differs": "there is a record for this place, but the client sent other text or calls",
    "unproven": "a record looks the same, but nothing proves that it belongs to this turn",
    "expired": "its record has expired",
    "other_account": "it was made for another account of this provider",
    "other_maker": "another provider, address or model made it, and this one can't read it",
    "cut_short": "its answer was cut short, so its signature is not valid",
    "seal_refused": "the provider has refused its signature before",
    "prefix_changed": "something before it was changed, and its thinking is bound to that",
    "had_none": "the model gave no reasoning with this turn",
    "foreign_seal": "a signature that this provider can't read",
    "unsigned": "thinking without a signature",
    "forbidden": "this provider accepts no reasoning there",
    "stale_id": "ids that this provider refused",
}


def words_of(deed: Deed, why: Reason) -> str:
    about = REASONS[why]
    return f"{_DEEDS[deed]}: {about}" if about and deed != "kept" else _DEEDS[deed]


def meaning_of(refusal: Refusal) -> str:
    """What a refusal is about and what helps, as a sentence."""
    return f"{RULES.get(refusal.rule, refusal.rule)}; remedy: {REMEDIES[refusal.remedy]}"
