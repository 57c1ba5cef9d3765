"""Responses: ciphertext, pairs, what is stored and what is not; OpenAI, Azure, Copilot, xAI."""

from __future__ import annotations

import copy

import pytest

from tests.sim.faces import NO_STORE, Body, Case, Dialogue
from tests.sim.violations import OPENING, answered, called, case_of, flipped, openai

OPENAI = case_of("openai", "openai_responses")
STORED = OPENAI._replace(extra={"store": True})
AZURE = case_of("azure", "openai_responses")


def unverified(name: str, reason: str) -> Body:
    message = f"The encrypted content for item {name} could not be verified. Reason: {reason}"
    return openai(message, "input", "invalid_encrypted_content")


UNREADABLE = "Encrypted content could not be decrypted or parsed."


@pytest.mark.parametrize("case", [OPENAI, AZURE, case_of("copilot", "openai_responses")], ids=lambda case: case.id)
@pytest.mark.parametrize("change", ["flipped", "account", "announced"])
def test_ciphertext_not_ours(case: Case, change: str) -> None:
    """Altered; of another organisation; the incomplete copy of the event that announces an item."""
    dialogue = called(case, f"cipher {change}")
    item = dialogue.history[1]
    if change == "account":
        dialogue.key = "key-2"
    else:
        item["encrypted_content"] = (
            flipped(item["encrypted_content"]) if change == "flipped" else item["encrypted_content"][:-48]
        )
    response = dialogue.post()
    assert response.status_code == 400
    assert response.json() == unverified(item["id"], UNREADABLE)


def test_ciphertext_of_another_endpoint() -> None:
    """OpenAI's does not open on Azure, nor Azure's on OpenAI."""
    here, there = called(OPENAI, "here"), called(AZURE, "there")
    here.history[1]["encrypted_content"] = there.history[1]["encrypted_content"]
    assert here.post().json() == unverified(here.history[1]["id"], UNREADABLE)


def test_ciphertext_under_another_id() -> None:
    """It knows its item."""
    dialogue = called(OPENAI, "other id")
    dialogue.history[1]["id"] = "rs_other"
    reason = "Encrypted content item_id did not match the target item id."
    assert dialogue.post().json() == unverified("rs_other", reason)


def test_ids_off_and_nothing_is_paired() -> None:
    """Without ids, what opens is enough."""
    dialogue = called(OPENAI, "no ids")
    for item in dialogue.history:
        item.pop("id", None)
    assert dialogue.post().status_code == 200


def test_not_stored() -> None:
    """(404) An id that was never kept."""
    dialogue = called(OPENAI, "not stored")
    item = dialogue.history[1]
    del item["encrypted_content"]
    response = dialogue.post()
    assert response.status_code == 404
    assert response.json() == openai(
        f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to false. Try again with "
        "`store` set to true, or remove this item from your input.",
        "input",
    )


def test_stored_items_by_reference() -> None:
    """What is kept can be named."""
    dialogue = called(STORED, "by reference")
    assert "encrypted_content" not in dialogue.history[1]
    for at in (1, 2):
        dialogue.history[at] = {"type": "item_reference", "id": dialogue.history[at]["id"]}
    assert dialogue.post().status_code == 200


def test_previous_response() -> None:
    """A stored answer goes on by its id; one that was not stored is not found."""
    dialogue = Dialogue(STORED, OPENING.format(mark="previous"))
    whole = dialogue.ask()
    calls = dialogue.wire.calls(whole)
    dialogue.body["previous_response_id"] = whole["id"]
    dialogue.history[:] = dialogue.wire.results(calls)
    assert dialogue.post().status_code == 200
    dialogue.body["previous_response_id"] = "resp_unknown"
    response = dialogue.post()
    assert response.status_code == 400
    assert response.json() == openai(
        "Previous response with id 'resp_unknown' not found.", "previous_response_id", "previous_response_not_found"
    )


