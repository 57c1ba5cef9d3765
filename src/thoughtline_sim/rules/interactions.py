"""Gemini's Interactions API. No public error of it is known for a thought that is missing or changed: that these are
refused as in generateContent, and every sentence here, is unverified."""

from __future__ import annotations

from collections.abc import Iterator

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.reading import string
from thoughtline_sim.refusals import gemini_error
from thoughtline_sim.tokens import GEMINI
from thoughtline_sim.values import Rejection, last_person
from thoughtline_sim.wires.generate import is_2_5
from thoughtline_sim.wires.interactions import bound_to


def previous_known(exchange: SimExchange) -> Iterator[Rejection]:
    """An interaction that was not kept can't be named."""
    name = string(exchange.body.get("previous_interaction_id"))
    known = exchange.ledger.responses.get((exchange.account, name)) if name else None
    if name and (known is None or not known.is_stored):
        yield gemini_error(f"Interaction {name} not found.", status=404)


def thoughts_lead_to_calls(exchange: SimExchange) -> Iterator[str]:
    """Of each turn since the last words of the user: a call stands behind a thought. Older models don't mind."""
    if is_2_5(exchange.model):
        return
    has_thought = False
    for message in exchange.history[last_person(exchange.history) + 1 :]:
        has_thought = bool(message.thoughts) or (has_thought and message.role == "assistant")
        if message.calls and not has_thought:
            yield f"Function call is missing a thought signature. Step {message.index + 1}, `{message.calls[0].name}`."


def signatures_open(exchange: SimExchange) -> Iterator[str]:
    for message in exchange.history:
        signature = string(message.raw.get("signature"))
        if signature and exchange.mint.open(signature, bound_to(exchange), GEMINI) is None:
            yield "Corrupted thought signature."
