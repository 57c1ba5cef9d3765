"""Where other gateways and libraries fail: each defect in matching, placement or audit, as a dialogue.

Left out: defects of transport, translation and stores (races at the end of a stream, captures lost on a disconnect,
budgets, usage, cooled-down connections, time to live), which don't apply to a pure planner.
"""

from __future__ import annotations

import json

import pytest

from tests.replay.dialogues import (
    ASK,
    BACK,
    CALL,
    ON,
    Json,
    World,
    asked,
    bare,
    call,
    chat,
    chat_reply,
    claude,
    claude_reply,
    fc,
    gemini,
    gemini_reply,
    model,
    output,
    ran,
    reasoning_of,
    responses,
    responses_reply,
    result,
    result_of,
    rs,
    runs,
    said,
    says,
    signatures,
    stripped,
    thinking,
    told,
    user,
    without_thinking,
    words,
)
from thoughtline.replay.turn_audit import ReplayContract, audit_replay
from thoughtline.values.items import ANTHROPIC_CLAUDE_V1, GOOGLE_GEMINI_V1, ReasoningText, Seal, ToolCall

REQUIRED = ReplayContract.REQUIRED_WITH_TOOLS
MODELS = [
    *(("deepseek", "deepseek-v4-pro"), ("deepseek", "deepseek-reasoner"), ("kimi", "kimi-k3")),
    *(("mimo", "mimo-v2.5-pro"), ("glm", "glm-5"), ("openrouter", "deepseek/deepseek-v4-pro")),
    *(("opencode-go", "kimi-k2.6"), ("siliconflow", "Pro/moonshotai/Kimi-K2.6"), ("my-proxy", "deepseek-v4-flash")),
]


def chunks(*deltas: Json) -> bytes:
    """A chat stream."""
    events: list[Json] = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events) + b"data: [DONE]\n\n"


# --- OmniRoute -------------------------------------------------------------------------------------------------------


def test_streamed_reasoning_keeps_its_outer_blanks() -> None:
    """OmniRoute trims what it captures from a stream; ours is restored to the last newline."""
    world = World("deepseek", "deepseek-v4-pro")
    pieces = ["\n They", " want a count.", " \n"]
    world.answer(chat(ASK), chunks(*({"reasoning_content": piece} for piece in pieces), {"content": "Three."}))
    sent = world.send(chat(ASK, said("Three."), user("Sure?")))
    assert reasoning_of(sent.messages[1]) == "".join(pieces)


@pytest.mark.parametrize(("provider", "name"), MODELS)
def test_no_list_of_names_decides_who_gets_reasoning_back(provider: str, name: str) -> None:
    """OmniRoute and 9router leave out models that their lists don't name; ours get the real text, on any host."""
    world = World(provider, name)
    turn = said(None, call("call_9fK2mQ7x"), reasoning="List.")
    if provider == "openrouter":
        details = [{"type": "reasoning.text", "text": "List.", "format": "unknown", "index": 0}]
        turn = bare(turn) | {"reasoning_details": details}
    history = told(world, ASK, turn, result_of(turn))
    assert world.send(chat(*stripped(history))).messages == history


def test_another_caller_with_the_same_id_and_session_gets_nothing() -> None:
    """OmniRoute gives A's reasoning to any key that sends A's call id; CLIProxyAPI's sessions are not per caller."""
    world = World("deepseek", "deepseek-v4-pro")
    turn = said(None, call("call_00_Qx7Lm2Zp"), reasoning="Secret of A.")
    world.answer(chat(ASK), chat_reply(turn), session="s", tenant="a")
    sent = world.send(chat(ASK, bare(turn), result_of(turn)), session="s", tenant="b")
    assert "Secret" not in str(sent.body)


def test_counted_ids_of_two_conversations_do_not_cross() -> None:
    """OmniRoute gave conversation A the reasoning of B, which had used the same counted id."""
    world = World("kimi", "kimi-k2.6")
    talks = [[user(text), said(None, call("functions.bash:0"), reasoning=f"For {text}")] for text in ("A", "B")]
    for ask, turn in talks:
        world.answer(chat(ask), chat_reply(turn))
    for ask, turn in talks:
        assert world.send(chat(ask, bare(turn), result_of(turn))).messages[1] == turn


