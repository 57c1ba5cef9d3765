"""The nouns of a simulator.

A request is read as a list of `InputMessage`, whichever wire it came by. The model takes a `ScriptedTurn` of pieces;
the wire writes them as a `ModelAnswer`. A request that breaks the provider's contract gets a `Rejection` instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec import Struct

from thoughtline_sim.pieces import CallTool, FinishWord, Piece, Redacted, Say, Think, Thought
from thoughtline_sim.reading import JsonObject

Role = Literal["system", "user", "assistant", "tool"]
Verdict = Literal["whole", "altered", "missing", "invented", "unknown", "none"]
"""What became of a turn's reasoning: `invented` came where there was none, `unknown` is of a turn not said here."""


class HttpRequest(NamedTuple):
    """An HTTP request that was read whole, or one frame of a WebSocket behind the head of its upgrade. Header names are
    in lower case; `raw_path` has its escapes."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    raw_path: str = ""

    @property
    def is_websocket(self) -> bool:
        """Nothing else that is judged begins with a GET."""
        return self.method == "GET"


class InputCall(Struct, frozen=True):
    """A call as it came back: arguments in one spelling, so that only their meaning counts."""

    name: str
    arguments: str
    id: str | None = None
    signature: str = ""


class InputMessage(Struct, frozen=True):
    """One message of a request, as its provider reads it. `thoughts` are the reasoning it carries, token and text."""

    role: Role
    index: int
    text: str = ""
    thoughts: tuple[str, ...] = ()
    calls: tuple[InputCall, ...] = ()
    results: tuple[str, ...] = ()
    raw: JsonObject = {}

    @property
    def is_person(self) -> bool:
        """Whether somebody speaks here, and not a tool through them."""
        return self.role == "user" and not self.results


class Tool(Struct, frozen=True):
    name: str
    schema: JsonObject


class TokenCounts(Struct, frozen=True):
    """Tokens, as four characters each; `output` includes `reasoning`, `input` includes `cached`."""

    input: int
    output: int
    reasoning: int
    cached: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output


class ModelAnswer(Struct, frozen=True):
    """What is to be written: the pieces, and the ids and numbers around them."""

    id: str
    model: str
    created: int
    pieces: tuple[Piece, ...]
    finish: FinishWord
    usage: TokenCounts
    has_ids: bool = True

    @property
    def calls(self) -> tuple[CallTool, ...]:
        return tuple(piece for piece in self.pieces if isinstance(piece, CallTool))

    @property
    def thoughts(self) -> tuple[Thought, ...]:
        return tuple(piece for piece in self.pieces if isinstance(piece, (Think, Redacted)))

    @property
    def thinking(self) -> str:
        """All reasoning as one text, for the wires that have one field for it."""
        return "\n\n".join(thought.text for thought in self.thoughts)

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces if isinstance(piece, Say))


class Rejection(Struct, frozen=True):
    """An error as the provider sends it. `message` is its sentence, for the log and the page."""

    status: int
    body: bytes
    message: str
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


def last_person(history: tuple[InputMessage, ...]) -> int:
    """Where the last user message that is not a tool result stands in the list; -1 if nobody spoke."""
    return max((place for place, message in enumerate(history) if message.is_person), default=-1)
