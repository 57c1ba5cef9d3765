"""One request as a provider's rules see it, and the rows that a simulator is made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from thoughtline.values.turns import FormatName
from thoughtline_sim.ledger import Ledger
from thoughtline_sim.model import OfferedTools
from thoughtline_sim.tokens import Mint
from thoughtline_sim.values import InputMessage, ModelAnswer, Rejection
from thoughtline_sim.wire import JsonObject, string


class SimExchange(NamedTuple):
    """A request that could be read, with all that its rules and its answer may depend on."""

    body: JsonObject
    history: tuple[InputMessage, ...]
    model: str
    account: str
    profile: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    is_streaming: bool
    mint: Mint
    ledger: Ledger
    notes: dict[str, list[JsonObject]]
    """What rules found that is no error but is told in the answer, such as dropped blocks."""
    thinks: bool = True


Rule: TypeAlias = Callable[[SimExchange], Rejection | None]
"""A predicate of a contract: the refusal if it is broken. Rules run in order; the first one answers."""


class WireFormat(NamedTuple):
    """How an API reads and writes."""

    format: FormatName
    problem_of: Callable[[JsonObject], str | None]
    read: Callable[[JsonObject], tuple[InputMessage, ...]]
    offer: Callable[[JsonObject], OfferedTools]
    write: Callable[[SimExchange, ModelAnswer], JsonObject]
    frames: Callable[[SimExchange, JsonObject, int], list[bytes]]
    echo: Callable[[JsonObject], JsonObject]
    """A request that holds nothing but this answer, as a client sends it back."""
    stream_type: Callable[[SimExchange], str]


def always(exchange: SimExchange) -> bool:
    return True


def model_in_body(body: JsonObject, path: str) -> str:
    return string(body.get("model"))


def streams_if_asked(body: JsonObject, path: str) -> bool:
    return body.get("stream") is True


class Api(NamedTuple):
    """A wire API of a provider: which paths it answers, how it reads and writes, and what it refuses."""

    path: re.Pattern[str]
    wire: WireFormat
    rules: tuple[Rule, ...]
    malformed: Callable[[str], Rejection]
    is_thinking: Callable[[SimExchange], bool] = always
    model_of: Callable[[JsonObject, str], str] = model_in_body
    is_streaming: Callable[[JsonObject, str], bool] = streams_if_asked
    counts: Callable[[SimExchange, int], JsonObject] | None = None
    """An API that answers with a number of tokens instead of a turn."""


class Simulator(NamedTuple):
    """A row of the table. The first profile is the one that is used if none is named."""

    name: str
    about: str
    models: tuple[str, ...]
    apis: tuple[Api, ...]
    profiles: tuple[str, ...] = ("default",)
