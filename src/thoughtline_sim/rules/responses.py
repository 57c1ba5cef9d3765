"""The Responses API: pairs by id, ciphertext by item, account and endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from thoughtline_sim.exchange import PLAIN_MODELS, Rule, SimExchange
from thoughtline_sim.reading import JsonObject, as_object, objects, string
from thoughtline_sim.refusals import openai_error
from thoughtline_sim.rules import openai_preserved, openai_settings
from thoughtline_sim.tokens import OPENAI, XAI
from thoughtline_sim.values import Rejection
from thoughtline_sim.wires.responses import (
    history_of,
    includes_ciphertext,
    is_hosted,
    is_stored,
    items_of,
    kind_of,
    openai_bound,
)

MAX_CALL_ID = 40


def _about_input(message: str, status: int = 400, code: str | None = None) -> Rejection:
    return openai_error(message, status, param="input", code=code)


def previous_not_found(name: str) -> Rejection:
    message = f"Previous response with id '{name}' not found."
    return openai_error(message, param="previous_response_id", code="previous_response_not_found")


def previous_known(exchange: SimExchange) -> Iterator[Rejection]:
    name = exchange.body.get("previous_response_id")
    known = exchange.ledger.responses.get((exchange.account, string(name)))
    if name is not None and (known is None or not known.is_stored):
        yield previous_not_found(string(name))


def no_frame_members(exchange: SimExchange) -> Iterator[Rejection]:
    """Members that only a frame of a WebSocket may have (openai-python, `ResponseCreate`); unknown members are
    rejected.
    """
    for name in () if exchange.request.is_websocket else ("type", "stream_id", "generate"):
        if name in exchange.body:
            yield openai_error(f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")


def conversation_known(exchange: SimExchange) -> Iterator[Rejection]:
    """This simulator can't create one, so none is known."""
    conversation = exchange.body.get("conversation")
    if conversation is not None:
        name = string(conversation) or string(as_object(conversation).get("id"))
        yield openai_error(f"Conversation with id '{name}' not found.", 404)


def no_duplicates(exchange: SimExchange) -> Iterator[Rejection]:
    seen: set[str] = set()
    for item in items_of(exchange.body):
        name = string(item.get("id"))
        if name and name in seen and kind_of(item) != "item_reference":
            yield _about_input(
                f"Duplicate item found with id {name}. Remove duplicate items from your input and try again."
            )
        seen.add(name)


def status_not_null(exchange: SimExchange) -> Iterator[Rejection]:
    """A call may omit it (recorded on gpt-5)."""
    for index, item in enumerate(items_of(exchange.body)):
        if "status" in item and item["status"] is None and kind_of(item) != "function_call":
            place = f"input[{index}].status"
            message = (
                f"Invalid type for '{place}': expected one of 'in_progress', 'completed', or 'incomplete', but got "
                "null instead."
            )
            yield openai_error(message, param=place, code="invalid_type")


def _sealed_items(exchange: SimExchange) -> Iterator[JsonObject]:
    """Reasoning items with ciphertext; a compaction has some too, and is accepted."""
    for item in items_of(exchange.body):
        if kind_of(item) == "reasoning" and item.get("encrypted_content"):
            yield item


def ciphertext_supported(exchange: SimExchange) -> Iterator[Rejection]:
    """A model that does not reason neither returns nor accepts ciphertext."""
    is_asked = includes_ciphertext(exchange)
    if exchange.model.startswith(PLAIN_MODELS) and (is_asked or any(_sealed_items(exchange))):
        message = "Encrypted content is not supported with this model."
        yield openai_error(message, param="include" if is_asked else "input")


def ciphertext_opens(exchange: SimExchange) -> Iterator[Rejection]:
    """Issued here, for this account, and for the item that has it."""
    for item in _sealed_items(exchange):
        name, token = string(item.get("id")), string(item["encrypted_content"])
        claims = exchange.mint.open(token, openai_bound(exchange), OPENAI)
        if claims is not None and (not name or claims["item"] == name):
            continue
        place = f"for item {name}" if name else f"{token[:5]}..."
        reason = "item_id did not match the target item id." if claims else "could not be decrypted or parsed."
        message = f"The encrypted content {place} could not be verified. Reason: Encrypted content {reason}"
        yield _about_input(message, code="invalid_encrypted_content")


def items_kept(exchange: SimExchange) -> Iterator[Rejection]:
    """An id without ciphertext, or a reference, is looked up."""
    for item in items_of(exchange.body):
        kind, name = kind_of(item), string(item.get("id"))
        is_lookup = kind == "item_reference" or (kind == "reasoning" and not item.get("encrypted_content"))
        known = exchange.ledger.response_of_item(exchange.account, name)
        if is_lookup and name and (known is None or not known.is_stored):
            message = (
                f"Item with id '{name}' not found. Items are not persisted when `store` is set to false. Try again "
                "with `store` set to true, or remove this item from your input."
            )
            yield _about_input(message, 404)