def test_rewritten_ids_do_not_end_in_an_empty_field() -> None:
    """OmniRoute sends an empty field once a client rewrites its ids."""
    world = World("deepseek", "deepseek-v4-pro")
    world.answer(chat(ASK), chat_reply(said(None, call("call_00_Qx7Lm2Zp"), reasoning="List.")))
    sent = world.send(chat(ASK, said(None, call("x1")), result("x1")))
    assert reasoning_of(sent.messages[1]) == "List."


def test_plain_turns_count() -> None:
    """OmniRoute, CLIProxyAPI and ReasoningPreserver store nothing of turns without calls."""
    world = World("deepseek", "deepseek-v4-pro")
    history = told(world, ASK, said("Which?", reasoning="Ask."), user("All."), said("Three.", reasoning="Count."))
    assert world.send(chat(*stripped(history), user("Thanks."))).messages[:4] == history


@pytest.mark.parametrize("name", ["claude-opus-4-5", "claude-opus-4-6", "claude-opus-5-5"])
def test_no_constant_is_sent_for_a_signature(name: str) -> None:
    """OmniRoute and 9router send `.` with a constant signature; ours sends no unsigned block."""
    world = World("anthropic", name, "anthropic_messages")
    sent = world.send(claude(ASK, says(CALL), BACK, **ON))
    assert "signature" not in str(sent.messages)
    assert sent.messages[1] == says(CALL)


def test_a_responses_step_is_more_than_its_call() -> None:
    """OmniRoute sends a Responses upstream only the call; ours also the reasoning, including ciphertext."""
    world = World("openai", "gpt-5.4", "openai_responses")
    step = [rs("rs_1", "gAAAAone"), fc("fc_1", "call_a1B2c3D4")]
    world.answer(responses(ASK), responses_reply(*step))
    assert world.send(responses(ASK, step[1], output("call_a1B2c3D4"))).messages[1:3] == step


# --- 9router ---------------------------------------------------------------------------------------------------------


def test_a_blank_never_stands_for_reasoning_that_is_known() -> None:
    """9router puts a space wherever reasoning is missing; ours only if it is lost, with a finding."""
    world = World("kimi", "kimi-k2.6")
    known, unknown = (
        said(None, call("functions.bash:0"), reasoning="List."),
        said(None, call("functions.bash:1", "pwd")),
    )
    world.answer(chat(ASK), chat_reply(known))
    sent = world.send(chat(ASK, bare(known), result_of(known), unknown, result_of(unknown)))
    assert [reasoning_of(sent.messages[at]) for at in (1, 3)] == ["List.", " "]
    assert [finding.rule for finding in sent.plan.findings] == ["missing"]
    assert sent.plan.findings[0].place == "/messages/3"


def test_reasoning_that_a_client_kept_is_not_replaced() -> None:
    """9router replaces thinking that a client kept by a blank; ours keeps the client's reasoning if none was
    captured."""
    for provider, name in (("deepseek", "deepseek-v4-pro"), ("kimi", "kimi-k2.6"), ("mimo", "mimo-v2.5-pro")):
        turn = said(None, call("functions.bash:0"), reasoning="My own.")
        assert World(provider, name).send(chat(ASK, turn, result_of(turn))).plan.edits == ()


def test_a_genuine_signature_is_never_overwritten() -> None:
    """9router overwrites signatures for hosts that speak Anthropic's format; ours leaves unknown ones unchanged."""
    world = World("my-proxy", "some-model", "anthropic_messages")
    turn = says(thinking("List.", "EsigGenuine"), CALL)
    assert world.send(claude(ASK, turn, BACK)).plan.edits == ()
    own = World("anthropic", "claude-opus-4-6", "anthropic_messages")
    assert own.send(claude(ASK, turn, BACK)).plan.edits == ()


# --- CLIProxyAPI -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("provider", "name"), [("deepseek", "deepseek-v4-pro"), ("kimi", "kimi-k2.6")])
def test_unsigned_thinking_stays_where_none_is_signed(provider: str, name: str) -> None:
    """CLIProxyAPI drops unsigned thinking for makers that sign nothing; ours keeps and restores it."""
    world = World(provider, name, "anthropic_messages")
    turn = [thinking("List.", None), CALL]
    assert world.send(claude(ASK, says(*turn), BACK)).plan.edits == ()
    world.answer(claude(ASK), claude_reply(*turn))
    assert world.send(claude(ASK, says(CALL), BACK)).messages[1] == says(*turn)


