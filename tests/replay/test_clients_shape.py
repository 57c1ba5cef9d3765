"""What clients do to the shape of a turn: group C of the catalogue of client behaviours, one or more tests per row."""

from __future__ import annotations

import json

import pytest

from tests.replay.dialogues import (
    ON,
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
    gemini,
    gemini_reply,
    kinds,
    model,
    ran,
    reasoning_of,
    result,
    result_of,
    returned,
    runs,
    said,
    says,
    signatures,
    stripped,
    thinking,
    told,
    use,
    user,
    without_thinking,
    words,
)
from thoughtline.values.turns import FormatName

DEEPSEEK = ("deepseek", "deepseek-v4-pro")
CLAUDE: tuple[str, str, FormatName] = ("anthropic", "claude-opus-4-5", "anthropic_messages")
ASK = user("Look around.")
NAMES = {
    "random ids": ("call_00_Qx7Lm2Zp", "call_01_Rt5Vn8Kw"),
    "counted ids": ("functions.bash:0", "functions.bash:1"),
}


def parallel(names: tuple[str, str]) -> Json:
    return said("Both.", call(names[0], "ls"), call(names[1], "pwd"), reasoning="Names and place.")


def halves(names: tuple[str, str]) -> tuple[Json, Json]:
    return said("Both.", call(names[0], "ls")), said(None, call(names[1], "pwd"))


# --- C1 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("is_interleaved", [False, True], ids=["in a row", "results between"])
@pytest.mark.parametrize(("provider", "name"), [DEEPSEEK, ("kimi", "kimi-k2.6")])
def test_c1_split_calls_each_carry_the_key_where_it_is_demanded(
    provider: str, name: str, is_interleaved: bool, names: str
) -> None:
    """C1: parallel calls split into messages: each part gets the reasoning, because the provider wants the key on
    each."""
    world, used = World(provider, name), NAMES[names]
    world.answer(chat(ASK), chat_reply(parallel(used)))
    (one, two), results = halves(used), [result(used[0]), result(used[1], "/")]
    order = [one, results[0], two, results[1]] if is_interleaved else [one, two, *results]
    sent = world.send(chat(ASK, *order))
    parts = [message for message in sent.messages if "tool_calls" in message]
    assert [reasoning_of(part) for part in parts] == ["Names and place.", "Names and place."]


def test_c1_plain_reasoning_once_where_it_is_not_required() -> None:
    """C1: on a provider that does not enforce it, only the first part gets the reasoning."""
    world, used = World("glm", "glm-5"), NAMES["random ids"]
    world.answer(chat(ASK), chat_reply(parallel(used)))
    sent = world.send(chat(ASK, *halves(used), result(used[0]), result(used[1], "/")))
    assert [reasoning_of(part) for part in sent.messages[1:3]] == ["Names and place.", None]


SIGNED = [thinking("Names and place.", "EsigA"), use("toolu_01AbCdEfGh", "ls"), use("toolu_02IjKlMnOp", "pwd")]


@pytest.mark.parametrize("kept", ["none", "first", "both"])
@pytest.mark.parametrize("is_interleaved", [False, True], ids=["in a row", "results between"])
def test_c1_a_signed_block_stands_once_on_the_first_part(is_interleaved: bool, kept: str) -> None:
    """C1: a signed block is sent once, before the first call, however often the client sends it; thinking stays on."""
    world = World(*CLAUDE)
    world.answer(claude(ASK, **ON), claude_reply(*SIGNED))
    first = says(*([SIGNED[0]] if kept != "none" else []), SIGNED[1])
    second = says(*([SIGNED[0]] if kept == "both" else []), SIGNED[2])
    results = [asks(returned("toolu_01AbCdEfGh")), asks(returned("toolu_02IjKlMnOp", "/"))]
    merged = [asks(*(message["content"][0] for message in results))]
    order = [first, results[0], second, results[1]] if is_interleaved else [first, second, *merged]
    sent = world.send(claude(ASK, *order, **ON))
    parts = [message for message in sent.messages if message["role"] == "assistant"]
    assert [kinds(part) for part in parts] == [["thinking", "tool_use"], ["tool_use"]]
    assert sent.body["thinking"] == ON["thinking"]


