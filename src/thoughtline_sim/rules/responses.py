"""The Responses API: pairs by id, ciphertext by item, account and endpoint (contracts.md §12, §14)."""

from __future__ import annotations

from thoughtline_sim.exchange import Rule, SimExchange
from thoughtline_sim.refusals import openai_error, xai_error
from thoughtline_sim.tokens import OPENAI, XAI
from thoughtline_sim.values import Rejection
from thoughtline_sim.wire import JsonObject, as_object, objects, string
from thoughtline_sim.wires.responses import history_of, is_hosted, items_of, kind_of
from thoughtline_sim.wires.responses_styles import openai_bound

MAX_CALL_ID = 40
_EFFORTS = {"o1": ("low", "medium", "high"), "o3": ("low", "medium", "high"), "o4": ("low", "medium", "high")}


def _refuse(message: str, status: int = 400, code: str | None = None) -> Rejection:
    return openai_error(message, status, "input", code)


def previous_known(exchange: SimExchange) -> Rejection | None:
    name = exchange.body.get("previous_response_id")
    if name is None:
        return None
    known = exchange.ledger.responses.get((exchange.account, string(name)))
    if known is not None and known.is_stored:
        return None
    return openai_error(
        f"Previous response with id '{string(name)}' not found.",
        400,
        "previous_response_id",
        "previous_response_not_found",
    )


def conversation_known(exchange: SimExchange) -> Rejection | None:
    """Nobody can make one here, so none is known."""
    told = exchange.body.get("conversation")
    name = string(told) or string(as_object(told).get("id"))
    return openai_error(f"Conversation with id '{name}' not found.", 404) if told is not None else None


def no_duplicates(exchange: SimExchange) -> Rejection | None:
    seen: set[str] = set()
    for item in items_of(exchange.body):
        name = string(item.get("id"))
        if name and name in seen and kind_of(item) != "item_reference":
            return _refuse(
                f"Duplicate item found with id {name}. Remove duplicate items from your input and try again."
            )
        seen.add(name)
    return None


def status_not_null(exchange: SimExchange) -> Rejection | None:
    for index, item in enumerate(items_of(exchange.body)):
        if "status" in item and item["status"] is None:
            return openai_error(
                f"Invalid type for 'input[{index}].status': expected one of 'in_progress', 'completed', or "
                "'incomplete', "
                "but got null instead.",
                400,
                f"input[{index}].status",
                "invalid_type",
            )
    return None


def effort_supported(exchange: SimExchange) -> Rejection | None:
    """Recorded for o4-mini."""
    effort = as_object(exchange.body.get("reasoning")).get("effort")
    known = next((efforts for name, efforts in _EFFORTS.items() if exchange.model.startswith(name)), None)
    if effort is None or known is None or effort in known:
        return None
    told = ", ".join(f"'{name}'" for name in known[:-1])
    return openai_error(
        f"Unsupported value: '{effort}' is not supported with the '{exchange.model}' model. Supported values are: "
        f"{told}, and '{known[-1]}'.",
        400,
        "reasoning.effort",
        "unsupported_value",
    )


PLAIN_MODELS = ("gpt-4", "gpt-3", "chatgpt-4", "gpt-5-chat")
"""Beginnings of models that don't reason."""


def ciphertext_supported(exchange: SimExchange) -> Rejection | None:
    """A model that does not reason neither gives nor takes ciphertext (contracts.md §12.1)."""
    if not exchange.model.startswith(PLAIN_MODELS):
        return None
    included = exchange.body.get("include")
    asked = isinstance(included, list) and "reasoning.encrypted_content" in included
    sealed = (item for item in items_of(exchange.body) if kind_of(item) == "reasoning")  # a compaction is taken
    if asked or any(item.get("encrypted_content") for item in sealed):
        message = "Encrypted content is not supported with this model."
        return openai_error(message, 400, "include" if asked else "input")
    return None


def ciphertext_opens(exchange: SimExchange) -> Rejection | None:
    """Made here, for this account, and for the item that carries it."""
    for item in items_of(exchange.body):
        token = item.get("encrypted_content")
        if kind_of(item) != "reasoning" or not token:
            continue
        name = string(item.get("id"))
        claims = exchange.mint.open(string(token), openai_bound(exchange), OPENAI)
        if claims is None:
            return _unverified(name, string(token), "Encrypted content could not be decrypted or parsed.")
        if name and claims["item"] != name:
            return _unverified(name, string(token), "Encrypted content item_id did not match the target item id.")
    return None


def _unverified(name: str, token: str, reason: str) -> Rejection:
    told = f"for item {name}" if name else f"{token[:5]}..."
    message = f"The encrypted content {told} could not be verified. Reason: {reason}"
    return _refuse(message, code="invalid_encrypted_content")


def items_kept(exchange: SimExchange) -> Rejection | None:
    """An id without ciphertext, or a reference, is looked up."""
    for item in items_of(exchange.body):
        kind, name = kind_of(item), string(item.get("id"))
        is_lookup = kind == "item_reference" or (kind == "reasoning" and not item.get("encrypted_content"))
        known = exchange.ledger.response_of_item(exchange.account, name)
        if is_lookup and name and (known is None or not known.is_stored):
            return _refuse(
                f"Item with id '{name}' not found. Items are not persisted when `store` is set to false. Try "
                "again with "
                "`store` set to true, or remove this item from your input.",
                404,
            )
    return None


