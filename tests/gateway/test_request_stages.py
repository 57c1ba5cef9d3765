"""The stages of a request, each by itself: a value in, a value out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.gateway.stage_requests import NOW, TENANT, Json, answered, request, sent_body, services
from thoughtline.continuity.terms import Terms
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.formats import FORMATS
from thoughtline.gateway import request_stages as stages
from thoughtline.gateway.outgoing import Outgoing
from thoughtline.gateway.stored_responses import keep
from thoughtline.replay.findings import Finding
from thoughtline.settings import Settings
from thoughtline.settings.structs import ContinuitySettings, TranslationSettings
from thoughtline.translation.tools import NO_NAMES
from thoughtline.values.errors import Declined, Untranslatable
from thoughtline.values.turns import Provenance

THOUGHT = "The weather tool knows."
CALL: Json = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
USER: Json = {"role": "user", "content": "Weather?"}
CALLED: Json = {"role": "assistant", "content": "", "tool_calls": [CALL]}
RESULT: Json = {"role": "tool", "tool_call_id": "call_1", "content": "rain"}
TOOL: Json = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
CHAT: Json = {"model": "deepseek-v4-pro", "messages": [USER], "tools": [TOOL]}
NEXT: Json = {**CHAT, "messages": [USER, CALLED, RESULT]}
ANSWER: Json = {
    "id": "x",
    "object": "chat.completion",
    "choices": [
        {"index": 0, "message": {**CALLED, "reasoning_content": THOUGHT}, "finish_reason": "tool_calls"},
    ],
}
MESSAGES: Json = {"model": "deepseek-v4-pro", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}
RESPONSES: Json = {"model": "deepseek-v4-pro", "input": [{"type": "message", "role": "user", "content": "Hello"}]}
SEARCH: Json = {"type": "web_search"}


def passed(before: Outgoing, after: Outgoing, **changes: Any) -> bool:
    """Whether a stage changed these members and no others."""
    return after == replace(before, **changes)


async def test_as_it_came_without_replay() -> None:
    """The client's own bytes, and nothing that its answer could be read with."""
    came = json.dumps(NEXT, indent=3).encode()
    sent = await stages.as_it_came(request(came, ask={"replay": "off"}), services())
    assert sent.prepared is not None
    assert (sent.prepared.body, sent.prepared.transcript, sent.prepared.plan) == (came, None, None)


async def test_as_it_came_with_the_name_that_the_target_has() -> None:
    sent = await stages.as_it_came(
        replace(asking := request(CHAT), came=replace(asking.came, model="mine")), services()
    )
    assert sent.prepared is not None
    assert json.loads(sent.prepared.body)["model"] == "deepseek-v4-pro"


THREAD: Json = {**MESSAGES, "thread": {"type": "continue", "previous_message_id": "msg_1"}}


def test_server_state_that_the_provider_does_not_have() -> None:
    with pytest.raises(Declined, match="deepseek keeps no"):
        stages.server_state(request(THREAD, client="anthropic_messages"))


def test_server_state_that_the_provider_has_is_reported() -> None:
    """Behind what was found before."""
    asking = request(THREAD, "anthropic", "claude-sonnet-4-5", "anthropic_messages")
    asking = replace(asking, findings=(Finding("door", "/x", "why", ""),))
    assert [one.rule for one in stages.server_state(asking).findings] == ["door", "held-state"]


def test_server_state_that_is_not_named() -> None:
    asking = request(MESSAGES, client="anthropic_messages")
    assert stages.server_state(asking) is asking


def test_continuity_by_header_and_by_settings() -> None:
    """The header decides; without one it is what settings say of the target."""
    use = services(Settings(continuity=ContinuitySettings(count=3)))
    of_target = Terms(count=7)
    by_settings = stages.continuity(request(CHAT, target={"terms": of_target}), use)
    assert by_settings.continuity == of_target
    header = {b"x-thoughtline-continuity": b"always"}
    by_header = stages.continuity(request(CHAT, target={"terms": of_target}, headers=header), use)
    assert by_header.continuity is not None
    assert (by_header.continuity.mode, by_header.continuity.count) == ("always", 3)
    off = stages.continuity(request(CHAT, headers={b"x-thoughtline-continuity": b"off"}), use)
    assert off.continuity is None


async def test_stored_responses_are_put_before_what_is_new() -> None:
    use = services()
    made = Provenance(
        TENANT, "deepseek", "https://x", "account", "m", model_answered="m", format="openai_chat", dialect="c"
    )
    answer = {"id": "resp_1", "output": [{"type": "message", "id": "msg_resp_1", "role": "assistant", "content": []}]}
    await keep(use.store, made, json.dumps(RESPONSES).encode(), json.dumps(answer).encode(), NOW)
    new = {**RESPONSES, "previous_response_id": "resp_1"}
    asking = request(new, client="openai_responses", upstream="openai_chat")
    found = await stages.stored_responses(asking, use)
    whole = json.loads(found.body)
    assert whole["input"] == [*RESPONSES["input"], *answer["output"], *RESPONSES["input"]]
    assert passed(asking, found, body=found.body, conversation=found.body)
    stranger = replace(asking, came=replace(asking.came, identity=replace(asking.came.identity, tenant="bob")))
    with pytest.raises(Declined, match="not found"):
        await stages.stored_responses(stranger, use)


