"""Model switches, and bodies of any size: groups F and G of the catalogue of client behaviours.

Rows that no test beside this one states, and why:

    A4 (the client's view), E6 (who finishes a capture), E8 (one retry)   the gateway's; what is pure of them is tested
    B4 (ids shortened by hash)   translation makes ids that another wire takes; the planner leaves ids alone
    E1 (no lock per session)     there is none in a pure planner; what it would protect is in `test_e1_…`
    G1 zstd, gzip, br bodies     transport: a decoded body is all that is seen here
    G2 websocket or 426, G3 probes, G6 paths    addresses and methods, answered before a body is read
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.replay.dialogues import (
    ASK,
    BACK,
    CALL,
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
    fc,
    gemini,
    gemini_reply,
    ids,
    kinds,
    model,
    output,
    ran,
    reasoning_of,
    responses,
    responses_reply,
    result,
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


def bound() -> World:
    return World("anthropic", "claude-opus-5-5", "anthropic_messages")


# --- F1 --------------------------------------------------------------------------------------------------------------

MAKERS = {
    "deepseek, unsigned": ("deepseek", "deepseek-v4-pro", thinking("List.", None)),
    "kimi, decorated": ("kimi", "kimi-k2.6", thinking("List.", "k" * 40)),
    "a field's name for a signature": ("mimo", "mimo-v2.5-pro", thinking("List.", "reasoning_content")),
    "another Claude's host": ("vertex-claude", "claude-opus-4-6", thinking("List.", "EsigVertex")),
}


@pytest.mark.parametrize("is_last", [True, False], ids=["latest turn", "earlier turn"])
@pytest.mark.parametrize("maker", MAKERS)
def test_f1_thinking_of_another_maker_does_not_reach_claude(maker: str, is_last: bool) -> None:
    """F1: blocks are kept only for their maker; the rest is removed, including the latest turn's, with a finding."""
    provider, name, block = MAKERS[maker]
    claude_world = World("anthropic", "claude-opus-4-6", "anthropic_messages")
    claude_world.elsewhere(provider, name).answer(claude(ASK), claude_reply(block, CALL))
    rest = [] if is_last else [says(words("Three.")), user("Sure?")]
    sent = claude_world.send(claude(ASK, says(block, CALL), BACK, *rest))
    assert kinds(sent.messages[1]) == ["tool_use"]
    assert "foreign" in sent.rules


@pytest.mark.parametrize("made_by", ["claude-opus-4-5", "claude-opus-5-5", "claude-fable-5-2"])
def test_f1_a_block_of_another_claude_of_the_account_is_sent(made_by: str) -> None:
    """F1: a Claude drops another model's blocks that it can't read, and reads its own again later."""
    world = World("anthropic", made_by, "anthropic_messages")
    block = thinking("List.", "EsigOther")
    world.answer(claude(ASK), claude_reply(block, CALL))
    sent = world.elsewhere("anthropic", "claude-opus-4-8").send(claude(ASK, says(block, CALL), BACK))
    assert sent.plan.edits == ()


@pytest.mark.parametrize(
    ("made_by", "asked", "is_put_back"),
    [
        ("claude-opus-4-5", "claude-opus-4-8", True),
        ("claude-opus-5", "claude-opus-5-5", True),
        ("claude-sonnet-5-5", "claude-opus-5-5", True),
        ("claude-fable-5", "claude-fable-5-1", True),
        ("claude-opus-5-5", "claude-sonnet-5", False),
        ("claude-fable-5-1", "claude-opus-5-5", False),
        ("claude-opus-5", "claude-sonnet-5-5", False),
        ("claude-fable-5-2", "claude-fable-5-1", False),
    ],
)
def test_f1_a_lost_block_is_put_back_for_a_claude_that_reads_it(made_by: str, asked: str, is_put_back: bool) -> None:
    """F1: after a switch of models, blocks of the old one that the new one reads are restored."""
    world = World("anthropic", made_by, "anthropic_messages")
    world.answer(claude(ASK), claude_reply(thinking("List.", "EsigOther"), CALL))
    sent = world.elsewhere("anthropic", asked).send(claude(ASK, says(CALL), BACK))
    assert ("EsigOther" in str(sent.body)) is is_put_back


