"""The record of a turn, and the keys that find it.

A record is made once, when a response has been read, and never changes. Its keys are digests, all inside its tenant,
tagged with their algorithm; several records may share one of the weaker ones. Stores keep the digests, so the digest of
a value must never change.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple, NewType, assert_never

import msgspec
from msgspec import Struct

from thoughtline.values.errors import DecodeError
from thoughtline.values.items import (
    Item,
    ReasoningEncrypted,
    ReasoningServerToolCall,
    ReasoningSummary,
    ReasoningText,
    ToolCall,
    is_reasoning,
    reasoning_of,
)
from thoughtline.values.outcome import Outcome
from thoughtline.values.turns import Provenance

Key = NewType("Key", str)
"""`algorithm:digest`. Equal keys of one tenant mean equal evidence, in every process."""

RecordId = NewType("RecordId", str)
"""The digest of a record's whole content: two writers of the same turn write the same record."""

MAX_PER_KEY = 16
"""Records that a store returns for one key. More than a few can only be distinguished by their lineage."""


def is_lineage(key: Key) -> bool:
    """Whether a key is the strongest kind, over everything visible: a record has at most one, before all others."""
    return key.startswith("lineage-")


UNKNOWN_PARENT = RecordId("")
NO_PARENT = RecordId("none")
"""The parent of a turn if the model turn before it in the request has no record."""

UNCERTAIN_PARENT = RecordId("ambiguous")
"""The same if several records matched that turn and none was used."""


class Record(Struct, frozen=True, gc=False, omit_defaults=True):
    """A captured turn.

    `items` are the turn's items in order, reasoning with its raw JSON. The text of a turn that was cut off
    (`is_complete` false) may be restored, but never its seals. `created_at` is in seconds since the epoch.

    `frame`, `user` and `tools` are digests of the system prompt, the end user and the tools of its request, `exact` is
    one of the model's words before it; records of older versions have none. `parent` is the record of the model turn
    before it, as its request was sent; empty for the first turn of a conversation, and if it is unknown.
    `since` is a digest of the content between the two. `is_seen`: the client was connected when the turn ended.
    `after` names the last thinking block of its request as it was sent, and `is_cut` says that rejected blocks were
    removed from it (`replay/links.py`).
    """

    id: RecordId
    provenance: Provenance
    items: tuple[Item, ...]
    keys: tuple[Key, ...]
    created_at: float
    is_complete: bool = True
    outcome: Outcome | None = None
    frame: str = ""
    user: str = ""
    tools: str = ""
    exact: str = ""
    parent: RecordId = UNKNOWN_PARENT
    since: str = ""
    is_seen: bool = True
    after: str = ""
    is_cut: bool = False

    @property
    def has_reasoning(self) -> bool:
        """A turn without any is recorded too: it must never get a neighbour's."""
        return any(map(is_reasoning, self.items))

    @property
    def call_ids(self) -> tuple[str, ...]:
        ids: list[str] = []
        for item in self.items:
            if isinstance(item, ToolCall) and item.id:
                ids.append(item.id)
        return tuple(ids)

    @property
    def model(self) -> str:
        """The model as the provider names it; the requested name if the provider doesn't."""
        return self.provenance.model_answered or self.provenance.model_asked

    @property
    def reasoning_chars(self) -> int:
        """The number of characters of reasoning in the turn, readable or encrypted, without seals on other items."""
        chars = 0
        for item in reasoning_of(self.items):
            match item:
                case ReasoningText():
                    chars += len(item.text)
                case ReasoningSummary():
                    chars += len(item.summary)
                case ReasoningEncrypted():
                    chars += len(item.data)
                case ReasoningServerToolCall():
                    chars += len(bytes(item.raw))
                case _:
                    assert_never(item)
        return chars


_decoder = msgspec.json.Decoder(Record)


class _Encoded(NamedTuple):
    record: Record | None
    data: bytes


_latest = _Encoded(None, b"")


def encode_record(record: Record) -> bytes:
    """A record as bytes, for storing. It is measured and then written: the latest one is encoded once for both."""
    global _latest
    known = _latest
    if known.record is not record:
        known = _latest = _Encoded(record, msgspec.json.encode(record))
    return known.data


def decode_record(data: bytes) -> Record:
    """A stored record."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DecodeError(f"a kept record can't be read: {type(error).__name__}") from None


# --- digests: short names for texts, used in keys and ids -------------------------------------------------------------


def digest(data: bytes) -> bytes:
    """128 bits. SHA-256: the standard library's fastest with hardware support, for short texts too."""
    return sha256(data).digest()[:16]


def digest_of(*parts: bytes) -> bytes:
    """One digest of several texts, joined unambiguously."""
    whole = sha256()
    for part in parts:
        whole.update(b"%d:%b" % (len(part), part))
    return whole.digest()[:16]