def hosted_named(exchange: SimExchange) -> Iterator[Rejection]:
    """Calls of tools that the provider ran are identified by id (openai/codex#6926)."""
    for index, item in enumerate(items_of(exchange.body)):
        if is_hosted(item) and not string(item.get("id")):
            place = f"input[{index}].id"
            yield openai_error(
                f"Missing required parameter: '{place}'.", param=place, code="missing_required_parameter"
            )


def _made_with(exchange: SimExchange, item: JsonObject) -> tuple[list[JsonObject], int]:
    """The items of the answer that an item belongs to, and its position among them; -1 if it belongs to none."""
    name = string(item.get("id"))
    known = exchange.ledger.response_of_item(exchange.account, name) if name else None
    made = list(known.items) if known is not None else []
    return made, next((place for place, other in enumerate(made) if other.get("id") == name), -1)


def reasoning_has_follower(exchange: SimExchange) -> Iterator[Rejection]:
    """A reasoning item with an id must come right before the item it was made with, unless nothing is stored: nine
    recordings with `store: false` and ciphertext were accepted.
    """
    items = [*history_of(exchange), *items_of(exchange.body), {}] if is_stored(exchange) else []
    for item, follower in pairwise(items):
        made, place = _made_with(exchange, item)
        is_led = item.get("type") == "reasoning" and 0 <= place < len(made) - 1
        if is_led and string(follower.get("id")) != string(made[place + 1].get("id")):
            yield _about_input(
                f"Item '{item['id']}' of type 'reasoning' was provided without its required following item."
            )


def item_has_reasoning(exchange: SimExchange) -> Iterator[Rejection]:
    """An item with an id requires the reasoning before it: a message, a call, even of a tool that the provider runs.
    Unless nothing is stored, as above.
    """
    items = [*history_of(exchange), *items_of(exchange.body)] if is_stored(exchange) else []
    present = {string(item.get("id")) for item in items}
    for item in items:
        kind = kind_of(item)
        made, place = _made_with(exchange, item)
        before = [string(other.get("id")) for other in made[: max(place, 0)] if other.get("type") == "reasoning"]
        if kind not in ("reasoning", "item_reference") and before and before[-1] not in present:
            yield _about_input(
                f"Item '{item['id']}' of type '{kind}' was provided without its required 'reasoning' item: "
                f"'{before[-1]}'."
            )


OPENAI_RULES: tuple[Rule, ...] = (
    no_frame_members,
    openai_settings.codex_stores_nothing,
    openai_settings.effort_supported,
    openai_settings.sampling_supported,
    openai_settings.may_summarize,
    previous_known,
    conversation_known,
    status_not_null,
    no_duplicates,
    ciphertext_supported,
    ciphertext_opens,
    items_kept,
    hosted_named,
    reasoning_has_follower,
    item_has_reasoning,
    openai_preserved.reasoning_preserved,
)


# xAI


def xai_summary_given(exchange: SimExchange) -> Iterator[str]:
    for item in items_of(exchange.body):
        if kind_of(item) == "reasoning" and "summary" not in item:
            yield "Could not decode the compaction blob. Ensure it is unmodified from the compact response."


def xai_ciphertext_opens(exchange: SimExchange) -> Iterator[str]:
    for item in _sealed_items(exchange):
        if exchange.mint.open(string(item["encrypted_content"]), ("xai",), XAI) is None:
            yield (
                "Could not decrypt the provided encrypted_content. Ensure the value is the unmodified "
                "encrypted_content from a previous response."
            )


# OpenAI's chat


_MESSAGE_KEYS = frozenset(
    {"role", "content", "name", "refusal", "audio", "annotations", "tool_calls", "tool_call_id", "function_call"}
)


def chat_parameters_known(exchange: SimExchange) -> Iterator[Rejection]:
    """Reasoning has no place in this API, neither next to the messages nor in them; nor has any other unknown member of
    a message.
    """
    unknown: list[str] = [name for name in ("reasoning", "thinking", "include_reasoning") if name in exchange.body]
    for index, message in enumerate(objects(exchange.body.get("messages"))):
        unknown += [f"messages[{index}].{name}" for name in message if name not in _MESSAGE_KEYS]
    for place in unknown:
        yield openai_error(f"Unknown parameter: '{place}'.", param=place, code="unknown_parameter")


def chat_call_ids_fit(exchange: SimExchange) -> Iterator[Rejection]:
    for index, message in enumerate(objects(exchange.body.get("messages"))):
        places = {f"messages[{index}].tool_call_id": string(message.get("tool_call_id"))}
        for number, call in enumerate(objects(message.get("tool_calls"))):
            places[f"messages[{index}].tool_calls[{number}].id"] = string(call.get("id"))
        for place, name in places.items():
            if len(name) > MAX_CALL_ID:
                message_text = (
                    f"Invalid '{place}': string too long. Expected a string with maximum length {MAX_CALL_ID}, but got "
                    f"a string with length {len(name)} instead."
                )
                yield openai_error(message_text, param=place, code="string_above_max_length")


CHAT_RULES: tuple[Rule, ...] = (
    chat_parameters_known,
    openai_settings.has_chat,
    openai_settings.chat_effort_supported,
    openai_settings.chat_tools_supported,
    openai_settings.chat_sampling_supported,
    chat_call_ids_fit,
)