COMPACTED: Json = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAABpSEALED=="}


async def test_compactions_that_the_server_can_not_read() -> None:
    """They are left out and reported. A request without any is the very same."""
    use, plain = services(), request(RESPONSES, client="openai_responses")
    assert await stages.compaction(plain, use) is plain
    asking = request({**RESPONSES, "input": [COMPACTED, *RESPONSES["input"]]}, client="openai_responses")
    read = await stages.compaction(asking, use)
    assert b"SEALED" not in read.body
    assert [one.rule for one in read.findings] == ["untranslatable"]
    assert (read.makes_compaction, read.cuts) == (False, ())


async def test_a_compaction_that_the_server_can_not_make() -> None:
    """It is asked for in words, and what the user said goes with it."""
    asking = request(RESPONSES, client="openai_responses", route={"action": "compact"})
    assert not asking.is_generating
    ordered = await stages.compaction(asking, services())
    assert (ordered.makes_compaction, ordered.is_generating) == (True, True)
    assert ordered.kept_user_messages is not None
    assert len(json.loads(ordered.body)["input"]) > len(RESPONSES["input"])


async def test_compactions_that_settings_pass_on() -> None:
    use = services(Settings(translation=TranslationSettings(missing_tools="pass_on")))
    asking = request({**RESPONSES, "input": [COMPACTED]}, client="openai_responses")
    assert b"SEALED" in (await stages.compaction(asking, use)).body


def test_tools_that_the_server_lacks_are_left_out() -> None:
    own: Json = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}
    space = {"type": "namespace", "name": "crm", "tools": [own]}
    asking = request({**RESPONSES, "tools": [space, SEARCH]}, "groq", "openai/gpt-oss-120b", "openai_responses")
    taken = stages.tools(asking, services())
    assert [tool["type"] for tool in json.loads(taken.body)["tools"]] == ["function"]
    assert [one.rule for one in taken.findings] == ["untranslatable"]
    assert taken.client.tools == taken.renamed_tools != NO_NAMES
    assert taken.cuts is None


def test_tools_that_the_server_has() -> None:
    asking = request({**RESPONSES, "tools": [SEARCH]}, "openai", "gpt-5.1", "openai_responses")
    assert stages.tools(asking, services()).body is asking.body


async def test_restore_puts_reasoning_back() -> None:
    use = services()
    await answered(use, await stages.restore(request(CHAT), use), ANSWER)
    restored = await stages.restore(request(NEXT), use)
    assert sent_body(restored)["messages"][1]["reasoning_content"] == THOUGHT
    assert restored.prepared is not None
    assert restored.prepared.counts.restored == 1
    assert not restored.is_rewritten


async def test_restore_for_another_tenant_finds_nothing() -> None:
    use = services()
    await answered(use, await stages.restore(request(CHAT), use), ANSWER)
    asking = request(NEXT)
    stranger = replace(asking, came=replace(asking.came, identity=replace(asking.came.identity, tenant="bob")))
    assert THOUGHT not in json.dumps(sent_body(await stages.restore(stranger, use)))


async def test_restore_only_observed() -> None:
    """The client's bytes are sent, and what would have been done is there in words and turn by turn."""
    use = services()
    await answered(use, await stages.restore(request(CHAT), use), ANSWER)
    seen = await stages.restore(request(NEXT, ask={"replay": "observe"}), use)
    assert seen.prepared is not None
    assert seen.prepared.body == seen.came.body
    assert seen.observed is not None
    assert (seen.observed.would, [note.treatment for note in seen.observed.notes or ()]) == ("restored=1", ["restored"])


async def test_restore_for_a_client_that_signed_its_body() -> None:
    """Its bytes stay, and the request reports what was not done, and that AWS refuses its signature elsewhere."""
    use = services()
    await answered(use, await stages.restore(request(CHAT), use), ANSWER)
    signed = await stages.restore(request(NEXT, ask={"is_signed": True}), use)
    assert signed.prepared is not None
    assert signed.prepared.body == signed.came.body
    assert [one.rule for one in signed.prepared.carried.findings] == ["signed-request", "signed-elsewhere"]


async def test_restore_for_a_server_that_only_streams() -> None:
    """A whole answer is made of the stream; a client that streams gets it as it comes."""
    row = replace(PROVIDERS["deepseek"], streams_only=True)
    assert (await stages.restore(request(CHAT, row), services())).is_rewritten
    streamed = await stages.restore(request({**CHAT, "stream": True}, row), services())
    assert (streamed.is_rewritten, streamed.is_streaming) == (False, True)


async def test_restore_reports_what_earlier_stages_found() -> None:
    asking = stages.server_state(request(THREAD, "anthropic", "claude-sonnet-4-5", "anthropic_messages"))
    sent = await stages.restore(asking, services())
    assert sent.prepared is not None
    assert ("held-state", "/thread") in sent.prepared.outcome.findings