def test_pairs() -> None:
    """Of what is stored: reasoning without its follower, and a call without its reasoning."""
    dialogue = called(STORED, "pairs")
    before = copy.deepcopy(dialogue.history)
    reasoning, call = before[1]["id"], before[2]["id"]
    del dialogue.history[2]["id"]
    assert dialogue.post().json() == openai(
        f"Item '{reasoning}' of type 'reasoning' was provided without its required following item.", "input"
    )
    dialogue.history[:] = [before[0], *before[2:]]
    assert dialogue.post().json() == openai(
        f"Item '{call}' of type 'function_call' was provided without its required 'reasoning' item: '{reasoning}'.",
        "input",
    )


def test_nothing_is_paired_that_is_not_stored() -> None:
    """With `store: false` a named item may stand before an unnamed partner, and either may be left out: 9 of 9
    recordings."""
    dialogue = called(OPENAI, "unpaired")
    whole = copy.deepcopy(dialogue.history)
    del dialogue.history[2]["id"]
    assert dialogue.post().status_code == 200
    dialogue.history[:] = [whole[0], *whole[2:]]
    assert dialogue.post().status_code == 200


def test_a_message_without_its_reasoning() -> None:
    """The same for a message."""
    dialogue = answered(STORED, "message pair")
    message = next(item for item in dialogue.history if item.get("type") == "message")
    reasoning = dialogue.history[dialogue.history.index(message) - 1]
    dialogue.history.remove(reasoning)
    assert dialogue.post().json() == openai(
        f"Item '{message['id']}' of type 'message' was provided without its required 'reasoning' item: "
        f"'{reasoning['id']}'.",
        "input",
    )


def test_duplicates() -> None:
    """The same item twice."""
    dialogue = called(OPENAI, "twice")
    dialogue.history.append(dialogue.history[1])
    name = dialogue.history[1]["id"]
    assert dialogue.post().json() == openai(
        f"Duplicate item found with id {name}. Remove duplicate items from your input and try again.", "input"
    )


XAI = case_of("xai", "openai_responses")


def test_xai() -> None:
    """Flat errors, `error` a string; cross-account replay is taken."""
    dialogue = called(XAI, "xai")
    dialogue.key = "key-2"
    assert dialogue.post().status_code == 200
    kept = dialogue.history[1].pop("summary")
    assert dialogue.post().text == (
        '{"code":"invalid-argument","error":"Could not decode the compaction blob. Ensure it is unmodified from the '
        'compact response."}'
    )
    dialogue.history[1]["summary"] = kept
    dialogue.history[1]["encrypted_content"] = flipped(dialogue.history[1]["encrypted_content"])
    response = dialogue.post()
    assert response.status_code == 400
    assert response.text == (
        '{"code":"invalid-argument","error":"Could not decrypt the provided encrypted_content. Ensure the value is the '
        'unmodified encrypted_content from a previous response."}'
    )


def test_effort_that_a_model_has_not() -> None:
    """Recorded: o4-mini knows three."""
    case = case_of("openai", "openai_responses")._replace(model="o4-mini", extra=NO_STORE)
    response = Dialogue(case, "hi", reasoning={"effort": "minimal"}).post()
    assert response.json() == openai(
        "Unsupported value: 'minimal' is not supported with the 'o4-mini' model. Supported values are: "
        "'low', 'medium', "
        "and 'high'.",
        "reasoning.effort",
        "unsupported_value",
    )


def test_call_ids_that_are_too_long_for_chat() -> None:
    """OpenAI takes 40 characters, in a call and in its result."""
    dialogue = Dialogue(case_of("openai", "openai_chat"), "hi")
    name = "chatcmpl-tool-" + "0" * 32
    call = {"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    dialogue.history.append({"role": "assistant", "content": None, "tool_calls": [call]})
    place = "messages[1].tool_calls[0].id"
    sentence = (
        f"Invalid '{place}': string too long. Expected a string with maximum length 40, but got a string with length "
        "46 instead."
    )
    assert dialogue.post().json() == openai(sentence, place, "string_above_max_length")


def test_no_conversation_is_known() -> None:
    """By its id, or in an object."""
    for conversation in ("conv_1", {"id": "conv_1"}):
        response = Dialogue(STORED, "hi", conversation=conversation).post()
        assert (response.status_code, response.json()) == (
            404,
            openai("Conversation with id 'conv_1' not found.", None),
        )
