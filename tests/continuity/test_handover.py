"""Conversations that go from model to model: what is quoted, when, where, and that quotes stay the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise

import pytest

from tests.continuity.desks import (
    BOUND,
    CLAUDE,
    DEEPSEEK,
    GEMINI,
    GPT_CHAT,
    KIMI,
    NOVA,
    OLLAMA,
    OPENAI,
    ChatTurn,
    Desk,
    Model,
    at_desk,
    encoded,
    request,
    response,
    system_of,
    talk,
    thinks,
)
from thoughtline.continuity.checkpoints import HEADING, quoted
from thoughtline.continuity.terms import Terms
from thoughtline.stores import Filter

EVERY = [DEEPSEEK, CLAUDE, GEMINI, OPENAI, OLLAMA, NOVA]
TAKE_NOTHING_FOREIGN = [CLAUDE, GEMINI, OPENAI, GPT_CHAT, NOVA]


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with at_desk() as desk:
        yield desk


async def _next(
    desk: Desk, model: Model, history: list[ChatTurn], session: str | None = None
) -> tuple[bytes, list[str]]:
    sent = await desk.ask(model, request(model.format, [*history, ChatTurn("user", "And now?")]), session)
    return sent.body, sent.texts


@pytest.mark.parametrize("target", TAKE_NOTHING_FOREIGN, ids=lambda model: model.provider)
@pytest.mark.parametrize("source", [DEEPSEEK, CLAUDE, GEMINI, OPENAI], ids=lambda model: model.provider)
async def test_a_model_that_cannot_take_earlier_reasoning_gets_it_quoted(
    desk: Desk, source: Model, target: Model
) -> None:
    """Every pair of formats: the system prompt of the next model has the previous model's reasoning, in order."""
    if source == target:
        target = target._replace(account="account-2")
    history: list[ChatTurn] = []
    await talk(desk, history, (source, thinks(1)), (source, thinks(2)))
    sent = await desk.ask(target, request(target.format, [*history, ChatTurn("user", "And now?")]))
    system = system_of(target.format, sent.json)
    assert sent.texts == ["thought 1", "thought 2"]
    assert system == f"Be brief.\n\n{quoted(sent.quotation.quotes)}"


@pytest.mark.parametrize("model", EVERY, ids=lambda model: model.provider)
async def test_a_model_that_goes_on_by_itself_gets_its_clients_own_system_prompt(desk: Desk, model: Model) -> None:
    """No handoff, no quotation: whatever native replay carries or a provider does not want stays as it is."""
    history: list[ChatTurn] = []
    await talk(desk, history, (model, thinks(1)), (model, thinks(2)))
    body, texts = await _next(desk, model, history)
    assert texts == []
    assert HEADING.encode() not in body


async def test_plain_text_reasoning_that_goes_natively_is_not_quoted(desk: Desk) -> None:
    """Kimi takes DeepSeek's text as its own field: nothing is said twice."""
    history: list[ChatTurn] = []
    await talk(desk, history, (DEEPSEEK, thinks(1)))
    sent = await desk.ask(KIMI, request("openai_chat", [*history, ChatTurn("user", "And now?")]))
    assert sent.json["messages"][2]["reasoning_content"] == "thought 1"
    assert sent.texts == []


async def test_only_the_last_checkpoints_are_quoted(desk: Desk) -> None:
    """`count` of them, three unless set otherwise."""
    history: list[ChatTurn] = []
    await talk(desk, history, *((DEEPSEEK, thinks(number)) for number in range(5)))
    assert (await _next(desk, CLAUDE, history))[1] == ["thought 2", "thought 3", "thought 4"]
    desk.terms = Terms(count=1)
    assert (await _next(desk, GEMINI, history))[1] == ["thought 4"]


async def test_what_was_quoted_stays_the_same_in_the_turns_after(desk: Desk) -> None:
    """The system prompt of a conversation that was handed over is one and the same, turn after turn."""
    history: list[ChatTurn] = []
    await talk(desk, history, (DEEPSEEK, thinks(1)), (DEEPSEEK, thinks(2)))
    sent = await talk(desk, history, *((CLAUDE, thinks(number)) for number in range(3, 9)))
    systems = {system_of("anthropic_messages", one.json) for one in sent}
    assert len(systems) == 1
    assert all(one.texts == ["thought 1", "thought 2"] for one in sent)


