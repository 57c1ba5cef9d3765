"""Unlisted servers, and servers with models of many makers: reasoning goes back in the member that it came in."""

from __future__ import annotations

import json

import pytest

from tests.replay.dialogues import Json, World, call, chat, chat_reply, result, said, user

SERVERS = [
    ("acme", "gpt-oss-120b"),  # llama.cpp
    ("acme", "glm-5"),
    ("acme", "kimi-k2.6"),
    ("acme", "deepseek-v4-pro"),
    ("acme", "qwen3.6-35b"),
    ("acme", "MiniMax-M2.5"),
    ("acme", "magistral-medium"),
    ("acme", "anthropic/claude-opus-5-5"),
    ("acme", "google/gemini-3-pro-preview"),
    ("acme", "novel-9"),
    ("vllm", "gpt-oss-120b"),
    ("vllm", "kimi-k2.6"),
    ("lmstudio", "gpt-oss-20b"),
    ("lmstudio", "glm-5"),
    ("fireworks", "kimi-k2.6"),
    ("together", "glm-5"),
    ("siliconflow", "deepseek-v4-pro"),
    ("deepinfra", "qwen3.6-35b"),
    ("opencode-go", "glm-5"),
]
SIGNED = {"type": "reasoning.text", "text": "Look first.", "signature": "c2ln", "format": "anthropic-claude-v1"}
SEALED = {"type": "reasoning.encrypted", "data": "Y2lwaGVy", "format": "openai-responses-v1", "id": "rs_1", "index": 0}
FIELDS: dict[str, Json] = {
    "reasoning_content": {"reasoning_content": "Look first."},
    "reasoning": {"reasoning": "Look first."},
    "thinking": {"thinking": "Look first."},
    "plain details": {"reasoning_details": [{"type": "reasoning.text", "text": "Look first.", "format": "unknown"}]},
    "signed details": {"reasoning_details": [SIGNED]},
    "sealed details": {"reasoning_details": [SEALED]},
    "Copilot's pair": {"reasoning_text": "Look first.", "reasoning_opaque": "b3BhcXVl"},
}
CHUNKS: dict[str, Json] = {
    "Mistral's chunks": {"type": "thinking", "thinking": [{"type": "text", "text": "Look first."}]},
    "Cohere's chunks": {"type": "thinking", "thinking": "Look first."},
}
CALLS = said(None, call("call_9fK2mQ7x"))
ASK = user("How many?")


def streamed(message: Json) -> bytes:
    """The same answer as a stream, each member in a separate chunk."""
    calls = [one | {"index": at} for at, one in enumerate(message.get("tool_calls", ()))]
    deltas = [{name: value} for name, value in message.items() if name not in ("role", "content", "tool_calls")]
    chunks = [{"index": 0, "delta": delta} for delta in ({"role": "assistant"}, *deltas, {"tool_calls": calls})]
    chunks.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    return b"".join(b"data: " + json.dumps({"id": "c", "choices": [one]}).encode() + b"\n\n" for one in chunks)


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("way", CHUNKS)
@pytest.mark.parametrize(("provider", "model"), SERVERS)
def test_reasoning_in_the_content_goes_back_there(provider: str, model: str, way: str, *, is_streamed: bool) -> None:
    """A server that writes chunks gets chunks."""
    if "gemini" in model:
        return  # its rule asks for a signature on the call, and a chunk can't stand beside one
    world = World(provider, model)
    content = [CHUNKS[way], {"type": "text", "text": "Three."}]
    answer = {"role": "assistant", "content": content}
    deltas = [{"index": 0, "delta": {"content": [one]}} for one in content]
    deltas.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    stream = b"".join(b"data: " + json.dumps({"choices": [one]}).encode() + b"\n\n" for one in deltas)
    world.answer(chat(ASK), stream if is_streamed else chat_reply(answer))
    sent = world.send(chat(ASK, said("Three."), user("Sure?")))
    assert sent.messages[1] == answer


