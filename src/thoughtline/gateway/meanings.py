"""Rules, remedies, deeds and reasons as people read them."""

from __future__ import annotations

from thoughtline.providers.refusals import Remedy, Rule
from thoughtline.replay.refusals import Refusal
from thoughtline.values.outcome import Deed, Reason

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