def test_c1_a_gemini_signature_is_not_copied_to_the_other_part() -> None:
    """C1: split Gemini calls: the signature stays with the call it was made for."""
    world = World("gemini", "gemini-3-pro-preview", "gemini_generate")
    ask = asked({"text": "Look around."})
    world.answer(gemini(ask), gemini_reply(runs("ls", "EsigA"), runs("pwd")))
    sent = world.send(gemini(ask, model(runs("ls")), model(runs("pwd")), asked(ran(), ran("/"))))
    assert signatures(sent.messages[1]) == ["EsigA"]
    assert "EsigA" not in signatures(sent.messages[2])


INFO = user("<info-msg>\nIt is currently 2026-11-18 16:17:00\n</info-msg>")


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize(("provider", "name"), [DEEPSEEK, ("kimi", "kimi-k2.6")])
def test_c1_words_cut_off_from_their_call(provider: str, name: str, names: str) -> None:
    """C1: goose writes a message of its own between a turn's text and its call: both parts get the reasoning."""
    world, used, session = World(provider, name), NAMES[names][0], "20261118_1"
    opening = user(f"{INFO['content']}\nLook around.")
    world.answer(chat(opening), chat_reply(said("Looking.", call(used), reasoning="Names first.")), session)
    sent = world.send(chat(ASK, said("Looking."), INFO, said(None, call(used)), result(used)), session=session)
    assert [reasoning_of(sent.messages[at]) for at in (1, 3)] == ["Names first.", "Names first."]


def test_c1_words_that_the_calls_were_not_said_with() -> None:
    """C1: different text before such a message is a separate turn, without known reasoning."""
    world, used = World(*DEEPSEEK), NAMES["random ids"][0]
    world.answer(chat(ASK), chat_reply(said("Looking.", call(used), reasoning="Names first.")))
    sent = world.send(chat(ASK, said("Wait."), INFO, said(None, call(used)), result(used)))
    assert [reasoning_of(sent.messages[at]) for at in (1, 3)] == [" ", "Names first."]


def test_c1_signed_thinking_stays_with_the_call_that_was_cut_off() -> None:
    """C1: on Claude the call begins a tool loop, which must begin with thinking; the text before it needs none."""
    world = World(*CLAUDE)
    block, used = thinking("Names first.", "EsigA"), use("toolu_01AbCdEfGh")
    world.answer(claude(ASK, **ON), claude_reply(block, words("Looking."), used))
    history = (says(words("Looking.")), INFO, says(used), asks(returned("toolu_01AbCdEfGh")))
    sent = world.send(claude(ASK, *history, **ON))
    assert [kinds(sent.messages[at]) for at in (1, 3)] == [["text"], ["thinking", "tool_use"]]


def test_c1_the_second_gemini_call_behind_a_message() -> None:
    """C1: the call that the model did not sign is a separate step there: it gets the skip value, and the real signature
    stays where it was."""
    world = World("gemini", "gemini-3-pro-preview")
    one, two = call("function-call-4793374385110803", "ls", "EsigA"), call("function-call-2458972535229556", "pwd")
    world.answer(chat(ASK), chat_reply(said(None, one, two)))
    first, second = said(None, one), said(None, two)
    sent = world.send(chat(ASK, first, result_of(first), INFO, second, result_of(second, "/")))
    google = [sent.messages[at]["tool_calls"][0]["extra_content"]["google"] for at in (1, 4)]
    assert [found["thought_signature"] for found in google] == ["EsigA", "skip_thought_signature_validator"]


def test_c1_a_copied_gemini_signature_stays_on_the_part_that_was_cut_off() -> None:
    """C1: goose, in Gemini's own format, copies the signature of a parallel set to each call: it is sent unchanged."""
    world = World("gemini", "gemini-3-pro-preview", "gemini_generate")
    ask = asked({"text": "Look around."})
    world.answer(gemini(ask), gemini_reply(runs("ls", "EsigA"), runs("pwd")))
    history = (model(runs("ls")), asked(ran()), asked({"text": INFO["content"]}), model(runs("pwd", "EsigA")))
    sent = world.send(gemini(ask, *history, asked(ran("/"))))
    assert signatures(sent.messages[4]) == ["EsigA"]


def test_c1_tools_as_one_object() -> None:
    """C1: goose writes Gemini's `tools` as one object, which Google accepts: such a request is read and restored,
    too."""
    world = World("gemini", "gemini-3-pro-preview", "gemini_generate")
    ask, tools = asked({"text": "Look around."}), {"functionDeclarations": [{"name": "bash"}]}
    world.answer(gemini(ask) | {"tools": tools}, gemini_reply(runs("ls", "EsigA")))
    sent = world.send(gemini(ask, model(runs("ls")), asked(ran())) | {"tools": tools})
    assert (signatures(sent.messages[1]), sent.body["tools"]) == (["EsigA"], tools)


