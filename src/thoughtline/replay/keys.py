"""Finding a turn again: the keys of each model step of a request, strongest evidence first.

    lineage   what is visible of the step, and of all before it
    call      a call's id, name and arguments, one key for each call
    context   what is visible of the step, and of the three turns before it
    before    what is visible of the step, and of the one turn before it
    session   what is visible of the step, within a session and its agent
    seal      a signature or ciphertext that the client still has
    place     what is visible of all before the step, whatever it shows itself

`prefix` is no way to find a step: it says whether everything before it, system prompt and tools too, is unchanged.

A system prompt is no part of any of them: clients rewrite it. Neither is the first message, except in lineage.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from thoughtline.items import Item, ToolCall, ToolResult, seal_of
from thoughtline.records import Key
from thoughtline.replay.visible import (
    Visible,
    VisibleCall,
    digest,
    result_text,
    said_digest,
    visible_call,
    visible_of,
    without_cache_marks,
)
from thoughtline.turns import Transcript, Turn

Evidence = Literal["lineage", "call", "seal", "context", "before", "session", "place", "prefix"]
EVIDENCE: tuple[Evidence, ...] = ("lineage", "call", "seal", "context", "before", "session", "place", "prefix")

_CONTEXT_TURNS = 3
_DISTINCT = re.compile(r"[A-Za-z0-9]{8,}")


class Identity(Struct, frozen=True, gc=False):
    """Who is asking. `tenant` decides what can be found at all; the rest only narrows."""

    tenant: str
    session: str | None = None
    agent: str | None = None


class Step(NamedTuple):
    """One model step of a request: the assistant turns it takes, what is visible of it, and its keys.

    Neighbouring assistant turns are one step, for clients split them; `parts` are the same turns taken one by one, for
    they may be steps of their own with nothing between them.
    """

    positions: tuple[int, ...]
    items: tuple[Item, ...]
    visible: Visible
    keys: tuple[Key, ...]
    prefix: Key
    place: Key
    parts: tuple[Step, ...] = ()


def key(evidence: Evidence, *parts: bytes) -> Key:
    return Key(f"{evidence}-v1:{digest(*parts).hex()}")


def evidence_of(one: Key) -> Evidence:
    name = one.partition("-")[0]
    return next(evidence for evidence in EVIDENCE if evidence == name)


def is_distinctive(call_id: str) -> bool:
    """Whether an id is random enough to mean one call in the world: `call_1` and `functions.bash:0` are not."""
    runs = _DISTINCT.findall(call_id)
    return any(any(c.isdigit() for c in run) and sum(c.isalpha() for c in run) >= 2 for run in runs)


class Trail:
    """What has been visible so far: the lineage of a conversation, and its last few turns."""

    def __init__(self, frame: bytes = b"") -> None:
        self._frame = frame
        self._lineage = b""
        self._last: list[bytes] = []
        self._results: set[str] = set()

    def copy(self) -> Trail:
        twin = Trail(self._frame)
        twin._lineage, twin._last, twin._results = self._lineage, self._last, set(self._results)
        return twin

    def hear(self, turn: Turn) -> None:
        """A turn that is not the model's. Results in a row are a set: tools end in any order, clients repeat them."""
        results = [item for item in turn.items if isinstance(item, ToolResult)]
        self._results.update(result_text(result.content) for result in results)
        if len(results) < len(turn.items) or not turn.items:
            self.settle()
            self.add(said_digest(turn))

    def settle(self) -> None:
        """What comes next is no result: those so far count as one turn."""
        if self._results:
            texts, self._results = sorted(self._results), set()
            self.add(digest(b"results", *(text.encode() for text in texts)))

    def place(self) -> Key:
        """Where a step stands: all that is visible before it."""
        return key("place", self._lineage)

    def prefix(self) -> Key:
        """All that stands before, system prompt and tools included: what some models bind their thinking to."""
        return key("prefix", self._frame, self._lineage)

    def add(self, said: bytes) -> None:
        self._lineage = digest(self._lineage, said)
        self._last = [*self._last, said][-_CONTEXT_TURNS:]

    def keys(self, visible: Visible, items: Sequence[Item], identity: Identity) -> tuple[Key, ...]:
        """The keys of a step that stands here."""
        seals = [seal_key(seal.data) for item in items if (seal := seal_of(item)) is not None and seal.data]
        if visible.is_empty:
            return tuple(seals)
        own = visible.digest()
        found = [key("lineage", self._lineage, own), *seals]
        calls = (item for item in items if isinstance(item, ToolCall))
        found += [_key_of(call.id, shown) for call, shown in zip(calls, visible.calls, strict=True) if call.id]
        if len(self._last) == _CONTEXT_TURNS:
            found.append(key("context", *self._last, own))
        if self._last:
            found.append(key("before", self._last[-1], own))
        if identity.session is not None:
            found.append(key("session", identity.session.encode(), (identity.agent or "").encode(), own))
        return (*found, self.place())