def test_a_turn_without_calls_wipes_nothing() -> None:
    """CLIProxyAPI forgets a session when a turn has no call, or only redacted thinking; ours keeps each turn."""
    world = World("anthropic", "claude-opus-4-6", "anthropic_messages")
    redacted = {"type": "redacted_thinking", "data": "EmwKred"}
    turns = [[thinking("List.", "EsigA"), CALL], [redacted, words("Three.")], [words("You are welcome.")]]
    history = [ASK]
    for turn, after in zip(turns, (BACK, user("Thanks."), user("Bye.")), strict=True):
        world.answer(claude(*history), claude_reply(*turn))
        history += [says(*turn), after]
    lost = [without_thinking(message) if message["role"] == "assistant" else message for message in history]
    assert world.send(claude(*lost)).messages == history


def test_cache_marks_and_added_fields_do_not_hide_a_turn() -> None:
    """CLIProxyAPI's match fails on `cache_control` and on fields that clients add to a block."""
    world = World("anthropic", "claude-opus-4-6", "anthropic_messages")
    world.answer(claude(ASK), claude_reply(thinking("List.", "EsigA"), CALL))
    marked = CALL | {"cache_control": {"type": "ephemeral"}, "caller": {"type": "direct"}}
    sent = world.send(claude(ASK, says(marked), BACK))
    assert sent.messages[1] == says(thinking("List.", "EsigA"), marked)


def test_signature_only_blocks_are_held() -> None:
    """CLIProxyAPI and LiteLLM lose blocks with empty text; the signature is what counts."""
    world = World("anthropic", "claude-opus-5-5", "anthropic_messages")
    turn = [thinking("", "EsigA"), CALL]
    world.answer(claude(ASK), claude_reply(*turn))
    assert world.send(claude(ASK, says(CALL), BACK)).messages[1] == says(*turn)


def test_visible_words_are_never_passed_off_as_reasoning() -> None:
    """CLIProxyAPI gives Kimi the answer's words, or a fixed phrase, as reasoning; ours is a blank, with a finding."""
    turn = said("Let me look.", call("functions.bash:0"))
    sent = World("kimi", "kimi-k2.6").send(chat(ASK, turn, result_of(turn)))
    assert reasoning_of(sent.messages[1]) == " "
    assert "missing" in sent.rules


def test_a_blank_of_ours_is_never_taken_for_the_real_thing() -> None:
    """A placeholder that a provider echoes, or a client sends back, is neither captured nor preferred to the
    original."""
    world = World("kimi", "kimi-k2.6")
    turn = said(None, call("functions.bash:0"))
    world.answer(chat(ASK), chat_reply(turn | {"reasoning_content": " "}))
    assert world.send(chat(ASK, turn, result_of(turn))).plan.counts.restored == 0
    world.answer(chat(user("B")), chat_reply(turn | {"reasoning_content": "List."}))
    sent = world.send(chat(user("B"), turn | {"reasoning_content": " "}, result_of(turn)))
    assert reasoning_of(sent.messages[1]) == "List."


# --- clark-agent: an audit that counts and does not look -------------------------------------------------------------


def test_one_signature_does_not_vouch_for_another_item() -> None:
    """clark-agent accepts a turn with one signature anywhere; ours names the block that has none."""
    signed, unsigned = (ReasoningText("x", name, ANTHROPIC_CLAUDE_V1) for name in ("Esig", None))
    assert audit_replay((signed, unsigned, ToolCall("bash", "{}", "t1")), REQUIRED, True).violations


def test_a_signature_on_the_wrong_call_is_seen_and_moved() -> None:
    """clark-agent can't see the wrong part; ours reports it, and moves the signature to the call it was made for."""
    plain = ToolCall("bash", "{}", "c1")
    sealed = ToolCall("bash", "{}", "c2", seal=Seal("EsigA", GOOGLE_GEMINI_V1))
    assert audit_replay((plain, sealed), REQUIRED, True).violations
    world = World("gemini", "gemini-3-pro-preview", "gemini_generate")
    ask = asked({"text": "Look."})
    world.answer(gemini(ask), gemini_reply(runs("ls", "EsigA"), runs("pwd")))
    sent = world.send(gemini(ask, model(runs("ls"), runs("pwd", "EsigA")), asked(ran(), ran("/"))))
    assert signatures(sent.messages[1]) == ["EsigA", None]


