"""The audit of one turn: would its maker accept this reasoning?

    audit_replay(items, contract, next_turn_carries_tools)  →  ReplayAudit(…, violations)

`items` are the items of a turn in order, or only its reasoning. The audit counts them and checks each item, the call
that carries the signature, and the maker of the reasoning. What one turn can't show (the original order, altered text,
tokens of another account) is left to the audit of a whole conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from thoughtline import providers
from thoughtline.providers import Contract, Scope
from thoughtline.values.items import (
    GOOGLE_GEMINI_V1,
    REASONING_KINDS,
    UNKNOWN_FORMAT,
    Item,
    ReasoningEncrypted,
    ReasoningFormat,
    ReasoningText,
    Seal,
    Text,
    ToolCall,
    is_reasoning,
    is_strange_reasoning,
    seal_of,
)


class ReplayContract(Enum):
    """When a maker requires the reasoning of a turn back."""

    STATELESS = "stateless"
    REQUIRED_WITH_TOOLS = "required_with_tools"
    ALWAYS_REQUIRED = "always_required"


_NO_CIPHERTEXT = ("", "[REDACTED]")
"""Placeholders for ciphertext: nothing, or OpenRouter's word for it while a stream runs."""


def replay_contract_of(format: ReasoningFormat) -> ReplayContract:
    """Return what the maker of this reasoning requires. An unknown maker requires nothing that we know of."""
    return ReplayContract.STATELESS if _strict(format) is None else ReplayContract.REQUIRED_WITH_TOOLS


def _strict(format: ReasoningFormat | None) -> Contract | None:
    """Return the contract of a maker that refuses a tool loop without its reasoning."""
    makers = (row for row in providers.facts().rows if format in row.makes)
    return next((one for row in makers for one in row.contracts if one.is_strict), None)


def _checks_presence(format: ReasoningFormat) -> bool:
    """Whether a maker signs nothing and only checks that the text came back."""
    strict = _strict(format)
    return strict is not None and strict.kind == "presence"


def _has_scope(format: ReasoningFormat, scope: Scope) -> bool:
    strict = _strict(format)
    return strict is not None and strict.scope == scope


class MissingSignaturesForStrictProvider(Struct, frozen=True, tag=True):
    """The turn has nothing that the maker checks."""

    contract: ReplayContract
    formats: tuple[ReasoningFormat, ...]


class UnsignedText(Struct, frozen=True, tag=True):
    """Reasoning text whose maker refuses it without a signature, even if others in the turn are signed."""

    position: int
    format: ReasoningFormat


class UnsignedFirstCall(Struct, frozen=True, tag=True):
    """The first call of a Gemini turn has no signature. Signatures of other calls don't replace it."""

    position: int
    name: str


class EmptyCiphertext(Struct, frozen=True, tag=True):
    """An encrypted item or a seal without content that its maker could read."""

    position: int
    format: ReasoningFormat


class MissingPairingId(Struct, frozen=True, tag=True):
    """A message or call has an id (`fc_…`, `msg_…`), but the reasoning before it has none: the pair can't be found."""

    position: int
    format: ReasoningFormat


class MixedMakers(Struct, frozen=True, tag=True):
    """Reasoning of several makers in one turn: none of them can read all of it."""

    formats: tuple[ReasoningFormat, ...]


class UnreadableDetail(Struct, frozen=True, tag=True):
    """Reasoning of an unknown kind. It goes back unchanged and unchecked."""

    position: int
    kind: str


ReplayViolation: TypeAlias = (
    MissingSignaturesForStrictProvider
    | UnsignedText
    | UnsignedFirstCall
    | EmptyCiphertext
    | MissingPairingId
    | MixedMakers
    | UnreadableDetail
)


class ReplayAudit(Struct, frozen=True):
    """The result of auditing one turn.

    `item_count` is the number of items that are reasoning or carry a seal; `signed_count` is how many of them carry
    what their maker checks: a signature or ciphertext, or the text itself if the maker only checks that it is there.
    """

    item_count: int
    signed_count: int
    formats: tuple[ReasoningFormat, ...]
    violations: tuple[ReplayViolation, ...] = ()

    @property
    def is_clean(self) -> bool:
        return not self.violations