# --- C2 --------------------------------------------------------------------------------------------------------------


def test_c2_two_steps_merged_into_one_message() -> None:
    """C2: two steps in one message: the message gets the reasoning of both, in order."""
    world = World(*DEEPSEEK)
    one = said(None, call("call_00_Qx7Lm2Zp", "ls"), reasoning="First the names.")
    two = said(None, call("call_00_Rt5Vn8Kw", "pwd"), reasoning="Now the place.")
    told(world, ASK, one, result_of(one), two)
    merged = said(None, *one["tool_calls"], *two["tool_calls"])
    found = reasoning_of(world.send(chat(ASK, merged, result_of(one), result_of(two, "/"))).messages[1]) or ""
    assert 0 <= found.find("First the names.") < found.find("Now the place.")


def test_c2_two_signed_steps_merged_into_one_message() -> None:
    """C2: the same with signed blocks: each stands before the call it led to."""
    world = World("anthropic", "claude-opus-4-6", "anthropic_messages")
    one = [thinking("Names.", "EsigA"), use("toolu_01AbCdEfGh", "ls")]
    two = [thinking("Place.", "EsigB"), use("toolu_02IjKlMnOp", "pwd")]
    world.answer(claude(ASK), claude_reply(*one))
    world.answer(claude(ASK, says(*one), asks(returned("toolu_01AbCdEfGh"))), claude_reply(*two))
    back = asks(returned("toolu_01AbCdEfGh"), returned("toolu_02IjKlMnOp", "/"))
    sent = world.send(claude(ASK, says(one[1], two[1]), back))
    assert sent.messages[1] == says(*one, *two)


def test_c2_two_turns_side_by_side() -> None:
    """C2: two turns with nothing between them are still two: each gets its own."""
    world = World(*DEEPSEEK)
    history = told(world, ASK, said("Names?", reasoning="Ask first."), said("Or the place?", reasoning="Ask more."))
    sent = world.send(chat(ASK, *(bare(message) for message in history[1:]), user("Both.")))
    assert [reasoning_of(message) for message in sent.messages[1:3]] == ["Ask first.", "Ask more."]


# --- C3 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("kept", [0, 1])
def test_c3_a_dropped_sibling_call(kept: int, names: str) -> None:
    """C3: a client that keeps one call of two still shows that turn: its reasoning is restored."""
    world, used = World(*DEEPSEEK), NAMES[names]
    turn = parallel(used)
    world.answer(chat(ASK), chat_reply(turn))
    shown = bare(turn) | {"tool_calls": [turn["tool_calls"][kept]]}
    sent = world.send(chat(ASK, shown, result(used[kept])))
    assert reasoning_of(sent.messages[1]) == "Names and place."
    assert len(sent.messages[1]["tool_calls"]) == 1


def test_c3_a_signed_turn_is_not_made_whole_without_its_results() -> None:
    """C3: the block of a signed turn is restored; a call without its result is not."""
    world = World(*CLAUDE)
    world.answer(claude(ASK, **ON), claude_reply(*SIGNED))
    sent = world.send(claude(ASK, says(SIGNED[1]), asks(returned("toolu_01AbCdEfGh")), **ON))
    assert sent.messages[1] == says(*SIGNED[:2])


@pytest.mark.parametrize("is_named", [False, True])
def test_c3_a_signature_never_moves_to_a_sibling(is_named: bool) -> None:
    """C3: the call with the signature is gone: the remaining one had none, so it gets none."""
    world = World("gemini", "gemini-3-pro-preview", "gemini_generate")
    first, second = ({"id": "aZ3kQ9mX"}, {"id": "bY4jR8nW"}) if is_named else ({}, {})
    ask = asked({"text": "Look around."})
    world.answer(gemini(ask), gemini_reply(runs("ls", "EsigA", **first), runs("pwd", **second)))
    sent = world.send(gemini(ask, model(runs("pwd", **second)), asked(ran("/"))))
    assert signatures(sent.messages[1]) == ["skip_thought_signature_validator"]


# --- C4, C5 ----------------------------------------------------------------------------------------------------------