# --- F2 --------------------------------------------------------------------------------------------------------------

CIPHERS = {
    "openai to azure": (("openai", "gpt-5.4"), ("azure", "gpt-5.4"), "gAAAAone"),
    "azure to openai": (("azure", "gpt-5.4"), ("openai", "gpt-5.4"), "gAAAAone"),
    "grok to openai": (("xai", "grok-4.7"), ("openai", "gpt-5.4"), "q83vEjRWeJA"),
    "deepseek's handle to openai": (("deepseek", "deepseek-v4-pro"), ("openai", "gpt-5.4"), "0b9f-4c58-0"),
    "openai to grok": (("openai", "gpt-5.4"), ("xai", "grok-4.7"), "gAAAAone"),
    "openai to deepseek": (("openai", "gpt-5.4"), ("deepseek", "deepseek-v4-pro"), "gAAAAone"),
}


@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "stripped"])
@pytest.mark.parametrize("switch", CIPHERS)
def test_f2_ciphertext_goes_only_where_it_was_made(switch: str, is_kept: bool) -> None:
    """F2: records show whose ciphertext it is; no other maker sees it, nor half a pair of ids."""
    made, goes, cipher = CIPHERS[switch]
    step = [rs("rs_1", cipher, "Listing."), fc("fc_1", "call_a1B2c3D4")]
    world = World(*made, "openai_responses")
    world.answer(responses(ASK), responses_reply(*step))
    shown = step if is_kept else step[1:]
    sent = world.elsewhere(*goes).send(responses(ASK, *shown, output("call_a1B2c3D4")))
    assert cipher not in str(sent.body)
    assert "rs_1" not in str(sent.body)
    if goes[0] in ("openai", "azure"):
        assert [name for name in ids(sent.messages) if name is not None] == []
    assert sent.messages[-2]["call_id"] == "call_a1B2c3D4"


# --- F3 --------------------------------------------------------------------------------------------------------------


def test_f3_plain_text_is_carried_to_a_maker_that_takes_text() -> None:
    """F3: the client dropped everything on the switch from Kimi to DeepSeek: the stored text is sent in its field."""
    world = World("kimi", "kimi-k2.6")
    history = told(world, ASK, said(None, call("functions.bash:0"), reasoning="List."), result("functions.bash:0"))
    assert world.elsewhere("deepseek", "deepseek-v4-pro").send(chat(*stripped(history))).messages == history


def test_f3_claudes_thinking_goes_on_as_unsigned_text() -> None:
    """F3: from Claude to DeepSeek: the text of the thinking is sent, and never its signature."""
    world = World("anthropic", "claude-opus-4-6", "anthropic_messages")
    world.answer(claude(ASK), claude_reply(thinking("List.", "EsigA"), CALL))
    other = world.elsewhere("deepseek", "deepseek-v4-pro")
    for shown in (says(CALL), says(thinking("List.", "EsigA"), CALL)):
        sent = other.send(claude(ASK, shown, BACK))
        assert sent.messages[1] == says(thinking("List.", None), CALL)


def test_f3_nothing_is_signed_on_the_way_to_claude() -> None:
    """F3: from DeepSeek to Claude: dropped reasoning stays dropped, because it can't be signed."""
    world = World("deepseek", "deepseek-v4-pro", "anthropic_messages")
    world.answer(claude(ASK), claude_reply(thinking("List.", None), CALL))
    sent = world.elsewhere("anthropic", "claude-opus-4-6").send(claude(ASK, says(CALL), BACK))
    assert sent.plan.edits == ()


