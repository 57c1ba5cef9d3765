"""What clients do to history: group D of the catalogue of client behaviours, one or more tests per row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.replay.dialogues import (
    ON,
    Json,
    Store,
    World,
    asks,
    bare,
    call,
    chat,
    chat_reply,
    claude,
    claude_reply,
    kinds,
    reasoning_of,
    result,
    result_of,
    returned,
    said,
    says,
    stripped,
    thinking,
    told,
    use,
    user,
    without_thinking,
    words,
)

DEEPSEEK = ("deepseek", "deepseek-v4-pro")
KIMI = ("kimi", "kimi-k2.6")


def step(number: int, reasoning: str, command: str = "ls") -> Json:
    return said(None, call(f"functions.bash:{number}", command), reasoning=reasoning)


LISTING = "\n".join(f"-rw-r--r-- 1 ann staff {size} report-{size}.txt" for size in range(8000, 8008))


def long_talk(world: World) -> list[Json]:
    """Four model turns, two of them calls with counted ids."""
    return told(
        world,
        *(user("How many files?"), step(0, "List them."), result("functions.bash:0", LISTING)),
        *(said("Three.", reasoning="a, b, c."), user("And where?")),
        *(step(1, "Ask the shell.", "pwd"), result("functions.bash:1", LISTING)),
        *(said("In /tmp.", reasoning="That is it."), user("Thanks.")),
    )


def thoughts(messages: list[Json]) -> list[str | None]:
    return [reasoning_of(message) for message in messages if message["role"] == "assistant"]


# --- D1 --------------------------------------------------------------------------------------------------------------

LAST = {
    "tool turn": [thinking("Count.", "EsigB"), use("toolu_01AbCdEfGh")],
    "plain turn": [thinking("Count.", "EsigB"), words("Three files.")],
}


@pytest.mark.parametrize("session", ["s", None])
@pytest.mark.parametrize("kind", LAST)
def test_d1_blocks_behind_a_summary_are_kept_and_never_put_back(kind: str, session: str | None) -> None:
    """D1: the last turn comes after a new first message: a block that the client kept is sent, because accounts differ
    in whether they refuse it; one that it lost is not restored."""
    world = World("anthropic", "claude-opus-5-5", "anthropic_messages")
    first, turn = [thinking("Hm.", "EsigA"), words("Which?")], LAST[kind]
    old = [user("How many?"), says(*first), user("All.")]
    world.answer(claude(old[0]), claude_reply(*first), session=session)
    world.answer(claude(*old), claude_reply(*turn), session=session)
    after = asks(returned("toolu_01AbCdEfGh")) if kind == "tool turn" else user("Go on.")
    for shown in (turn, turn[1:]):
        sent = world.send(claude(user("Summary: we count files."), says(*shown), after), session=session)
        assert kinds(sent.messages[1]) == kinds(says(*shown))
        assert "bound-prefix-changed" in sent.rules or shown is not turn
        assert "EsigA" not in str(sent.body)


def test_d1_compaction_leaves_blocks_that_nothing_binds() -> None:
    """D1: on a model that checks only the signature, the block that the client kept stays, and no old one is
    restored."""
    world = World("anthropic", "claude-opus-4-6", "anthropic_messages")
    turn = LAST["tool turn"]
    world.answer(claude(user("How many?")), claude_reply(*turn))
    sent = world.send(claude(user("Summary."), says(*turn), asks(returned("toolu_01AbCdEfGh"))))
    assert sent.plan.edits == ()


# --- D2 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", [DEEPSEEK, KIMI])
def test_d2_a_rewritten_opening_does_not_hide_the_turns_after_it(provider: tuple[str, str]) -> None:
    """D2: the first message is rewritten: a long run of the same calls and results identifies the turns."""
    world = World(*provider)
    history = long_talk(world)
    lost = [user("How many files are there?"), *stripped(history)[1:]]
    found = thoughts(world.send(chat(*lost)).messages)
    assert found[1:] == ["a, b, c.", "Ask the shell.", "That is it."]
    assert (found[0] or "").strip() in ("", "List them.")


@pytest.mark.parametrize("provider", [DEEPSEEK, KIMI])
def test_d2_few_turns_behind_a_rewritten_opening(provider: tuple[str, str]) -> None:
    """D2: two consecutive turns may occur in another conversation, too: they prove nothing."""
    world = World(*provider)
    history = long_talk(world)
    lost = [user("How many files are there?"), *stripped(history)[1:4], user("Thanks.")]
    assert not "".join(one or "" for one in thoughts(world.send(chat(*lost)).messages)).strip()


@pytest.mark.parametrize("provider", [DEEPSEEK, KIMI])
def test_d2_another_system_prompt_is_another_conversation(provider: tuple[str, str]) -> None:
    """D2: with another system prompt, another first message and no unique id, nothing proves that it is the same
    conversation."""
    world = World(*provider)
    history = long_talk(world)
    lost = [{"role": "system", "content": "New."}, user("How many files are there?"), *stripped(history)[1:]]
    assert not "".join(one or "" for one in thoughts(world.send(chat(*lost)).messages)).strip()


def test_d2_a_rewritten_opening_within_a_session() -> None:
    """D2: a named session is evidence, too: even the first turn is found."""
    world = World(*DEEPSEEK)
    turn = said("Three files.", reasoning="a, b, c.")
    world.answer(chat(user("How many?")), chat_reply(turn), session="s")
    sent = world.send(chat(user("How many? (rewritten)"), bare(turn), user("Sure?")), session="s")
    assert sent.messages[1] == turn


def test_d2_a_reminder_inside_a_result() -> None:
    """D2: a reminder that comes and goes inside an old result changes neither the turn before it nor the one after."""
    world = World("anthropic", "claude-opus-4-6", "anthropic_messages")
    one = [thinking("List.", "EsigA"), use("toolu_01AbCdEfGh")]
    two = [thinking("Where?", "EsigB"), use("toolu_02IjKlMnOp", "pwd")]
    ask, noted = user("Look."), asks(returned("toolu_01AbCdEfGh", "a b c\n<system-reminder>Be kind.</system-reminder>"))
    world.answer(claude(ask), claude_reply(*one))
    world.answer(claude(ask, says(*one), noted), claude_reply(*two))
    clean = asks(returned("toolu_01AbCdEfGh"))
    sent = world.send(claude(ask, says(one[1]), clean, says(two[1]), asks(returned("toolu_02IjKlMnOp", "/"))))
    assert [sent.messages[1], sent.messages[3]] == [says(*one), says(*two)]


# --- D3, D4 ----------------------------------------------------------------------------------------------------------


def test_d3_an_edited_question_gets_its_own_answer() -> None:
    """D3: the user edits a message and the model answers the same again: the new answer has its own reasoning."""
    world = World(*DEEPSEEK)
    told(world, user("Is it 3?"), said("Yes.", reasoning="Three it is."))
    history = told(world, user("Is it 4?"), said("Yes.", reasoning="Four it is."), user("Sure?"))
    assert world.send(chat(*stripped(history))).messages == history


def test_d3_an_edited_answer_matches_no_record() -> None:
    """D3: an answer whose words were changed is not the model's: it gets a blank where the key is required."""
    world = World(*DEEPSEEK)
    told(world, user("How many?"), said("Three.", reasoning="a, b, c."))
    sent = world.send(chat(user("How many?"), said("Four."), user("Sure?")))
    assert (reasoning_of(sent.messages[1]) or "").strip() == ""
    assert sent.plan.counts.restored == 0


