"""An answer on its way down: pieces, and the stages that they go through."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from thoughtline.values.errors import Declined, DecodeError
from thoughtline.values.events import Event
from thoughtline.values.turns import Reply

MAX_WHOLE_BYTES = 32 * 2**20
"""As much of a whole response as is kept until it can be read; what is larger goes on unread."""


class Piece(Struct, gc=False):
    """Some bytes of an answer.

    `data` goes to the client at once; `ending`, which tells it that its turn is over, when that turn is saved:
    `ends_turn` says that there is one to save. `plain` is what the provider sent, without compression, `problem` why
    that can't be had. `events`, or in a whole answer its `reply`, are what it says; None where nobody could read it.
    """

    data: bytes
    ending: bytes = b""
    plain: bytes = b""
    problem: DecodeError | None = None
    events: list[Event] | None = None
    reply: Reply | None = None
    ends_turn: bool = False


class Stage(Protocol):
    """Changes pieces as they come by."""

    def feed(self, piece: Piece) -> None:
        """More of the answer."""

    def end(self, piece: Piece) -> None:
        """All of it was there: `piece` is what the stages before had left."""

    def cut(self, piece: Piece, problem: str) -> None:
        """It broke off."""


def too_large() -> Declined:
    return Declined(502, "answer_too_large", "The provider's answer is too large to be translated.")