# --- F4 --------------------------------------------------------------------------------------------------------------

FIRST = [thinking("", "EsigA"), words("Which?")]
SECOND = [thinking("", "EsigB"), words("Three.")]
TOOLS = [{"name": "bash", "input_schema": {"type": "object"}}, {"name": "read", "input_schema": {"type": "object"}}]
PREFIXES: dict[str, dict[str, Any]] = {
    "system": {"system": "Be verbose."},
    "no system": {"system": None},
    "a tool more": {"tools": [*TOOLS, {"name": "write", "input_schema": {"type": "object"}}]},
    "tools in another order": {"tools": TOOLS[::-1]},
}


def bound_talk(world: World) -> list[Json]:
    world.answer(claude(ASK, tools=TOOLS), claude_reply(*FIRST), session="s")
    world.answer(claude(ASK, says(*FIRST), user("All."), tools=TOOLS), claude_reply(*SECOND), session="s")
    return [ASK, says(*FIRST), user("All."), says(*SECOND), user("Sure?")]


@pytest.mark.parametrize("change", PREFIXES)
def test_f4_a_changed_frame_forbids_restoring_and_nothing_else(change: str) -> None:
    """F4: a block is also bound to system prompt and tools: if they change, none is restored, with a finding. Those
    that the client kept are sent: older accounts accept and read them."""
    world = bound()
    history = bound_talk(world)
    for kept in (history, [history[0], says(FIRST[1]), history[2], says(SECOND[1]), history[4]]):
        request = claude(*kept, **({"tools": TOOLS} | PREFIXES[change]))
        sent = world.send({name: value for name, value in request.items() if value is not None})
        assert sent.plan.edits == ()
        assert sent.rules & {"bound-prefix-changed", "other-frame"}


def test_f4_blocks_before_the_change_stay() -> None:
    """F4: an edit in the middle invalidates what comes after it, and nothing before."""
    world = bound()
    history = bound_talk(world)
    history[2] = user("All of them.")
    bare_turns = [history[0], says(FIRST[1]), history[2], says(SECOND[1]), history[4]]
    sent = world.send(claude(*bare_turns, tools=TOOLS), session="s")
    assert kinds(sent.messages[1]) == ["thinking", "text"]
    assert "EsigB" not in str(sent.body)


def test_f4_blocks_made_after_the_change_are_good_again() -> None:
    """F4: a block is bound to its prefix: one made with the new prompt is valid there."""
    world = bound()
    history = bound_talk(world)
    new = {"tools": TOOLS, "system": "Be verbose."}
    third = [thinking("", "EsigC"), use("toolu_03QrStUvWx")]
    world.answer(claude(*history, **new), claude_reply(*third))
    bare_turns = [history[0], says(FIRST[1]), history[2], says(SECOND[1]), history[4]]
    sent = world.send(claude(*bare_turns, says(third[1]), asks(returned("toolu_03QrStUvWx")), **new))
    assert [kinds(message) for message in sent.messages[1:6:2]] == [["text"], ["text"], ["thinking", "tool_use"]]


@pytest.mark.parametrize("lost", [(), (1,), (3,), (1, 3)])
def test_f4_cache_marks_and_lost_blocks_break_nothing(lost: tuple[int, ...]) -> None:
    """F4: cache markers and thinking itself don't count for the prefix: lost blocks are restored, byte for byte."""
    world = bound()
    history = bound_talk(world)
    mark = {"cache_control": {"type": "ephemeral"}}
    shown = [says(message["content"][1]) if at in lost else message for at, message in enumerate(history)]
    shown[0] = asks(words("How many files?") | mark)
    sent = world.send(claude(*shown, tools=[TOOLS[0], TOOLS[1] | mark], system=[words("Be brief.") | mark]))
    assert [sent.messages[1], sent.messages[3]] == [says(*FIRST), says(*SECOND)]


