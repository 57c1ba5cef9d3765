"""The keys by which a turn is found again: those of each model step of a request, strongest evidence first.

    lineage   the step, everything visible before it, its frame and end user: finds nearly every step, and costs
              one digest per turn
    outline   the step and everything before it without tool results, with call ids, in any frame
    call      id, name and arguments of a call, one key per call
    item      the id of a message (`msg_…`), if globally unique, or our own id for a call that its maker gave none
    context   the step and the three turns before it, in its frame and for its end user
    before    the step and the one turn before it, in its frame and for its end user
    session   the step within a session and its agent
    seal      a signature or ciphertext that the client still has
    place     everything visible before the step, its frame and end user, without the step itself

`prefix` does not find a step: it shows whether everything before it is unchanged, including system prompt and tools.
System messages before the model's first turn are part of the frame; later ones are part of outline and prefix, at their
place. The first message is part of these, of lineage and of place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.replay.frames import Scope, scope_of
from thoughtline.replay.ids import is_distinctive, unique_ids
from thoughtline.replay.links import is_compaction
from thoughtline.replay.visible import (
    Shown,
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
from thoughtline.values.items import (
    Item,
    ReasoningText,
    Text,
    ToolCall,
    ToolResult,
    is_cache_point,
    plain_token,
    seal_of,
)
from thoughtline.values.outcome import Evidence
from thoughtline.values.records import Key, Record, digest, digest_of
from thoughtline.values.turns import Transcript, Turn

if TYPE_CHECKING:
    from _hashlib import HASH

EVIDENCE: dict[str, Evidence] = {name: name for name in get_args(Evidence)}

_CONTEXT_TURNS = 3
_VERSIONS: dict[Evidence, int] = {"lineage": 3, "outline": 3, "context": 3, "before": 3, "place": 3, "prefix": 3}
"""Version 1 digested every part separately. In version 2 neither frame nor end user counted, and results were a set."""
_TAGS: dict[Evidence, str] = {name: f"{name}-v{_VERSIONS.get(name, 2)}:" for name in EVIDENCE.values()}


def key(evidence: Evidence, found: bytes) -> Key:
    """Return a key with this digest."""
    return Key(_TAGS[evidence] + found.hex())


def evidence_of(one: Key) -> Evidence:
    return EVIDENCE[one.partition("-")[0]]


class Spot(Struct, frozen=True, gc=False):
    """A point of a conversation, given by what is visible before it: a digest of everything, and the last turns.

    `bound` is the additional context that thinking may be bound to, including system messages so far; empty if not
    needed. `compacted` is the digest of everything since the last compaction, if there is one: thinking is bound to no
    more. `outline` and `exact` are computed on request: the digest of everything except results, and that of the
    model's text including white space. `goes_on_from` is the start of a turn that ends the request and that the answer
    continues. `calls_before` are the globally unique call ids of the last model turn.
    """

    lineage: bytes
    last: tuple[bytes, ...]
    scope: Scope
    bound: bytes = b""
    compacted: bytes = b""
    outline: bytes = b""
    exact: str = ""
    goes_on_from: tuple[Key, ...] = ()
    turns_since: int = 0
    calls_before: tuple[str, ...] = ()

    @property
    def since(self) -> str:
        """A digest of the messages since the last model turn, as far as the last turns reach."""
        return digest_of(*self.last[max(0, len(self.last) - self.turns_since) :]).hex()

    def place(self) -> Key:
        """Return the key of a step's place: everything visible before it."""
        return key("place", self.lineage)

    def prefix(self) -> Key:
        """Return the key of everything before the step, including system prompt and tools: some models bind their
        thinking to it."""
        return key("prefix", digest((self.compacted or self.lineage) + self.bound))

    def going_on(self) -> Key:
        """Return the key of an answer that continues a turn which begins here. It proves nothing by itself."""
        return key("prefix", digest(b"going on:" + self.lineage))

    def keys(self, items: Sequence[Item], identity: Identity) -> tuple[Key, ...]:
        """Return all keys of a step at this point."""
        seals, names = keys_of_items(items)
        shown = shown_of(items)
        if shown.is_empty:
            return tuple(seals)
        own, start = brief(shown.content), self.scope.start
        found = [key("lineage", digest(self.lineage + own)), *seals]
        if self.outline:
            found.append(key("outline", digest(self.outline + own)))
        if self.calls_before:
            found.append(key("outline", digest_of(packed("after", *self.calls_before), self.since.encode(), own)))
        found += names
        if len(self.last) == _CONTEXT_TURNS:
            found.append(key("context", digest_of(start, *self.last, own)))
        if self.last:
            found.append(key("before", digest_of(start, self.last[-1], own)))
        if identity.session is not None:
            session = packed("session", identity.session, identity.agent or "")
            found.append(key("session", digest_of(session, own)))
        return (*found, key("place", self.lineage))