def test_d4_two_branches_of_one_prefix() -> None:
    """D4: both continuations of a fork keep their own turns, and share the one before the fork."""
    world = World(*KIMI)
    trunk = [user("Look."), step(0, "List."), result("functions.bash:0")]
    left = told(world, *trunk, step(1, "Left: where?", "pwd"), result("functions.bash:1", "/"))
    right = told(world, *trunk, step(1, "Right: who?", "id"), result("functions.bash:1", "root"))
    for branch in (left, right, left):
        assert world.send(chat(*stripped(branch))).messages == branch


def test_d4_branches_that_say_the_same() -> None:
    """D4: after the fork both branches answer in equal words: the message before them decides."""
    world = World(*DEEPSEEK)
    trunk = [user("Look."), said("Where?", reasoning="Ask.")]
    left = told(world, *trunk, user("Here."), said("Fine.", reasoning="Here is fine."), user("Go."))
    right = told(world, *trunk, user("There."), said("Fine.", reasoning="There is fine."), user("Go."))
    for branch in (left, right):
        assert world.send(chat(*stripped(branch))).messages == branch


# --- D5, D6, D7 ------------------------------------------------------------------------------------------------------


def test_d5_another_process_gives_the_same_bytes() -> None:
    """D5: another process that reads the stored bytes restores the same request, key for key."""
    world = World(*DEEPSEEK)
    history = long_talk(world)
    here = world.send(chat(*stripped(history)))
    kept = {key: dict(records) for key, records in world.store.kept.items()}
    there = replace(world, store=Store(kept)).send(chat(*stripped(history)))
    assert here.messages == history
    assert there.body == here.body


@pytest.mark.parametrize("dropped", range(1, 8))
def test_d6_a_window_that_slides(dropped: int) -> None:
    """D6: the oldest messages are gone and all indexes have shifted: each turn gets its own reasoning, or a blank."""
    world = World(*KIMI)
    history = long_talk(world)
    sent = world.send(chat(*stripped(history[dropped:])))
    for now, was in zip(sent.messages, history[dropped:], strict=True):
        assert (reasoning_of(now) or "").strip() in ("", reasoning_of(was))
    if dropped <= 2:
        assert thoughts(sent.messages)[-2:] == ["Ask the shell.", "That is it."]


