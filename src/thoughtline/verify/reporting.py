"""What was seen, for people and for programs: a table, refusals in the provider's words, an overlay, a report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from thoughtline.facts.sheets import KINDS, Entry, Sheets
from thoughtline.gateway.masking import masked_words
from thoughtline.replay.error_bodies import complaints
from thoughtline.values.destination import Destination
from thoughtline.verify.checks import ProviderRefusal, Result

MAX_WORDS = 500
_SPECIAL = re.compile(r"[<>{}~`…]")
_LEAST_TEMPLATE = 20
_RULES = {
    "without it": ("missing", "restore"),
    "with it altered": ("altered", "restore_exact"),
    "behind an edited message": ("bound-prefix-changed", "drop_block"),
}
"""What a refusal of these checks says, and what helps: by the beginning of the fact."""


class Verified(NamedTuple):
    """A model in one format, with what was seen of it."""

    target: Destination
    contract: str
    results: tuple[Result, ...]

    @property
    def differences(self) -> tuple[Result, ...]:
        return tuple(one for one in self.results if one.verdict == "differs")


def words_of(refused: ProviderRefusal) -> str:
    """What a provider words, on one line, without keys and seals that it may quote."""
    words = " ".join(one.sentence for one in complaints(refused.words) if one.sentence)
    return masked_words(words or refused.words.decode("utf-8", "replace"), MAX_WORDS)


def lines(verified: Verified) -> Iterator[tuple[str, str, str, str]]:
    """The table: fact, believed, seen, verdict."""
    for one in verified.results:
        yield one.fact, one.believed, one.seen, one.verdict


def overlay_of(every: Iterable[Verified], day: str) -> Sheets:
    """What would have to be believed for all that was seen; empty where everything agrees."""
    sheets: Sheets = {kind: {} for kind in KINDS}
    for verified in every:
        _add(sheets, verified, day)
    return sheets


def _add(sheets: Sheets, verified: Verified, day: str) -> None:
    target = verified.target
    origin: Entry = {"source": f"thoughtline verify {target.provider} --model {target.model}", "read": day}
    changes: Entry = {}
    for one in verified.differences:
        changes |= one.change
    if changes:
        name = _named(sheets, "contracts", f"verified-{target.model}-{target.format}")
        differing = ", ".join(one.fact for one in verified.differences if one.change)
        base = {"like": verified.contract, "name": verified.contract}
        sheets["contracts"][name] = {**base, **changes, **origin, "says": differing}
        models = _named(sheets, "models", f"verified-{target.model}-{target.format}")
        pattern = f"^{re.escape(target.model.lower())}$"
        sheets["models"][models] = {"provider": target.provider, "models": pattern, "contracts": [name], **origin}
    for one in verified.results:
        rule = next((pair for beginning, pair in _RULES.items() if one.fact.startswith(beginning)), None)
        template = _template(one.refused) if one.refused is not None and not one.refused.is_known else ""
        if rule is not None and template:
            name = _named(sheets, "refusals", f"verified-{target.provider}")
            known = {entry.get("template") for entry in sheets["refusals"].values()}
            says = {"provider": target.provider, "rule": rule[0], "remedy": rule[1], "template": template}
            if template not in known:
                sheets["refusals"][name] = {**says, **origin}


def _named(sheets: Sheets, kind: str, name: str) -> str:
    """A name that no entry has yet."""
    plain = re.sub(r"[^a-z0-9.-]+", "-", name.lower()).strip("-.")[:56]
    chosen, number = plain, 1
    while chosen in sheets[kind]:
        number += 1
        chosen = f"{plain}-{number}"
    return chosen


def _template(refused: ProviderRefusal) -> str:
    """A refusal that is not known yet, as a template: its words up to the first that a template reads otherwise."""
    sentences = [one.sentence for one in complaints(refused.words) if one.sentence]
    longest = max(sentences, key=len, default="")
    plain = re.split(r"\d", _SPECIAL.split(longest)[0])[0].rstrip()
    if len(plain) < _LEAST_TEMPLATE:
        return ""
    return plain if plain == longest else f"{plain}…"


def report(every: Iterable[Verified], requests: int, tokens: int) -> str:
    """Differences as text that can be pasted into an issue: no key, no id, no signature, no word of a user."""
    found = []
    for verified in every:
        target = verified.target
        for one in verified.differences:
            words = f"\n  {one.refused.status}: {words_of(one.refused)}" if one.refused is not None else ""
            found.append(
                f"- {target.model} at {target.provider}, {target.format}: {one.fact}: "
                f"believed {one.believed}, seen {one.seen}{words}"
            )
    head = f"thoughtline verify: {len(found)} differences in {requests} requests, {tokens:,} tokens"
    return "\n".join([head, *found])


def plain(every: Iterable[Verified]) -> list[dict[str, Any]]:
    """For programs."""
    return [
        {
            "provider": verified.target.provider,
            "model": verified.target.model,
            "format": verified.target.format,
            "contract": verified.contract,
            "facts": [
                {
                    "fact": one.fact,
                    "believed": one.believed,
                    "seen": one.seen,
                    "verdict": one.verdict,
                    "status": one.refused.status if one.refused is not None else None,
                    "words": words_of(one.refused) if one.refused is not None else None,
                    "change": json.loads(json.dumps(dict(one.change))),
                }
                for one in verified.results
            ],
        }
        for verified in every
    ]
