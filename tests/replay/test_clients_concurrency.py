"""Concurrency, retries and cut streams: group E of the catalogue of client behaviours, one or more tests per row."""

from __future__ import annotations

import pytest

from tests.replay.dialogues import (
    ASK,
    Json,
    World,
    asked,
    asks,
    bare,
    call,
    chat,
    chat_reply,
    claude,
    claude_reply,
    fc,
    gemini,
    gemini_reply,
    ids,
    kinds,
    model,
    msg,
    output,
    ran,
    reasoning_of,
    responses,
    responses_reply,
    result_of,
    returned,
    rs,
    runs,
    said,
    says,
    signatures,
    stripped,
    thinking,
    told,
    use,
    user,
    words,
)

DEEPSEEK = ("deepseek", "deepseek-v4-pro")
SKIP = "skip_thought_signature_validator"


def step(reasoning: str) -> Json:
    return said(None, call("functions.bash:0"), reasoning=reasoning)


def test_e1_a_title_call_in_the_same_session_at_the_same_moment() -> None:
    """E1: there is no "last turn of the session": a title answered in between changes nothing for the main
    conversation."""
    world = World(*DEEPSEEK)
    main = said("Three.", reasoning="a, b, c.")
    world.answer(chat(ASK), chat_reply(main), session="s")
    world.answer(chat(user("Title for: How many files?")), chat_reply(said("Files", reasoning="Short.")), session="s")
    assert world.send(chat(ASK, bare(main), user("Sure?")), session="s").messages[1] == main


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_e2_agents_of_one_session_are_distinguished(order: str) -> None:
    """E2: sub-agents with one session id, equal tasks and equal calls: the agent's id decides."""
    world = World("kimi", "kimi-k2.6")
    for agent in order:
        world.answer(chat(ASK), chat_reply(step(f"I am {agent}.")), session="s", agent=agent)
    for agent in "ab":
        sent = world.send(chat(ASK, bare(step("")), result_of(step(""))), session="s", agent=agent)
        assert reasoning_of(sent.messages[1]) == f"I am {agent}."


def test_e2_agents_without_ids_are_distinguished_by_lineage() -> None:
    """E2: without agent ids, the history tells conversations of one session apart."""
    world = World("kimi", "kimi-k2.6")
    histories = []
    for task in ("Count.", "Search."):
        world.answer(chat(user(task)), chat_reply(step(f"To {task}")), session="s")
        histories.append([user(task), step(f"To {task}"), result_of(step(""))])
    for history in histories:
        assert world.send(chat(*stripped(history)), session="s").messages == history


def test_e2_a_session_only_narrows() -> None:
    """E2: equal words in the same session with another opening are another turn: lineage is stronger than session."""
    world = World(*DEEPSEEK)
    for task in ("Count.", "Search."):
        world.answer(chat(user(task)), chat_reply(said("Done.", reasoning=f"To {task}")), session="s")
    for task in ("Count.", "Search."):
        sent = world.send(chat(user(task), said("Done."), user("Go on.")), session="s")
        assert reasoning_of(sent.messages[1]) == f"To {task}"


def test_e2_equal_openings_in_two_sessions() -> None:
    """E2: the same opening and the same answer in two sessions: each gets its own thought, whichever is newer."""
    world = World(*DEEPSEEK)
    for session in "xy":
        world.answer(chat(ASK), chat_reply(said("Three.", reasoning=f"In {session}.")), session=session)
    for session in "xyx":
        sent = world.send(chat(ASK, said("Three."), user("Sure?")), session=session)
        assert reasoning_of(sent.messages[1]) == f"In {session}."


def test_e3_no_session_is_no_session() -> None:
    """E3: conversations without a session id are not one conversation: equal words after equal words are not enough."""
    world = World(*DEEPSEEK)
    told(world, user("Task A"), said("Plan A.", reasoning="A"), user("go on"), said("Done.", reasoning="A is done."))
    sent = world.send(chat(user("Task B"), said("Plan B."), user("go on"), said("Done."), user("Next.")))
    assert "A is done." not in str(sent.body)
    assert sent.plan.counts.restored == 0


def test_e3_what_the_client_kept_outweighs_the_history_it_stands_in() -> None:
    """E3: thinking kept from one conversation, whose opening was replaced by another's, stays the client's."""
    world = World("anthropic", "claude-opus-4-6", "anthropic_messages")
    kept = {}
    for task in ("Count.", "Search."):
        kept[task] = says(thinking(f"To {task}", signature=f"EqQB{task[:5]}kcdg=="), words("Done."))
        world.answer(claude(asks(words(task))), claude_reply(*kept[task]["content"]))
    sent = world.send(claude(asks(words("Count.")), kept["Search."], asks(words("Next."))))
    assert sent.messages[1] == kept["Search."]
    assert sent.plan.findings == ()


