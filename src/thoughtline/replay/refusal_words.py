"""Readable descriptions of refusals and remedies."""

from __future__ import annotations

from thoughtline.providers.refusals import Remedy, Rule
from thoughtline.replay.refusals import Refusal

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
    "dropped": "the provider did not read this reasoning, and answered all the same",
    "withheld": "the model has thought, and its response shows nothing of it",
    "thinking-off": "thinking is off, and the last turn has thinking",
    "thinking-last": "a turn ends with thinking",
    "thinking-conflict": "another parameter excludes thinking",
    "thinking-mode": "this model does not accept that mode of thinking",
    "thinking-unsupported": "this model never thinks",
    "setting": "a setting that this model does not accept",
    "door": "this endpoint does not serve such a request",
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
    "change_setting": "change the setting",
    "change_door": "ask the other endpoint",
    "pass_on": "only the client can fix it",
}


def meaning_of(refusal: Refusal) -> str:
    """Return both as a sentence."""
    return f"{RULES.get(refusal.rule, refusal.rule)}; remedy: {REMEDIES[refusal.remedy]}"