def test_c4_results_in_the_order_of_completion() -> None:
    """C4: chat results are messages; in any order, the turn after them is the same turn."""
    world, used = World(*DEEPSEEK), NAMES["random ids"]
    results, done = [result(used[0]), result(used[1], "/")], said("Done.", reasoning="Both are here.")
    history = told(world, ASK, parallel(used), *results, done, user("Thanks."))
    sent = world.send(chat(*stripped([*history[:2], *reversed(results), *history[4:]])))
    assert [reasoning_of(sent.messages[1]), reasoning_of(sent.messages[4])] == ["Names and place.", "Both are here."]


def test_c4_results_of_one_message_in_any_order() -> None:
    """C4: the same for results in one message."""
    world = World("anthropic", "claude-opus-4-6", "anthropic_messages")
    results = [returned("toolu_01AbCdEfGh"), returned("toolu_02IjKlMnOp", "/")]
    world.answer(claude(ASK), claude_reply(*SIGNED))
    done = [thinking("Both here.", "EsigB"), words("Done.")]
    world.answer(claude(ASK, says(*SIGNED), asks(*results)), claude_reply(*done))
    lost = [ASK, says(*SIGNED[1:]), asks(*reversed(results)), says(words("Done.")), user("Thanks.")]
    sent = world.send(claude(*lost))
    assert [sent.messages[1], sent.messages[3]] == [says(*SIGNED), says(*done)]


WOVEN = [
    *(thinking("Names first.", "EsigA"), words("Let me look."), use("toolu_01AbCdEfGh", "ls")),
    *(thinking("And the place.", "EsigB"), use("toolu_02IjKlMnOp", "pwd")),
]
ORDERS = {
    "all thinking first": [0, 3, 1, 2, 4],
    "the second before both calls": [0, 1, 3, 2, 4],
    "all thinking first, exchanged": [3, 0, 1, 2, 4],
    "the second lost": [0, 1, 2, 4],
    "the first lost": [1, 2, 3, 4],
    "all lost": [1, 2, 4],
}


@pytest.mark.parametrize("name", ["claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-5-5"])
@pytest.mark.parametrize("order", ORDERS)
def test_c5_the_stored_order_goes_out(order: str, name: str) -> None:
    """C5: the stored turn's blocks, incomplete or in an order that a model with a budget refuses: the turn is sent in
    its original form. A model with adaptive thinking accepts any order (live, 2026-09): it is sent unchanged."""
    world, on = World("anthropic", name, "anthropic_messages"), ON if name == "claude-sonnet-4-5" else {}
    world.answer(claude(ASK, **on), claude_reply(*WOVEN))
    back = asks(returned("toolu_01AbCdEfGh"), returned("toolu_02IjKlMnOp", "/"))
    shown = says(*(WOVEN[at] for at in ORDERS[order]))
    sent = world.send(claude(ASK, shown, back, **on))
    is_whole = len(ORDERS[order]) == len(WOVEN)
    assert sent.messages == [ASK, shown if is_whole and not on else says(*WOVEN), back]


# --- C6, C7, C8 ------------------------------------------------------------------------------------------------------

CACHE = {"cache_control": {"type": "ephemeral"}}
SAME = {
    "a string": "Look around.",
    "a list": [words("Look around.")],
    "a list with a cache mark": [words("Look around.") | CACHE],
    "with an empty block": [words("Look around."), words("")],
    "with a blank at the end": "Look around.\n",
}


@pytest.mark.parametrize("shape", SAME)
@pytest.mark.parametrize("name", ["claude-opus-4-6", "claude-opus-5-5"])
def test_c6_one_message_in_many_shapes(shape: str, name: str) -> None:
    """C6: list or string, with or without cache markers: the same message, so the turn after it is the same turn."""
    world = World("anthropic", name, "anthropic_messages")
    world.answer(claude(user("Look around.")), claude_reply(thinking("Hm.", "EsigA"), words("Where?")))
    first = {"role": "user", "content": SAME[shape]}
    sent = world.send(claude(first, says(words("Where?") | CACHE), asks(words("Here.") | CACHE)))
    assert kinds(sent.messages[1]) == ["thinking", "text"]


@pytest.mark.parametrize("content", [None, "", [], "absent"])
def test_c6_nothing_in_many_shapes(content: object) -> None:
    """C6: `null`, `""`, `[]` and no member at all are the same content of a tool turn."""
    world = World("kimi", "kimi-k2.6")
    step = said(None, call("functions.bash:0"), reasoning="Look.")
    world.answer(chat(ASK), chat_reply(step))
    shown = bare(step) | {"content": content}
    if content == "absent":
        del shown["content"]
    sent = world.send(chat(ASK, shown, result_of(step)))
    assert reasoning_of(sent.messages[1]) == "Look."
    assert sent.messages[1].get("content", "absent") == content


