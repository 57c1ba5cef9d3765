"""What other translators were seen to do wrong, each by its name, and done right here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.translation.lanes import MORE_UPSTREAMS, UPSTREAMS, Answer, Client, Lane, Upstream
from tests.translation.pairs import Dialogue, hold
from tests.translation.test_requests import body_of, chat, translated, user
from tests.translation.test_streams import ANSWER, TOOL_CALLS, USAGE, way_to
from thoughtline.formats import FORMATS
from thoughtline.translation import stream_reply, translate_error, translate_reply
from thoughtline.values.items import ReasoningEncrypted, ReasoningSummary, ReasoningText, Text, ToolCall
from thoughtline.values.turns import Candidate, Finish, FormatName, Reply, Turn

Json = dict[str, Any]
DEEPSEEK, OPENAI, ANTHROPIC, GEMINI = UPSTREAMS[:4]
KIMI = MORE_UPSTREAMS[2]
TOOL_THEN_WORDS = 'script:\nthink: deep thought\ncall: weather {"city": "Paris"}\n---\nthink: more\nsay: Sunny.'


def second_turn(
    upstream: Upstream, client: FormatName, is_streaming: bool = False, strips: bool = False
) -> tuple[Lane, Client, Answer]:
    """A tool call, and the request that brings its result."""
    lane = Lane(upstream, client)
    talk = Client(lane, TOOL_THEN_WORDS, strips)
    talk.ask(is_streaming)
    talk.go_on()
    return lane, talk, talk.ask(is_streaming)


def sent(answer: Answer) -> Json:
    loaded: Json = json.loads(answer.sent)
    return loaded


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("client", ["anthropic_messages", "openai_responses", "gemini_generate", "ollama_chat"])
def test_a_client_of_another_format_gets_its_reasoning_restored(client: FormatName, is_streaming: bool) -> None:
    """Seen elsewhere: an Anthropic client's whole answers were never captured, and `""` went upstream."""
    _, _, answer = second_turn(DEEPSEEK, client, is_streaming, strips=True)
    assert sent(answer)["messages"][1]["reasoning_content"] == "deep thought"


def test_a_chat_client_on_claude_keeps_the_genuine_signature() -> None:
    """Seen elsewhere: a dot with a constant signature in place of the thinking."""
    lane, _, answer = second_turn(ANTHROPIC, "openai_chat", strips=True)
    block = sent(answer)["messages"][1]["content"][0]
    assert (block["type"], block["thinking"]) == ("thinking", "deep thought")
    assert lane.verdicts == ["whole"]


def test_a_high_effort_does_not_raise_max_tokens() -> None:
    """Seen elsewhere: effort high became a budget of 131,072 and `max_tokens` 139,264."""
    body = body_of(
        translated("openai_chat", chat(user("hi"), max_tokens=8_000, reasoning_effort="high"), "anthropic_messages")
    )
    assert body["max_tokens"] == 8_000
    assert body["thinking"]["budget_tokens"] < 8_000


def test_tools_do_not_raise_max_tokens() -> None:
    """Seen elsewhere: 8,000 became 32,000 when tools were there."""
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    body = body_of(translated("openai_chat", chat(user("hi"), max_tokens=8_000, tools=[tool]), "gemini_generate"))
    assert body["generationConfig"]["maxOutputTokens"] == 8_000


@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages"])
def test_a_responses_upstream_gets_its_reasoning_items_and_a_request_for_ciphertext(client: FormatName) -> None:
    """Seen elsewhere: the function call alone, no `include`, no reasoning item."""
    _, _, answer = second_turn(OPENAI, client, strips=True)
    assert "reasoning.encrypted_content" in sent(answer)["include"]
    assert [item["type"] for item in sent(answer)["input"]][1:3] == ["reasoning", "function_call"]


def test_a_responses_client_keeps_its_ciphertext() -> None:
    """Seen elsewhere: a whole answer lost `encrypted_content`."""
    lane = Lane(ANTHROPIC, "openai_responses")
    talk = Client(lane, TOOL_THEN_WORDS)
    talk.ask(False)
    assert talk.whole["output"][0]["encrypted_content"]


def test_the_effort_of_a_responses_client_reaches_a_chat_upstream() -> None:
    """Seen elsewhere: dropped."""
    body = {"model": "m", "input": "hi", "reasoning": {"effort": "high"}}
    assert body_of(translated("openai_responses", body, "openai_chat"))["reasoning_effort"] == "high"


def test_an_answer_of_nothing_but_a_call_has_no_words() -> None:
    """Seen elsewhere: the text `(empty response)` was added and carried into the history."""
    reply = Reply(
        "openai_responses", (Candidate(Turn("assistant", (ANSWER[2],)), 0, TOOL_CALLS),), b"", "r", "m", USAGE
    )
    body = json.loads(translate_reply(reply, way_to("anthropic_messages", "openai_responses")).body)
    assert [block["type"] for block in body["content"]] == ["tool_use"]


