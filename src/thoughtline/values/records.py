"""What is remembered of a turn, and the keys it is found by.

A record is made once, when a response has been read, and never changes. Its keys are digests, all inside its tenant,
tagged with what they are made of; several records may share one of the weaker ones. Stores keep what digests give, so
what they give never changes.
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
"""`algorithm:digest`. Equal keys of one tenant mean equal evidence, whoever computed them."""

RecordId = NewType("RecordId", str)
"""The digest of all that a record says: two writers of the same turn write the same record."""


def is_lineage(key: Key) -> bool:
    """Whether a key is the strongest there is, by all that is visible: a record has one at most, before all others."""
    return key.startswith("lineage-")


UNKNOWN_PARENT = RecordId("")
NO_PARENT = RecordId("none")
"""The parent of a turn whose request showed a model turn before it that has no record."""

UNCERTAIN_PARENT = RecordId("ambiguous")
"""The same where several records fitted that turn, and none was used."""


class Record(Struct, frozen=True, gc=False, omit_defaults=True):
    """A captured turn.

    `items` are the turn's items in order, reasoning with its raw JSON. A turn cut short (`is_complete` false) may give
    its text back, never its seals. `created_at` is in seconds since the epoch.

    `frame`, `user` and `tools` are digests of the system prompt, the end user and the tools of its request, `exact` is
    one of the model's words before it; records of older versions have none. `parent` is the record of the model turn
    before it, as its request went up; empty for the first turn of a conversation, and where it is not known.
    `since` is a digest of what was said between the two. `is_seen`: the client was there when the turn ended.

    `after` names the last thinking block of its request as it went up, and `is_cut` says that refused blocks were left
    out of that (`replay/links.py`).
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
        """A turn without any is worth remembering too: it must never get a neighbour's."""
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
        """The model as the provider names it, or as it was asked for where the provider didn't say."""
        return self.provenance.model_answered or self.provenance.model_asked

    @property
    def reasoning_chars(self) -> int:
        """How many characters of reasoning the turn holds, readable or encrypted; seals on other items not counted."""
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
    """A record as bytes, for keeping. Those who weigh it and those who write it ask one after the other: the latest one
    is encoded once for all of them."""
    global _latest
    known = _latest
    if known.record is not record:
        known = _latest = _Encoded(record, msgspec.json.encode(record))
    return known.data


def decode_record(data: bytes) -> Record:
    """A record that was kept."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DecodeError(f"a kept record can't be read: {type(error).__name__}") from None


# --- digests: short names for texts, which keys and ids are made of ---------------------------------------------------


def digest(data: bytes) -> bytes:
    """128 bits. SHA-256: the standard library's fastest with hardware support, for short texts too."""
    return sha256(data).digest()[:16]


def digest_of(*parts: bytes) -> bytes:
    """One digest of several texts, none of which can pass for another's end."""
    whole = sha256()
    for part in parts:
        whole.update(b"%d:%b" % (len(part), part))
    return whole.digest()[:16]
