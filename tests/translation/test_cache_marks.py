"""Marks for prompt caching: carried where the upstream takes them, set where its model needs one; and prompts whose
beginning stays as it was."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from msgspec import Raw

from tests.translation.lanes import EVERY_CLIENT, MORE_UPSTREAMS, UPSTREAMS, Client, Lane, Upstream
from tests.translation.pairs import SCRIPTS
from thoughtline.formats import FORMATS, anthropic_messages, bedrock_converse, openai_chat
from thoughtline.replay.detection import resolve
from thoughtline.translation import TranslatedRequest, translate_request
from thoughtline.values.destination import Destination
from thoughtline.values.items import Text
from thoughtline.values.turns import Candidate, Finish, FormatName, Reply, Turn

Json = dict[str, Any]
MARK = {"type": "ephemeral"}
SCHEMA = {"type": "object", "properties": {}}
USAGES = {
    "anthropic_messages": anthropic_messages.bodies.USAGE,
    "openai_chat": openai_chat.bodies.USAGE,
    "bedrock_converse": bedrock_converse.bodies.USAGE,
}
LONG = {"type": "ephemeral", "ttl": "1h"}
CLAUDE = Destination("anthropic", "https://api.anthropic.com", "claude-sonnet-4-5", "anthropic_messages")
CONVERSE = Destination(
    "bedrock", "https://bedrock-runtime.us-east-1.amazonaws.com", "us.anthropic.claude-sonnet-4-5", "bedrock_converse"
)
ROUTED = Destination("openrouter", "https://openrouter.ai/api/v1", "anthropic/claude-sonnet-4.5", "openai_chat")
DEEPSEEK = Destination("deepseek", "https://api.deepseek.com", "deepseek-v4-pro", "openai_chat")
KIMI = Destination("kimi", "https://api.moonshot.ai", "kimi-k2.6", "anthropic_messages")
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def translated(body: Json, client: FormatName, to: Destination, marks_prompts: bool = True) -> TranslatedRequest:
    wire = FORMATS[client]
    transcript = wire.bodies.decode_request(json.dumps(body).encode(), wire.dialect)
    return translate_request(transcript, to.format, resolve(to), to.model, marks_prompts=marks_prompts)


def sent(body: Json, client: FormatName, to: Destination, marks_prompts: bool = True) -> Json:
    made: Json = json.loads(translated(body, client, to, marks_prompts).transcript.body)
    return made


def marks_in(value: object, at: str = "") -> list[str]:
    """JSON pointers to every mark of a body, in order."""
    found: list[str] = []
    if isinstance(value, dict):
        found += [at for name in ("cache_control", "cachePoint") if value.get(name)]
        inner = [(str(name), held) for name, held in value.items()]
    else:
        inner = [(str(name), held) for name, held in enumerate(value)] if isinstance(value, list) else []
    for name, held in inner:
        found += marks_in(held, f"{at}/{name}")
    return found


def chat(*messages: Json, **beside: object) -> Json:
    return {"model": "m", "messages": list(messages), **beside}


def part(text: str, mark: Json | None = None) -> Json:
    return {"type": "text", "text": text} | ({"cache_control": mark} if mark else {})


# --- carried ----------------------------------------------------------------------------------------------------------

MARKED_CHAT = chat(
    {"role": "system", "content": "Rules.", "cache_control": MARK},
    {"role": "user", "content": [part("Look at this."), part("And this.", LONG)]},
    {"role": "assistant", "content": "Well.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "seen", "cache_control": MARK},
    tools=[{**TOOL, "cache_control": MARK}],
)


def test_marks_of_a_chat_client_reach_anthropic() -> None:
    """On parts, on whole messages as opencode writes them, and on tools: each is on the same block, with its time to
    live, and no other is added.
    """
    body = sent(MARKED_CHAT, "openai_chat", CLAUDE)
    assert sorted(marks_in(body)) == ["/messages/0/content/1", "/messages/2/content/0", "/system/0", "/tools/0"]
    assert body["messages"][0]["content"][1]["cache_control"] == LONG
    assert body["tools"][0]["cache_control"] == MARK


def test_marks_of_a_chat_client_reach_converse() -> None:
    """As blocks of their own, behind what they mark."""
    body = sent(MARKED_CHAT, "openai_chat", CONVERSE)
    point = {"cachePoint": {"type": "default"}}
    assert body["system"] == [{"text": "Rules."}, point]
    assert body["messages"][0]["content"][2] == {"cachePoint": {"type": "default", "ttl": "1h"}}
    assert body["messages"][2]["content"][1] == point
    assert body["toolConfig"]["tools"][1] == point


MARKED_MESSAGES: Json = {
    "model": "m",
    "max_tokens": 100,
    "system": [part("Rules.", MARK)],
    "messages": [
        {"role": "user", "content": [part("Look.", MARK)]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "seen", "cache_control": LONG}],
        },
    ],
    "tools": [{"name": "look", "input_schema": {"type": "object", "properties": {}}, "cache_control": MARK}],
}


def test_marks_of_claude_code_reach_claude_at_openrouter() -> None:
    """On text, on results and on tools, in the parts that OpenRouter reads."""
    body = sent(MARKED_MESSAGES, "anthropic_messages", ROUTED)
    assert body["messages"][0]["content"] == [part("Rules.", MARK)]
    assert body["messages"][1]["content"] == [part("Look.", MARK)]
    assert body["messages"][3]["content"] == [part("seen", LONG)]
    assert body["tools"][0]["cache_control"] == MARK
    assert len(marks_in(body)) == 4


def test_marks_of_converse_reach_anthropic() -> None:
    """A `cachePoint` marks the block before it, among tools too; nothing is said to be lost."""
    point = {"cachePoint": {"type": "default", "ttl": "1h"}}
    body = {
        "system": [{"text": "Rules."}, point],
        "messages": [{"role": "user", "content": [{"text": "Look."}, point]}],
        "toolConfig": {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": SCHEMA}}}, point]},
    }
    request = translated(body, "bedrock_converse", CLAUDE)
    made = json.loads(request.transcript.body)
    assert sorted(marks_in(made)) == ["/messages/0/content/0", "/system/0", "/tools/0"]
    assert made["messages"][0]["content"][0]["cache_control"] == LONG
    assert request.findings == ()


@pytest.mark.parametrize("to", [CLAUDE, ROUTED, CONVERSE], ids=lambda to: to.format)
def test_a_mark_for_the_whole_prompt_is_on_its_last_block(to: Destination) -> None:
    """A top-level `cache_control` means the last block, and becomes a mark there if a format has no such member."""
    chatting = {**MARKED_MESSAGES, "cache_control": LONG}
    for name in ("system", "tools", "messages"):
        chatting[name] = json.loads(json.dumps(chatting[name]).replace(', "cache_control": {"type": "ephemeral"}', ""))
    chatting["messages"][2]["content"][0].pop("cache_control")
    client: FormatName = "openai_chat" if to is CLAUDE else "anthropic_messages"
    body = sent(chat({"role": "user", "content": "Hi."}, cache_control=LONG), client, to) if to is CLAUDE else None
    body = body or sent(chatting, client, to, marks_prompts=False)
    assert len(marks_in(body)) == 1
    assert marks_in(body)[0].startswith(f"/messages/{len(body['messages']) - 1}/")
    assert "1h" in json.dumps(body["messages"][-1])


def test_of_too_many_marks_four_go_up() -> None:
    """The first and the last three: Anthropic refuses a fifth."""
    words = [{"role": "user", "content": [part(f"{at}", MARK)]} for at in range(7)]
    body = sent(chat({"role": "system", "content": [part("Rules.", MARK)]}, *words), "openai_chat", CLAUDE)
    marked = [f"/messages/0/content/{at}" for at in (4, 5, 6)]
    assert sorted(marks_in(body)) == [*marked, "/system/0"]


def test_marks_that_an_upstream_does_not_take_are_left_out_with_a_finding() -> None:
    """DeepSeek caches by itself."""
    request = translated(MARKED_MESSAGES, "anthropic_messages", DEEPSEEK)
    assert not marks_in(json.loads(request.transcript.body))
    assert [one.message for one in request.findings] == ["this upstream takes no marks for prompt caching"]
    assert not marks_in(sent(MARKED_CHAT, "openai_chat", Destination("openai", "", "gpt-5", "openai_responses")))


# --- set by us --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", [CLAUDE, ROUTED, CONVERSE], ids=lambda to: to.format)
@pytest.mark.parametrize("client", ["openai_chat", "openai_responses", "gemini_generate"])
def test_a_client_that_can_set_no_mark_gets_one_that_moves(client: FormatName, to: Destination) -> None:
    """One mark, in the last message of each request, whatever that is."""
    up = next(one for one in (*UPSTREAMS, *MORE_UPSTREAMS) if one.provider == to.provider and one.format == to.format)
    lane = Lane(up if up.format != "openai_chat" else _routed(), client)
    if client == up.format:
        return  # passed on unchanged
    for body in bodies_of(lane, "tools"):
        found = marks_in(body)
        assert len(found) == 1, found
        assert found[0].startswith(f"/messages/{len(body['messages']) - 1}/")


def _routed() -> Upstream:
    return next(one for one in MORE_UPSTREAMS if one.model == "anthropic/claude-sonnet-4.5")


def test_a_single_question_gets_no_mark() -> None:
    """Writing to the cache costs more than plain input: a prompt that will hardly come again is left alone."""
    assert not marks_in(sent(chat({"role": "user", "content": "Hi."}), "openai_chat", CLAUDE))
    asked = chat({"role": "user", "content": "Hi."}, tools=[TOOL])
    assert marks_in(sent(asked, "openai_chat", CLAUDE)) == ["/messages/0/content/0"]


def test_no_mark_is_set_where_the_model_caches_by_itself_or_where_it_is_switched_off() -> None:
    """Kimi speaks Messages and needs none; neither does Gemini at OpenRouter."""
    asked = chat({"role": "user", "content": "Hi."}, tools=[TOOL])
    gemini = Destination("openrouter", "https://openrouter.ai/api/v1", "google/gemini-3-pro-preview", "openai_chat")
    assert not marks_in(sent(asked, "openai_chat", KIMI))
    assert not marks_in(sent(asked, "openai_chat", CLAUDE, marks_prompts=False))
    said = {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}, {"role": "model", "parts": [{"text": "Yes?"}]}]}
    assert not marks_in(sent(said, "gemini_generate", gemini))


# --- the law: a prompt that grows begins as it did --------------------------------------------------------------------

EVERY = [(up, client) for up in (*UPSTREAMS, *MORE_UPSTREAMS) for client in EVERY_CLIENT if client != up.format]


def bodies_of(lane: Lane, script: str, turns: int = 6) -> list[Json]:
    """The bodies that go up in a dialogue."""
    write = SCRIPTS[script]
    client = Client(lane, f"{script}\nscript:\n" + "\n---\n".join(write(turn) for turn in range(turns)), strips=True)
    sent: list[Json] = []
    for _ in range(turns):
        sent.append(json.loads(client.ask(False).sent))
        client.go_on()
    return sent


def pieces_of(body: Json, upstream: Upstream) -> list[str]:
    """A prompt as the model reads it: tools, system, then each block of each message, without marks."""
    wire = FORMATS[upstream.format]
    inner = body[wire.inside] if wire.inside else body
    frame = [inner.get(name) for name in ("tools", "toolConfig", "system", "instructions", *wire.system_members)]
    pieces = [json.dumps(one) for one in frame]
    for message in inner[wire.list_member]:
        holder = wire.item_member if isinstance(message.get(wire.item_member), list) else ""
        blocks = message[holder] if holder else [message]
        kept = [_unmarked(block) for block in blocks if "cachePoint" not in block]
        pieces += [json.dumps([message.get("role") if holder else "", block]) for block in kept]
    return pieces


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(held) for held in value]
    if isinstance(value, dict):
        return {name: _unmarked(held) for name, held in value.items() if name != "cache_control"}
    return value


@pytest.mark.parametrize(
    ("upstream", "client"), EVERY, ids=lambda one: one if isinstance(one, str) else f"{one.id}-{one.model}"
)
@pytest.mark.parametrize("script", ["parallel tools", "interleaved thinking"])
def test_each_prompt_begins_with_the_one_before_it(upstream: Upstream, client: FormatName, script: str) -> None:
    """In every pair, with a client that strips all reasoning: earlier bytes stay the same, so that every provider's
    cache hits; a moving mark is not part of a prompt.
    """
    lane = Lane(upstream, client)
    prompts = [pieces_of(body, upstream) for body in bodies_of(lane, script)]
    for before, after in pairwise(prompts):
        assert after[: len(before)] == before


def test_dialogues_with_a_mark_that_moves_lose_no_reasoning() -> None:
    """Records are found whether or not the earlier turns have a mark."""
    for upstream in (UPSTREAMS[2], UPSTREAMS[5], _routed()):
        lane = Lane(upstream, "openai_responses")
        bodies_of(lane, "parallel tools")
        assert set(lane.verdicts) <= {"whole", "none"}


# --- cache usage in the client's answer -------------------------------------------------------------------------------

USED: dict[FormatName, Json] = {
    "anthropic_messages": {
        "input_tokens": 10,
        "cache_read_input_tokens": 900,
        "cache_creation_input_tokens": 90,
        "output_tokens": 5,
    },
    "openai_chat": {
        "prompt_tokens": 1000,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 900, "cache_write_tokens": 90},
    },
    "bedrock_converse": {
        "inputTokens": 10,
        "outputTokens": 5,
        "cacheReadInputTokens": 900,
        "cacheWriteInputTokens": 90,
    },
}
TOLD: dict[FormatName, Json] = {
    **USED,
    "openai_responses": {
        "input_tokens": 1000,
        "output_tokens": 5,
        "input_tokens_details": {"cached_tokens": 900, "cache_write_tokens": 90},
    },
    "gemini_generate": {"promptTokenCount": 1000, "cachedContentTokenCount": 900, "candidatesTokenCount": 5},
}


@pytest.mark.parametrize("client", TOLD)
@pytest.mark.parametrize("upstream", USED)
def test_cached_tokens_are_reported_in_the_clients_own_members(upstream: FormatName, client: FormatName) -> None:
    """Read from the cache and written to it, each where the client's own provider tells it; the sum stays the same."""
    decoded = USAGES[upstream].decode(Raw(json.dumps(USED[upstream]).encode()))
    reply = Reply(upstream, (Candidate(Turn("assistant", (Text("Yes."),)), 0, Finish("stop", "")),), usage=decoded)
    wire = FORMATS[client]
    body = json.loads(wire.bodies.encode_response(reply, wire.dialect))
    told = body.get("usage") or body.get("usageMetadata")
    assert {name: told[name] for name in TOLD[client]} == TOLD[client]


