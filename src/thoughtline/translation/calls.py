"""Ids of tool calls that are valid on both sides, mapped by rule and back.

An id that is valid on the other side stays as it is. Any other id is wrapped, so that it can be read back from
the client's next request; if it is too long for that, it becomes a digest, and the record of the turn has the
original. A call without an id gets a marked one. No id is ever truncated.

    tlx3_ZnVuY3Rpb25z…   wrapped: the model's third turn, then the id in base64
    tlh_4f0c…            a digest
    tln_9d1e…            made here: the call had none
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Set
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.formats.wire import IdRule
from thoughtline.providers import Dialect
from thoughtline.values.digests import joined
from thoughtline.values.items import Item, ToolCall, ToolResult
from thoughtline.values.records import Record
from thoughtline.values.turns import FormatName, Transcript, Turn

_WRAPPED = re.compile(r"tlx[0-9a-f]+_([A-Za-z0-9_-]+)\Z")
_MADE = "tln_"
HIDDEN = "tlh_"
_HIDDEN_BYTES = HIDDEN.encode()
_NEAR_NAMES, _NEAR_TURNS = 3, (1, -1, 2, -2)
_MAX_TRIED = 20_000
"""Digests computed to find ids that are not at their expected position: twice as many take some 40 ms."""
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def upstream_rule(format: FormatName, dialect: Dialect) -> IdRule:
    """Which ids a provider accepts."""
    is_counted = dialect.call_ids in ("short", "counted")
    return rule_of(format, dialect) if is_counted else FORMATS[format].upstream_call_ids


def rule_of(format: FormatName, dialect: Dialect) -> IdRule:
    """Which ids any client or provider of a format accepts."""
    chars = dialect.call_id_chars
    if dialect.call_ids == "counted":
        return IdRule(re.compile(f"[a-zA-Z0-9]{{{chars}}}"), chars=chars, salt=dialect.name)
    return FORMATS[format].call_ids


def _digest(*parts: str) -> str:
    return hashlib.sha256(joined(*map(str.encode, parts))).hexdigest()


def fitted(name: str, rule: IdRule) -> str:
    """The id if the rule allows it, else a digest of it."""
    if rule.pattern.fullmatch(name):
        return name
    if rule.chars:
        number, letters = int(_digest(rule.salt, name), 16), []
        for _ in range(rule.chars):
            number, rest = divmod(number, 62)
            letters.append(_ALPHABET[rest])
        return "".join(letters)
    return HIDDEN + _digest("fitted", name)[:32]


def hidden(name: str, turn: int) -> str:
    """The client's id for one that is too long for it, in this turn of the model."""
    return HIDDEN + _digest("outward", str(turn), name)[:32]


def unwrapped(name: str) -> str | None:
    """The id behind one of ours; None if the call had none."""
    if name.startswith(_MADE):
        return None
    found = _WRAPPED.match(name)
    if found is None:
        return name
    try:
        text = found.group(1)
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return name


class Answered(NamedTuple):
    """The call that a result answers: its id at the upstream, its tool, its number. `repeats` are the numbers of the
    calls whose result this one repeats, if it can belong to no other call.
    """

    id: str | None
    tool: str | None
    number: int
    repeats: tuple[int, ...] = ()


class OutgoingIds(Struct):
    """Ids on their way to the upstream: each call gets a valid one, and its result the same."""

    _rule: IdRule
    _used: set[str] = set()
    _waiting: list[tuple[int, ToolCall]] = []
    _shown: list[str | None] = []
    _by_id: dict[str, Answered] = {}
    _by_name: dict[str, list[int]] = {}
    _count: int = 0

    def begin_turn(self) -> None:
        """Begin a turn of the model: the next results answer its calls."""
        self._waiting, self._shown, self._by_name = [], [], {}

    def call(self, call: ToolCall) -> str | None:
        """The upstream's id for a call."""
        self._count += 1
        self._by_id.pop(call.id or "", None)
        own = unwrapped(call.id) if call.id else None
        if own is None and self._rule.is_required:
            own = call.id or _MADE + _digest("made", str(self._count), call.name, call.arguments)[:24]
        name: str | None = None
        if own is not None:
            name = fitted(own, self._rule)
            if self._rule.is_unique and name in self._used:
                name = fitted(HIDDEN + _digest("again", str(self._count), own)[:32], self._rule)
            self._used.add(name)
        self._waiting.append((self._count, replace(call, id=name)))
        self._shown.append(call.id)
        return name

    def result(self, result: ToolResult) -> Answered:
        """Find the call that a result answers: by id, else by name, else by order."""
        if result.call_id:
            at = self._shown.index(result.call_id) if result.call_id in self._shown else None
        elif result.name:
            at = next((at for at, (_, call) in enumerate(self._waiting) if call.name == result.name), None)
        else:
            at = 0 if self._waiting else None
        if at is None:
            return self._again(result)
        number, call = self._waiting.pop(at)
        shown = self._shown.pop(at)
        found = Answered(call.id, call.name, number)
        self._by_name.setdefault(call.name, []).append(number)
        if shown:
            self._by_id[shown] = found._replace(repeats=(number,))
        return found

    def _again(self, result: ToolResult) -> Answered:
        """A result for which no call waits: a repeated one, of this turn or an earlier one, or one without a call."""
        known = self._by_id.get(result.call_id or "")
        if known is not None:
            return known
        own = unwrapped(result.call_id) if result.call_id else None
        repeats = tuple(self._by_name.get(result.name or "", ())) if not result.call_id else ()
        self._count += 1
        return Answered(
            fitted(own, self._rule) if own is not None else result.call_id, result.name, self._count, repeats
        )


