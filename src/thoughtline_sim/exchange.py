"""One request as a provider's rules see it, and the rows that define a simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from thoughtline.values.turns import FormatName
from thoughtline_sim.ledger import Ledger
from thoughtline_sim.model import OfferedTools
from thoughtline_sim.reading import JsonObject, as_object, string
from thoughtline_sim.refusals import openai_error
from thoughtline_sim.tokens import Mint
from thoughtline_sim.values import HttpRequest, InputMessage, ModelAnswer, Rejection

PLAIN_MODELS = ("gpt-4", "gpt-3", "chatgpt-4", "gpt-5-chat")
"""Beginnings of the names of models that don't reason."""


class SimExchange(NamedTuple):
    """A decoded request, with everything that its rules and its answer may depend on."""

    body: JsonObject
    history: tuple[InputMessage, ...]
    model: str
    account: str
    profile: str
    request: HttpRequest
    is_streaming: bool
    mint: Mint
    ledger: Ledger
    notes: dict[str, list[JsonObject]]
    """Observations of rules that are no errors but appear in the answer, such as dropped blocks."""
    unread: dict[str, str]
    """Reasoning that came back but that the model does not see, by its position: it is not billed."""
    thinks: bool = True


Rule: TypeAlias = Callable[[SimExchange], Iterator[str | Rejection]]
"""A part of a contract. It yields errors: a message for the provider's usual envelope, or a whole rejection.

Rules run in order; the first error is the answer.
"""
Reject: TypeAlias = Callable[[str], Rejection]
"""Puts a message into a provider's envelope."""
IsThinking: TypeAlias = Callable[[SimExchange], bool]


class WireFormat(NamedTuple):
    """How an API decodes and encodes."""

    format: FormatName
    problem_of: Callable[[JsonObject], str | None]
    read: Callable[[JsonObject], tuple[InputMessage, ...]]
    offer: Callable[[JsonObject], OfferedTools]
    write: Callable[[SimExchange, ModelAnswer], JsonObject]
    frames: Callable[[SimExchange, JsonObject, int], list[bytes]]
    echo: Callable[[JsonObject], JsonObject]
    """A request with only this answer in it, as a client sends it back."""
    stream_type: Callable[[SimExchange], str] = lambda exchange: "text/event-stream"


def unless_no_effort(exchange: SimExchange) -> bool:
    effort = as_object(exchange.body.get("reasoning")).get("effort") or exchange.body.get("reasoning_effort")
    return effort != "none" and not exchange.model.startswith(PLAIN_MODELS)


class Api(NamedTuple):
    """An API of a provider: its paths, its wire format, and its rules."""

    path: str
    """A pattern for the end of the path."""
    wire: WireFormat
    rules: tuple[Rule, ...]
    model_of: Callable[[JsonObject, str], str] = lambda body, path: string(body.get("model"))
    is_streaming: Callable[[JsonObject, str], bool] = lambda body, path: body.get("stream") is True
    counts: Callable[[int], JsonObject] | None = None
    """An API that answers with a number of tokens instead of a turn."""
    reject: Reject | None = None
    """If it is not the provider's usual envelope."""
    is_thinking: IsThinking | None = None
    """If it differs from the provider's other APIs."""
    inside: str = ""
    """The member of a body that contains the request itself."""
    has_websocket: bool = False
    """Whether the same URL also accepts a WebSocket."""


Aside: TypeAlias = JsonObject | Callable[[HttpRequest, str], JsonObject | Rejection]
"""What a simulator answers outside of its APIs: a constant, or a function of the request and the profile."""


class Simulator(NamedTuple):
    """A row of the table. The first profile is the default."""

    name: str
    about: str
    models: tuple[str, ...]
    apis: tuple[Api, ...]
    reject: Reject = openai_error
    is_thinking: IsThinking = unless_no_effort
    profiles: tuple[str, ...] = ("default",)
    others: tuple[tuple[str, Aside], ...] = ()
    """What it answers on other paths, by their patterns."""