def test_c7_trimmed_text_is_still_the_turn() -> None:
    """C7: white space that a client cut from the text or from the message before does not hide a turn."""
    world = World(*DEEPSEEK)
    told(world, user("Look around. \n"), said("\nWhere?\n\n", reasoning="Ask."))
    sent = world.send(chat(ASK, said("Where?"), user("Here.")))
    assert reasoning_of(sent.messages[1]) == "Ask."


def test_c7_the_stored_bytes_go_out() -> None:
    """C7: text that differs from the stored one only in white space is sent as stored: prompt caches count every
    newline."""
    world = World(*DEEPSEEK)
    step = said("Let me look.\n", call("call_00_Qx7Lm2Zp"), reasoning="Look.")
    world.answer(chat(ASK), chat_reply(step))
    trimmed = bare(step) | {"content": "Let me look."}
    assert world.send(chat(ASK, trimmed, result_of(step))).messages[1] == step


ARGUMENTS = {
    "compact": '{"command":"ls é","depth":1,"all":true}',
    "spaced": '{ "command" : "ls é" , "depth" : 1 , "all" : true }',
    "escaped": '{"command": "ls \\u00e9", "depth": 1, "all": true}',
    "sorted": '{"all": true, "command": "ls é", "depth": 1}',
    "other numbers": '{"command": "ls é", "depth": 1.0, "all": true}',
    "exponents": '{"command": "ls é", "depth": 1e0, "all": true}',
    "pretty": '{\n  "command": "ls é",\n  "depth": 1,\n  "all": true\n}',
}


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_c8_arguments_are_compared_by_value(arguments: str) -> None:
    """C8: spacing, escapes, key order and number form of arguments change nothing."""
    world = World("kimi", "kimi-k2.6")
    step = said(None, call("functions.bash:0"), reasoning="Look.")
    step["tool_calls"][0]["function"]["arguments"] = ARGUMENTS["escaped"]
    world.answer(chat(ASK), chat_reply(step))
    shown = json.loads(json.dumps(bare(step)))
    shown["tool_calls"][0]["function"]["arguments"] = ARGUMENTS[arguments]
    sent = world.send(chat(ASK, shown, result_of(step)))
    assert reasoning_of(sent.messages[1]) == "Look."
    assert sent.messages[1]["tool_calls"] == shown["tool_calls"]


def test_c8_arguments_that_are_no_json() -> None:
    """C8: arguments that are truncated, or hold half a character, are equal only to themselves and break nothing."""
    for arguments in ('{"command": "l', '{"command": "\\ud800"}', ""):
        world = World("kimi", "kimi-k2.6")
        step = said(None, call("functions.bash:0"), reasoning="Look.")
        step["tool_calls"][0]["function"]["arguments"] = arguments
        world.answer(chat(ASK), chat_reply(step))
        assert world.send(chat(ASK, bare(step), result_of(step))).messages[1] == step


CALLED = '{"command": "ls", "depth": 1, "size": 12345678901234567890}'
CHANGED = {
    "a number": '{"command": "ls", "depth": 2, "size": 12345678901234567890}',
    "a string for a number": '{"command": "ls", "depth": "1", "size": 12345678901234567890}',
    "the last digit of a long number": '{"command": "ls", "depth": 1, "size": 12345678901234567891}',
    "a long number made a float": '{"command": "ls", "depth": 1, "size": 12345678901234567000}',
    "a member more": '{"command": "ls", "depth": 1, "size": 12345678901234567890, "all": null}',
    "a member less": '{"command": "ls", "depth": 1}',
    "no JSON": "ls",
}


@pytest.mark.parametrize("change", CHANGED)
def test_c8_a_changed_call_is_another_call(change: str) -> None:
    """C8: different values under the same id, even in the last digit: the call gets no signature."""
    world = World("gemini", "gemini-3-pro-preview")
    step = said(None, call("call_9fK2mQ7x", "ls", "EsigA"))
    step["tool_calls"][0]["function"]["arguments"] = CALLED
    world.answer(chat(ASK), chat_reply(step))
    shown = said(None, call("call_9fK2mQ7x"))
    shown["tool_calls"][0]["function"]["arguments"] = CALLED
    assert world.send(chat(ASK, shown, result_of(shown))).messages[1] == step
    shown["tool_calls"][0]["function"]["arguments"] = CHANGED[change]
    assert "EsigA" not in str(world.send(chat(ASK, shown, result_of(shown))).body)


