"""Reads what a provider's 4xx says about reasoning, and what it teaches.

    status, body → classify → Refusal (rule, field, place, remedy) → learn → Correction of a contract

A refusal needs a possible status, an error object, and in it an unambiguous code or a sentence that names the field in
one of the known ways (`providers.refusals`). Any other error is unrelated: None. The caller checks whether the refused
thing was in the request at all.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from thoughtline import providers
from thoughtline.providers.refusals import LearnedScope, RefusalTemplate, Remedy, Rule
from thoughtline.providers.setting_rules import SettingRule
from thoughtline.replay.error_bodies import BODY_BYTES, SENTENCE_CHARS, Complaint, complaints, relays
from thoughtline.values.digests import named_digest


class Evidence(Struct, frozen=True):
    """Why we believe a correction, without any content of the body.

    `code` is one of the known error codes or empty. `fingerprint` is a digest of the sentence without its ids, numbers
    and quotes, so it is the same for another item. `is_wrapped`: the error was inside another one, so its place is in a
    request that a relay wrote.
    """

    status: int
    code: str
    fingerprint: str
    is_wrapped: bool = False


class Refusal(Struct, frozen=True):
    """A request that was refused because of its reasoning.

    `family` is the provider whose rule it is; `place` a JSON pointer into the request, the id of a Responses item, or
    empty if the error names none. `member` is the pattern of the named member, if the sentence means it in any place;
    `scope` are the turns that must have what is missing.
    """

    rule: Rule
    family: str
    remedy: Remedy
    field: str
    place: str
    evidence: Evidence
    member: str = ""
    scope: LearnedScope = "calls"


_STATUSES = frozenset({400, 404, 422})


def classify(status: int, body: bytes) -> Refusal | None:
    """Return what a response says about reasoning; None for any other error. Never raises."""
    return next(_refusals(status, body), None)


MAX_NAMED = 32
"""Members that one refusal may name; more are not an accident."""


def also_named(status: int, body: bytes) -> tuple[Refusal, ...]:
    """Return all members that a response names: strict servers list all of them in one body."""
    named = (one for one in _refusals(status, body) if one.remedy in ("strip_field", "drop_member"))
    return tuple(itertools.islice(named, MAX_NAMED))


def _refusals(status: int, body: bytes) -> Iterator[Refusal]:
    if status not in _STATUSES or len(body) > BODY_BYTES:
        return
    rows = providers.refusals()
    for complaint in complaints(body):
        for family, row in rows:
            if status in row.statuses and (not row.codes or not row.codes.isdisjoint(complaint.codes)):
                match = row.sentence.match(complaint.sentence)
                if match:
                    yield replace(_refusal(status, row, match, complaint), family=_family(family, complaint))
                    break


def _refusal(status: int, row: RefusalTemplate, match: re.Match[str], complaint: Complaint) -> Refusal:
    groups = match.groupdict()
    code = _known_code(complaint.codes)
    evidence = Evidence(status, code, fingerprint_of(match[0] or code), complaint.is_wrapped)
    return Refusal(
        rule=row.rule,
        family=row.family,
        remedy=row.remedy,
        field=groups.get("field") or row.field or groups.get("path") or "",
        place=_place(row, groups, complaint.param),
        evidence=evidence,
        member=row.dropped,
        scope=row.scope,
    )


def _family(family: str, complaint: Complaint) -> str:
    """Return whose rule it is: a maker's sentences also come from its hosts, which the envelope shows."""
    for name, relay in relays().items():
        is_its = complaint.relay == name or not relay.codes.isdisjoint(complaint.codes)
        if relay.maker == family and is_its:
            return name
    return family


# Places

_MEMBERS = frozenset({"messages", "contents", "input", "include", "thinking", "reasoning", "enable_thinking", "tools"})
_LISTS = frozenset({"messages", "contents", "input", "content", "parts", "tool_calls"})
_STEP = re.compile(r"\w+", re.ASCII)


def _place(row: RefusalTemplate, groups: dict[str, str | None], param: str) -> str:
    if item := groups.get("item"):
        return item
    if index := groups.get("index"):
        return f"/messages/{int(index)}"
    if position := groups.get("position"):
        return f"/contents/{max(int(position) - 1, 0)}"
    return _pointer(groups.get("path") or param, row.counts_from)


def _pointer(path: str, counts_from: int) -> str:
    """Return `messages.4.content.0.thinking.signature` as a pointer to its element: `/messages/4/content/0`."""
    steps: list[str] = _STEP.findall(path[:SENTENCE_CHARS])
    if not steps or steps[0] not in _MEMBERS:
        return ""
    taken = [step for step in steps if step.isdecimal() or step in _LISTS]
    while taken and not taken[-1].isdecimal():
        taken.pop()
    if not taken:
        return "/" + steps[0]
    return "".join("/" + (_counted(step, counts_from) if step.isdecimal() else step) for step in taken)


