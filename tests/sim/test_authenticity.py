"""Tokens that were altered, moved, minted elsewhere or for somebody else are detected, each with its own answer."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from tests.sim.faces import Body, Case, Dialogue, verdicts_of
from tests.sim.test_refusals import OPENING, answered, called, case_of, openai

Edit = Callable[[Dialogue], None]

CLASSIC = case_of("anthropic", "anthropic_messages", "classic")
ADAPTIVE = case_of("anthropic", "anthropic_messages", "adaptive")
BOUND = case_of("anthropic", "anthropic_messages", "bound")
DOCS = "https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking"
BETA = "thinking-binding-controls-2026-08-01"


def refusal(dialogue: Dialogue) -> str:
    """The sentence of an Anthropic error, its envelope checked."""
    response = dialogue.post()
    body = response.json()
    assert response.status_code == 400, body
    assert response.headers["content-type"] == "application/json"
    assert list(body) == ["type", "error", "request_id"]
    assert body["type"] == "error"
    assert body["error"]["type"] == "invalid_request_error"
    assert body["request_id"].startswith("req_")
    return str(body["error"]["message"])


def flipped(token: str) -> str:
    """A token with one character changed, somewhere in its middle."""
    middle = len(token) // 2
    return token[:middle] + ("A" if token[middle] != "A" else "B") + token[middle + 1 :]


def block(dialogue: Dialogue, at: int = 1) -> Body:
    first: Body = dialogue.history[at]["content"][0]
    return first


# Anthropic


def test_no_thinking_before_the_call() -> None:
    """(d1) Thinking is on and the turn that called does not start with it."""
    dialogue = called(CLASSIC, "d1")
    del dialogue.history[1]["content"][0]
    assert refusal(dialogue) == (
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is "
        "enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` "
        "and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this "
        f"requirement, disable `thinking`. Please consult our documentation at {DOCS}"
    )


def test_older_turns_may_lose_theirs() -> None:
    """Thinking of earlier turns is optional."""
    dialogue = answered(CLASSIC, "older")
    for at in (1, 3):
        del dialogue.history[at]["content"][0]
    assert dialogue.post().status_code == 200
    assert verdicts_of(dialogue) == ["missing", "missing"]


def test_adaptive_turns_may_have_none() -> None:
    """The rule about the first block is one of `enabled`."""
    dialogue = called(ADAPTIVE, "adaptive")
    del dialogue.history[1]["content"][0]
    assert dialogue.post().status_code == 200


def _trim(dialogue: Dialogue) -> None:
    block(dialogue)["thinking"] = block(dialogue)["thinking"].rstrip(".")


def _mark(dialogue: Dialogue) -> None:
    block(dialogue)["cache_control"] = {"type": "ephemeral"}


def _after_the_call(dialogue: Dialogue) -> None:
    content = dialogue.history[1]["content"]
    content[0], content[1] = content[1], content[0]


@pytest.mark.parametrize(("edit", "at"), [(_trim, 0), (_mark, 0), (_after_the_call, 1)])
def test_latest_turn_modified(edit: Edit, at: int) -> None:
    """(d2) Trimmed, marked for the cache, moved."""
    dialogue = called(CLASSIC, f"d2 {edit.__name__}")
    edit(dialogue)
    assert refusal(dialogue) == (
        f"messages.1.content.{at}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
        "modified. These blocks must remain as they were in the original response."
    )


INTERLEAVED = """{mark}
script:
think: First this.
call: weather {{"city": "Paris"}}
think: Then that.
redacted
call: weather {{"city": "Rome"}}
---
say: Done.
"""


@pytest.mark.parametrize("kept", [(0, 1, 3, 4), (0, 1, 3, 2, 4), (2, 1, 0, 3, 4)], ids=["removed", "swapped", "traded"])
def test_one_of_several_blocks_gone_or_moved(kept: tuple[int, ...]) -> None:
    """(d2) A turn's blocks go back all together and in their order."""
    dialogue = Dialogue(CLASSIC, INTERLEAVED.format(mark=f"several {kept}"))
    dialogue.go_on(dialogue.ask())
    content = dialogue.history[1]["content"]
    dialogue.history[1]["content"] = [content[place] for place in kept]
    assert "cannot be modified" in refusal(dialogue)