async def test_new_checkpoints_are_appended(desk: Desk) -> None:
    """A second handover adds to what was quoted at the first: the earlier text is a prefix of the later."""
    history: list[ChatTurn] = []
    await talk(desk, history, (DEEPSEEK, thinks(1)))
    first = (await talk(desk, history, (CLAUDE, thinks(2))))[0]
    await talk(desk, history, (GEMINI, thinks(3)))
    second = (await talk(desk, history, (CLAUDE, thinks(4))))[0]
    assert first.texts == ["thought 1"]
    assert second.texts == ["thought 1", "thought 3"]
    assert second.quotation.text.startswith(first.quotation.text)


async def test_always_quotes_every_turn_and_keeps_what_it_quoted() -> None:
    """In the mode `always` each request has the last `count` and all that was quoted before them, as it was."""
    history: list[ChatTurn] = []
    async with at_desk(Terms(mode="always", count=2)) as desk:
        sent = await talk(desk, history, *((DEEPSEEK, thinks(number)) for number in range(5)))
    assert [one.texts for one in sent][-1] == ["thought 0", "thought 1", "thought 2", "thought 3"]
    for before, after in pairwise(sent):
        assert after.quotation.text.startswith(before.quotation.text)


async def test_a_quotation_starts_over_where_it_would_grow_beyond_its_bounds(desk: Desk) -> None:
    """More characters than `count` of the longest together, or more than a hundred: only the last `count` are left."""
    history: list[ChatTurn] = []
    desk.terms = Terms(mode="always", count=2, max_chars=10)
    sent = await talk(desk, history, *((DEEPSEEK, thinks(number)) for number in range(4)))
    assert [one.texts for one in sent] == [[], ["thought 0"], ["thought 0", "thought 1"], ["thought 1", "thought 2"]]
    desk.terms = Terms(mode="always", count=100)
    sent = await talk(desk, history, *((DEEPSEEK, thinks(number)) for number in range(4, 108)))
    assert max(len(one.texts) for one in sent) == 100
    assert sent[-1].texts[-1] == "thought 106"


async def test_two_conversations_of_one_caller_share_nothing(desk: Desk) -> None:
    """Neither by the caller's key nor by a session id that covers both: only turns of the request are quoted."""
    await talk(desk, [], (DEEPSEEK, thinks(1)), session="s")
    other = [ChatTurn("user", "Something else?"), ChatTurn("assistant", "Yes.", "")]
    assert (await _next(desk, CLAUDE, other, "s"))[1] == []
    assert (await _next(desk, CLAUDE, [], "s"))[1] == []


async def test_another_tenant_gets_nothing(desk: Desk) -> None:
    """The same words from another caller find no thoughts."""
    history: list[ChatTurn] = []
    await talk(desk, history, (DEEPSEEK, thinks(1)))
    sent = await desk.ask(CLAUDE, request("anthropic_messages", [*history, ChatTurn("user", "?")]), tenant="other")
    assert sent.texts == []


SUMMARY = [ChatTurn("user", "In short: two answers were given. And now?")]


async def _summed_up(desk: Desk, model: Model, **who: str) -> list[str]:
    return (await desk.ask(model, request(model.format, SUMMARY), **who)).texts


@pytest.mark.parametrize("target", EVERY, ids=lambda model: model.provider)
async def test_after_a_summary_the_last_thoughts_of_the_session_are_quoted(desk: Desk, target: Model) -> None:
    """No turn of it is left: to whichever model goes on, its own thoughts too, in order and no more than `count`."""
    history: list[ChatTurn] = []
    plays = [(DEEPSEEK, thinks(number)) for number in range(1, 6)]
    await talk(desk, history, *plays, session="s", agent="main")
    sent = await desk.ask(target, request(target.format, SUMMARY), "s", agent="main")
    assert sent.texts == ["thought 3", "thought 4", "thought 5"]
    again = await desk.ask(target, request(target.format, SUMMARY), "s", agent="main")
    assert again.body == sent.body


async def test_it_stays_as_it_is_after_a_summary(desk: Desk) -> None:
    """The request sent again, also after its answer, and those that go on from it quote the same."""
    await talk(desk, [], (DEEPSEEK, thinks(1)), (DEEPSEEK, thinks(2)), session="s", agent="main")
    for model in (CLAUDE, BOUND):
        first = await desk.ask(model, request(model.format, SUMMARY), "s", agent="main")
        await desk.answer(first, response(model, thinks(3)))
        again = await desk.ask(model, request(model.format, SUMMARY), "s", agent="main")
        history = [*SUMMARY, thinks(3), ChatTurn("user", "Go on.")]
        later = await desk.ask(model, request(model.format, history), "s", agent="main")
        assert first.texts == again.texts == later.texts
        assert system_of(model.format, first.json) == system_of(model.format, later.json)