@pytest.mark.parametrize(
    "told",
    [
        {"prompt_tokens": 100, "completion_tokens": 1, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36},
        {"prompt_tokens": 100, "completion_tokens": 1, "cached_tokens": 64},
        {"prompt_tokens": 100, "prompt_cache_hit_tokens": 64, "prompt_tokens_details": {"cached_tokens": 64}},
    ],
    ids=["DeepSeek", "Kimi", "both"],
)
def test_every_name_for_cached_tokens_in_chat_is_read(told: Json) -> None:
    """DeepSeek and Kimi have members of their own; a duplicate counts once."""
    assert USAGES["openai_chat"].decode(Raw(json.dumps(told).encode())).cached == 64


@pytest.mark.parametrize("to", [CLAUDE, CONVERSE], ids=lambda to: to.provider)
def test_our_mark_is_on_the_system_prompt_too(to: Destination) -> None:
    """A client that rewrites its history when it resumes, as Gemini CLI does, still gets tools and instructions from
    the cache; those are the same in every request.
    """
    rules, asked = {"role": "system", "content": "Rules."}, {"role": "user", "content": "Hi."}
    told = [{"role": "assistant", "content": "Hello."}, {"role": "user", "content": "And now?"}]
    first, later = (sent(chat(rules, *more, tools=[TOOL]), "openai_chat", to) for more in ([asked], [asked, *told]))
    for body in (first, later):
        marks = marks_in(body)
        assert len(marks) == 2
        assert any(mark.startswith("/system") for mark in marks)
    assert first["system"] == later["system"]


