"""A conversation without what its tools gave back: clients clear old results, and write several steps into one turn.

What the user says counts turn by turn, and system messages inside the conversation too. Of the model, between two turns
of the user, all words count as one text and all calls, with their ids, as one list: so it is the same whichever of them
stood together. Results don't count at all.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

from thoughtline.replay.visible import Shown
from thoughtline.values.digests import digest

if TYPE_CHECKING:
    from _hashlib import HASH

_NEXT = "\0"
"""Stands for a turn of the user, among the words and among the calls."""


Mark: TypeAlias = tuple[int, int, int]
"""How much had been said at some point: turns of the user, words, calls."""

NOTHING_SAID: Mark = (0, 0, 0)

Hashes: TypeAlias = tuple["HASH", "HASH", "HASH"]
"""Of turns of the user, words and calls."""


class Outline:
    """What has been visible so far, but for results. Digests that are asked for in order are made in one go.

    `start` are the hashes of another one that this one goes on from.
    """

    def __init__(self, start: Hashes | None = None) -> None:
        self._users: list[bytes] = []
        self._words: list[str] = []
        self._calls: list[str] = []
        self._start = start if start is not None else (sha256(), sha256(), sha256())
        self._begin()

    def _begin(self) -> None:
        self._read = NOTHING_SAID
        self._hashes = _copies(self._start)

    def hear(self, said: bytes) -> None:
        """A turn that is not the model's, without its results."""
        self._users.append(said)
        self._words.append(_NEXT)
        self._calls.append(_NEXT)

    def say(self, shown: Shown) -> None:
        """A step of the model."""
        self._words.append(shown.words)
        self._calls += shown.calls

    def mark(self) -> Mark:
        return len(self._users), len(self._words), len(self._calls)

    def hashes(self, mark: Mark) -> Hashes:
        """Those of all before a point, to go on from there."""
        self.before(mark)
        return _copies(self._hashes)

    def before(self, mark: Mark) -> bytes:
        """The digest of all before a point."""
        if mark < self._read:
            self._begin()
        at, self._read = self._read, mark
        users, words, calls = self._hashes
        users.update(b"\0".join([*self._users[at[0] : mark[0]], b""]))
        words.update("".join(self._words[at[1] : mark[1]]).encode())
        calls.update("".join(self._calls[at[2] : mark[2]]).encode())
        return digest(b"".join([one.digest() for one in self._hashes]))


def _copies(hashes: Hashes) -> Hashes:
    users, words, calls = hashes
    return users.copy(), words.copy(), calls.copy()
