"""Finding a turn again: the keys of each model step of a request, strongest evidence first.

    lineage   what is visible of the step, and of all before it: finds nearly every step, and costs one digest a turn
    outline   the same without what tools gave back, and with the ids of calls (`outlines.py`)
    call      a call's id, name and arguments, one key for each call
    item      the id of a message (`msg_…`), where it is one in the world, or ours for a call that its maker gave none
    context   what is visible of the step, and of the three turns before it
    before    what is visible of the step, and of the one turn before it
    session   what is visible of the step, within a session and its agent
    seal      a signature or ciphertext that the client still has
    place     what is visible of all before the step, whatever it shows itself

`prefix` is no way to find a step: it says whether everything before it, system prompt and tools too, is unchanged.

A system prompt is no part of any of them: clients rewrite it. System messages inside a conversation are part of outline
and prefix, at their place. The first message is part of these and of lineage alone.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, get_args

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.replay.outlines import NOTHING_SAID, Hashes, Mark, Outline
from thoughtline.replay.visible import (
    Visible,
    brief,
    packed,
    result_text,
    said_by,
    shown_of,
    visible_call,
    visible_of,
    without_cache_marks,
)
from thoughtline.values.digests import digest, digest_of
from thoughtline.values.identity import Identity
from thoughtline.values.items import Item, Text, ToolCall, ToolResult, plain_token, seal_of
from thoughtline.values.outcome import Evidence
from thoughtline.values.records import Key, Record
from thoughtline.values.turns import Transcript, Turn

EVIDENCE: dict[str, Evidence] = {name: name for name in get_args(Evidence)}

_CONTEXT_TURNS = 3
_RUN = re.compile(r"[A-Za-z0-9]{8,}")
_COUNTED = re.compile(r"[A-Z]?[a-z]+[0-9]{1,2}|0[0-9]*")
_LONG_WORD = 9
"""Letters of both cases without a digit say as much as eight letters and digits. Mistral's ids have nine characters."""
_START = bytes(16)


def key(evidence: Evidence, found: bytes) -> Key:
    """A key of this digest. Version 2: version 1 digested every part by itself."""
    return Key(f"{evidence}-v2:{found.hex()}")


def evidence_of(one: Key) -> Evidence:
    return EVIDENCE[one.partition("-")[0]]


def is_distinctive(call_id: str, call_name: str = "") -> bool:
    """Whether an id is random enough to mean one call in the world: `call_1` and `functions.bash:0` are not.

    What an id has of the name of its tool says nothing.
    """
    return bool(random_parts(call_id, call_name))


def random_parts(call_id: str, call_name: str = "") -> list[str]:
    """What of an id is random."""
    if call_name and call_name in call_id:
        call_id = call_id.replace(call_name, ".")
    return list(filter(_is_random, _RUN.findall(call_id)))


def _is_random(run: str) -> bool:
    """Letters and digits, but no word with a count; many digits, but no count; or long and of both cases, but no
    camelCase: there, fewer than a quarter of the letters are capitals."""
    letters = sum(map(str.isalpha, run))
    if letters < len(run):
        return (letters == 0 or letters >= 2) and _COUNTED.fullmatch(run) is None
    capitals = sum(map(str.isupper, run))
    return len(run) >= _LONG_WORD and 4 * min(capitals, letters - capitals) >= len(run)


class Spot(Struct, frozen=True, gc=False):
    """A point of a conversation, by what is visible before it: the digest of all, and what the last turns said.

    `frame` is what stands around it, with the system messages so far; empty where nobody asked. `outline` is the digest
    of all but results; empty where it says no more than the lineage, and where it is made when asked for.
    """

    lineage: bytes
    last: tuple[bytes, ...]
    frame: bytes
    outline: bytes = b""

    def after(self, said: bytes) -> bytes:
        """The lineage after one more turn."""
        return digest(self.lineage + said)

    def place(self) -> Key:
        """Where a step stands: all that is visible before it."""
        return key("place", self.lineage)

    def prefix(self) -> Key:
        """All that stands before, system prompt and tools included: what some models bind their thinking to."""
        return key("prefix", digest(self.lineage + self.frame))

    def keys(self, items: Sequence[Item], identity: Identity) -> tuple[Key, ...]:
        """All keys of a step that stands here."""
        seals = [seal_key(seal.data) for item in items if (seal := seal_of(item)) is not None and seal.data]
        shown = shown_of(items)
        if shown.is_empty:
            return tuple(seals)
        own = brief(shown.content)
        found = [key("lineage", self.after(own)), *seals]
        found += [key("outline", digest(self.outline + own))] if self.outline else []
        found += [call_key(item) for item in items if isinstance(item, ToolCall) and item.id]
        found += [item_key(item.id) for item in items if isinstance(item, Text) and item.id and is_distinctive(item.id)]
        calls = (item for item in items if isinstance(item, ToolCall) and not item.id)
        found += [item_key(call.item_id) for call in calls if call.item_id]
        if len(self.last) == _CONTEXT_TURNS:
            found.append(key("context", digest_of(*self.last, own)))
        if self.last:
            found.append(key("before", digest_of(self.last[-1], own)))
        if identity.session is not None:
            session = packed("session", identity.session, identity.agent or "")
            found.append(key("session", digest_of(session, own)))
        return (*found, self.place())


