"""Finding a turn again: the keys of each model step of a request, strongest evidence first.

    lineage   what is visible of the step, and of all before it: finds nearly every step, and costs one digest a turn
    outline   the same without what tools gave back, and with the ids of calls
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
from collections.abc import Sequence
from hashlib import sha256
from itertools import takewhile
from operator import methodcaller
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import replace

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
from thoughtline.values.identity import Identity
from thoughtline.values.items import Item, Text, ToolCall, ToolResult, plain_token, seal_of
from thoughtline.values.outcome import Evidence
from thoughtline.values.records import Key, Record, digest, digest_of
from thoughtline.values.turns import Transcript, Turn

if TYPE_CHECKING:
    from _hashlib import HASH

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

    def place(self) -> Key:
        """Where a step stands: all that is visible before it."""
        return key("place", self.lineage)

    def prefix(self) -> Key:
        """All that stands before, system prompt and tools included: what some models bind their thinking to."""
        return key("prefix", digest(self.lineage + self.frame))

    def keys(self, items: Sequence[Item], identity: Identity) -> tuple[Key, ...]:
        """All keys of a step that stands here."""
        seals, calls, texts, unnamed_calls = [], [], [], []
        for item in items:
            seal = seal_of(item)
            if seal is not None and seal.data:
                seals.append(seal_key(seal.data))
            if isinstance(item, ToolCall):
                if item.id:
                    calls.append(call_key(item))
                elif item.item_id:
                    unnamed_calls.append(item_key(item.item_id))
            elif isinstance(item, Text) and item.id and is_distinctive(item.id):
                texts.append(item_key(item.id))
        shown = shown_of(items)
        if shown.is_empty:
            return tuple(seals)
        own = brief(shown.content)
        found = [key("lineage", digest(self.lineage + own)), *seals]
        if self.outline:
            found.append(key("outline", digest(self.outline + own)))
        found += calls + texts + unnamed_calls
        if len(self.last) == _CONTEXT_TURNS:
            found.append(key("context", digest_of(*self.last, own)))
        if self.last:
            found.append(key("before", digest_of(self.last[-1], own)))
        if identity.session is not None:
            session = packed("session", identity.session, identity.agent or "")
            found.append(key("session", digest_of(session, own)))
        return (*found, key("place", self.lineage))


Hashes: TypeAlias = tuple["HASH", "HASH", "HASH"]
"""Of what others than the model said, of its words and of its calls."""

_NOTHING_SAID: Hashes = (sha256(), sha256(), sha256())
_copy_of = methodcaller("copy")


class Outline(Struct):
    """A conversation without what its tools gave back: clients clear old results, and write several steps into one
    turn.

    What the user says counts turn by turn, and system messages inside the conversation too. Of the model, between two
    turns of the user, all words count as one text and all calls, with their ids, as one list: so it is the same
    whichever of them stood together. Results don't count at all.

    `turns` are those so far: bytes, or a model's words and calls. A mark is how many there were at some point;
    digests that are asked for in order are made in one go. `_start` are the hashes that it goes on from.
    """

    _start: Hashes
    turns: list[bytes | tuple[str, list[str]]] = []
    _hashes: Hashes | None = None
    _read: int = 0

    def before(self, mark: int) -> bytes:
        """The digest of all before a point."""
        if self._hashes is None or mark < self._read:
            users, words, calls = map(_copy_of, self._start)
            self._hashes, self._read = (users, words, calls), 0
        users, words, calls = self._hashes
        for turn in self.turns[self._read : mark]:
            if isinstance(turn, bytes):
                users.update(turn + b"\0")
                words.update(b"\0")
                calls.update(b"\0")
            else:
                words.update(turn[0].encode())
                calls.update("".join(turn[1]).encode())
        self._read = mark
        return digest(users.digest() + words.digest() + calls.digest())

    def hashes(self, mark: int) -> Hashes:
        """Those of all before a point, to go on from there."""
        self.before(mark)
        users, words, calls = map(_copy_of, self._hashes or self._start)
        return users, words, calls


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
    `results` are what its calls gave back. `mark` is where it stands in the `outline`, which says more than the lineage
    if `has_outline`. `place` is where it stands by the record of the step before (`chains.py`).
    """

    positions: tuple[int, ...]
    items: tuple[Item, ...]
    spot: Spot
    identity: Identity
    lineage: Key | None
    is_bare: bool
    results: list[ToolResult]
    outline: Outline
    mark: int
    has_outline: bool
    parts: tuple[ModelStep, ...] = ()
    made: tuple[Key, ...] | None = None
    place: Key | None = None

    @property
    def visible(self) -> Visible:
        return visible_of(self.items)

    @property
    def keys(self) -> tuple[Key, ...]:
        if self.made is None:
            spot = replace(self.spot, outline=self.outline.before(self.mark)) if self.has_outline else self.spot
            self.made = spot.keys(self.items, self.identity)
        return self.made

    @property
    def prefix(self) -> Key:
        return self.spot.prefix()

    @property
    def standing(self) -> Standing:
        """Where it stands, for a walk that begins with it."""
        return Standing(self.spot, self.outline.hashes(self.mark), self.has_outline)