def members_of(message: Json) -> Json:
    return {name: value for name, value in message.items() if name not in ("role", "content", "tool_calls")}


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(("provider", "model"), SERVERS)
def test_lost_reasoning_goes_back_where_it_came_from(
    provider: str, model: str, field: str, *, is_streamed: bool
) -> None:
    """The server's own answer shows which member it reads, not the model's name. Seals go back with it."""
    world = World(provider, model)
    answer = CALLS | FIELDS[field]
    world.answer(chat(ASK), streamed(answer) if is_streamed else chat_reply(answer))
    sent = world.send(chat(ASK, CALLS, result("call_9fK2mQ7x")))
    assert members_of(sent.messages[1]) == FIELDS[field]
    assert sent.messages[1]["tool_calls"] == CALLS["tool_calls"]


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(("provider", "model"), SERVERS)
def test_kept_reasoning_stays_where_the_client_has_it(provider: str, model: str, field: str) -> None:
    """If a client sends back what it got, its own bytes are forwarded."""
    world = World(provider, model)
    answer = CALLS | FIELDS[field]
    world.answer(chat(ASK), chat_reply(answer))
    sent = world.send(chat(ASK, answer, result("call_9fK2mQ7x")))
    assert not sent.plan.edits


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
@pytest.mark.parametrize(("provider", "model"), SERVERS)
def test_a_field_of_the_clients_own_choice_stays(provider: str, model: str, field: str) -> None:
    """Plain reasoning that a client writes into another member than the answer's is left there."""
    world = World(provider, model)
    world.answer(chat(ASK), chat_reply(CALLS | FIELDS["reasoning_content"]))
    sent = world.send(chat(ASK, CALLS | FIELDS[field], result("call_9fK2mQ7x")))
    assert not sent.plan.edits


@pytest.mark.parametrize("field", FIELDS)
def test_unknown_seals_are_left_to_an_unlisted_server(field: str) -> None:
    """An unlisted server may have made unknown seals, so they are left."""
    sent = World("acme", "glm-5").send(chat(ASK, CALLS | FIELDS[field], result("call_9fK2mQ7x")))
    assert not sent.plan.edits


STRICT = [("acme", "kimi-k2.6"), ("acme", "deepseek-v4-pro"), ("vllm", "kimi-k2.6")]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
@pytest.mark.parametrize(("provider", "model"), STRICT)
def test_a_blank_stands_where_the_other_turns_have_their_reasoning(provider: str, model: str, field: str) -> None:
    """Reasoning that never came from this server goes into the member that its answers use."""
    world = World(provider, model)
    lost = said(None, call("call_7aB3xY1z", "pwd"))
    history = [ASK, lost, result("call_7aB3xY1z")]
    world.answer(chat(*history), chat_reply(CALLS | FIELDS[field]))
    sent = world.send(chat(*history, CALLS, result("call_9fK2mQ7x")))
    assert [members_of(sent.messages[at]) for at in (1, 3)] == [{field: " "}, FIELDS[field]]


def test_another_servers_reasoning_goes_into_the_member_that_is_read_here() -> None:
    """Text from another server is no evidence of how this one writes."""
    here, there = World("acme", "glm-5"), World("other", "glm-5", endpoint="https://there.example")
    there.store = here.store
    there.answer(chat(ASK), chat_reply(CALLS | FIELDS["reasoning"]))
    sent = here.send(chat(ASK, CALLS, result("call_9fK2mQ7x")))
    assert members_of(sent.messages[1]) == {"reasoning_content": "Look first."}


@pytest.mark.parametrize("change", [{"model": "glm-5"}, {"account": "account-2"}])
def test_seals_go_back_to_their_model_and_account_alone(change: dict[str, str]) -> None:
    """An unlisted server may bind its seals to either; their readable part goes to any."""
    world = World("acme", "novel-9")
    world.answer(chat(ASK), chat_reply(CALLS | FIELDS["signed details"]))
    sent = world.send(chat(ASK, CALLS, result("call_9fK2mQ7x")), **change)
    assert "c2ln" not in json.dumps(sent.body)
    assert "Look first." in json.dumps(sent.body)


def test_the_word_thinking_is_reasoning_only_where_it_is_text() -> None:
    """A switch or a list under that name is not ours to read or remove."""
    world = World("acme", "kimi-k2.6")
    world.answer(chat(ASK), chat_reply(CALLS | FIELDS["reasoning_content"]))
    odd = CALLS | {"thinking": {"type": "enabled"}}
    sent = world.send(chat(ASK, odd, result("call_9fK2mQ7x")))
    assert members_of(sent.messages[1]) == {"thinking": {"type": "enabled"}, **FIELDS["reasoning_content"]}
