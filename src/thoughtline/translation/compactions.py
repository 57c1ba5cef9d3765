"""Compactions of a Responses conversation, for servers that can't create or read them.

    {"type": "compaction_trigger"}, or POST …/compact   ─▶  a request to summarize; the answer is one `compaction`
    {"type": "compaction", "encrypted_content": ours}   ─▶  the summary, as a text of the user
    {"type": "compaction", …} of another maker          ─▶  left out with a finding; a text mentions the gap

Our own compaction is an envelope with a text in it. It is expanded for every server, as none can open it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import (
    NULL,
    array,
    elements,
    encode,
    is_given,
    members,
    object_of,
    set_members,
)
from thoughtline.formats.openai_responses.elements import COMPACTIONS, encode_message, input_elements
from thoughtline.formats.openai_responses.options import kind_of
from thoughtline.replay.findings import Finding
from thoughtline.translation.envelopes import Held, Sealer, Sealing
from thoughtline.values.errors import DecodeError
from thoughtline.values.events import Event, Failed, ItemDone, Other, Started, TurnDone, UsageReported
from thoughtline.values.items import Text, Unknown, is_envelope
from thoughtline.values.options import ToolRange
from thoughtline.values.turns import Finish

_ORDER = "compaction_trigger"
_MARKS = (b"compaction", b"context_management")
_ASK = (
    "Sum up this conversation for an assistant that goes on with it and can read nothing else of it. Tell what the "
    "user asked for and prefers; what was done and decided, with the files, commands, names and values that matter; "
    "what was found out and what failed; what is left to do, the next step first. Call no tool. Write the summary and "
    "nothing else."
)
_TELL = "(The conversation so far was compacted. This is its summary; go on from it.)\n\n"
_MISSING = "(An earlier part of this conversation was compacted elsewhere and can't be read here.)"


class Compacted(NamedTuple):
    """A request without compactions that its server can't read. `is_ordered`: it asks for a new one; `users` are the
    user's messages in it.
    """

    body: bytes
    is_ordered: bool = False
    findings: tuple[Finding, ...] = ()
    users: tuple[Raw, ...] = ()


def may_compact(body: bytes) -> bool:
    """Whether the body may contain a compaction: most requests have none of these words."""
    return any(mark in body for mark in _MARKS)


def read_compactions(body: bytes, sealer: Sealer, takes: ToolRange, *, is_ordered: bool = False) -> Compacted:
    """The request as its server accepts it. `is_ordered`: the URL asks for a compaction."""
    try:
        return _read(body, sealer, takes, is_ordered=is_ordered)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Compacted(body, is_ordered)  # the decoder of the whole body reports the error


def _read(body: bytes, sealer: Sealer, takes: ToolRange, *, is_ordered: bool) -> Compacted:
    known = members(body)
    given = input_elements(known.get("input", NULL))
    work = _Reading(sealer, takes, is_ordered=is_ordered)
    items = [one for at, raw in enumerate(given) for one in work.element(at, raw, is_last=at == len(given) - 1)]
    changes: list[tuple[str, bytes | None]] = []
    if work.is_ordered:
        items.append(_message(_ASK))
        changes.append(("tool_choice", b'"none"'))
        work.find("/input", "the upstream compacts no conversations: its model sums this one up")
    if is_given(known.get("context_management", NULL)) and not takes.takes("compaction"):
        changes.append(("context_management", None))
        work.find("/context_management", "the upstream compacts no conversations by itself")
    if len(items) != len(given) or any(one is not raw for one, raw in zip(items, given, strict=True)):
        changes.append(("input", array(items)))
    users = tuple(one for one in given if _is_users(one)) if work.is_ordered else ()
    changed = set_members(body, changes) if changes else body
    return Compacted(changed, work.is_ordered, tuple(work.findings), users)


class _Speaker(Struct, gc=False):
    type: str = ""
    role: str = ""


_speaker = msgspec.json.Decoder(_Speaker)


def _is_users(element: Raw) -> bool:
    """Whether it is a message of the user."""
    try:
        speaker = _speaker.decode(element)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return speaker.type in ("", "message") and speaker.role == "user"


class _Compaction(Struct, gc=False):
    encrypted_content: str | None = None


_compaction = msgspec.json.Decoder(_Compaction)


class _Reading:
    """The state while a conversation is read."""

    def __init__(self, sealer: Sealer, takes: ToolRange, *, is_ordered: bool) -> None:
        self._sealer = sealer
        self._takes = takes
        self.is_ordered = is_ordered
        self.findings: list[Finding] = []

    def find(self, place: str, message: str) -> None:
        self.findings.append(Finding("untranslatable", place, message, ""))

    def element(self, at: int, raw: Raw, *, is_last: bool) -> list[Raw]:
        """The elements that replace one element."""
        kind = kind_of(raw)
        if kind in COMPACTIONS:
            return self._compaction(at, raw)
        if kind != _ORDER or self._takes.takes(_ORDER):
            return [raw]
        self.is_ordered = self.is_ordered or is_last  # a trigger in the middle was already carried out
        return []

    def _compaction(self, at: int, raw: Raw) -> list[Raw]:
        try:
            token = _compaction.decode(raw).encrypted_content or ""
        except msgspec.DecodeError:
            return [raw]
        if not is_envelope(token) and self._takes.takes("compaction"):
            return [raw]
        if not is_envelope(token):
            self.find(f"/input/{at}", "a compaction is not sent: only its maker can read it")
            return [_message(_MISSING)]
        held = self._sealer.open(token)
        if held is not None:
            return [_message(_TELL + "".join(item.text for item in held.items if isinstance(item, Text)))]
        problem = "a compaction that is not ours, or was changed"
        self.findings.append(Finding("unopened", f"/input/{at}", problem, "use one store for all replicas"))
        return [_message(_MISSING)]


def _message(text: str) -> Raw:
    return Raw(encode_message("user", (Text(text),), None))


# --- answers ----------------------------------------------------------------------------------------------------------


class CompactedEvents:
    """Turns a text answer into the one `compaction` that its client waits for: events in, events out."""

    def __init__(self, sealing: Sealing) -> None:
        self._sealing = sealing
        self._words: list[str] = []
        self._id = ""

    def feed(self, event: Event) -> list[Event]:
        match event:
            case Started():
                self._id = event.id or ""
                return [event]
            case ItemDone(item=Text(text=words)):
                self._words.append(words)
                return []
            case TurnDone(finish=Finish()):
                return self._ending(event)
            case TurnDone() | UsageReported() | Failed() | Other():
                return [event]
            case _:
                return []

    def finish(self) -> list[Event]:
        return []

    def _ending(self, event: TurnDone) -> list[Event]:
        """Fail without a summary, or the client would continue from an empty conversation."""
        words = "".join(self._words).strip()
        token = self._sealing.token([Held((0, 0), Text(words))]) if words else None
        if token is None:
            raise DecodeError("the model gave no summary").from_upstream()
        element = {"type": "compaction", "id": f"cmp_{self._id}", "encrypted_content": token}
        return [
            ItemDone(event.choice, 0, Unknown("compaction", Raw(encode(element)))),
            TurnDone(event.choice, Finish("stop", "")),
        ]


def compaction_of(users: Sequence[Raw], response: bytes) -> bytes:
    """The answer of `POST …/compact`: the user's messages and the compaction of the response."""
    known = members(response)
    if not is_given(known.get("output", NULL)):
        return response
    return object_of(
        [
            ("id", known.get("id", NULL)),
            ("object", b'"response.compaction"'),
            ("created_at", known.get("created_at", Raw(b"0"))),
            ("output", array([*users, *elements(known["output"])])),
            ("usage", known.get("usage", NULL)),
        ]
    )