# --- F5, F6, F7 ------------------------------------------------------------------------------------------------------

STRICT: list[tuple[str, str, Json]] = [
    ("openai", "gpt-4o", {"content": "Three."}),
    ("perplexity", "sonar-pro", {"content": "Three."}),
    ("groq", "openai/gpt-oss-20b", {"content": "Three.", "reasoning": "Hm."}),
    ("cerebras", "gpt-oss-120b", {"content": "Three.", "reasoning": "Hm."}),
    (
        "mistral",
        "magistral-medium",
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, words("Three.")]},
    ),
    ("deepseek", "deepseek-r1", {"content": "Three."}),
]


@pytest.mark.parametrize(("provider", "name", "expected"), STRICT)
def test_f5_reasoning_in_the_shape_that_is_taken_or_not_at_all(provider: str, name: str, expected: Json) -> None:
    """F5: a provider that refuses the field gets the text where it reads it, or no reasoning."""
    sent = World(provider, name).send(chat(ASK, said("Three.", reasoning="Hm."), user("Sure?")))
    assert sent.messages[1] == {"role": "assistant"} | expected


SIGNED_DETAIL = {"type": "reasoning.text", "text": "Hm.", "signature": "SEAL", "format": "anthropic-claude-v1"}
SEALED_DETAIL = {"type": "reasoning.encrypted", "data": "SEAL", "format": "openai-responses-v1"}
SEALED: dict[str, Json] = {
    "Copilot's pair": said("Three.", reasoning_text="Hm.", reasoning_opaque="SEAL"),
    "signed details": said("Three.", reasoning_details=[SIGNED_DETAIL]),
    "sealed details": said("Three.", reasoning="Hm.", reasoning_details=[SEALED_DETAIL]),
    "Google's on a call": said("Three.", call("c-1", "ls", "SEAL"), reasoning="Hm."),
    "Google's on a message": said("Three.", reasoning="Hm.", extra_content={"google": {"thought_signature": "SEAL"}}),
}
TAKERS = [
    ("deepseek", "deepseek-v4-pro"),
    ("kimi", "kimi-k2.6"),
    ("glm", "glm-5"),
    ("groq", "openai/gpt-oss-20b"),
    ("vllm", "qwen3.6-35b"),
    ("mistral", "magistral-medium"),
]


@pytest.mark.parametrize("shape", SEALED)
@pytest.mark.parametrize(("provider", "name"), TAKERS)
def test_f5_seals_in_chat_messages_go_and_their_text_stays(provider: str, name: str, shape: str) -> None:
    """F5: a maker that reads text gets the text of sealed reasoning, and no seal; nothing breaks."""
    sent = World(provider, name).send(chat(ASK, SEALED[shape], result("c-1"), user("Sure?")))
    assert "SEAL" not in str(sent.body)
    assert "Hm." in str(sent.messages[1])
    assert not {"reasoning_details", "reasoning_text", "reasoning_opaque"} & sent.messages[1].keys()


def test_f5_an_unknown_model_is_left_alone() -> None:
    """F5: a client's reasoning for an unknown model is not changed in a single byte."""
    turns = [
        said("A", reasoning=" x "),
        said("B", reasoning=""),
        said("C", reasoning_details=[{"type": "odd", "z": 1}]),
    ]
    messages = [message for turn in turns for message in (user("?"), turn)]
    sent = World("nobody", "some-model").send(chat(*messages, user("Go.")))
    assert sent.plan.edits == ()


def test_f6_the_model_that_answered_is_the_one_that_made_the_seal() -> None:
    """F6: one model was requested, another answered: a request under either name gets its signature back."""
    world = World("gemini", "gemini-3-pro-preview", "gemini_generate")
    ask = asked({"text": "Look."})
    records = world.answer(gemini(ask), gemini_reply(runs("ls", "EsigA"), modelVersion="gemini-3.1-pro-preview"))
    assert records[0].provenance.model_answered == "gemini-3.1-pro-preview"
    for name in ("gemini-3-pro-preview", "gemini-3.1-pro-preview"):
        sent = world.send(gemini(ask, model(runs("ls")), asked(ran())), model=name)
        assert signatures(sent.messages[1]) == ["EsigA"]