def test_one_answer_in_two_messages() -> None:
    """(d2) An answer that is split over several assistant messages is modified."""
    dialogue = Dialogue(CLASSIC, INTERLEAVED.format(mark="split"))
    dialogue.go_on(dialogue.ask())
    content = dialogue.history[1]["content"]
    halves = [{"role": "assistant", "content": content[:2]}, {"role": "assistant", "content": content[2:]}]
    dialogue.history[1:2] = halves
    assert refusal(dialogue).startswith("messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest")


def test_interleaved_and_redacted_pass() -> None:
    """Unchanged, all of it is taken."""
    dialogue = Dialogue(CLASSIC, INTERLEAVED.format(mark="fine"))
    dialogue.go_on(dialogue.ask())
    assert [b["type"] for b in dialogue.history[1]["content"]] == [
        "thinking",
        "tool_use",
        "thinking",
        "redacted_thinking",
        "tool_use",
    ]
    assert dialogue.post().status_code == 200


def _flip(dialogue: Dialogue) -> None:
    block(dialogue)["signature"] = flipped(block(dialogue)["signature"])


def _cut(dialogue: Dialogue) -> None:
    block(dialogue)["signature"] = block(dialogue)["signature"][:-40]


def _empty(dialogue: Dialogue) -> None:
    block(dialogue)["signature"] = ""


def _other_model(dialogue: Dialogue) -> None:
    dialogue.body["model"] = "claude-opus-4-5"


def _other_account(dialogue: Dialogue) -> None:
    dialogue.key = "key-2"


@pytest.mark.parametrize("edit", [_flip, _cut, _empty, _other_model, _other_account])
def test_signature_not_ours(edit: Edit) -> None:
    """(d3) Altered, cut, empty, of another model, of another account."""
    dialogue = called(CLASSIC, f"d3 {edit.__name__}")
    edit(dialogue)
    assert refusal(dialogue) == "messages.1.content.0: Invalid `signature` in `thinking` block"


def test_text_of_an_older_turn_changed() -> None:
    """(d3) A good signature under a text that is not its own; in the latest turn that is (d2)."""
    dialogue = answered(CLASSIC, "foreign text")
    block(dialogue)["thinking"] = "I never thought that."
    assert refusal(dialogue) == "messages.1.content.0: Invalid `signature` in `thinking` block"


def test_redacted_not_ours() -> None:
    """(d4)"""
    dialogue = Dialogue(CLASSIC, "d4\nscript:\nredacted\ncall: weather {}\n---\nsay: done")
    dialogue.go_on(dialogue.ask())
    block(dialogue)["data"] = flipped(block(dialogue)["data"])
    assert refusal(dialogue) == "messages.1.content.0: Invalid `data` in `redacted_thinking` block"


def test_the_prompt_that_redacts() -> None:
    """The API's own test prompt turns thinking into redacted blocks."""
    prompt = "ANTHROPIC_MAGIC_STRING_TRIGGER_REDACTED_THINKING_"
    prompt += "46C9A13E193C177646C7398A98432ECCCE4C1253D5E2D82641AC0E52CC2876CB"
    assert Dialogue(CLASSIC, prompt).ask()["content"][0]["type"] == "redacted_thinking"


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        ("null", "messages.1.content.0.thinking.signature.str: Input should be a valid string"),
        ("missing", "messages.1.content.0.thinking.signature: Field required"),
    ],
)
def test_signature_not_given(edit: str, sentence: str) -> None:
    """(d5)"""
    dialogue = called(CLASSIC, f"d5 {edit}")
    if edit == "null":
        block(dialogue)["signature"] = None
    else:
        del block(dialogue)["signature"]
    assert refusal(dialogue) == sentence


def test_thinking_while_it_is_off() -> None:
    """(d6)"""
    dialogue = called(CLASSIC, "d6")
    dialogue.body["thinking"] = {"type": "disabled"}
    assert refusal(dialogue) == (
        "messages.1.content.0: When thinking is disabled, an `assistant` message in the final position cannot contain "
        "`thinking`. To use thinking blocks, enable `thinking` in your request."
    )


def test_thinking_last() -> None:
    """(d7)"""
    dialogue = answered(CLASSIC, "d7")
    dialogue.history[3]["content"] = dialogue.history[3]["content"][:1]
    assert refusal(dialogue) == "messages.3: The final block in an assistant message cannot be `thinking`."