Hashes: TypeAlias = tuple["HASH", "HASH", "HASH", "HASH"]
"""Hashes of other roles' messages, of the model's text, of its calls, and of its text including white space."""

_NOTHING_SAID: Hashes = (sha256(), sha256(), sha256(), sha256())
_copy_of = methodcaller("copy")


def outlined(turns: Iterable[bytes | Shown]) -> tuple[bytes, bytes, bytes, bytes]:
    """Return what these turns add to the hashes of an outline, like `Outline.before`."""
    users: list[bytes] = []
    words: list[str] = []
    calls: list[str] = []
    exact: list[str] = []
    for turn in turns:
        if isinstance(turn, bytes):
            users += (turn, b"\0")
            words.append("\0")
            calls.append("\0")
        else:
            words.append(turn.words)
            calls += turn.calls
            exact += (turn.text, "\0")
    return b"".join(users), "".join(words).encode(), "".join(calls).encode(), "".join(exact).encode()


class Outline(Struct):
    """A conversation without tool results: clients clear old ones, and write several steps into one turn.

    User messages count turn by turn, as do system messages inside the conversation. Between two user turns, all text of
    the model counts as one text, and all calls, with their ids, as one list. So the outline does not depend on how they
    were grouped. Results don't count at all.

    `turns` are those so far: bytes, or the visible content of a model step. A mark is the number of turns at some
    point; digests that are requested in order are computed in one pass. `_start` are the hashes to continue from.
    """

    _start: Hashes
    turns: list[bytes | Shown] = []
    _hashes: Hashes | None = None
    _read: int = 0

    def before(self, mark: int) -> tuple[bytes, str]:
        """Return the digest of everything before a mark, and that of the model's text including white space."""
        if self._hashes is None or mark < self._read:
            users, words, calls, exact = map(_copy_of, self._start)
            self._hashes, self._read = (users, words, calls, exact), 0
        users, words, calls, exact = self._hashes
        for turn in self.turns[self._read : mark]:
            if isinstance(turn, bytes):
                users.update(turn + b"\0")
                words.update(b"\0")
                calls.update(b"\0")
            else:
                words.update(turn.words.encode())
                calls.update("".join(turn.calls).encode())
                exact.update(f"{turn.text}\0".encode())
        self._read = mark
        return digest(users.digest() + words.digest() + calls.digest()), exact.hexdigest()[:32]

    def hashes(self, mark: int) -> Hashes:
        """Return the hashes of everything before a mark, to continue from."""
        self.before(mark)
        users, words, calls, exact = map(_copy_of, self._hashes or self._start)
        return users, words, calls, exact


def outline_after(start: Hashes, pieces: Iterable[tuple[bytes, bytes, bytes, bytes]]) -> Hashes:
    """Return the hashes of an outline continued with these pieces."""
    users, words, calls, exact = map(_copy_of, start)
    for whole, parts in zip((users, words, calls, exact), zip(*pieces, strict=True), strict=False):
        whole.update(b"".join(parts))
    return users, words, calls, exact


class Standing(NamedTuple):
    """A point from which a walk can continue, and the outline so far."""

    spot: Spot
    outline: Hashes


class ModelStep(Struct, gc=False):
    """One model step of a request: its assistant turns, their visible content, and the place of the step.

    Neighbouring assistant turns form one step, because clients split them. `parts` are the same turns one by one,
    because they may be separate steps with nothing between them. `lineage` is the strongest key, missing if nothing of
    the step is visible; the others are computed on request. `is_bare`: it has only text and calls. `results` are the
    results of its calls. `mark` is its place in the `outline`. `place` is its place by the record of the step before
    (`witnesses.py`). `looked` caches similar records, with the lookup and place they are for (`matching.py`). `texts`
    are all inputs of the request's lineage; those of this step come after `texts_before`.
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
    parts: tuple[ModelStep, ...] = ()
    made: tuple[Key, ...] | None = None
    place: Key | None = None
    looked: tuple[object, Key | None, Any] | None = None
    texts: Sequence[bytes] = ()
    texts_before: int = 0

    @property
    def visible(self) -> Visible:
        return visible_of(self.items)

    @property
    def keys(self) -> tuple[Key, ...]:
        if self.made is None:
            outline, _ = self.outline.before(self.mark)
            self.made = replace(self.spot, outline=outline).keys(self.items, self.identity)
        return self.made

    @property
    def names(self) -> tuple[Key, ...]:
        """The keys of its calls, if each has a globally unique id; otherwise none."""
        calls = [item for item in self.items if isinstance(item, ToolCall)]
        names = tuple(unique_call_keys(calls))
        return names if len(names) == len(calls) else ()

    @property
    def exact(self) -> str:
        """A digest of the model's text before it, including white space."""
        return self.outline.before(self.mark)[1]

    @property
    def prefix(self) -> Key:
        return self.spot.prefix()

    @property
    def standing(self) -> Standing:
        """The step's place, for a walk that begins with it."""
        return Standing(self.spot, self.outline.hashes(self.mark))