class Trail:
    """What has been visible so far: the lineage of a conversation, and its last few turns."""

    def __init__(self, identity: Identity, start: Standing) -> None:
        self._identity = identity
        self._lineage, self._last, self._frame = start.spot.lineage, start.spot.last, start.spot.frame
        self._results: list[str] = []
        self._answers: list[ToolResult] = []
        self._has_outline = start.has_outline
        self._outline = Outline(start.outline)

    def hear(self, turn: Turn) -> None:
        """A turn that is not the model's. Results in a row are a set: tools end in any order, clients repeat them."""
        count = 0
        for item in turn.items:
            if isinstance(item, ToolResult):
                count += 1
                self._results.append(result_text(item.content))
                self._answers.append(item)
        if count < len(turn.items) or not count:
            words = brief(said_by(turn))
            self._add(words)
            self._outline.turns.append(words)

    def note(self, turn: Turn) -> None:
        """A system message inside the conversation: part of its outline, and thinking after it is bound to it there."""
        words = said_by(turn)
        self._outline.turns.append(brief(words))
        self._has_outline = True
        if self._frame:
            place = b"%b:%d:" % (self._lineage, len(self._results))
            self._frame = digest_of(self._frame, place, words)

    def _add(self, *texts: bytes) -> None:
        """What comes next is no result: those so far count as one turn, and then this was said."""
        if self._results:
            texts = (said_by_results(self._results), *texts)
            self._results = []
            self._has_outline = True
        for text in texts:
            self._lineage = digest(self._lineage + text)
            self._last = (*self._last, text)[-_CONTEXT_TURNS:]

    def end(self) -> Spot:
        """Where the answer will stand, with all that its keys are made of."""
        if self._results:
            self._add()
        outline = self._outline.before(len(self._outline.turns)) if self._has_outline else b""
        return Spot(self._lineage, self._last, self._frame, outline)

    def take(self, positions: Sequence[int], turns: Sequence[Turn]) -> ModelStep:
        """The step that these turns are, which is part of the trail from now on."""
        if self._results:
            self._add()
        spot = Spot(self._lineage, self._last, self._frame)
        items, parts = turns[positions[0]].items, []
        if len(positions) > 1:
            inner = Trail(self._identity, Standing(spot, _NOTHING_SAID, has_outline=False))
            parts = [inner.take((position,), turns) for position in positions]
            items = tuple(item for part in parts for item in part.items)
        shown = shown_of(items)
        self._add(brief(shown.content))
        mark = len(self._outline.turns)
        self._outline.turns.append((shown.words, shown.calls))
        self._answers = []
        return ModelStep(
            tuple(positions),
            items,
            spot,
            identity=self._identity,
            lineage=None if shown.is_empty else key("lineage", self._lineage),
            is_bare=shown.is_bare,
            results=self._answers,
            outline=self._outline,
            mark=mark,
            has_outline=self._has_outline,
            parts=tuple(parts),
        )


def said_by_results(texts: Sequence[str]) -> bytes:
    """What results say: as a set, for tools end in any order and clients repeat them."""
    return brief(packed("results", *(texts if len(texts) == 1 else sorted(set(texts)))))


def said_between(step: ModelStep, following: ModelStep) -> tuple[bytes, ...] | None:
    """What was said after a step and before the next one, if that is not too long ago to know."""
    own = brief(shown_of(step.items).content)
    last = following.spot.last
    return last[len(last) - last[::-1].index(own) :] if own in last else None


def place_after(record: Record, between: Sequence[bytes]) -> Key | None:
    """Where the next step stands, if this record's came first and then this was said."""
    lineage = next((one for one in record.keys if evidence_of(one) == "lineage"), None)
    if lineage is None:
        return None
    found = bytes.fromhex(lineage.partition(":")[2])
    for text in between:
        found = digest(found + text)
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
    trail = Trail(identity, start or Standing(Spot(_START, (), frame), _NOTHING_SAID, has_outline=False))
    steps = []
    run: list[int] = []
    turns = transcript.turns
    has_begun = False
    for position, turn in enumerate(turns):
        if turn.role == "assistant":
            run.append(position)
            has_begun = True
            continue
        if run:
            steps.append(trail.take(run, turns))
            run = []
        if turn.role != "system":
            trail.hear(turn)
            has_begun = True
        elif has_begun:  # what stands before is the system prompt
            trail.note(turn)
    if run:
        steps.append(trail.take(run, turns))
    return Walk(tuple(steps), trail.end())


def frame_of(transcript: Transcript) -> bytes:
    """What stands around a conversation: the system prompt before it and its tools, but for cache marks."""
    prompt = takewhile(lambda turn: turn.role == "system", transcript.turns)
    tools = [without_cache_marks(tool).encode() for tool in transcript.tools]
    return digest_of(*map(said_by, prompt), b"", *tools)