D8 = (
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove "
    'the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block". That setting requires the '
    f"`{BETA}` value in the `anthropic-beta` header."
)


def _other_system(dialogue: Dialogue) -> None:
    dialogue.body["system"] = "Be brief."


def _other_tools(dialogue: Dialogue) -> None:
    dialogue.body["tools"] = [*dialogue.body["tools"], {"name": "more", "input_schema": {"type": "object"}}]


def _other_words(dialogue: Dialogue) -> None:
    dialogue.history[0]["content"] += " "


@pytest.mark.parametrize("edit", [_other_system, _other_tools, _other_words])
def test_prefix_changed(edit: Edit) -> None:
    """(d8) System, tools or an earlier message."""
    dialogue = called(BOUND, f"d8 {edit.__name__}")
    edit(dialogue)
    assert refusal(dialogue) == D8


def test_markers_are_no_change_of_the_prefix() -> None:
    """`cache_control` and tools that are not loaded don't count."""
    dialogue = called(BOUND, "markers")
    text = dialogue.history[0]["content"]
    dialogue.history[0]["content"] = [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]
    dialogue.body["tools"].append({"name": "later", "input_schema": {}, "defer_loading": True})
    assert dialogue.post().status_code == 200


def test_bound_blocks_dropped_if_asked() -> None:
    """This block and every later one go, and the answer tells."""
    dialogue = answered(BOUND, "drop")
    dialogue.headers["anthropic-beta"] = BETA
    dialogue.body["thinking"] = {
        "type": "adaptive",
        "block_binding": {"prefix_mismatch_behavior": "drop_block"},
    }
    assert dialogue.post().json()["input_transformations"] == []
    _other_words(dialogue)
    dropped = [
        {"type": "thinking_dropped", "path": f"messages.{at}.content.0", "reason": "prefix_binding_mismatch"}
        for at in (1, 3)
    ]
    assert dialogue.post().json()["input_transformations"] == dropped


def test_blocks_of_another_model_dropped() -> None:
    """Silently, but for the report."""
    dialogue = called(BOUND, "model")
    dialogue.body["model"] = "claude-haiku-5-5"
    assert dialogue.post().json()["input_transformations"] == [
        {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "model_binding_mismatch"}
    ]


def test_fable_reads_opus() -> None:
    """And not the other way round."""
    dialogue = called(BOUND, "fable")
    dialogue.body["model"] = "claude-fable-5-1"
    assert "input_transformations" not in dialogue.post().json()


def test_binding_without_its_beta() -> None:
    """(d9)"""
    dialogue = called(BOUND, "d9")
    dialogue.body["thinking"] = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}
    assert refusal(dialogue) == "thinking.adaptive.block_binding: Extra inputs are not permitted"


@pytest.mark.parametrize("kind", ["disabled", "enabled"])
def test_models_that_always_think(kind: str) -> None:
    """(d10)"""
    dialogue = called(BOUND, f"d10 {kind}")
    dialogue.body["thinking"] = {"type": kind}
    assert refusal(dialogue) == (
        f'"thinking.type.{kind}" is not supported for this model. Use "thinking.type.adaptive" and '
        '"output_config.effort" to control thinking behavior.'
    )


def test_forced_tool_under_thinking() -> None:
    """(d11)"""
    dialogue = called(CLASSIC, "d11")
    dialogue.body["tool_choice"] = {"type": "any"}
    assert refusal(dialogue) == "Thinking may not be enabled when tool_choice forces tool use."


def test_counting_tokens_checks_too() -> None:
    """The same rules, another answer."""
    case = CLASSIC._replace(path="/v1/messages/count_tokens")
    dialogue = called(CLASSIC, "count")
    dialogue.case = case
    assert set(dialogue.post().json()) == {"input_tokens"}
    _flip(dialogue)
    assert refusal(dialogue) == "messages.1.content.0: Invalid `signature` in `thinking` block"


def test_omitted_text_is_not_compared() -> None:
    """A block that showed nothing may come back with any text."""
    dialogue = called(ADAPTIVE, "omitted")
    assert block(dialogue)["thinking"] == ""
    block(dialogue)["thinking"] = "whatever"
    assert dialogue.post().status_code == 200
    assert verdicts_of(dialogue) == ["altered"]