class CallIds(NamedTuple):
    """Ids on their way to the client. `used` are the ids of the conversation so far, as the upstream knows them."""

    rule: IdRule
    turn: int = 0
    used: frozenset[str] = frozenset()
    salt: str = ""

    def for_client(self, name: str | None, place: str, call_name: str) -> str | None:
        """The client's id for a call of the upstream. `place` distinguishes the calls of an answer."""
        if not name:
            made = _MADE + _digest("none", self.salt, str(self.turn), place, call_name)[:24]
            return fitted(made, self.rule)
        if self.rule.pattern.fullmatch(name) and name not in self.used and unwrapped(name) == name:
            return name
        wrapped = f"tlx{self.turn:x}_" + base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")
        return wrapped if self.rule.pattern.fullmatch(wrapped) else hidden(name, self.turn)

    def hides(self, name: str) -> bool:
        """Whether a client may know this id only by a digest. The wrapper grows with the turn number: an id that fits
        now also fitted before.
        """
        return (self.for_client(name, "", "") or "").startswith(HIDDEN)

    def shown(self, items: Iterable[Item], choice: int) -> tuple[Item, ...]:
        """An answer with the ids that the client gets for calls without one: they identify the answer later."""
        named, number = [], 0
        for item in items:
            if isinstance(item, ToolCall):
                if not item.id:
                    item = replace(item, item_id=self.for_client(None, place_in(choice, number), item.name))
                number += 1
            named.append(item)
        return tuple(named)

    def restored(self, transcript: Transcript, records: Iterable[Record]) -> Transcript:
        """The request with the upstream's own ids."""
        return with_own_ids(transcript, records, self) if _HIDDEN_BYTES in transcript.body else transcript

    def may_rename(self, transcript: Transcript) -> bool:
        """Whether a request has digests of ids, or calls without any."""
        if _HIDDEN_BYTES in transcript.body:
            return True
        for turn in transcript.turns:
            for item in turn.items:
                if isinstance(item, ToolCall) and not item.id:
                    return True
        return False


def place_in(choice: int, number: int) -> str:
    """What distinguishes the calls of an answer."""
    return f"{choice}.{number}"


def with_own_ids(transcript: Transcript, records: Iterable[Record], ids: CallIds) -> Transcript:
    """The request with the upstream's own ids in place of digests, as far as a record has them."""
    digests = _digests_in(transcript)
    known = _Names(records, ids).behind(digests) if digests else {}
    if not known:
        return transcript
    turns = tuple(_with_own(turn, known) for turn in transcript.turns)
    return replace(transcript, turns=turns)


def _digests_in(transcript: Transcript) -> dict[str, int]:
    """The digests that stand for ids in a request, in order, with the number of the model's turn."""
    digests: dict[str, int] = {}
    number = -1
    for turn in transcript.turns:
        number += turn.role == "assistant"
        for item in turn.items:
            name = item.id if isinstance(item, ToolCall) else item.call_id if isinstance(item, ToolResult) else None
            if name is not None and name.startswith(HIDDEN):
                digests.setdefault(name, max(number, 0))
    return digests


class _Names:
    """The ids of records that a client knows by digests, in the order in which they were created.

    A digest depends on the number of the model's turn. A client that keeps its turns sends digests in the order of the
    ids, at the same distances as the turns in the request, so most are found at the first try. If the client has
    dropped turns or records are gone, all numbers are tried with all ids, up to `_MAX_TRIED`.
    """

    def __init__(self, records: Iterable[Record], ids: CallIds) -> None:
        made = [name for record in sorted(records, key=lambda one: one.created_at) for name in record.call_ids]
        self._made = [name for name in made if ids.hides(name)]
        self._numbers = range(ids.turn + 1)
        self._left = _MAX_TRIED
        self._next = 0
        self._shift = 0

    def behind(self, digests: dict[str, int]) -> dict[str, str]:
        """The ids behind digests, as far as records have them."""
        known = {shown: name for shown, at in digests.items() if (name := self._next_name(shown, at)) is not None}
        missing = digests.keys() - known.keys()
        return known | self._anywhere(missing) if missing else known

    def _next_name(self, shown: str, at: int) -> str | None:
        """The id behind a digest in this turn of the request, if it is one of the next."""
        usual = at + self._shift
        near = [usual, *(usual + far for far in _NEAR_TURNS)]
        return self._found(shown, at, near) or (self._found(shown, at, self._numbers) if self._can_try() else None)

    def _can_try(self) -> bool:
        self._left -= _NEAR_NAMES * len(self._numbers)
        return self._left >= 0

    def _found(self, shown: str, at: int, numbers: Iterable[int]) -> str | None:
        for place in range(self._next, min(self._next + _NEAR_NAMES, len(self._made))):
            for number in numbers:
                if hidden(self._made[place], number) == shown:
                    self._next, self._shift = place + 1, number - at
                    return self._made[place]
        return None

    def _anywhere(self, wanted: Set[str]) -> dict[str, str]:
        names = list(dict.fromkeys(self._made))[: _MAX_TRIED // len(self._numbers)]
        tried = ((hidden(name, number), name) for name in names for number in self._numbers)
        return {shown: name for shown, name in tried if shown in wanted}


def _with_own(turn: Turn, known: dict[str, str]) -> Turn:
    items = tuple(_renamed(item, known) for item in turn.items)
    return turn if items == turn.items else turn.with_items(items)


def _renamed(item: Item, known: dict[str, str]) -> Item:
    match item:
        case ToolCall(id=str() as name) if name in known:
            return replace(item, id=known[name])
        case ToolResult(call_id=str() as name) if name in known:
            return replace(item, call_id=known[name])
        case _:
            return item