class Trail:
    """Everything visible so far: the lineage of a conversation, and its last few turns."""

    def __init__(self, identity: Identity, start: Standing) -> None:
        self._identity = identity
        self._scope = start.spot.scope
        self._lineage, self._last, self._bound = start.spot.lineage, start.spot.last, start.spot.bound
        self._compacted = start.spot.compacted
        self._results: list[ToolResult] = []
        self._answers: list[ToolResult] = []
        self._calls: Sequence[str] = ()
        self._since, self._calls_before = start.spot.turns_since, start.spot.calls_before
        self._outline = Outline(start.outline)
        self._texts: list[bytes] = []

    def feed(self, turn: Turn) -> None:
        """Add a turn that is not the model's. Consecutive results belong to the calls before them."""
        count = 0
        for item in turn.items:
            if isinstance(item, ToolResult):
                count += 1
                self._results.append(item)
                self._answers.append(item)
            elif is_cache_point(item):
                count += 1
        if count < len(turn.items) or not count:
            words = brief(said_by(turn))
            self._add(words)
            self._begin_anew(turn.items)
            self._outline.turns.append(words)

    def _begin_anew(self, items: Sequence[Item]) -> None:
        """Start a new digest at a compaction: content before it is not read any more."""
        last = next((item for item in reversed(items) if is_compaction(item)), None) if self._bound else None
        if last is not None:
            self._compacted = digest(b"compaction" + without_cache_marks(last.raw).encode())

    def note(self, turn: Turn) -> None:
        """Add a system message after the model's first turn: part of the outline, and later thinking is bound to it."""
        self._outline.turns.append(brief(said_by(turn)))
        self.bind(turn)

    def bind(self, turn: Turn) -> None:
        """Add a system message inside the conversation: later thinking is bound to it, at its place."""
        if self._bound:
            place = b"%b:%d:" % (self._compacted or self._lineage, len(self._results))
            self._bound = digest_of(self._bound, place, said_by(turn))

    def _add(self, *texts: bytes) -> None:
        """Close the results so far, which count as one turn, and add texts."""
        if self._results:
            texts = (said_by_results(self._results, self._calls), *texts)
            self._results = []
        for text in texts:
            if self._compacted:
                self._compacted = digest(self._compacted + text)
            self._lineage = digest(self._lineage + text)
            self._last = (*self._last, text)[-_CONTEXT_TURNS:]
            self._since += 1
            self._texts.append(text)

    def end(self) -> Spot:
        """Return the place of the answer, with all inputs of its keys."""
        outline, exact = self._outline.before(len(self._outline.turns))
        return replace(self.here(), outline=outline, exact=exact)

    def here(self) -> Spot:
        """Return the place of the next step."""
        if self._results:
            self._add()
        return Spot(
            self._lineage,
            self._last,
            self._scope,
            bound=self._bound,
            compacted=self._compacted,
            turns_since=self._since,
            calls_before=self._calls_before,
        )

    @property
    def standing(self) -> Standing:
        """The same, for a walk that begins there."""
        return Standing(self.here(), self._outline.hashes(len(self._outline.turns)))

    def add_step(self, positions: Sequence[int], turns: Sequence[Turn]) -> ModelStep:
        """Make a step of these turns and add it to the trail."""
        spot, texts_before = self.here(), len(self._texts)
        items, parts = turns[positions[0]].items, []
        if len(positions) > 1:
            inner = Trail(self._identity, Standing(spot, _NOTHING_SAID))
            parts = [inner.add_step((position,), turns) for position in positions]
            items = tuple(item for part in parts for item in part.items)
        shown = shown_of(items)
        self._add(brief(shown.content))
        if not shown.is_bare:
            self._begin_anew(items)
        mark = len(self._outline.turns)
        self._outline.turns.append(shown)
        self._answers, self._calls, self._since = [], shown.calls, 0
        self._calls_before = tuple(unique_ids(items)) if shown.calls else ()
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
            parts=tuple(parts),
            texts=self._texts,
            texts_before=texts_before,
        )


def session_entry(identity: Identity) -> Key:
    """Return the key of turns with which a conversation enters a session: a session of one conversation has only
    one."""
    return key("session", digest(packed("entry", identity.session or "", identity.agent or "")))