def seal_key(data: str) -> Key:
    """A token, whichever base64 alphabet spells it."""
    return key("seal", plain_token(data).encode())


def plain_token(data: str) -> str:
    return data.replace("-", "+").replace("_", "/").rstrip("=")


def call_key(call: ToolCall) -> Key:
    return _key_of(call.id or "", visible_call(call))


def _key_of(call_id: str, visible: VisibleCall) -> Key:
    return key("call", call_id.encode(), visible.name.encode(), visible.arguments.encode())


def steps_of(transcript: Transcript, identity: Identity, frame: bytes = b"") -> tuple[Step, ...]:
    """The model steps of a request with their keys. `frame` is needed only where thinking is bound to all before it."""
    trail = Trail(frame)
    steps = []
    run: list[int] = []
    for position, turn in enumerate(transcript.turns):
        if turn.role == "assistant":
            run.append(position)
            continue
        if run:
            steps.append(_close(run, transcript.turns, trail, identity))
            run = []
        if turn.role != "system":
            trail.hear(turn)
    if run:
        steps.append(_close(run, transcript.turns, trail, identity))
    return tuple(steps)


def _close(run: list[int], turns: Sequence[Turn], trail: Trail, identity: Identity) -> Step:
    trail.settle()
    whole = _step(run, turns, trail, identity)
    parts: tuple[Step, ...] = ()
    if len(run) > 1:
        inner = trail.copy()
        parts = tuple(_advance(position, turns, inner, identity) for position in run)
    trail.add(whole.visible.digest())
    return whole._replace(parts=parts)


def _advance(position: int, turns: Sequence[Turn], trail: Trail, identity: Identity) -> Step:
    step = _step([position], turns, trail, identity)
    trail.add(step.visible.digest())
    return step


def _step(run: list[int], turns: Sequence[Turn], trail: Trail, identity: Identity) -> Step:
    items = tuple(item for position in run for item in turns[position].items)
    visible = visible_of(items)
    keys = trail.keys(visible, items, identity)
    return Step(tuple(run), items, visible, keys, trail.prefix(), trail.place())


def trail_of(transcript: Transcript) -> Trail:
    """What is visible of a request as a whole: where its answer will stand."""
    trail = Trail(frame_of(transcript))
    run: list[Item] = []
    for turn in transcript.turns:
        if turn.role == "assistant":
            run += turn.items
            continue
        if run:
            trail.settle()
            trail.add(visible_of(run).digest())
            run = []
        if turn.role != "system":
            trail.hear(turn)
    trail.settle()
    if run:
        trail.add(visible_of(run).digest())
    return trail


def frame_of(transcript: Transcript) -> bytes:
    """What stands around a conversation: its system prompt and its tools, but for cache marks."""
    system = [said_digest(turn) for turn in transcript.turns if turn.role == "system"]
    return digest(b"frame", *system, *(without_cache_marks(tool).encode() for tool in transcript.tools))