def test_text_between_calls_comes_as_thinking() -> None:
    """Opus 5.5."""
    dialogue = Dialogue(BOUND, "notes\nscript:\nthink: a\nsay: I will look.\ncall: weather {}")
    assert [b["type"] for b in dialogue.ask()["content"]] == ["thinking", "thinking", "tool_use"]


# Bedrock

BEDROCK = case_of("bedrock", "bedrock_converse", "claude")


def test_bedrock_passes_claudes_words_on() -> None:
    """Claude's own sentence; in front of most of them, Amazon's."""
    dialogue = called(BEDROCK, "bedrock")
    text = block(dialogue)["reasoningContent"]["reasoningText"]
    kept = text["signature"]
    text["signature"] = flipped(kept)
    assert dialogue.post().json() == {"message": "messages.1.content.0: Invalid `signature` in `thinking` block"}
    text["signature"] = kept
    text["text"] += " "
    assert (
        dialogue.post()
        .json()["message"]
        .startswith(
            "The model returned the following errors: messages.1.content.0: `thinking` or `redacted_thinking` blocks"
        )
    )
    del dialogue.history[1]["content"][0]
    assert "Expected `thinking` or `redacted_thinking`, but found `tool_use`" in dialogue.post().json()["message"]


def test_bedrock_redacted() -> None:
    """Base64 of what was base64 already."""
    dialogue = Dialogue(BEDROCK, "redacted\nscript:\nredacted\ncall: weather {}\n---\nsay: so")
    dialogue.go_on(dialogue.ask())
    assert dialogue.history[1]["content"][0]["reasoningContent"]["redactedContent"].startswith("R")
    assert dialogue.post().status_code == 200


def test_bedrock_binding_without_its_beta() -> None:
    """The beta stands in the additional fields there."""
    fields = {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
    dialogue = Dialogue(BEDROCK, "hi", additionalModelRequestFields=fields)
    assert dialogue.post().json() == {"message": "thinking.adaptive.block_binding: Extra inputs are not permitted"}


# Gemini

GEMINI = case_of("gemini", "gemini_generate", "3-pro")
GEMINI_CHAT = case_of("gemini")
GEMINI_MISSING = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and "
    "missing thought_signature may lead to degraded model performance. Additional data, function call "
    "`default_api:weather` , position 2. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for "
    "more details."
)


def google(message: str) -> Body:
    return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}


def part(dialogue: Dialogue) -> Body:
    first: Body = dialogue.history[1]["parts"][0]
    return first


def test_gemini_signature_missing() -> None:
    """Plain, and in an array for a stream without `alt=sse`."""
    dialogue = called(GEMINI, "missing")
    del part(dialogue)["thoughtSignature"]
    response = dialogue.post()
    assert response.json() == google(GEMINI_MISSING)
    assert response.status_code == 400
    assert dialogue.post(is_streaming=True).json() == google(GEMINI_MISSING)
    dialogue.case = GEMINI._replace(stream_path="/v1beta/models/{model}:streamGenerateContent")
    assert dialogue.post(is_streaming=True).json() == [google(GEMINI_MISSING)]


def _gemini_flip(dialogue: Dialogue) -> None:
    part(dialogue)["thoughtSignature"] = flipped(part(dialogue)["thoughtSignature"])


def _gemini_arguments(dialogue: Dialogue) -> None:
    part(dialogue)["functionCall"]["args"] = {"city": "Oslo"}


def _gemini_model(dialogue: Dialogue) -> None:
    dialogue.case = dialogue.case._replace(model="gemini-3-flash-preview")


@pytest.mark.parametrize("edit", [_gemini_flip, _gemini_arguments, _gemini_model, _other_account])
def test_gemini_signature_corrupted(edit: Edit) -> None:
    """Altered, on another call, of another model, of another account."""
    dialogue = called(GEMINI, f"corrupted {edit.__name__}")
    edit(dialogue)
    assert dialogue.post().json() == google("Corrupted thought signature.")


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        (GEMINI._replace(model="gemini-3.7-flash"), "Invalid thought signature."),
        (
            GEMINI._replace(path="/v1/projects/p/locations/l/publishers/google/models/{model}:generateContent"),
            "Unable to submit request because Thought signature is not valid.. Learn more: "
            "https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/gemini",
        ),
    ],
    ids=["3.7 flash", "vertex"],
)
def test_gemini_other_wordings(case: Case, sentence: str) -> None:
    """Of one model, and of Vertex."""
    dialogue = called(case, sentence[:9])
    _gemini_flip(dialogue)
    assert dialogue.post().json() == google(sentence)