async def test_restore_what_can_not_be_read() -> None:
    """It is sent as it came, and stays what it was."""
    sent = await stages.restore(request(b'{"messages": 1}'), services())
    assert sent.prepared is not None
    assert (sent.prepared.body, sent.prepared.problem is None) == (b'{"messages": 1}', False)


async def test_translate() -> None:
    """In the provider's format, and the answer is to be written in the client's."""
    asking = request({**MESSAGES, "stream": True}, client="anthropic_messages", upstream="openai_chat")
    sent = await stages.translate(asking, services())
    assert sent_body(sent)["messages"] == [{"role": "user", "content": "Hello"}]
    assert (sent.is_rewritten, sent.is_streaming, sent.client.is_streaming) == (True, True, True)
    assert sent.client.call_ids is not None


@pytest.mark.parametrize("mode", ["off", "observe"])
async def test_translate_without_putting_anything_back(mode: str) -> None:
    use = services()
    await answered(use, await stages.restore(request(CHAT), use), ANSWER)
    called = {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "weather", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "rain"}]}
    body = {**MESSAGES, "messages": [{"role": "user", "content": "Weather?"}, called, result]}
    both = {"client": "anthropic_messages", "upstream": "openai_chat"}
    on = await stages.translate(request(body, **both), use)  # type: ignore[arg-type]  # of two known names
    assert THOUGHT in json.dumps(sent_body(on))
    sent = await stages.translate(request(body, ask={"replay": mode}, **both), use)  # type: ignore[arg-type]  # the same
    assert THOUGHT not in json.dumps(sent_body(sent))
    assert (sent.observed is None) == (mode == "off")


async def test_translate_what_the_format_can_not_hold() -> None:
    body = {**RESPONSES, "tools": [SEARCH]}
    use = services(Settings(translation=TranslationSettings(missing_tools="refuse")))
    with pytest.raises(Untranslatable):
        await stages.translate(request(body, client="openai_responses", upstream="openai_chat"), use)


@pytest.mark.parametrize("is_readable", [True, False])
async def test_token_count(is_readable: bool) -> None:
    """What would be sent is counted; if that can't be made, what came."""
    body = {**MESSAGES, **({} if is_readable else {"messages": 1})}
    route = {"action": "count_tokens"}
    asking = request(body, client="anthropic_messages", upstream="openai_chat", route=route)
    counted = await stages.token_count(asking, services())
    assert counted.body_to_count is not None
    assert (counted.prepared is not None) == is_readable
    assert counted.body_to_count == (counted.prepared.body if counted.prepared is not None else asking.body)


async def test_token_estimate() -> None:
    use = services()
    assert (await stages.token_estimate(request(CHAT), use)).estimated_tokens == 0
    assert (await stages.token_estimate(await stages.restore(request(CHAT), use), use)).estimated_tokens > 5


@pytest.mark.parametrize(
    ("setting", "is_continued", "mode"),
    [(None, False, "off"), (None, True, "markers"), ("lift", False, "lift"), ("off", True, "off")],
)
async def test_tags(setting: str | None, is_continued: bool, mode: str) -> None:
    asking = request(CHAT, target={"tags": setting})
    prepared = replace(await stages.restore(asking, services()), continuity=Terms() if is_continued else None)
    assert stages.tags(prepared).tags == mode
    assert stages.tags(asking).tags == "off"


# --- the list ---------------------------------------------------------------------------------------------------------


async def test_prepare_takes_the_stages_that_apply() -> None:
    """In the client's format: restored, and nothing else changes."""
    use, asking = services(), request(CHAT)
    done = await stages.prepare(asking, use)
    assert done.prepared is not None
    assert done.prepared.transcript is not None
    assert passed(asking, done, prepared=done.prepared)


async def test_prepare_with_replay_off() -> None:
    done = await stages.prepare(request(CHAT, ask={"replay": "off"}, target={"tags": "lift"}), services())
    assert done.prepared is not None
    assert (done.prepared.transcript, done.tags) == (None, "off")


async def test_prepare_a_request_of_responses_in_another_format() -> None:
    """Each stage of the list leaves its mark."""
    header = {b"x-thoughtline-continuity": b"always"}
    body = {**RESPONSES, "input": [COMPACTED, *RESPONSES["input"]]}
    use = services()
    use.ratios.corrected("deepseek/deepseek-v4-pro", 1)
    asking = request(body, client="openai_responses", upstream="openai_chat", headers=header)
    done = await stages.prepare(asking, use)
    assert done.conversation == asking.body
    assert done.continuity is not None
    assert done.tags == "markers"
    assert done.is_rewritten
    assert done.estimated_tokens > 0
    assert FORMATS[done.ask.target.format].list_member in sent_body(done)
    assert "untranslatable" in [one.rule for one in done.findings]


async def test_prepare_a_count_in_another_format() -> None:
    route = {"action": "count_tokens"}
    asking = request(MESSAGES, client="anthropic_messages", upstream="openai_chat", route=route)
    assert (await stages.prepare(asking, services())).body_to_count is not None


async def test_prepare_refuses_server_state_first() -> None:
    with pytest.raises(Declined):
        await stages.prepare(request(THREAD, client="anthropic_messages"), services())