class Standing(NamedTuple):
    """A point that a walk can go on from: the hashes of the outline so far, and whether that says more than the
    lineage."""

    spot: Spot
    outline: Hashes
    has_outline: bool


class ModelStep(Struct, gc=False):
    """One model step of a request: the assistant turns it takes, what is visible of it, and where it stands.

    Neighbouring assistant turns are one step, for clients split them; `parts` are the same turns taken one by one, for
    they may be steps of their own with nothing between them. `lineage` is the strongest key, missing where nothing of
    the step is visible; the others are made when asked for. `is_bare`: it has words and calls, and nothing else.
    `results` are what its calls gave back. `mark` is where it stands in the `outline`, missing where that says
    no more than the lineage; `heard` is the same and always there. `place` is where it stands by the record of the step
    before (`chains.py`).
    """

    positions: tuple[int, ...]
    items: tuple[Item, ...]
    spot: Spot
    identity: Identity
    lineage: Key | None
    is_bare: bool
    results: list[ToolResult]
    outline: Outline
    mark: Mark | None
    parts: tuple[ModelStep, ...] = ()
    made: tuple[Key, ...] | None = None
    place: Key | None = None
    heard: Mark = NOTHING_SAID

    @property
    def visible(self) -> Visible:
        return visible_of(self.items)

    @property
    def keys(self) -> tuple[Key, ...]:
        if self.made is None:
            spot = replace(self.spot, outline=self.outline.before(self.mark)) if self.mark is not None else self.spot
            self.made = spot.keys(self.items, self.identity)
        return self.made

    @property
    def prefix(self) -> Key:
        return self.spot.prefix()

    @property
    def standing(self) -> Standing:
        """Where it stands, for a walk that begins with it."""
        return Standing(self.spot, self.outline.hashes(self.heard), self.mark is not None)


class Trail:
    """What has been visible so far: the lineage of a conversation, and its last few turns."""

    def __init__(self, frame: bytes = b"", start: Standing | None = None) -> None:
        spot = start.spot if start is not None else Spot(_START, (), frame)
        self._frame = spot.frame
        self._lineage = spot.lineage
        self._last = deque(spot.last, maxlen=_CONTEXT_TURNS)
        self._results: list[str] = []
        self._answers: list[ToolResult] = []
        self._has_outline = start is not None and start.has_outline
        self._outline = Outline(start.outline if start is not None else None)

    def copy(self) -> Trail:
        """A trail that goes on from here, but for the outline."""
        twin = Trail(self._frame)
        twin._lineage, twin._last, twin._results = self._lineage, self._last.copy(), self._results.copy()
        return twin

    def hear(self, turn: Turn) -> None:
        """A turn that is not the model's. Results in a row are a set: tools end in any order, clients repeat them."""
        count = 0
        for item in turn.items:
            if isinstance(item, ToolResult):
                count += 1
                self._results.append(result_text(item.content))
                self._answers.append(item)
        if count < len(turn.items) or not count:
            self.settle()
            said = brief(said_by(turn))
            self.add(said)
            self._outline.hear(said)

    def note(self, turn: Turn) -> None:
        """A system message inside the conversation: part of its outline, and thinking after it is bound to it there."""
        said = said_by(turn)
        self._outline.hear(brief(said))
        self._has_outline = True
        if self._frame:
            place = b"%b:%d:" % (self._lineage, len(self._results))
            self._frame = digest_of(self._frame, place, said)

    def settle(self) -> None:
        """What comes next is no result: those so far count as one turn."""
        if self._results:
            said = said_by_results(self._results)
            self._results.clear()
            self._has_outline = True
            self.add(said)

    def add(self, said: bytes) -> None:
        self._lineage = digest(self._lineage + said)
        self._last.append(said)

    def spot(self) -> Spot:
        return Spot(self._lineage, tuple(self._last), self._frame)

    def end(self) -> Spot:
        """Where the answer will stand, with all that its keys are made of."""
        self.settle()
        outline = self._outline.before(self._outline.mark()) if self._has_outline else b""
        return Spot(self._lineage, tuple(self._last), self._frame, outline)

    def take(self, positions: tuple[int, ...], items: tuple[Item, ...], identity: Identity) -> ModelStep:
        """The step that these turns are, which is part of the trail from now on."""
        shown = shown_of(items)
        spot = self.spot()
        self.add(brief(shown.content))
        lineage = None if shown.is_empty else key("lineage", self._lineage)
        heard = self._outline.mark()
        self._outline.say(shown)
        self._answers = []
        return ModelStep(
            positions,
            items,
            spot,
            identity=identity,
            lineage=lineage,
            is_bare=shown.is_bare,
            results=self._answers,
            outline=self._outline,
            mark=heard if self._has_outline else None,
            heard=heard,
        )


