"""A record as a durable store writes it: what it is found, filtered and counted by, and its packed bytes.

Digests are 16 bytes and hold the tenant: a look-up can't leave out whose it is. What comes back is checked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from thoughtline.stores.base import Counters, Deletion, Filter, Found, Stats, newest_first, shares
from thoughtline.stores.packing import Packer
from thoughtline.values.digests import named_digest
from thoughtline.values.errors import DecodeError, WrongKey
from thoughtline.values.records import Key, Record

DIGEST = 16
_KEY, _CALL = b"tl key", b"tl call"

MAX_COLUMNS = 1024
"""Texts of columns that are at hand: those of some hundred conversations."""


class Row(Struct, frozen=True):
    """One record, once, however many keys point to it. `digests` are those of its keys and call ids, joined."""

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
    """What a store holds of one provider and model, or of a part of that."""

    provider: str
    model: str
    entries: int
    chars: int
    size: int


class Hit(Struct, frozen=True):
    """A packed record that a durable store found, and the digests it was found by; where uses are written later, what
    that needs: its number and the end of its life."""

    identity: bytes
    data: bytes
    digests: Sequence[bytes]
    seq: int = 0
    expires_at: float = 0.0


def rows_of(records: Iterable[Record], packer: Packer) -> list[Row]:
    """The rows of some records, each once."""
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
    """Text that every engine can hold: PostgreSQL has no NUL, UTF-8 no lone surrogate."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def key_digest(tenant: str, key: Key) -> bytes:
    return _digest(_KEY, tenant, key)


def call_digest(call_id: str) -> bytes:
    """Calls are deleted and listed by id whoever made them: their digest has no tenant, and no `find` asks for it."""
    return _digest(_CALL, call_id)


def split(digests: bytes) -> list[bytes]:
    return [digests[at : at + DIGEST] for at in range(0, len(digests), DIGEST)]


def unpack_found(
    tenant: str, digests: dict[bytes, Key], hits: Iterable[Hit], packer: Packer, counters: Counters
) -> Found:
    """What was found, by key. A record that can't be read is counted and left out: a miss, never a crash."""
    found: dict[Key, list[Record]] = {key: [] for key in digests.values()}
    for hit in hits:
        record = unpack_or_count(hit.data, hit.identity, packer, counters)
        if record is None or record.provenance.tenant != tenant:
            continue
        for digest in hit.digests:
            key = digests[digest]
            if key in record.keys:
                found[key].append(record)
    return {key: newest_first(records) for key, records in found.items()}


def unpack_or_count(data: bytes, identity: bytes, packer: Packer, counters: Counters) -> Record | None:
    try:
        return packer.unpack(data, identity)
    except (WrongKey, DecodeError):
        counters.unreadable += 1
        return None


def sum_parts(parts: Sequence[Part], oldest_at: float | None, newest_at: float | None) -> Stats:
    """What a durable store holds in all."""
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
    """A filter by what the columns hold."""
    tenant, provider, model, session = (
        None if member is None else column(member)
        for member in (where.tenant, where.provider, where.model, where.session)
    )
    return Filter(tenant, provider, model, session, where.call_id)


def is_barred(row: Row, deletions: Iterable[Deletion], now: float) -> bool:
    """Whether one of these deletions, in the words of columns, means this row (`Deletion.bars`)."""
    return any(
        row.created_at < deletion.at <= now
        and deletion.where.tenant in (None, row.tenant)
        and deletion.where.provider in (None, row.provider)
        and deletion.where.model in (None, row.model)
        and deletion.where.session in (None, row.session)
        and (deletion.where.call_id is None or call_digest(deletion.where.call_id) in split(row.digests))
        for deletion in deletions
    )


def _digest(kind: bytes, first: str, second: str = "") -> bytes:
    """The length of the first part goes before it, so that no other two parts read the same."""
    return named_digest(f"{len(first)}:{first}{second}", kind, DIGEST)