@pytest.mark.parametrize("name", ["claude-opus-4-5", "claude-opus-4-6", "claude-opus-5-5"])
def test_f7_thinking_blocks_are_never_made_up(name: str) -> None:
    """F7: no block is invented, whatever the model requires."""
    lost = [ASK, says(CALL), BACK]
    assert World("anthropic", name, "anthropic_messages").send(claude(*lost, **ON)).messages == lost


# --- G4, G5 ----------------------------------------------------------------------------------------------------------


def big_talk(steps: int) -> list[Json]:
    history = [user("Work.")]
    for number in range(steps):
        turn = said(
            f"Step {number}.", call(f"functions.bash:{number}", f"cat {number}"), reasoning=f"Thought {number}."
        )
        history += [turn, result_of(turn, "x" * 1000)]
    return history


def test_g4_a_body_of_megabytes() -> None:
    """G4: three megabytes and more than two thousand turns are planned and restored in seconds."""
    world, steps = World("deepseek", "deepseek-v4-pro"), 2500
    history = big_talk(steps)
    for at in (1, 2 * steps // 4 * 2 + 1, 2 * steps - 1):
        world.answer(chat(*history[:at]), chat_reply(history[at]))
    request = chat(*stripped(history))
    sent = world.send(request)
    assert len(str(sent.body)) > 3_000_000
    assert sent.messages[1] == history[1]
    assert sent.messages[2 * steps - 1] == history[2 * steps - 1]
    assert sent.plan.counts.restored == 3


def calls_to_send(world: World, request: Json, session: str | None = None) -> int:
    """The number of function calls, independent of the machine's load."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        world.send(request, session=session)
    finally:
        sys.setprofile(None)
    return count


def test_g4_work_grows_with_the_body_and_no_faster() -> None:
    """G4: four times the turns take about four times the work, not sixteen."""
    world = World("deepseek", "deepseek-v4-pro")
    short, long = (calls_to_send(world, chat(*stripped(big_talk(steps)))) for steps in (500, 2000))
    assert long < 5 * short


def test_g4_many_equal_turns_in_one_session() -> None:
    """G4: a model that answers "OK." in every turn of a session: one key, many records, and no quadratic work."""
    taken = []
    for turns in (40, 160):
        world, history = World("deepseek", "deepseek-v4-pro"), []
        for number in range(turns):
            history += [user(f"Do {number}."), said("OK.", reasoning=f"Thought {number}.")]
            world.answer(chat(*history[:-1]), chat_reply(history[-1]), session="s")
        request = chat(*stripped(history), user("Done?"))
        taken.append(calls_to_send(world, request, "s"))
        assert world.send(request, session="s").messages[:-1] == history
    assert taken[1] < 5 * taken[0]


def test_g5_responses_shaped_parts_in_a_chat_request() -> None:
    """G5: flat tools, custom tools and parts named as in Responses are read as what they are, and keep their bytes."""
    world = World("deepseek", "deepseek-v4-pro")
    tools = [{"type": "function", "name": "bash", "parameters": {}}, {"type": "custom", "name": "patch"}]
    ask = {"role": "user", "content": [{"type": "input_text", "text": "How many files?"}]}
    turn = said("Three.", reasoning="a, b, c.")
    world.answer(chat(ask, tools=tools), chat_reply(turn))
    shown = bare(turn) | {"content": [{"type": "output_text", "text": "Three."}]}
    sent = world.send(chat(ask, shown, user("Sure?"), tools=tools))
    assert reasoning_of(sent.messages[1]) == "a, b, c."
    assert sent.body["tools"] == tools