def said_by_results(texts: Sequence[str]) -> bytes:
    """What results say: as a set, for tools end in any order and clients repeat them."""
    return brief(packed("results", *(texts if len(texts) == 1 else sorted(set(texts)))))


def said_between(step: ModelStep, following: ModelStep) -> tuple[bytes, ...] | None:
    """What was said after a step and before the next one, if that is not too long ago to know."""
    own = brief(shown_of(step.items).content)
    last = following.spot.last
    return last[len(last) - last[::-1].index(own) :] if own in last else None


def place_after(record: Record, said: Sequence[bytes]) -> Key | None:
    """Where the next step stands, if this record's came first and then this was said."""
    lineage = next((one for one in record.keys if evidence_of(one) == "lineage"), None)
    if lineage is None:
        return None
    found = bytes.fromhex(lineage.partition(":")[2])
    for one in said:
        found = digest(found + one)
    return key("place", found)


def seal_key(data: str) -> Key:
    """A token, whichever base64 alphabet spells it."""
    return key("seal", digest(packed("seal", plain_token(data))))


def call_key(call: ToolCall) -> Key:
    return key("call", digest(packed("call", call.id or "", *visible_call(call))))


def item_key(name: str) -> Key:
    """A message by the id that its maker gave it."""
    return key("item", digest(packed("item", name)))


class Walk(NamedTuple):
    """The model steps of a request, and where its answer will stand."""

    steps: tuple[ModelStep, ...]
    end: Spot


def walk(transcript: Transcript, identity: Identity, frame: bytes = b"", start: Standing | None = None) -> Walk:
    """Go through a request. `frame` is needed only where thinking is bound to all before it.

    `start` is where the first model step stands, if only the end of a conversation is walked.
    """
    trail = Trail(frame, start)
    steps = []
    run: list[int] = []
    turns = transcript.turns
    opening = _opening(transcript)
    for position, turn in enumerate(turns):
        if turn.role == "assistant":
            run.append(position)
            continue
        if run:
            steps.append(_close(run, turns, trail, identity))
            run = []
        if turn.role != "system":
            trail.hear(turn)
        elif position >= opening:
            trail.note(turn)
    if run:
        steps.append(_close(run, turns, trail, identity))
    return Walk(tuple(steps), trail.end())


def _close(run: list[int], turns: Sequence[Turn], trail: Trail, identity: Identity) -> ModelStep:
    trail.settle()
    if len(run) == 1:
        return trail.take((run[0],), turns[run[0]].items, identity)
    inner = trail.copy()
    parts = tuple(inner.take((position,), turns[position].items, identity) for position in run)
    whole = trail.take(tuple(run), tuple(item for position in run for item in turns[position].items), identity)
    whole.parts = parts
    return whole


def frame_of(transcript: Transcript) -> bytes:
    """What stands around a conversation: the system prompt before it and its tools, but for cache marks."""
    system = [said_by(turn) for turn in transcript.turns[: _opening(transcript)]]
    tools = [without_cache_marks(tool).encode() for tool in transcript.tools]
    return digest_of(*system, b"", *tools)


def _opening(transcript: Transcript) -> int:
    """Where somebody speaks first: what stands before is the system prompt."""
    turns = transcript.turns
    return next((position for position, turn in enumerate(turns) if turn.role != "system"), len(turns))