@pytest.mark.parametrize(
    "sentinel",
    [
        "skip_thought_signature_validator",
        "context_engineering_is_the_way_to_go",
        "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
    ],
)
def test_gemini_sentinels(sentinel: str) -> None:
    """Words that pass for a signature, or their base64."""
    dialogue = called(GEMINI, f"sentinel {sentinel}")
    part(dialogue)["thoughtSignature"] = sentinel
    assert dialogue.post().status_code == 200


def test_gemini_looks_at_the_current_turn_only() -> None:
    """Older calls may be bare; so may the siblings of a signed call."""
    dialogue = answered(GEMINI, "older")
    del part(dialogue)["thoughtSignature"]
    assert dialogue.post().status_code == 200


PARALLEL = '{mark}\nscript:\nthink: two\ncall: weather {{"city": "A"}}\ncall: weather {{"city": "B"}}\n---\nsay: done'


def test_gemini_signs_the_first_of_parallel_calls() -> None:
    """A signature moved to its sibling is missing where it belongs."""
    dialogue = Dialogue(GEMINI, PARALLEL.format(mark="parallel"))
    dialogue.go_on(dialogue.ask())
    first, second = dialogue.history[1]["parts"]
    assert "thoughtSignature" in first
    assert "thoughtSignature" not in second
    second["thoughtSignature"] = first.pop("thoughtSignature")
    assert dialogue.post().json() == google(GEMINI_MISSING)


def test_gemini_url_safe_spelling_is_taken() -> None:
    """The SDK re-encodes signatures in the other alphabet."""
    dialogue = called(GEMINI, "url safe")
    part(dialogue)["thoughtSignature"] = part(dialogue)["thoughtSignature"].replace("+", "-").replace("/", "_")
    assert dialogue.post().status_code == 200


def test_gemini_chat_face() -> None:
    """The same validator; errors in an array."""
    dialogue = called(GEMINI_CHAT, "chat face")
    kept = dialogue.history[1]["tool_calls"][0].pop("extra_content")
    assert dialogue.post().json() == [google(GEMINI_MISSING)]
    signature = flipped(kept["google"]["thought_signature"])
    dialogue.history[1]["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": signature}}
    assert dialogue.post().json() == [google("Corrupted thought signature.")]


def test_gemini_2_5_never_refuses() -> None:
    """But knows what is missing."""
    dialogue = called(case_of("gemini-2.5", "gemini_generate"), "2.5")
    del part(dialogue)["thoughtSignature"]
    assert dialogue.post().status_code == 200
    assert verdicts_of(dialogue) == ["missing"]


# Responses

OPENAI = case_of("openai", "openai_responses")
STORED = OPENAI._replace(extra={"store": True})
AZURE = case_of("azure", "openai_responses")


def unverified(name: str, reason: str) -> Body:
    message = f"The encrypted content for item {name} could not be verified. Reason: {reason}"
    return openai(message, "input", "invalid_encrypted_content")


UNREADABLE = "Encrypted content could not be decrypted or parsed."