def _counted(number: str, counts_from: int) -> str:
    return str(max(int(number[:9]) - counts_from, 0))


# Evidence

_CODES = frozenset(
    {
        "INVALID_ARGUMENT",
        "ValidationException",
        "array_above_max_length",
        "extra_forbidden",
        "invalid-argument",
        "invalid_encrypted_content",
        "invalid_request_body",
        "invalid_request_error",
        "missing_required_parameter",
        "previous_response_not_found",
        "unknown_parameter",
        "validation_error",
        "wrong_api_format",
    }
)
_NUMBER = re.compile(r"\d{1,5}", re.ASCII)
# A run with a digit is searched for from its beginning only: a long word without a digit is read once.
_PRIVATE = re.compile(
    r"'[^']*'|\"[^\"]*\"|default_api:[^`]*|(?<![\w+/=.:-])[A-Za-z_+/=.:-]*\d[\w+/=.:-]*|[\w+/=-]{24,}", re.ASCII
)


def _known_code(codes: tuple[str, ...]) -> str:
    return next((code for code in codes if code in _CODES or _NUMBER.fullmatch(code)), "")


def fingerprint_of(sentence: str) -> str:
    """Return a digest of a sentence without ids, numbers and quotes."""
    masked = _PRIVATE.sub("*", sentence)
    return named_digest(masked, b"", 8).hex()


# What is learned

Change = Literal[
    "requires",  # reasoning is required on the turns of `scope`
    "forbids",  # reasoning must not be sent as `field`
    "drops",  # the member in `field` is refused and removed
    "refuses_filler",  # `filler` is not accepted as reasoning here
    "needs_filler",  # `field` may not be empty or absent
    "binds_prefix",  # a block is valid only after the prefix it was made after
    "always_thinks",  # thinking can't be switched off, or can only be adaptive
    "lacks_mode",  # it does not support the mode in `field`: a Claude that is only adaptive, or only has budgets
    "never_thinks",  # it can't be asked to think
    "answers_in",  # its own answers have reasoning in `field`
    "insists",  # it refuses a turn without reasoning, although its model made it so
    "takes_setting",  # `rule` says how a setting must be
    "mends",  # a conversation must not have what `field` names
    "ignores",  # the member `field` does not switch thinking here
    "renders",  # its chat template omits the reasoning of the turns in `field`, unless `rule` is applied
    "opens",  # requests go to the format in `field`: all of them, or those with tools (`scope`)
]


class Correction(Struct, frozen=True, omit_defaults=True):
    """How the contract of one (provider, endpoint, model) differs from the built-in one, until it expires.

    Times are in seconds since the epoch. `account` is set if it holds for one account only.
    """

    provider: str
    endpoint: str
    model: str
    change: Change
    field: str
    evidence: Evidence
    learned_at: float
    expires_at: float
    scope: LearnedScope = ""
    filler: str | None = None
    rule: SettingRule | None = None
    account: str = ""

    def holds_at(self, now: float) -> bool:
        """Whether it is still valid."""
        return self.learned_at <= now < self.expires_at


def learn(
    refusal: Refusal,
    provider: str,
    endpoint: str,
    model: str,
    now: float,
    ttl_seconds: float,
    sent_filler: str | None = None,
) -> Correction | None:
    """Return what a refusal says about every request to this model; None if it is only about one item of this request.

    A refused seal or a stale id is about one item: the item is noted as refused, not the model. `sent_filler` is the
    filler that was sent in place of lost reasoning, if any.
    """
    change = _change(refusal)
    if change is None:
        return None
    is_filler_refused = change == "requires" and sent_filler is not None
    return Correction(
        provider=provider,
        endpoint=endpoint,
        model=model,
        change="refuses_filler" if is_filler_refused else change,
        field=refusal.field,
        evidence=refusal.evidence,
        learned_at=now,
        expires_at=now + ttl_seconds,
        scope=refusal.scope if change == "requires" else "",
        filler=sent_filler if is_filler_refused else None,
    )


_PLAIN_CHANGES: dict[Rule, Change] = {
    "forbidden": "forbids",
    "bound-prefix-changed": "binds_prefix",
    "thinking-mode": "always_thinks",
    "thinking-unsupported": "never_thinks",
}


def _change(refusal: Refusal) -> Change | None:
    if refusal.remedy == "drop_member":
        return "drops" if refusal.rule == "forbidden" else None
    if refusal.remedy == "add_filler_text":
        return "needs_filler"
    if refusal.rule == "missing":
        # A block without its signature is one damaged block; it does not change the contract.
        return None if refusal.field in ("signature", "data") else "requires"
    if refusal.rule == "unpaired":
        return "requires"
    if refusal.rule == "thinking-mode" and refusal.field in ("enabled", "adaptive"):
        return "lacks_mode"
    return _PLAIN_CHANGES.get(refusal.rule)