def test_entries_of_unknown_formats_keep_their_bytes() -> None:
    """clark-agent renames unknown formats and drops null ids; ours returns each entry unchanged."""
    world = World("openrouter", "some/model")
    odd = [{"type": "reasoning.text", "text": "Hm.", "format": "novita-v9", "id": None, "index": 0, "extra": [1.50]}]
    turn = said("Three.", reasoning_details=odd)
    world.answer(chat(ASK), chat_reply(turn))
    assert world.send(chat(ASK, turn, user("Sure?"))).plan.edits == ()
    assert world.send(chat(ASK, bare(turn), user("Sure?"))).messages[1] == turn


# --- ReasoningPreserver ----------------------------------------------------------------------------------------------


def test_a_signature_is_not_copied_onto_every_call() -> None:
    """ReasoningPreserver copies one signature to all parallel calls; ours is on the one that had it."""
    world = World("gemini", "gemini-3-pro-preview")
    calls = [call(f"fc-{number}", f"cat {number}") for number in range(5)]
    world.answer(chat(ASK), chat_reply(said(None, call("fc-0", "cat 0", "EsigA"), *calls[1:])))
    sent = world.send(chat(ASK, said(None, *calls), *(result(f"fc-{number}") for number in range(5))))
    assert sent.messages[1]["tool_calls"] == [call("fc-0", "cat 0", "EsigA"), *calls[1:]]


def test_details_stand_on_the_message_and_nowhere_else() -> None:
    """ReasoningPreserver copies `reasoning_details` to each call, and returns details or signature, not both."""
    world = World("openrouter", "google/gemini-3-pro-preview")
    details = [
        {"type": "reasoning.text", "text": "List.", "format": "google-gemini-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": "EsigA", "id": "c-1", "format": "google-gemini-v1", "index": 1},
    ]
    turn = said(None, call("c-1"), call("c-2", "pwd"), reasoning_details=details)
    world.answer(chat(ASK), chat_reply(turn))
    assert world.send(chat(ASK, bare(turn), result("c-1"), result("c-2", "/"))).messages[1] == turn


# --- LiteLLM ---------------------------------------------------------------------------------------------------------


def test_a_reasoning_element_stays_the_models() -> None:
    """LiteLLM turns a reasoning element into a user message; ours is before its call, unchanged."""
    world = World("deepseek", "deepseek-v4-pro", "openai_responses")
    thought = {
        "type": "reasoning",
        "id": "u-1",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "List."}],
    }
    world.answer(responses(ASK), responses_reply(thought, fc("fc_1", "call_a1B2c3D4")))
    sent = world.send(
        responses(ASK, fc("fc_1", "call_a1B2c3D4"), output("call_a1B2c3D4"), tools=[{"type": "function"}])
    )
    assert [item.get("type") for item in sent.messages] == [None, "reasoning", "function_call", "function_call_output"]
    assert sent.messages[1]["content"] == thought["content"]


def test_thinking_is_not_switched_off_while_the_block_is_known() -> None:
    """LiteLLM drops `thinking` if a block is missing, and with it the thinking of the whole loop."""
    world = World("anthropic", "claude-opus-4-5", "anthropic_messages")
    world.answer(claude(ASK, **ON), claude_reply(thinking("List.", "EsigA"), CALL))
    sent = world.send(claude(ASK, says(CALL), BACK, **ON))
    assert sent.body["thinking"] == ON["thinking"]
    assert sent.plan.member_edits == ()


def test_a_model_that_thinks_by_default_is_known_to_think() -> None:
    """LiteLLM's guard requires a request for thinking; DeepSeek V4 thinks by default, and still wants its key."""
    turn = said(None, call("functions.bash:0"))
    sent = World("deepseek", "deepseek-v4-pro").send(chat(ASK, turn, result_of(turn)))
    assert reasoning_of(sent.messages[1]) == " "


def test_the_same_history_gives_the_same_bytes_in_any_process() -> None:
    """LiteLLM's generated ids come from a hash that differs by process; ours generates none: two worlds, equal
    bodies."""
    bodies = []
    for _ in range(2):
        world = World("openai", "gpt-5.4", "openai_responses")
        world.answer(responses(ASK), responses_reply(rs(None, "gAAAAone"), fc("fc_1", "call_a1B2c3D4")))
        bodies.append(world.send(responses(ASK, fc(None, "call_a1B2c3D4"), output("call_a1B2c3D4"))).body)
    assert bodies[0] == bodies[1]
    assert "rs_" not in str(bodies[0])