def test_reasoning_stays_next_to_text() -> None:
    """Seen elsewhere: `reasoning_content` was removed from a whole answer that had content."""
    reply = Reply(
        "ollama_chat", (Candidate(Turn("assistant", ANSWER[:2]), 0, Finish("stop", "stop")),), b"", None, "m", USAGE
    )
    message = json.loads(translate_reply(reply, way_to("openai_chat", "ollama_chat")).body)["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("I should look.", "Let me see.")


def test_usage_is_the_providers_own() -> None:
    """Seen elsewhere: 2,000 tokens added to the prompt, stream usage estimated."""
    reply = Reply("openai_chat", (Candidate(Turn("assistant", ANSWER), 0, TOOL_CALLS),), b"", "c", "m", USAGE)
    usage = json.loads(translate_reply(reply, way_to("anthropic_messages")).body)["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]) == (40, 60, 40)


def test_two_conversations_with_colliding_ids() -> None:
    """Seen elsewhere: with Kimi's ids one conversation got the other's reasoning."""
    first, second = Lane(KIMI, "anthropic_messages"), Lane(KIMI, "anthropic_messages")
    second.store = first.store
    talks = []
    for lane, thought in ((first, "of Paris"), (second, "of Rome")):
        talk = Client(
            lane, f'{thought}\nscript:\nthink: {thought}\ncall: weather {{"city": "X"}}\n---\nsay: b', strips=True
        )
        talk.ask(False)
        talk.go_on()
        talks.append(talk)
    answers = [talk.ask(False) for talk in talks]
    assert [sent(answer)["messages"][1]["reasoning_content"] for answer in answers] == ["of Paris", "of Rome"]


def test_a_gemini_client_has_the_same_ids_each_time() -> None:
    """Seen elsewhere: fresh random ids on every request, so that nothing was ever found again."""
    contents = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "x"}}}]},
    ]
    bodies = [body_of(translated("gemini_generate", {"contents": contents}, "openai_chat")) for _ in range(2)]
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("client", ["anthropic_messages", "openai_responses", "gemini_generate", "ollama_chat"])
def test_reasoning_that_the_client_kept_is_used(client: FormatName) -> None:
    """Seen elsewhere: replaced by a single space."""
    _, _, answer = second_turn(DEEPSEEK, client)
    assert sent(answer)["messages"][1]["reasoning_content"] == "deep thought"


def test_a_chat_stream_from_claude_has_no_tags_and_its_end_mark() -> None:
    """Seen elsewhere: a stray `<think></think>` in the content, and no `[DONE]`."""
    lane = Lane(ANTHROPIC, "openai_chat")
    stream = Client(lane, TOOL_THEN_WORDS).ask(True).body
    assert b"think>" not in stream
    assert stream.endswith(b"data: [DONE]\n\n")


def test_a_responses_client_gets_a_response() -> None:
    """Seen elsewhere: a chat.completion object."""
    lane = Lane(ANTHROPIC, "openai_responses")
    assert json.loads(Client(lane, TOOL_THEN_WORDS).ask(False).body)["object"] == "response"


@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages"])
def test_a_call_of_a_responses_upstream_reaches_a_whole_answer(client: FormatName) -> None:
    """Seen elsewhere: an empty answer, the tool call lost."""
    lane = Lane(OPENAI, client)
    talk = Client(lane, TOOL_THEN_WORDS)
    talk.ask(False)
    assert [call.name for call in talk.wire.calls(talk.whole)] == ["weather"]


def test_effort_for_a_responses_upstream_is_in_its_object() -> None:
    """Seen elsewhere: `reasoning_effort` at the top, the `reasoning` object removed."""
    body = body_of(translated("openai_chat", chat(user("hi"), reasoning_effort="low"), "openai_responses"))
    assert body["reasoning"]["effort"] == "low"
    assert "reasoning_effort" not in body


def test_a_refusal_keeps_its_status() -> None:
    """Seen elsewhere: an upstream's 400 about reasoning became a 503."""
    status, body = translate_error(
        400, b'{"error":{"message":"Missing `reasoning_content` field"}}', "openai_chat", "anthropic_messages"
    )
    assert status == 400
    assert b"Missing `reasoning_content` field" in body


def test_redacted_thinking_is_not_ignored() -> None:
    """Seen elsewhere: hidden thinking vanished on the way to another format. Here it comes back whole."""
    lane = Lane(ANTHROPIC, "openai_responses", keeps=False)
    talk = Client(lane, 'hidden\nscript:\nthink: a\nredacted\ncall: weather {"city": "P"}\n---\nsay: b')
    talk.ask(True)
    talk.go_on()
    talk.ask(True)
    assert lane.verdicts == ["whole"]