def hosted_named(exchange: SimExchange) -> Rejection | None:
    """What the provider ran itself goes by its id (openai/codex#6926)."""
    for index, item in enumerate(items_of(exchange.body)):
        if is_hosted(item) and not string(item.get("id")):
            place = f"input[{index}].id"
            return openai_error(f"Missing required parameter: '{place}'.", 400, place, "missing_required_parameter")
    return None


def reasoning_has_follower(exchange: SimExchange) -> Rejection | None:
    """A reasoning item with an id must stand right before the item it was made with."""
    items = [*history_of(exchange), *items_of(exchange.body)]
    for place, item in enumerate(items):
        partner = _partner_of(exchange, item)
        follower = items[place + 1] if place + 1 < len(items) else {}
        if partner is not None and string(follower.get("id")) != partner:
            return _refuse(f"Item '{item['id']}' of type 'reasoning' was provided without its required following item.")
    return None


def _partner_of(exchange: SimExchange, item: JsonObject) -> str | None:
    """The id of what came next, in the answer that this reasoning item was part of."""
    name = string(item.get("id"))
    known = exchange.ledger.response_of_item(exchange.account, name) if kind_of(item) == "reasoning" and name else None
    if known is None:
        return None
    made = [string(other.get("id")) for other in known.items]
    place = made.index(name)
    return made[place + 1] if place + 1 < len(made) else None


def item_has_reasoning(exchange: SimExchange) -> Rejection | None:
    """What has an id needs the reasoning that stood before it: a message, a call, also one of the provider's own."""
    items = [*history_of(exchange), *items_of(exchange.body)]
    present = {string(item.get("id")) for item in items}
    for item in items:
        needed = _needed_by(exchange, item)
        if needed is not None and needed not in present:
            kind = kind_of(item)
            return _refuse(
                f"Item '{item['id']}' of type '{kind}' was provided without its required 'reasoning' item: '{needed}'."
            )
    return None


def _needed_by(exchange: SimExchange, item: JsonObject) -> str | None:
    name = string(item.get("id"))
    is_led = kind_of(item) not in ("reasoning", "item_reference")
    known = exchange.ledger.response_of_item(exchange.account, name) if is_led and name else None
    if known is None:
        return None
    before: str | None = None
    for other in known.items:
        if other.get("id") == name:
            return before
        if other.get("type") == "reasoning":
            before = string(other.get("id"))
    return None


OPENAI_RULES: tuple[Rule, ...] = (
    effort_supported,
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
)


# xAI


def xai_summary_given(exchange: SimExchange) -> Rejection | None:
    for item in items_of(exchange.body):
        if kind_of(item) == "reasoning" and "summary" not in item:
            return xai_error("Could not decode the compaction blob. Ensure it is unmodified from the compact response.")
    return None


def xai_ciphertext_opens(exchange: SimExchange) -> Rejection | None:
    for item in items_of(exchange.body):
        token = item.get("encrypted_content")
        is_sealed = kind_of(item) == "reasoning" and bool(token)
        if is_sealed and exchange.mint.open(string(token), ("xai",), XAI) is None:
            return xai_error(
                "Could not decrypt the provided encrypted_content. Ensure the value is the unmodified "
                "encrypted_content "
                "from a previous response."
            )
    return None


# OpenAI's chat


def chat_parameters_known(exchange: SimExchange) -> Rejection | None:
    """Reasoning has no place in this API, neither beside the messages nor in them (contracts.md §12.2); nor has any
    other member of a message that it does not know."""
    for name in ("reasoning", "thinking", "include_reasoning"):
        if name in exchange.body:
            return _unknown(name)
    for index, message in enumerate(objects(exchange.body.get("messages"))):
        for name in message:
            if name not in _MESSAGE_KEYS:
                return _unknown(f"messages[{index}].{name}")
    return None


def chat_call_ids_fit(exchange: SimExchange) -> Rejection | None:
    for index, message in enumerate(objects(exchange.body.get("messages"))):
        places = [(f"messages[{index}].tool_call_id", message.get("tool_call_id"))]
        for number, call in enumerate(objects(message.get("tool_calls"))):
            places.append((f"messages[{index}].tool_calls[{number}].id", call.get("id")))
        for place, name in places:
            if len(string(name)) > MAX_CALL_ID:
                sentence = (
                    f"Invalid '{place}': string too long. Expected a string with maximum length {MAX_CALL_ID}, but got "
                    f"a string with length {len(string(name))} instead."
                )
                return openai_error(sentence, 400, place, "string_above_max_length")
    return None


_MESSAGE_KEYS = frozenset(
    {"role", "content", "name", "refusal", "audio", "annotations", "tool_calls", "tool_call_id", "function_call"}
)


def _unknown(place: str) -> Rejection:
    return openai_error(f"Unknown parameter: '{place}'.", 400, place, "unknown_parameter")


def chat_effort_with_tools(exchange: SimExchange) -> Rejection | None:
    """Recorded for gpt-5.4-mini; the recording kept nothing of the error but its message."""
    effort = exchange.body.get("reasoning_effort")
    if exchange.model.startswith("gpt-5.4") and exchange.body.get("tools") and effort not in (None, "none"):
        message = (
            f"Function tools with reasoning_effort are not supported for {exchange.model} in /v1/chat/completions. "
            "Please use /v1/responses instead."
        )
        return openai_error(message, 400, "reasoning_effort")
    return None