def said_by_results(results: Sequence[ToolResult], calls: Sequence[str]) -> bytes:
    """Return the content of results, ordered by their calls: tools finish in any order, and clients repeat results.

    `calls` are those of the step before, in the form of `Shown`. Results without ids keep their order; if there are
    more of them than calls, equal ones count once.
    """
    if len(results) == 1:
        return brief(packed("results", result_text(results[0].content)))
    by_id = {call.partition("\0")[0]: (call.partition("\0")[2], at) for at, call in enumerate(calls)}
    is_repeated = len(results) > max(1, len(calls))
    known: dict[tuple[str, int, str, str], None] = {}
    unnamed: set[str] = set()
    for at, result in enumerate(results):
        name, text = result.call_id or "", result_text(result.content)
        call, place = by_id.get(name, ("", 0 if name else at))
        if name or not (is_repeated and text in unnamed):
            known[call, place, name, text] = None
        if not name:
            unnamed.add(text)
    return brief(packed("results", *[one[-1] for one in sorted(known)]))


def said_between(step: ModelStep, following: ModelStep) -> tuple[bytes, ...] | None:
    """Return the messages between a step and the next one; None if they are too long ago to know."""
    own = brief(shown_of(step.items).content)
    last = following.spot.last
    return last[len(last) - last[::-1].index(own) :] if own in last else None


def place_after(record: Record, between: Sequence[bytes]) -> Key | None:
    """Return the place of the next step if this record came first, followed by these messages."""
    lineage = next((one for one in record.keys if evidence_of(one) == "lineage"), None)
    if lineage is None:
        return None
    found = bytes.fromhex(lineage.partition(":")[2])
    for text in between:
        found = digest(found + text)
    return key("place", found)


def keys_of_items(items: Sequence[Item]) -> tuple[list[Key], list[Key]]:
    """Return the keys of seals, and those of ids that makers gave: for calls, text, and calls without an id."""
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
    return seals, calls + texts + unnamed_calls


def seal_key(data: str) -> Key:
    """Return the key of a token, for any base64 alphabet."""
    return key("seal", digest(packed("seal", plain_token(data))))


def call_key(call: ToolCall) -> Key:
    return _call_key(call.id or "", *visible_call(call))


@lru_cache(8192)
def _call_key(name: str, *call: str) -> Key:
    return key("call", digest(packed("call", name, *call)))


def unique_call_keys(items: Sequence[Item]) -> Iterator[Key]:
    """Yield the keys of calls with globally unique ids."""
    for item in items:
        if isinstance(item, ToolCall) and item.id and is_distinctive(item.id, item.name):
            yield call_key(item)


def item_key(name: str) -> Key:
    """Return the key of a message id from its maker."""
    return key("item", digest(packed("item", name)))


class Walk(NamedTuple):
    """The model steps of a request, and the place of its answer."""

    steps: tuple[ModelStep, ...]
    end: Spot


def walk(transcript: Transcript, identity: Identity, bound: bytes = b"", start: Standing | None = None) -> Walk:
    """Walk through a request. `bound` is needed only where thinking is bound to everything before it.

    `start` is the place of the first model step, if only the end of a conversation is walked.
    """
    if start is None:
        scope = scope_of(transcript, identity)
        start = Standing(Spot(scope.start, (), scope, bound=bound), _NOTHING_SAID)
    trail = Trail(identity, start)
    steps = []
    run: list[int] = []
    turns = transcript.turns
    has_begun = False
    for position, turn in enumerate(turns):
        if turn.role == "assistant":
            if is_empty_turn(turn):
                continue
            run.append(position)
            has_begun = True
            continue
        if run:
            steps.append(trail.add_step(run, turns))
            run = []
        if turn.role != "system":
            trail.feed(turn)
            has_begun = True
        elif steps:
            trail.note(turn)
        elif has_begun:  # part of the frame, like everything before the conversation begins
            trail.bind(turn)
    if not run:
        return Walk(tuple(steps), trail.end())
    steps.append(trail.add_step(run, turns))
    return Walk(tuple(steps), replace(trail.end(), goes_on_from=(steps[-1].spot.going_on(),)))


def opening(turns: Iterable[Turn], scope: Scope, identity: Identity) -> Standing:
    """Return the place of the first model step, after turns that are not the model's."""
    trail = Trail(identity, Standing(Spot(scope.start, (), scope), _NOTHING_SAID))
    has_begun = False
    for turn in turns:
        if turn.role != "system":
            trail.feed(turn)
            has_begun = True
        elif has_begun:
            trail.note(turn)
    return trail.standing


def is_empty_turn(turn: Turn) -> bool:
    """Whether a turn shows nothing and has empty reasoning: clients keep such a turn of a broken stream next to the
    answer of their retry."""
    items = turn.items
    return bool(items) and all(
        isinstance(item, ReasoningText) and not item.text and not item.signature for item in items
    )