def test_d6_random_ids_survive_any_window() -> None:
    """D6: a call with a globally unique id is found with nothing before it."""
    world = World(*DEEPSEEK)
    turn = said(None, call("call_00_Qx7Lm2Zp"), reasoning="List.")
    history = told(world, user("Look."), turn, result_of(turn))
    assert world.send(chat(*stripped(history[1:]))).messages == history[1:]


def test_d7_a_side_request_does_not_replace_the_main_line() -> None:
    """D7: a compaction request over the same history is answered later, in the same session: the main conversation
    stays."""
    world = World("anthropic", "claude-opus-4-6", "anthropic_messages")
    one = [thinking("List.", "EsigA"), use("toolu_01AbCdEfGh")]
    main, side = [thinking("Count.", "EsigB"), words("Three.")], [thinking("Sum up.", "EsigC"), words("Summary.")]
    ask, back = user("How many?"), returned("toolu_01AbCdEfGh")
    world.answer(claude(ask), claude_reply(*one), session="s")
    world.answer(claude(ask, says(*one), asks(back)), claude_reply(*main), session="s")
    order = asks(back, words("Summarise the conversation."))
    world.answer(claude(ask, says(*one), order), claude_reply(*side), session="s")
    sent = world.send(claude(ask, says(one[1]), asks(back), says(main[1]), user("Thanks.")), session="s")
    assert sent.messages == [ask, says(*one), asks(back), says(*main), user("Thanks.")]


def test_d7_a_side_answer_in_the_words_of_the_main_one() -> None:
    """D7: even if the side answer has the same words, the main conversation keeps its own reasoning."""
    world = World(*DEEPSEEK)
    main = told(world, user("Count."), said("Three.", reasoning="a, b, c."), user("Go."))
    world.answer(chat(user("Count.\nAnswer for a title.")), chat_reply(said("Three.", reasoning="A title.")))
    assert world.send(chat(*stripped(main))).messages == main


# --- D8, D9 ----------------------------------------------------------------------------------------------------------

OFF = {"thinking": {"type": "disabled"}}


@pytest.mark.parametrize("provider", [DEEPSEEK, KIMI])
def test_d8_nothing_is_restored_into_a_request_that_does_not_think(provider: tuple[str, str]) -> None:
    """D8: with thinking off, the history is sent as the client wrote it."""
    world = World(*provider)
    assert world.send(chat(*stripped(long_talk(world)), **OFF)).plan.edits == ()


def test_d8_no_thinking_blocks_into_a_claude_request_that_does_not_think() -> None:
    """D8: Claude refuses thinking at the end of a request that has it off: none is restored there."""
    world = World("anthropic", "claude-opus-4-5", "anthropic_messages")
    turn = LAST["tool turn"]
    world.answer(claude(user("How many?"), **ON), claude_reply(*turn))
    lost = [user("How many?"), without_thinking(says(*turn)), asks(returned("toolu_01AbCdEfGh"))]
    assert world.send(claude(*lost, **OFF)).plan.edits == ()


def test_d8_a_leading_block_that_was_never_made() -> None:
    """D8: the block that must lead the loop was never made: thinking is off for this request, with a finding."""
    world = World("anthropic", "claude-opus-4-5", "anthropic_messages")
    lost = [user("How many?"), says(use("toolu_01AbCdEfGh")), asks(returned("toolu_01AbCdEfGh"))]
    sent = world.send(claude(*lost, **ON))
    assert sent.body["thinking"] == {"type": "disabled"}
    assert sent.messages == lost
    assert "missing" in sent.rules


POLICIES: list[tuple[str, str, list[bool]]] = [
    ("deepseek", "deepseek-v4-pro", [True, True, True]),
    ("deepseek", "deepseek-v3.2", [False, False, True]),
    ("deepseek", "deepseek-r1", [False, False, False]),
    ("kimi", "kimi-k2.6", [True, False, True]),
    ("mimo", "mimo-v2.5-pro", [True, False, True]),
    ("glm", "glm-5", [False, False, False]),
    ("vllm", "google/gemma-4-27b-it", [False, False, False]),
    ("nobody", "some-model", [False, False, False]),
]


@pytest.mark.parametrize(("provider", "name", "filled"), POLICIES)
def test_d9_each_model_by_its_own_policy(provider: str, name: str, filled: list[bool]) -> None:
    """D9: unknown turns get a blank exactly where this model requires the key: all, loop or none."""
    one, two = said(None, call("functions.bash:0")), said(None, call("functions.bash:1"))
    members: dict[str, Any] = {"thinking": {"type": "enabled"}}
    request = chat(user("A"), one, result_of(one), said("B"), user("C"), two, result_of(two), **members)
    sent = World(provider, name).send(request)
    turns = [message for message in sent.messages if message["role"] == "assistant"]
    assert ["reasoning_content" in turn for turn in turns] == filled
    assert sent.plan.counts.blank == sum(filled)
    if not any(filled):
        assert sent.plan.edits == ()
