"""A record as a row of a durable store: values to find, filter and count it by, and its packed bytes.

Digests are 16 bytes and include the tenant, so a lookup can't cross tenants. Results are checked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from thoughtline.stores.base import Deletion, Filter, Stats, shares
from thoughtline.stores.packing import Packer
from thoughtline.values.digests import named_digest
from thoughtline.values.records import Key, Record

DIGEST = 16
_KEY, _CALL = b"tl key", b"tl call"

MAX_COLUMNS = 1024
"""Cached texts of columns: enough for some hundred conversations."""


class Row(Struct, frozen=True):
    """One record, stored once for all its keys. `digests` are those of its keys and call ids, joined."""

    identity: bytes
    tenant: str
    session: str
    provider: str
    model: str
    created_at: float
    chars: int
    digests: bytes
    data: bytes

    @property
    def size(self) -> int:
        return len(self.data) + len(self.digests) + DIGEST

    @property
    def scope(self) -> tuple[str, str, str, str]:
        return self.tenant, self.session, self.provider, self.model


class Part(NamedTuple):
    """What a store holds of one provider and model, or a part of it."""

    provider: str
    model: str
    entries: int
    chars: int
    size: int


class Hit(Struct, frozen=True):
    """A packed record that was found, and the digests it was found by; if uses are written later, also its number and
    expiry."""

    identity: bytes
    data: bytes
    digests: list[bytes]
    seq: int = 0
    expires_at: float = 0.0


def rows_of(records: Iterable[Record], packer: Packer) -> list[Row]:
    """Return the rows of records, each record once."""
    rows: dict[bytes, Row] = {}
    for record in records:
        where = record.provenance
        tenant, identity = where.tenant, _digest(b"tl record", where.tenant, record.id)
        digests: dict[bytes, None] = {}
        for key in record.keys:
            digests[_digest(_KEY, tenant, key)] = None
        for call_id in record.call_ids:
            digests[_digest(_CALL, call_id)] = None
        rows[identity] = Row(
            identity,
            column(tenant),
            column(where.session or ""),
            provider=column(where.provider),
            model=column(record.model),
            created_at=record.created_at,
            chars=record.reasoning_chars,
            digests=b"".join(digests),
            data=packer.pack(record, identity),
        )
    return list(rows.values())


@lru_cache(MAX_COLUMNS)
def column(text: str) -> str:
    """Return text that every engine can store: PostgreSQL has no NUL, UTF-8 no lone surrogate."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def key_digest(tenant: str, key: Key) -> bytes:
    return _digest(_KEY, tenant, key)


def call_digest(call_id: str) -> bytes:
    """Return the digest of a call id. Calls are deleted and listed by id in all tenants, so it includes no tenant;
    `find` never uses it."""
    return _digest(_CALL, call_id)


def split(digests: bytes) -> list[bytes]:
    return [digests[at : at + DIGEST] for at in range(0, len(digests), DIGEST)]


def sum_parts(parts: Sequence[Part], oldest_at: float | None, newest_at: float | None) -> Stats:
    """Sum up what a durable store holds."""
    return Stats(
        disk_entries=sum(part.entries for part in parts),
        disk_chars=sum(part.chars for part in parts),
        disk_bytes=sum(part.size for part in parts),
        by_provider=shares((part.provider, part.entries, part.chars) for part in parts),
        by_model=shares((part.model, part.entries, part.chars) for part in parts),
        oldest_at=oldest_at,
        newest_at=newest_at,
    )


def columns(where: Filter) -> Filter:
    """Return a filter with the texts that columns hold."""
    members = (where.tenant, where.provider, where.model, where.session)
    tenant, provider, model, session = (None if member is None else column(member) for member in members)
    return Filter(tenant, provider, model, session, where.call_id)


def is_barred(row: Row, deletions: Iterable[Deletion], now: float) -> bool:
    """Whether one of these deletions, in column form, matches this row (`Deletion.bars`)."""
    return any(
        row.created_at < deletion.at <= now
        and deletion.where.covers(*row.scope)
        and (deletion.where.call_id is None or call_digest(deletion.where.call_id) in split(row.digests))
        for deletion in deletions
    )


def _digest(kind: bytes, first: str, second: str = "") -> bytes:
    """Hash two texts. The length of the first comes before it, so that no other pair has the same input."""
    return named_digest(f"{len(first)}:{first}{second}", kind, DIGEST)