def audit_replay(items: Sequence[Item], contract: ReplayContract, next_turn_carries_tools: bool) -> ReplayAudit:
    """Whether these items satisfy the contract when they are sent back."""
    carriers = [item for item in items if is_reasoning(item) or is_strange_reasoning(item)]
    signed_count = sum(map(_carries_proof, carriers))
    formats = tuple(sorted({made_by for item in carriers if (made_by := _maker_of(item)) is not None}))
    if not _is_due(contract, next_turn_carries_tools):
        return ReplayAudit(len(carriers), signed_count, formats)
    violations: list[ReplayViolation] = []
    if signed_count == 0:
        violations.append(MissingSignaturesForStrictProvider(contract, formats))
    violations += _violations_of_items(items)
    violations += _unsigned_first_call(items)
    violations += _missing_pairing_ids(items)
    violations += _mixed_makers(formats)
    return ReplayAudit(len(carriers), signed_count, formats, tuple(violations))


def _is_due(contract: ReplayContract, next_turn_carries_tools: bool) -> bool:
    match contract:
        case ReplayContract.STATELESS:
            return False
        case ReplayContract.REQUIRED_WITH_TOOLS:
            return next_turn_carries_tools
        case ReplayContract.ALWAYS_REQUIRED:
            return True


def _maker_of(item: Item) -> ReasoningFormat | None:
    if isinstance(item, REASONING_KINDS):
        return item.format
    seal = seal_of(item)
    return seal.format if seal is not None else None


def _carries_proof(item: Item) -> bool:
    if isinstance(item, ReasoningText) and _checks_presence(item.format):
        return True
    return _is_legible(seal_of(item))


def _is_legible(seal: Seal | None) -> bool:
    return seal is not None and seal.data not in _NO_CIPHERTEXT


def _violations_of_items(items: Sequence[Item]) -> Iterator[ReplayViolation]:
    """Yield problems of single items."""
    for position, item in enumerate(items):
        seal = seal_of(item)
        if seal is not None and not _is_legible(seal):
            yield EmptyCiphertext(position, seal.format)
        elif isinstance(item, ReasoningText) and seal is None and _has_scope(item.format, "loop_head"):
            yield UnsignedText(position, item.format)
        elif is_strange_reasoning(item):
            yield UnreadableDetail(position, item.kind)


def _unsigned_first_call(items: Sequence[Item]) -> Iterator[ReplayViolation]:
    """Check that the first call of a step is signed: Gemini signs and checks that one.

    https://ai.google.dev/gemini-api/docs/thought-signatures (2026-11). OpenRouter returns the signature of a call as an
    encrypted entry with the call's id; some gateways omit the id.
    """
    first = next(((at, item) for at, item in enumerate(items) if isinstance(item, ToolCall)), None)
    if first is None or GOOGLE_GEMINI_V1 not in map(_maker_of, items):
        return
    position, call = first
    entries = [item for item in items if isinstance(item, ReasoningEncrypted) and item.format == GOOGLE_GEMINI_V1]
    if call.seal is None and not any(entry.id in (None, call.id) for entry in entries):
        yield UnsignedFirstCall(position, call.name)


def _missing_pairing_ids(items: Sequence[Item]) -> Iterator[ReplayViolation]:
    """Find reasoning without an id before something with one: "provided without its required 'reasoning' item"."""
    for position, item in enumerate(items):
        if isinstance(item, REASONING_KINDS) and item.id is None and _has_scope(item.format, "pairs"):
            partner = next((after for after in items[position + 1 :] if isinstance(after, (Text, ToolCall))), None)
            if partner is not None and _own_id(partner) is not None:
                yield MissingPairingId(position, item.format)


def _own_id(item: Text | ToolCall) -> str | None:
    return item.id if isinstance(item, Text) else item.item_id


def _mixed_makers(formats: tuple[ReasoningFormat, ...]) -> Iterator[ReplayViolation]:
    named = tuple(made_by for made_by in formats if made_by != UNKNOWN_FORMAT)
    if len(named) > 1:
        yield MixedMakers(named)