def test_a_chat_client_on_gemini_needs_no_sentinel() -> None:
    """Seen elsewhere: signatures were never emitted, so every call was sent with the skip value."""
    lane, _, answer = second_turn(GEMINI, "openai_chat", strips=True)
    assert b"skip_thought_signature_validator" not in answer.sent
    assert lane.verdicts == ["whole"]


def test_reasoning_items_of_a_responses_client_do_not_become_user_messages() -> None:
    """Seen elsewhere: a reasoning item with content became a message of the user's; one without vanished."""
    items = [
        user("go"),
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "deep"}]},
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "x"},
    ]
    messages = body_of(translated("openai_responses", {"model": "m", "input": items}, "openai_chat"))["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool"]
    assert messages[1]["reasoning_content"] == "deep"


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "stream"])
def test_blocks_that_have_a_signature_and_no_words(is_streaming: bool) -> None:
    """Seen elsewhere: signature-only blocks vanished in streams and were stripped from requests."""
    lane = Lane(MORE_UPSTREAMS[0], "anthropic_messages")
    lane.client = "openai_chat"
    talk = Client(lane, TOOL_THEN_WORDS, strips=True)
    talk.ask(is_streaming)
    talk.go_on()
    talk.ask(is_streaming)
    assert lane.verdicts == ["whole"]


def test_ids_do_not_grow() -> None:
    """Seen elsewhere: signatures hidden in call ids, kilobytes long, that other systems cut or refuse."""
    lane = Lane(GEMINI, "openai_chat")
    talk = Client(lane, TOOL_THEN_WORDS)
    talk.ask(False)
    assert all(len(call.id) <= 40 for call in talk.wire.calls(talk.whole))


def test_thinking_is_not_switched_off_in_the_middle_of_a_loop() -> None:
    """Seen elsewhere: `thinking` dropped for the rest of the tool loop when blocks were missing."""
    _, _, answer = second_turn(ANTHROPIC, "openai_chat", strips=True)
    assert sent(answer)["thinking"]["type"] == "enabled"


def test_a_model_that_thinks_by_default_needs_no_flag() -> None:
    """Seen elsewhere: DeepSeek V4 was filled only where thinking had been switched on by name."""
    lane = Lane(DEEPSEEK, "anthropic_messages")
    talk = Client(lane, TOOL_THEN_WORDS, strips=True, extra={"thinking": None})
    talk.ask(False)
    talk.go_on()
    assert sent(talk.ask(False))["messages"][1]["reasoning_content"] == "deep thought"


# --- laws of the lane -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("upstream", UPSTREAMS, ids=lambda one: one.id)
def test_no_seal_of_one_provider_goes_to_another(upstream: Upstream) -> None:
    """A conversation that began elsewhere: the first provider's seals never reach the second, its words may."""
    first = Lane(ANTHROPIC, "openai_responses")
    talk = hold(first, Dialogue("interleaved thinking", False, strips=False))
    second = Lane(upstream, "openai_responses", store=first.store)
    if upstream.format in ("openai_responses", "anthropic_messages"):
        return
    talk.lane = second
    talk.history.append(user("And now?"))
    answer = talk.ask(False)
    tokens = {
        item.signature
        for records in first.store.find(tuple(first.store.kept)).values()
        for record in records
        for item in record.items
        if isinstance(item, ReasoningText) and item.signature
    }
    assert tokens
    assert not any(token.encode() in answer.sent for token in tokens)


def test_the_record_is_the_upstreams_view() -> None:
    """A captured turn has the keys that the next request, translated again, looks up: all of its steps are found."""
    lane, _, answer = second_turn(KIMI, "gemini_generate", strips=True)
    assert answer.plan is not None
    assert answer.plan.counts.restored == 1
    assert lane.verdicts == ["whole"]


def test_summaries_and_ciphertext_of_one_element_stay_together() -> None:
    """A Responses item of a summary and ciphertext is one block of Anthropic's."""
    items = (
        ReasoningSummary("one", id="rs_1", index=0),
        ReasoningEncrypted("cipher", id="rs_1", index=0),
        Text("hi"),
        ToolCall("look", "{}", "call_1"),
    )
    reply = Reply("openai_responses", (Candidate(Turn("assistant", items), 0, TOOL_CALLS),), b"", "r", "m", USAGE)
    for body in (translate_reply, stream_reply):
        said = body(reply, way_to("anthropic_messages", "openai_responses")).body
        assert said.count(b'"thinking":"one"') == 1


def test_every_format_of_the_table_is_spoken() -> None:
    """Eight upstream formats, five client formats: none that is translated is missing from the dialogues."""
    translated = {name for name, wire in FORMATS.items() if "untranslated" not in wire.quirks}
    assert {upstream.format for upstream in (*UPSTREAMS, *MORE_UPSTREAMS)} == translated