@pytest.mark.parametrize(
    "who",
    [
        {},
        {"session": "s"},
        {"agent": "main"},
        {"session": "s", "agent": "other"},
        {"session": "other", "agent": "main"},
        {"session": "s", "agent": "main", "tenant": "other"},
    ],
    ids=str,
)
async def test_an_unnamed_session_gets_nothing_after_a_summary(desk: Desk, who: dict[str, str]) -> None:
    """Not without a session, nor without an agent: title calls and sub-agents share their session's name."""
    for names in ({"session": "s", "agent": "main"}, {}, {"session": "s"}):
        await talk(desk, [], (DEEPSEEK, thinks(1)), **names)
        found = await _summed_up(desk, CLAUDE, **who)
        assert found == []


async def test_nothing_after_a_summary_where_it_is_switched_off(desk: Desk) -> None:
    """`after_compaction = false`; and a single remaining turn is enough to decide by the request's content."""
    history: list[ChatTurn] = []
    await talk(desk, history, (DEEPSEEK, thinks(1)), (DEEPSEEK, thinks(2)), session="s", agent="main")
    left = [*history[-2:], ChatTurn("user", "And now?")]
    assert (await desk.ask(CLAUDE, request(CLAUDE.format, left), "s", agent="main")).texts == ["thought 2"]
    desk.terms = Terms(after_compaction=False)
    assert await _summed_up(desk, CLAUDE, session="s", agent="main") == []


async def test_too_long_and_deleted_thoughts_after_a_summary(desk: Desk) -> None:
    """Oversized reasoning is left out entirely, forgotten reasoning is not quoted."""
    desk.terms = Terms(max_chars=20)
    long = ChatTurn("assistant", "Answer 2.", "thought 2" * 10)
    await talk(desk, [], (DEEPSEEK, thinks(1)), (DEEPSEEK, long), (DEEPSEEK, thinks(3)), session="s", agent="main")
    assert await _summed_up(desk, CLAUDE, session="s", agent="main") == ["thought 1", "thought 3"]
    await desk.store.delete(Filter(session="s"))
    assert await _summed_up(desk, CLAUDE, session="s", agent="main") == []


async def test_a_compaction_keeps_what_was_quoted(desk: Desk) -> None:
    """The client writes a summary in place of most turns and keeps its last two: the system prompt is as before."""
    history: list[ChatTurn] = []
    await talk(desk, history, (DEEPSEEK, thinks(1)), (DEEPSEEK, thinks(2)), session="s")
    sent = await talk(desk, history, *((CLAUDE, thinks(number)) for number in range(3, 6)), session="s")
    compacted = [ChatTurn("user", "In short: two answers were given."), *history[-5:]]
    after = await desk.ask(CLAUDE, request("anthropic_messages", [*compacted, ChatTurn("user", "And now?")]), "s")
    assert after.texts == ["thought 1", "thought 2"]
    assert after.json["system"] == sent[-1].json["system"]


async def test_a_summary_alone_is_quoted_nothing(desk: Desk) -> None:
    """Where no turn of the model is left, there is nothing that a quotation would be the background of."""
    history: list[ChatTurn] = []
    await talk(desk, history, (DEEPSEEK, thinks(1)), (CLAUDE, thinks(2)), session="s")
    assert (await _next(desk, CLAUDE, [ChatTurn("user", "In short: …")], "s"))[1] == []


async def test_a_fork_from_before_the_handover_is_a_conversation_of_its_own(desk: Desk) -> None:
    """One history, two continuations: each is quoted what belongs to its own turns."""
    history: list[ChatTurn] = []
    await talk(desk, history, (DEEPSEEK, thinks(1)))
    fork = list(history)
    await talk(desk, history, (DEEPSEEK, thinks(2)), (CLAUDE, thinks(3)))
    assert (await _next(desk, CLAUDE, history))[1] == ["thought 1", "thought 2"]
    assert (await _next(desk, CLAUDE, fork))[1] == ["thought 1"]