PICTURES: list[Json] = [
    {"role": "user", "content": [words("How many?"), {"type": "image_url", "image_url": {"url": f"data:{name}"}}]}
    for name in "xy"
]


def test_e3_openings_that_differ_in_a_picture_only() -> None:
    """E3: the same question about two images, answered in the same words: two conversations, two thoughts."""
    world = World(*DEEPSEEK)
    turns = [said("Three.", reasoning=f"I see {name}.") for name in "xy"]
    for picture, turn in zip(PICTURES, turns, strict=True):
        world.answer(chat(picture), chat_reply(turn))
    for picture, turn in zip(PICTURES, turns, strict=True):
        assert world.send(chat(picture, bare(turn), user("Sure?"))).messages[1] == turn


def test_e4_answers_that_differ_in_inner_blanks() -> None:
    """E4: two answers that differ only in inner white space are different, as long as the client shows which."""
    world = World(*DEEPSEEK)
    answers = [said("Run `rm a b`.", reasoning="Two files."), said("Run `rm ab`.", reasoning="One file.")]
    for answer in answers:
        world.answer(chat(ASK), chat_reply(answer))
    for answer in answers:
        assert world.send(chat(ASK, bare(answer), user("Sure?"))).messages[1] == answer


@pytest.mark.parametrize("session", [None, "s"])
def test_e4_the_answer_that_the_client_goes_on_from_wins(session: str | None) -> None:
    """E4: one request, two answers: the client continues from either, and gets that one's reasoning."""
    world = World(*DEEPSEEK)
    answers = [said("Three.", reasoning="Counted."), said("About three.", reasoning="Guessed.")]
    for answer in answers:
        world.answer(chat(ASK), chat_reply(answer), session=session)
    for answer in answers:
        assert world.send(chat(ASK, bare(answer), user("Sure?")), session=session).messages[1] == answer


def test_e4_equal_answers_to_one_request() -> None:
    """E4: if both answers are the same, neither is restored without further evidence; what a client kept stays."""
    world = World(*DEEPSEEK)
    old, new = said("Three.", reasoning="Counted once. "), said("Three.", reasoning="Counted twice.")
    for answer in (old, new):
        world.answer(chat(ASK), chat_reply(answer))
    lost = world.send(chat(ASK, said("Three."), user("Sure?")))
    assert lost.messages[1]["reasoning_content"].strip() == ""
    assert "ambiguous" in lost.rules
    assert world.send(chat(ASK, old, user("Sure?"))).plan.edits == ()
    trimmed = said("Three.", reasoning="Counted once.")
    assert world.send(chat(ASK, trimmed, user("Sure?"))).messages[1] == old


def test_e4_equal_signed_answers_to_one_request() -> None:
    """E4: the signature that the client kept shows which of two equal answers it continues from."""
    world = World("anthropic", "claude-opus-4-6", "anthropic_messages")
    turns = [[thinking("", f"Esig{number}"), words("Three.")] for number in "AB"]
    for turn in turns:
        world.answer(claude(ASK), claude_reply(*turn))
    for turn in turns:
        assert world.send(claude(ASK, says(*turn), user("Sure?"))).plan.edits == ()


@pytest.mark.parametrize("signature", [None, ""])
@pytest.mark.parametrize("name", ["claude-opus-4-5", "claude-opus-4-6", "claude-opus-5-5"])
def test_e5_unsigned_partial_blocks_are_dropped(name: str, signature: str | None) -> None:
    """E5: a block that was cut before its signature would block the session: it is removed, with a finding."""
    world = World("anthropic", name, "anthropic_messages")
    sent = world.send(claude(ASK, says(thinking("They wa", signature), words("Let")), user("Go on.")))
    assert kinds(sent.messages[1]) == ["text"]
    assert sent.plan.findings


def test_e5_seals_of_a_turn_that_was_cut_are_not_sent() -> None:
    """E5: no seal of a truncated turn is restored."""
    world = World("anthropic", "claude-opus-4-6", "anthropic_messages")
    world.answer(claude(ASK), claude_reply(thinking("Hm.", "EsigA"), words("Thr")), complete=False)
    sent = world.send(claude(ASK, says(words("Thr")), user("Go on.")))
    assert sent.messages[1] == says(words("Thr"))


