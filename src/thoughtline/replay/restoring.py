"""What the turns of a step should be, given its record, and whether what the client sent is good as it is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from thoughtline.formats import FORMATS
from thoughtline.providers import Contract
from thoughtline.replay.pairing import named_as_shown, paired
from thoughtline.replay.visible import visible_of
from thoughtline.replay.weaving import same_reasoning, spread, weave
from thoughtline.values.items import REASONING_KINDS, Item, ReasoningText, Text, ToolCall, seal_of
from thoughtline.values.records import Record
from thoughtline.values.turns import FormatName

Items = tuple[Item, ...]


def restored(
    items: Items, shown: Sequence[Items], *, contract: Contract, made: Items, format: FormatName
) -> list[Items]:
    """The turns of a step with the items of its record; `made` are those with all the names they had.

    A step that the client wrote as several turns has each thought in the turn of what it led to.
    """
    if "items_are_elements" in FORMATS[format].quirks:
        return [_with_names(items, own, contract, made) for own in shown]
    return [weave(items, shown[0])] if len(shown) == 1 else spread(items, shown)


def _with_names(items: Items, shown: Items, contract: Contract, made: Items) -> Items:
    """A Responses step. What the record does not know, such as a compaction, never parts a thought from its element."""
    is_bound = contract.scope == "pairs"
    target = weave(named_as_shown(items, shown, is_bound=is_bound), shown, opening="stranger")
    return paired(target, made) if is_bound else target


def is_good(shown: Items, target: Items, contract: Contract, format: FormatName) -> bool:
    """Whether a turn lost nothing that its provider wants back."""
    if same_reasoning(target, shown):
        return True
    if contract.takes == "text":
        return _is_own_words(shown, target)
    return "thoughts_in_pieces" in FORMATS[format].quirks and _is_all_google_wants(shown, target)


def _is_own_words(shown: Items, target: Items) -> bool:
    """Plain text that differs from the original by more than damage is the client's own business."""
    own = _text_of(shown)
    return bool(own.strip()) and "".join(own.split()) not in "".join(_text_of(target).split())


def _is_all_google_wants(shown: Items, target: Items) -> bool:
    """Every signature is in its place; the summary of a thought may be in pieces, or missing where there is one."""
    if same_reasoning(_joined(target), _joined(shown)):
        return True
    if not same_reasoning(*([item for item in turn if not is_unsigned(item)] for turn in (target, shown))):
        return False
    own, told = ("".join(_text_of(turn).split()) for turn in (shown, target))
    return own != told and own in told and any(seal_of(item) for item in target)


def _joined(items: Items) -> list[Item]:
    """The turn with each run of unsigned thoughts as one, without white space."""
    joined: list[Item] = []
    for is_thought, held in groupby(items, is_unsigned):
        run = tuple(held)
        joined += (ReasoningText("".join(_text_of(run).split())),) if is_thought else run
    return joined


def is_unsigned(item: Item) -> bool:
    """Thinking in the clear that nobody signed."""
    return isinstance(item, ReasoningText) and not item.signature


def _text_of(items: Items) -> str:
    return "".join([item.text for item in items if isinstance(item, ReasoningText)])


def without_thoughts(items: Items) -> Items:
    """A record's words and calls, seals and all."""
    return tuple(item for item in items if not isinstance(item, REASONING_KINDS))


def are_said_in(items: Items, records: Sequence[Record]) -> bool:
    """Whether a turn has the words and calls of these records, one after the other, and no others."""
    made = [item for record in records for item in record.items if isinstance(item, (Text, ToolCall))]
    return visible_of(made) == visible_of([item for item in items if isinstance(item, (Text, ToolCall))])
