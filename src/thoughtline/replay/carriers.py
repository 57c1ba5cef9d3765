"""Which member of a chat message reasoning is written in, where the server decides that and its answers say it.

Servers that nobody lists, and those that serve everybody's models, each have a member of their own for reasoning; a
model's name does not tell which. So a turn goes back in the member that it came in, and what never came from there, a
blank for instance, in the one that this server used last.
"""

from __future__ import annotations

from thoughtline.providers import Contract
from thoughtline.values.destination import Destination
from thoughtline.values.items import Item, ToolCall
from thoughtline.values.records import Record
from thoughtline.values.turns import Turn

MOVABLE = frozenset(
    {"reasoning_content", "reasoning", "reasoning_text", "thinking", "think_tags", "mistral_chunks", "cohere_chunks"}
)
"""Where plain text can stand."""

_TWINS = frozenset(("reasoning_content", "reasoning"))
_SEALED = ("reasoning_details", "reasoning_text")
"""Members that hold seals, and go back as they came or not at all."""


def is_misplaced(turn: Turn, contract: Contract) -> bool:
    """Whether a turn's reasoning stands in a member that the provider does not read, or refuses.

    A second copy of it is left alone, as ruby_llm 1.16 writes one, but where the row says that it is refused.
    """
    carrier = contract.dialect.carrier
    if carrier not in MOVABLE or contract.follows_answers or contract.may_seal:
        return False
    copies = _TWINS if carrier in _TWINS and not contract.refuses_other_fields else frozenset((carrier,))
    return bool(turn.carriers) and not (carrier in turn.carriers and copies.issuperset(turn.carriers))


class Carriers:
    """The members for the turns of one request."""

    def __init__(self, contract: Contract, issuer: Destination, last: str = "") -> None:
        self._contract = contract
        self._issuer = issuer
        self.by_position: dict[int, str] = {}
        self._last = last

    def of(self, record: Record) -> str:
        """The member that a record's reasoning came in, if it was this server that chose it."""
        made, here = record.provenance, self._issuer
        if not self._contract.follows_answers or (made.provider, made.endpoint) != (here.provider, here.endpoint):
            return ""
        is_google = self._contract.dialect.carrier == "google_extra" and _has_sealed_call(record.items)
        return "" if is_google else made.carrier

    def keeps_seals(self, record: Record) -> bool:
        """Whether a record's seals go back as they came: to their maker, for the same account and model."""
        made, here = record.provenance, self._issuer
        is_own = made.account == here.account and here.model in (made.model_asked, made.model_answered)
        return self.of(record) in _SEALED and record.is_complete and is_own

    def use(self, position: int, record: Record) -> bool:
        """A turn gets its reasoning from this record; whether that is all that its server wants of it."""
        carrier = self.of(record)
        self.by_position[position] = carrier
        self._last = carrier or self._last
        return bool(carrier)

    def at(self, position: int, items: tuple[Item, ...] = ()) -> str:
        """The member for a turn. A seal on a call stands where the dialect has it, whatever other turns say."""
        own = self.by_position.get(position)
        here = own or ("" if _has_sealed_call(items) else self._last)
        return here or self._contract.dialect.carrier

    def is_borrowed(self, position: int, items: tuple[Item, ...]) -> bool:
        """Whether another turn's record decides on the member for a turn."""
        return self._contract.follows_answers and not self.by_position.get(position) and not _has_sealed_call(items)


def _has_sealed_call(items: tuple[Item, ...]) -> bool:
    return any(isinstance(item, ToolCall) and item.seal is not None for item in items)
