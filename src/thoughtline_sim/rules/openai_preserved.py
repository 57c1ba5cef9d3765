"""Preserved reasoning: OpenAI's newer models silently drop reasoning whose history was edited.

The API compares the items before a reasoning item with the original ones (developers.openai.com, "Preserved
reasoning"). A drop shows only in the usage: fewer input and cached tokens, more reasoning. A probe of gpt-6-astra
(2026-09-26) still read such reasoning; the profile `unchecked` does that.
"""

from __future__ import annotations

from collections.abc import Iterator

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.reading import JsonObject, as_object, string
from thoughtline_sim.rules.openai_models import model_named
from thoughtline_sim.tokens import OPENAI
from thoughtline_sim.values import Rejection
from thoughtline_sim.wires.responses import history_of, is_model_item, items_of, kind_of, openai_bound, prefix_digest


def reasoning_preserved(exchange: SimExchange) -> Iterator[Rejection]:
    """Rejects nothing: it notes the reasoning that the model does not see."""
    model = model_named(exchange.model)
    items = [*history_of(exchange), *items_of(exchange.body)]
    last_user = max((at for at, item in enumerate(items) if item.get("role") == "user"), default=-1)
    context = string(as_object(exchange.body.get("reasoning")).get("context")) or "auto"
    sees_all = context == "all_turns" or (context == "auto" and model.preserves)
    start = 0
    for at, item in enumerate(items):
        if not is_model_item(item):
            start = at + 1
        if kind_of(item) != "reasoning":
            continue
        made = _made_after(exchange, item)
        is_edited = (
            model.preserves and exchange.profile != "unchecked" and made not in ("", prefix_digest(items[:start]))
        )
        if is_edited or (at < last_user and not sees_all):
            exchange.unread[f"input[{at}]"] = string(item.get("encrypted_content")) or string(item.get("id"))
    yield from ()


def _made_after(exchange: SimExchange, item: JsonObject) -> str:
    """The original history before an item; empty if it is unknown."""
    claims = exchange.mint.open(string(item.get("encrypted_content")), openai_bound(exchange), OPENAI)
    if claims is not None:
        return string(claims.get("after"))
    known = exchange.ledger.response_of_item(exchange.account, string(item.get("id")))
    return prefix_digest(known.before) if known is not None else ""