# --- C9 to C12 -------------------------------------------------------------------------------------------------------


def test_c9_invented_turns_get_no_other_turns_reasoning() -> None:
    """C9: an invented turn gets a blank where the key is required, even if an equal turn exists elsewhere."""
    world = World(*DEEPSEEK)
    told(world, user("Hi."), said("Got it.", reasoning="They greet."))
    history = [user("Context: Linux."), said("Got it."), ASK]
    world.answer(chat(*history), chat_reply(said("Where?", reasoning="Ask.")))
    sent = world.send(chat(*history, said("Where?"), user("Here.")))
    assert (reasoning_of(sent.messages[1]) or "").strip() == ""
    assert reasoning_of(sent.messages[3]) == "Ask."


GLUED = {
    "glued": "I must list it.Let me look.",
    "two lines between": "I must list it.\n\nLet me look.",
    "think": "<think>I must list it.</think>Let me look.",
    "think on lines": "<think>\nI must list it.\n</think>\n\nLet me look.",
    "thinking": "<thinking>I must list it.</thinking>\nLet me look.",
}


@pytest.mark.parametrize("has_call", [True, False], ids=["tool turn", "plain turn"])
@pytest.mark.parametrize("form", GLUED)
def test_c10_our_own_reasoning_in_the_text_is_lifted_back(form: str, has_call: bool) -> None:
    """C10: stored reasoning that a client moved to the beginning of the text goes back into its field."""
    world = World(*DEEPSEEK)
    calls = (call("call_00_Qx7Lm2Zp"),) if has_call else ()
    step = said("Let me look.", *calls, reasoning="I must list it.")
    world.answer(chat(ASK), chat_reply(step))
    after = result_of(step) if has_call else user("Go on.")
    sent = world.send(chat(ASK, bare(step) | {"content": GLUED[form]}, after))
    assert sent.messages[1] == step


@pytest.mark.parametrize("form", GLUED)
def test_c10_unknown_tagged_text_is_never_promoted(form: str) -> None:
    """C10: text that only looks like reasoning stays as it is: the client's, or a user's own `<think>`."""
    sent = World(*DEEPSEEK).send(chat(user(GLUED[form]), said(GLUED[form]), user("Go on.")))
    assert [message["content"] for message in sent.messages[:2]] == [GLUED[form], GLUED[form]]
    assert (reasoning_of(sent.messages[1]) or "").strip() == ""


@pytest.mark.parametrize("name", ["claude-opus-4-6", "claude-opus-5-5"])
def test_c11_system_messages_inside_the_list(name: str) -> None:
    """C11: a `system` message in the middle passes through, and the turns after it are found."""
    world = World("anthropic", name, "anthropic_messages")
    note = {"role": "system", "content": [words("Plan mode.")], "output_config": {"effort": "low"}}
    world.answer(claude(ASK, note), claude_reply(thinking("Hm.", "EsigA"), words("Where?")))
    sent = world.send(claude(ASK, note, says(words("Where?")), user("Here.")))
    assert sent.messages == [ASK, note, says(thinking("Hm.", "EsigA"), words("Where?")), user("Here.")]


def test_c12_one_record_for_each_choice() -> None:
    """C12: of several answers to one request the client continues from any, and gets that one's reasoning."""
    world = World(*DEEPSEEK)
    choices = [said("Three.", reasoning="Counted."), said("Some.", reasoning="Guessed.")]
    assert len(world.answer(chat(ASK, n=2), chat_reply(*choices))) == 2
    for choice in choices:
        assert world.send(chat(ASK, bare(choice), user("Sure?"))).messages[1] == choice


def test_c5_untouched_blocks_keep_their_bytes() -> None:
    """C5: a turn that needs no repair is not named in the plan, although its neighbour is."""
    world = World("anthropic", "claude-opus-4-6", "anthropic_messages")
    one, two = [thinking("Hm.", "EsigA"), words("Where?")], [thinking("Oh.", "EsigB"), words("I see.")]
    world.answer(claude(ASK), claude_reply(*one))
    world.answer(claude(ASK, says(*one), user("Here.")), claude_reply(*two))
    sent = world.send(claude(ASK, says(*one), user("Here."), without_thinking(says(*two)), user("Go.")))
    assert sent.messages == [ASK, says(*one), user("Here."), says(*two), user("Go.")]
    assert len(sent.plan.edits) == 1
