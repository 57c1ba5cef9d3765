"""What goes along with a request beside its conversation: from another format, and from other models."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Protocol

from msgspec import Struct

from thoughtline.providers import Contract
from thoughtline.replay.findings import Finding
from thoughtline.replay.known import with_opened
from thoughtline.replay.matching import Found
from thoughtline.values.items import Item
from thoughtline.values.records import Record
from thoughtline.values.turns import Transcript


class MapsCallIds(Protocol):
    """Ids of calls between two formats: as an answer shows them to its client, and as their maker gave them."""

    def shown(self, items: Iterable[Item], choice: int) -> tuple[Item, ...]: ...

    def restored(self, transcript: Transcript, records: Iterable[Record]) -> Transcript: ...

    def may_rename(self, transcript: Transcript) -> bool: ...


class Quotes(Protocol):
    """What is quoted in a request of what other models thought."""

    @property
    def quotes(self) -> Sized: ...

    @property
    def findings(self) -> tuple[Finding, ...]: ...

    @property
    def text(self) -> str: ...


class HandsOver(Protocol):
    """What other models thought before a request. `carry_on` is pure: planning again carries on again."""

    @property
    def session(self) -> str: ...

    def carry_on(self, planned: Transcript, contract: Contract) -> tuple[Transcript, Quotes]: ...


class Carried(Struct, frozen=True, gc=False):
    """What a request brought along that a store need not know: records in envelopes, and findings of its translation.

    `call_ids` maps ids of another format; None where the client speaks the provider's own.
    """

    records: tuple[Record, ...] = ()
    findings: tuple[Finding, ...] = ()
    call_ids: MapsCallIds | None = None

    def adds_to(self, found: Found) -> bool:
        """Whether it knows of a turn that a store did not find."""
        return any(not any(map(found.get, record.keys[:1])) for record in self.records)

    def added_to(self, found: Found) -> Found:
        """The store's own record of a turn is the better one."""
        return with_opened(found, self.records) if self.records else found

    def renames(self, transcript: Transcript) -> bool:
        """Whether calls of a request may be known by ids that are not those in its body."""
        return self.call_ids is not None and self.call_ids.may_rename(transcript)

    def named(self, transcript: Transcript, found: Found) -> Transcript:
        """With the ids that the calls were made under, where the client has only digests of them."""
        if self.call_ids is None:
            return transcript
        records = {record.id: record for some in found.values() for record in some}
        return self.call_ids.restored(transcript, records.values())


NOTHING_CARRIED = Carried()