def test_e5_text_of_a_turn_that_was_cut_may_be_used() -> None:
    """E5: plain reasoning of a truncated turn is real: it is restored where text is wanted."""
    world = World(*DEEPSEEK)
    world.answer(chat(ASK), chat_reply(said("Thr", reasoning="a, b, c.")), complete=False)
    assert reasoning_of(world.send(chat(ASK, said("Thr"), user("Go on."))).messages[1]) == "a, b, c."


@pytest.mark.parametrize("is_cut_first", [True, False])
def test_e6_a_whole_capture_beats_one_that_was_cut(is_cut_first: bool) -> None:
    """E6: of the same turn captured whole and truncated, in either order, the whole one is used."""
    world = World(*DEEPSEEK)
    for is_complete in (not is_cut_first, is_cut_first):
        reasoning = "a, b, c, done." if is_complete else "a, b"
        world.answer(chat(ASK), chat_reply(said("Three.", reasoning=reasoning)), complete=is_complete)
    assert reasoning_of(world.send(chat(ASK, said("Three."), user("Sure?"))).messages[1]) == "a, b, c, done."


# --- E7 --------------------------------------------------------------------------------------------------------------

STEP = [rs("rs_1", "gAAAAone", "Listing."), fc("fc_1", "call_a1B2c3D4")]


@pytest.mark.parametrize("shown", [STEP, STEP[1:]], ids=["kept", "stripped"])
def test_e7_ciphertext_of_another_account_is_not_sent(shown: list[Json]) -> None:
    """E7: another account can't read it: it is removed, with the ids that would require it; the call stays."""
    world = World("openai", "gpt-5.4", "openai_responses")
    world.answer(responses(ASK), responses_reply(*STEP))
    sent = world.send(responses(ASK, *shown, output("call_a1B2c3D4")), account="account-2")
    assert "gAAAAone" not in str(sent.body)
    assert ids(sent.messages[1:]) == [None]


@pytest.mark.parametrize("name", ["claude-opus-4-6", "claude-sonnet-5-5"])
def test_e7_signed_blocks_of_another_account_are_not_sent(name: str) -> None:
    """E7: a signed block goes back to its own account, and is removed for any other, with a finding."""
    world = World("anthropic", name, "anthropic_messages")
    turn = [thinking("List.", "EsigA"), use("toolu_01AbCdEfGh")]
    world.answer(claude(ASK), claude_reply(*turn))
    request = claude(ASK, says(*turn), asks(returned("toolu_01AbCdEfGh")))
    assert world.send(request).plan.edits == ()
    moved = world.send(request, account="account-2")
    assert kinds(moved.messages[1]) == ["tool_use"]
    assert "foreign" in moved.rules


def test_e7_a_gemini_signature_of_another_account_gives_way_to_the_skip_value() -> None:
    """E7: the real signature is refused for another account; the skip value replaces it, with a finding."""
    world = World("gemini", "gemini-3-pro-preview", "gemini_generate")
    ask = asked({"text": "Look."})
    world.answer(gemini(ask), gemini_reply(runs("ls", "EsigA")))
    for lost in (None, "EsigA"):
        sent = world.send(gemini(ask, model(runs("ls", lost)), asked(ran())), account="account-2")
        assert signatures(sent.messages[1]) == [SKIP]
        assert sent.plan.findings


def test_e7_text_does_not_care_for_accounts() -> None:
    """E7: plain reasoning belongs to the conversation: a rotated key changes nothing."""
    world = World(*DEEPSEEK)
    history = told(world, ASK, said("Three.", reasoning="a, b, c."), user("Sure?"))
    assert world.send(chat(*stripped(history)), account="account-2").messages == history


# --- E8 --------------------------------------------------------------------------------------------------------------


def test_e8_one_dead_record_leaves_the_others() -> None:
    """E8: without the record whose blob was refused, its turn goes out unpaired, all others as before."""
    world = World("openai", "gpt-5.4", "openai_responses")
    (dead,) = world.answer(responses(ASK), responses_reply(*STEP))
    first = [ASK, *STEP, output("call_a1B2c3D4")]
    world.answer(responses(*first), responses_reply(rs("rs_2", "gAAAAtwo"), msg("msg_2", "Three.")))
    world.store.forget(dead)
    shown = ASK, STEP[1], output("call_a1B2c3D4"), msg("msg_2", "Three."), user("Sure?")
    sent = world.send(responses(*shown, store=True))
    assert ids(sent.messages) == [None, "rs_2", "msg_2"]
    assert sent.messages[3]["encrypted_content"] == "gAAAAtwo"