async def test_the_same_request_sent_again_is_the_same(desk: Desk) -> None:
    """A retry goes out byte for byte as before, also after its first answer was remembered."""
    history: list[ChatTurn] = []
    await talk(desk, history, (DEEPSEEK, thinks(1)))
    body = request("anthropic_messages", [*history, ChatTurn("user", "And now?")])
    first = await desk.ask(CLAUDE, body)
    from_first = first.body
    await desk.answer(first, {"content": [{"type": "text", "text": "So."}], "stop_reason": "end_turn"})
    assert (await desk.ask(CLAUDE, body)).body == from_first


async def test_a_deleted_thought_is_not_quoted_again(desk: Desk) -> None:
    """Notes name records and don't repeat them: what was deleted is gone."""
    history: list[ChatTurn] = []
    await talk(desk, history, (DEEPSEEK, thinks(1)), (CLAUDE, thinks(2)))
    desk.clock.now += 10
    await desk.store.delete(Filter(provider="deepseek"))
    body, texts = await _next(desk, CLAUDE, history)
    assert texts == []
    assert b"thought 1" not in body


async def test_an_oversize_thought_is_left_out_entirely_and_reported(desk: Desk) -> None:
    """Never cut: the others are quoted, and a finding names the turn that was not."""
    history: list[ChatTurn] = []
    long = ChatTurn("assistant", "Long.", "x" * 64_001)
    await talk(desk, history, (DEEPSEEK, thinks(1)), (DEEPSEEK, long), (DEEPSEEK, thinks(3)))
    sent = await desk.ask(CLAUDE, request("anthropic_messages", [*history, ChatTurn("user", "?")]))
    assert sent.texts == ["thought 1", "thought 3"]
    assert sent.rules == ["checkpoint-oversize"]
    assert sent.quotation.findings[0].place == "/messages/3"
    assert b"xxxx" not in sent.body


async def test_encrypted_turns_and_tagged_text_have_no_checkpoint(desk: Desk) -> None:
    """Ciphertext can't be read; tags in visible text are visible text."""
    history = [ChatTurn("user", "Question?")]
    sent = await desk.ask(OPENAI, request("openai_responses", history))
    sealed = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "Z2liYmVyaXNo" * 3}
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One."}]}
    await desk.answer(sent, {"status": "completed", "output": [sealed, message]})
    history += [ChatTurn("assistant", "One."), ChatTurn("user", "Next?")]
    sent = await desk.ask(DEEPSEEK, request("openai_chat", history))
    tagged = {"role": "assistant", "content": "<think>hidden</think>Two."}
    await desk.answer(sent, {"choices": [{"message": tagged, "finish_reason": "stop"}]})
    history.append(ChatTurn("assistant", "<think>hidden</think>Two."))
    assert (await _next(desk, CLAUDE, history))[1] == []


async def test_bound_models_are_quoted_at_the_handover_and_never_after(desk: Desk) -> None:
    """The first request of a prefix-bound model may be quoted into; from then on its system prompt stays as it is."""
    history: list[ChatTurn] = []
    await talk(desk, history, (DEEPSEEK, thinks(1)))
    sent = await talk(desk, history, (BOUND, thinks(2)), (BOUND, thinks(3)))
    assert [one.texts for one in sent] == [["thought 1"], ["thought 1"]]
    assert sent[1].json["messages"][3]["content"][0]["type"] == "thinking", "its own block goes back"
    await talk(desk, history, (GEMINI, thinks(4)))
    later = (await talk(desk, history, (BOUND, thinks(5))))[0]
    assert later.texts == ["thought 1"]
    assert later.rules == ["checkpoint-withheld"]
    assert later.json["system"] == sent[0].json["system"]


async def test_a_bound_model_that_began_unquoted_stays_so(desk: Desk) -> None:
    """Blocks made under the client's own system prompt are never put behind another."""
    history: list[ChatTurn] = []
    await talk(desk, history, (BOUND, thinks(1)), (DEEPSEEK, thinks(2)))
    sent = await desk.ask(BOUND, request("anthropic_messages", [*history, ChatTurn("user", "?")]))
    assert sent.json["system"] == "Be brief."
    assert sent.rules == ["checkpoint-withheld"]


async def test_nothing_to_quote_leaves_the_clients_bytes(desk: Desk) -> None:
    """Byte for byte: no checkpoint, no edit."""
    for model in EVERY:
        body = request(model.format, [ChatTurn("user", "Hello")])
        body |= {"include": ["reasoning.encrypted_content"]} if model is OPENAI else {}
        assert (await desk.ask(model, body)).body == encoded(body)
