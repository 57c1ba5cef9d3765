"""The values of a simulator.

A request of any format is decoded to a list of `InputMessage`. The model returns a `ScriptedTurn` of pieces; the format
encodes them as a `ModelAnswer`. A request that breaks the provider's contract gets a `Rejection` instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec import Struct

from thoughtline_sim.pieces import CallTool, FinishWord, Piece, Redacted, Say, Think, Thought
from thoughtline_sim.reading import JsonObject

Role = Literal["system", "user", "assistant", "tool"]
Verdict = Literal["whole", "altered", "missing", "invented", "unknown", "none"]
"""The verdict on a turn's reasoning: `invented`: it came where there was none, `unknown`: the turn
was not sent here.
"""


class HttpRequest(NamedTuple):
    """An HTTP request, or one frame of a WebSocket with the headers of its upgrade. Header names are in lower case;
    `raw_path` has its escapes.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    raw_path: str = ""

    @property
    def is_websocket(self) -> bool:
        """No other request that the rules check is a GET."""
        return self.method == "GET"


class InputCall(Struct, frozen=True):
    """A call that came back: arguments in one spelling, so that only their meaning counts."""

    name: str
    arguments: str
    id: str | None = None
    signature: str = ""


class InputMessage(Struct, frozen=True):
    """One message of a request, as its provider reads it. `thoughts` are the reasoning in it, token and text."""

    role: Role
    index: int
    text: str = ""
    thoughts: tuple[str, ...] = ()
    calls: tuple[InputCall, ...] = ()
    results: tuple[str, ...] = ()
    raw: JsonObject = {}

    @property
    def is_person(self) -> bool:
        """Whether a person speaks here, not a tool."""
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
    """The answer to encode: the pieces, and the ids and numbers around them."""

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
        """All reasoning as one text, for formats with a single field for it."""
        return "\n\n".join(thought.text for thought in self.thoughts)

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces if isinstance(piece, Say))


class Rejection(Struct, frozen=True):
    """An error as the provider sends it. `message` is its text, for the log and the page."""

    status: int
    body: bytes
    message: str
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


def last_person(history: tuple[InputMessage, ...]) -> int:
    """The index of the last user message that is not a tool result; -1 if there is none."""
    return max((place for place, message in enumerate(history) if message.is_person), default=-1)