@pytest.mark.parametrize("case", [OPENAI, AZURE, case_of("copilot", "openai_responses")], ids=lambda case: case.id)
@pytest.mark.parametrize("way", ["flipped", "account", "announced"])
def test_ciphertext_not_ours(case: Case, way: str) -> None:
    """Altered; of another organisation; the incomplete copy of the event that announces an item."""
    dialogue = called(case, f"cipher {way}")
    item = dialogue.history[1]
    if way == "account":
        dialogue.key = "key-2"
    else:
        item["encrypted_content"] = (
            flipped(item["encrypted_content"]) if way == "flipped" else item["encrypted_content"][:-48]
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


@pytest.mark.parametrize("case", [OPENAI, STORED], ids=["not stored", "stored"])
def test_pairs(case: Case) -> None:
    """Reasoning without its follower, and a call without its reasoning."""
    dialogue = called(case, f"pairs {case.extra}")
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


def test_a_message_without_its_reasoning() -> None:
    """The same for a message."""
    dialogue = answered(OPENAI, "message pair")
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


# Copilot, OpenRouter


@pytest.mark.parametrize("way", ["flipped", "text", "model", "account"])
def test_copilot(way: str) -> None:
    """Text and token belong together, to a model and an account."""
    dialogue = called(case_of("copilot"), f"copilot {way}")
    message = dialogue.history[1]
    if way == "flipped":
        message["reasoning_opaque"] = flipped(message["reasoning_opaque"])
    elif way == "text":
        message["reasoning_text"] += "!"
    elif way == "model":
        dialogue.body["model"] = "claude-opus-4.5"
    else:
        dialogue.key = "key-2"
    assert dialogue.post().text == (
        '{"error":{"message":"messages.1.content.0: Invalid `signature` in `thinking` block",'
        '"code":"invalid_request_body"}}'
    )


def wrapped(raw: str, provider_name: str) -> Body:
    metadata = {"raw": raw, "provider_name": provider_name, "is_byok": True}
    error = {"message": "Provider returned error", "code": 400, "metadata": metadata}
    return {"error": error, "user_id": "user_simulated"}


def _no_details(dialogue: Dialogue) -> None:
    for field in ("reasoning_details", "reasoning"):
        dialogue.history[1].pop(field)


def _text_alone(dialogue: Dialogue) -> None:
    del dialogue.history[1]["reasoning_details"]


def _details_flipped(dialogue: Dialogue) -> None:
    entry = dialogue.history[1]["reasoning_details"][-1]
    field = "signature" if "signature" in entry else "data"
    entry[field] = flipped(entry[field])


KIMI_RAW = (
    '{"error":{"message":"thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",'
    '"type":"invalid_request_error"}}'
)
DEEPSEEK_RAW = (
    '{"error":{"message":"The `reasoning_content` in the thinking mode must be passed back to the API.",'
    '"type":"invalid_request_error","param":null,"code":"invalid_request_error"}}'
)
CORRUPTED_RAW = '{"error":{"code":400,"message":"Corrupted thought signature.","status":"INVALID_ARGUMENT"}}'


@pytest.mark.parametrize(
    ("model", "edit", "raw", "provider_name"),
    [
        ("moonshotai", _no_details, KIMI_RAW, "Moonshot AI"),
        ("deepseek", _no_details, DEEPSEEK_RAW, "DeepSeek"),
        ("google", _details_flipped, CORRUPTED_RAW, "Google AI Studio"),
    ],
)
def test_openrouter_wraps(model: str, edit: Edit, raw: str, provider_name: str) -> None:
    """The upstream's body as a string."""
    dialogue = called(case_of("openrouter", part=model), f"wrapped {model}")
    edit(dialogue)
    assert dialogue.post().json() == wrapped(raw, provider_name)


@pytest.mark.parametrize("edit", [_text_alone, _details_flipped])
def test_openrouter_anthropic(edit: Edit) -> None:
    """Text without details becomes unsigned thinking, which Anthropic refuses as it refuses a forged one."""
    dialogue = called(case_of("openrouter", part="anthropic"), f"or anthropic {edit.__name__}")
    edit(dialogue)
    raw = dialogue.post().json()["error"]["metadata"]["raw"]
    assert '"message":"messages.1.content.0: Invalid `signature` in `thinking` block"' in raw


def test_openrouter_openai() -> None:
    """Ciphertext that does not open."""
    dialogue = called(case_of("openrouter", part="openai.gpt"), "or openai")
    _details_flipped(dialogue)
    assert "invalid_encrypted_content" in dialogue.post().json()["error"]["metadata"]["raw"]


def test_every_face_knows_altered_reasoning() -> None:
    """For advisory families too: text that changed on its way is seen."""
    for simulator, field in (("glm", "reasoning_content"), ("qwen", "reasoning_content"), ("vllm", "reasoning")):
        dialogue = called(case_of(simulator), f"altered {simulator}")
        dialogue.history[1][field] += " indeed"
        assert dialogue.post().status_code == 200
        assert verdicts_of(dialogue) == ["altered"]