@pytest.mark.parametrize("to", [CLAUDE, CONVERSE], ids=lambda to: to.provider)
def test_a_mark_of_ours_stands_on_the_first_block_of_a_first_message_of_several(to: Destination) -> None:
    """A client that rewrites the rest of its first message when it resumes, as Qwen Code does, has the beginning from
    the cache; the block is the same from request to request."""
    rules, told = {"role": "system", "content": "Rules."}, {"role": "assistant", "content": "Hello."}
    asked, resumed = ({"role": "user", "content": [part("Skills."), part(day), part("Hi.")]} for day in ("1", "2"))
    more = {"role": "user", "content": "And now?"}
    first, later = (
        sent(chat(rules, *said, tools=[TOOL]), "openai_chat", to) for said in ([asked], [resumed, told, more])
    )
    begin = 1 if to is CLAUDE else 2  # Converse's mark is a block of its own
    assert first["messages"][0]["content"][:begin] == later["messages"][0]["content"][:begin]
    assert marks_in(first["messages"][0]["content"][:begin])
    assert [len(marks_in(body)) for body in (first, later)] == [3, 3]
    alone = sent(chat(rules, {"role": "user", "content": "Hi."}, told, more, tools=[TOOL]), "openai_chat", to)
    assert len(marks_in(alone)) == 2


def test_a_mark_of_the_client_s_for_the_whole_prompt_is_one() -> None:
    """No other is added to it."""
    body = sent(chat({"role": "system", "content": "Rules."}, cache_control=MARK), "openai_chat", CLAUDE)
    assert len(marks_in(body)) <= 1
