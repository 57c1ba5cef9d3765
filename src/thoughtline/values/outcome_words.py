"""What was done about a turn, and why, as people read it: in `explain` of the gateway and of the library."""

from __future__ import annotations

from thoughtline.values.outcome import Counts, Reason, Treatment

COUNTED_AS = (
    ("restored", "restored"),
    ("inherited", "with borrowed reasoning"),
    ("blank", "blank"),
    ("stripped", "stripped"),
    ("missing", "missing"),
    ("dropped", "not read"),
    ("checkpoints", "checkpoints quoted"),
)

_TREATMENTS: dict[Treatment, str] = {
    "kept": "kept: the client sent it",
    "restored": "restored",
    "inherited": "borrowed from an earlier turn",
    "blank": "sent blank",
    "stripped": "removed",
    "missing": "missing",
}

REASONS: dict[Reason, str] = {
    "": "",
    "lineage": "same conversation so far, same system prompt",
    "any_frame": "same conversation so far; system prompts are ignored, as [replay] any_system_prompt says",
    "outline": "same conversation so far but for results of tools",
    "call": "same id, name and arguments of a call",
    "item": "same id of an item",
    "seal": "same signature",
    "context": "same text after the same three turns, same system prompt",
    "before": "same text after the same turn, same system prompt",
    "session": "same text in the session that the client names",
    "place": "same conversation up to it, same system prompt",
    "prefix": "same conversation, system prompt and tools before it",
    "merged": "several turns that the client wrote as one",
    "no_record": "there is no record of this turn: it was never seen here, was seen with another key, or was forgotten",
    "ambiguous": "several records match and differ, so none was used",
    "other_user": "a turn in the same words is remembered, but for another end user",
    "other_frame": "a turn in the same words is remembered, but under another system prompt",
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


def words_of(treatment: Treatment, why: Reason) -> str:
    about = REASONS[why]
    return f"{_TREATMENTS[treatment]}: {about}" if about and treatment != "kept" else _TREATMENTS[treatment]


def count_words(counts: Counts) -> str:
    """What was done in all, or nothing: `2 restored, 1 blank`."""
    return ", ".join(f"{number} {words}" for name, words in COUNTED_AS if (number := getattr(counts, name, 0)))
