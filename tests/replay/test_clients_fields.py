"""What clients do to fields: group A of the catalogue of client behaviours, one or more tests per row."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.replay.dialogues import (
    Json,
    Sent,
    World,
    asked,
    asks,
    call,
    chat,
    chat_reply,
    claude,
    claude_reply,
    fc,
    gemini,
    gemini_reply,
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
    without_thinking,
    words,
)

STRICT = [("deepseek", "deepseek-v4-pro"), ("kimi", "kimi-k2.6"), ("mimo", "mimo-v2.5-pro")]
GEMINI = ("gemini", "gemini-3-pro-preview")
SIGNATURE = base64.b64encode(bytes([0x12, 0xFB, 0xEF, 0xBE, 0xFF, 0xFE, 0x3E, 0x01])).decode()
SKIP = "skip_thought_signature_validator"

PLAIN = said("Which folder?", reasoning="They did not say which.\n")
LOOK = said("Let me look.", call("call_00_Xy7Qp2Lm9"), reasoning=" I must list it. ")


def dialogue(world: World) -> list[Json]:
    """A plain turn, and a tool turn that waits for an answer."""
    return told(world, user("How many files?"), PLAIN, user("The current one."), LOOK, result_of(LOOK))


@pytest.mark.parametrize(("provider", "name"), STRICT)
def test_a1_stripped_reasoning_comes_back(provider: str, name: str) -> None:
    """A1: reasoning that a client strips is restored on tool turns and plain turns, including white space."""
    world = World(provider, name)
    history = dialogue(world)
    sent = world.send(chat(*stripped(history)))
    assert sent.messages == history
    assert sent.plan.counts.restored == 2
    assert sent.plan.findings == ()


TAGGED = {"content": "<think>Count.</think>Three."}
CHUNKS = {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Count."}]}, words("Three.")]}
DETAILS = [
    {"type": "reasoning.text", "text": "Count.", "signature": "Esig", "format": "anthropic-claude-v1", "index": 0}
]
DIALECTS: list[tuple[str, str, Json, Any]] = [
    ("vllm", "qwen3.6-35b", {"content": "Three.", "reasoning": "Count."}, "Three."),
    ("cerebras", "zai-glm-4.7", TAGGED, "Three."),
    ("minimax", "MiniMax-M2", TAGGED, "Three."),
    ("mistral", "magistral-medium", CHUNKS, "Three."),
    ("mistral", "magistral-medium", CHUNKS, [words("Three.")]),
    ("openrouter", "anthropic/claude-opus-4.6", {"content": "Three.", "reasoning_details": DETAILS}, "Three."),
]


@pytest.mark.parametrize(("provider", "name", "turn", "shown"), DIALECTS)
def test_a1_in_the_place_where_each_provider_keeps_it(provider: str, name: str, turn: Json, shown: object) -> None:
    """A1: in every dialect, stripped reasoning is restored at its place; a complete turn is not changed."""
    world = World(provider, name)
    whole = {"role": "assistant"} | turn
    world.answer(chat(user("How many?")), chat_reply(whole))
    assert world.send(chat(user("How many?"), whole, user("Sure?"))).plan.edits == ()
    sent = world.send(chat(user("How many?"), {"role": "assistant", "content": shown}, user("Sure?")))
    assert sent.messages[1] == whole


@pytest.mark.parametrize(("provider", "name"), STRICT)
def test_a2_what_the_client_keeps_decides_nothing(provider: str, name: str) -> None:
    """A2: a client that keeps reasoning for this model name and one that does not produce the same upstream request."""
    world = World(provider, name)
    history = dialogue(world)
    kept, lost = world.send(chat(*history)), world.send(chat(*stripped(history)))
    assert kept.plan.edits == ()
    assert kept.body == lost.body


def claude_loop(world: World, **members: Any) -> list[Json]:
    """A tool loop of Claude, with one step done."""
    ask = user("How many files?")
    world.answer(claude(ask, **members), claude_reply(thinking("List, then count.", "EsigA"), use("toolu_01AbCdEfGh")))
    return [
        ask,
        says(thinking("List, then count.", "EsigA"), use("toolu_01AbCdEfGh")),
        asks(returned("toolu_01AbCdEfGh")),
    ]


@pytest.mark.parametrize("name", ["claude-opus-4-5", "claude-opus-4-6", "claude-opus-5-5"])
def test_a3_signed_blocks_of_the_loop_come_back(name: str) -> None:
    """A3: thinking that was stripped while `thinking` is on is restored before its call, unchanged."""
    world = World("anthropic", name, "anthropic_messages")
    on = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    ask, turn, back = claude_loop(world, **on)
    sent = world.send(claude(ask, without_thinking(turn), back, **on))
    assert sent.messages == [ask, turn, back]
    assert sent.body["thinking"] == on["thinking"]


def test_a3_a_changed_prefix_of_a_binding_model_is_reported() -> None:
    """A3: a binding model and a changed prefix: nothing is restored, with a finding."""
    world = World("anthropic", "claude-opus-5-5", "anthropic_messages")
    ask, turn, back = claude_loop(world)
    sent = world.send(claude(ask, without_thinking(turn), back, system="Be verbose."))
    assert kinds(sent.messages[1]) == ["tool_use"]
    assert "bound-prefix-changed" in sent.rules


def test_a4_a_stripped_reasoning_element_stands_before_its_call_again() -> None:
    """A4: a Responses client that keeps no reasoning elements gets each back before its call, unchanged."""
    world = World("openai", "gpt-5.4", "openai_responses")
    ask, step = user("How many files?"), [rs("rs_1", "gAAAAcipher", "Listing."), fc("fc_1", "call_a1B2c3D4")]
    world.answer(responses(ask), responses_reply(*step))
    sent = world.send(responses(ask, step[1], output("call_a1B2c3D4")))
    assert sent.messages == [ask, *step, output("call_a1B2c3D4")]


def test_a4_ciphertext_is_asked_for() -> None:
    """A4: if the provider stores nothing and the client does not request ciphertext, we do."""
    world = World("openai", "gpt-5.4", "openai_responses")
    request = responses(user("How many files?"))
    del request["include"]
    assert world.send(request).body.get("include") == ["reasoning.encrypted_content"]


def test_a5_an_empty_field_counts_as_missing() -> None:
    """A5: `""` on a known turn is a loss like any other."""
    world = World(*STRICT[0])
    history = dialogue(world)
    emptied = [
        message | {"reasoning_content": ""} if "reasoning_content" in message else message for message in history
    ]
    assert world.send(chat(*emptied)).messages == history


def test_a5_an_empty_field_on_an_unknown_turn_is_a_miss() -> None:
    """A5: `""` on an unknown turn is a miss, too: it gets the accepted filler, with a finding."""
    world = World(*STRICT[0])
    sent = world.send(chat(user("Hi."), said("Hello.", reasoning=""), user("Go on.")))
    assert reasoning_of(sent.messages[1]) == world.contract().filler
    assert "missing" in sent.rules


def test_a5_the_same_history_gives_the_same_bytes_on_every_turn() -> None:
    """A5: whatever the client writes for a lost field, the common part of two requests is sent the same."""
    world = World(*STRICT[0])
    history = dialogue(world)
    first = world.send(chat(*stripped(history)))
    longer = told(world, *history, said("Three.", reasoning="a, b, c."), user("Thanks."))
    second = world.send(chat(*stripped(longer)))
    assert [str(one) for one in second.messages[: len(history)]] == [str(one) for one in first.messages]


def test_a6_a_turn_without_reasoning_gets_the_empty_key() -> None:
    """A6: "none" is a fact: an empty key where every turn must have one, no text of another turn, no finding."""
    world = World(*STRICT[0])
    history = told(world, user("How many?"), LOOK, result_of(LOOK), said("Three."), user("Sure?"))
    sent = world.send(chat(*stripped(history)))
    assert [reasoning_of(sent.messages[1]), reasoning_of(sent.messages[3])] == [" I must list it. ", ""]
    assert sent.plan.counts.blank == 0
    assert sent.plan.findings == ()


def test_a6_a_tool_turn_without_reasoning_on_kimi() -> None:
    """A6: Kimi wants the key on tool turns only: an empty one there, none on a plain turn that had none."""
    world = World(*STRICT[1])
    step = said(None, call("functions.bash:0"))
    history = told(world, user("How many?"), step, result_of(step), said("Three."), user("Sure?"))
    sent = world.send(chat(*history))
    assert reasoning_of(sent.messages[1]) == ""
    assert "reasoning_content" not in sent.messages[3]


@pytest.mark.parametrize("provider", ["deepseek", "qwen", "glm"])
def test_a7_trimmed_reasoning_is_made_whole(provider: str) -> None:
    """A7: text that differs from the stored one only in surrounding white space is sent as stored."""
    world = World(provider, {"deepseek": "deepseek-v4-pro", "qwen": "qwen3.6-max", "glm": "glm-5"}[provider])
    history = dialogue(world)
    trimmed = [message | {"reasoning_content": (reasoning_of(message) or "").strip()} for message in (PLAIN, LOOK)]
    sent = world.send(chat(history[0], trimmed[0], history[2], trimmed[1], history[4]))
    assert sent.messages == history


NAMES = [
    ("deepseek", "deepseek-v4-pro", "reasoning_content"),
    ("kimi", "kimi-k2.6", "reasoning_content"),
    ("ollama", "qwen3.6-35b", "reasoning"),
    ("cerebras", "gpt-oss-120b", "reasoning"),
    ("groq", "openai/gpt-oss-120b", "reasoning"),
]
SHAPES: dict[str, Json] = {
    "reasoning_content": {"reasoning_content": "Look first."},
    "reasoning": {"reasoning": "Look first."},
    "both": {"reasoning_content": "Look first.", "reasoning": "Look first."},
    "details": {"reasoning_details": [{"type": "reasoning.text", "text": "Look first.", "format": "unknown"}]},
    "details and text": {
        "reasoning": "Look first.",
        "reasoning_details": [{"type": "reasoning.text", "text": "Look first.", "format": "unknown"}],
    },
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("provider", "name", "reads"), NAMES)
def test_a8_any_name_in_the_right_name_out(provider: str, name: str, reads: str, shape: str) -> None:
    """A8: reasoning under any of its names is sent under the one that the provider reads, and under no other; but two
    copies are left alone if neither is refused."""
    world = World(provider, name)
    step = said(None, call("call_9fK2mQ7x")) | SHAPES[shape]
    turn = world.send(chat(user("How many?"), step, result_of(step))).messages[1]
    names = [field for field in ("reasoning_content", "reasoning", "reasoning_details") if field in turn]
    is_left = shape == "both" and provider not in ("cerebras", "groq")
    assert (names, turn.get(reads)) == (["reasoning_content", "reasoning"] if is_left else [reads], "Look first.")


def test_a8_a_renamed_field_is_made_whole_under_its_own_name() -> None:
    """A8: renamed and trimmed at once: the stored text is sent, under the name that the provider reads."""
    world = World("vllm", "qwen3.6-35b")
    world.answer(chat(user("How many?")), chat_reply(said("Three.", reasoning=None) | {"reasoning": " Count.\n"}))
    sent = world.send(chat(user("How many?"), said("Three.", reasoning="Count."), user("Sure?")))
    assert sent.messages[1] == said("Three.") | {"reasoning": " Count.\n"}


REFUSING = [
    ("openai", "gpt-4o"),
    ("mistral", "magistral-medium"),
    ("groq", "openai/gpt-oss-20b"),
    ("perplexity", "sonar-pro"),
]


@pytest.mark.parametrize(("provider", "name"), REFUSING)
def test_a9_reasoning_members_that_a_strict_upstream_refuses_go(provider: str, name: str) -> None:
    """A9: of all names for reasoning, none that this provider refuses is sent."""
    details = [{"type": "reasoning.text", "text": "Hm.", "format": "unknown"}]
    noisy = said("Three.", reasoning="Hm.", reasoning_details=details, reasoning_text="Hm.", reasoning_opaque="op")
    turn = World(provider, name).send(chat(user("How many?"), noisy, user("Sure?"))).messages[1]
    refused = {"reasoning_content", "reasoning_details", "reasoning_text", "reasoning_opaque"}
    assert not refused & turn.keys()


@pytest.mark.parametrize(("provider", "name"), [("openai", "gpt-4o"), ("mistral", "magistral-medium")])
def test_a9_members_that_a_library_added_go(provider: str, name: str) -> None:
    """A9: LiteLLM's `provider_specific_fields` belongs to no provider: one that refuses extras never sees it."""
    noisy = said("Three.", provider_specific_fields={"reasoning_content": "Hm."})
    turn = World(provider, name).send(chat(user("How many?"), noisy, user("Sure?"))).messages[1]
    assert "provider_specific_fields" not in turn


def test_a10_the_signature_returns_to_the_first_call_only() -> None:
    """A10: in Gemini's chat format, a dropped signature is restored on exactly the call that had it."""
    world = World(*GEMINI)
    first, second = call("fc-1", "ls"), call("fc-2", "pwd")
    world.answer(chat(user("Look.")), chat_reply(said(None, call("fc-1", "ls", SIGNATURE), second)))
    sent = world.send(chat(user("Look."), said(None, first, second), result("fc-1"), result("fc-2")))
    assert sent.messages[1]["tool_calls"] == [call("fc-1", "ls", SIGNATURE), second]


def gemini_loop(world: World, *parts: Json) -> Json:
    world.answer(gemini(asked({"text": "Look."})), gemini_reply(*parts))
    return asked({"text": "Look."})


def test_a10_the_signature_returns_to_its_part() -> None:
    """A10: the same in Gemini's own format, where the signed part is the second of its turn."""
    world = World(*GEMINI, "gemini_generate")
    ask = gemini_loop(world, {"text": "Both."}, runs("ls", SIGNATURE), runs("pwd"))
    sent = world.send(gemini(ask, model({"text": "Both."}, runs("ls"), runs("pwd")), asked(ran(), ran("/"))))
    assert signatures(sent.messages[1]) == [None, SIGNATURE, None]


def test_a11_a_dropped_thought_part_is_no_loss() -> None:
    """A11: the signature is there, the thought part is not: Google wants no more, so nothing is done or reported."""
    world = World(*GEMINI, "gemini_generate")
    ask = gemini_loop(world, {"text": "List it.", "thought": True}, runs("ls", SIGNATURE))
    sent = world.send(gemini(ask, model(runs("ls", SIGNATURE)), asked(ran())))
    assert sent.plan.edits == ()
    assert sent.plan.findings == ()


@pytest.mark.parametrize(
    "joined",
    [
        ({"text": "It is empty.", "thoughtSignature": SIGNATURE},),
        ({"text": "It is empty."}, {"text": "", "thoughtSignature": SIGNATURE}),
        ({"text": "It is empty.", "thoughtSignature": SIGNATURE.replace("+", "-").replace("/", "_")},),
    ],
    ids=["joined", "kept", "joined, in the other alphabet"],
)
def test_a11_a_signature_joined_to_the_words_goes_back_to_its_own_part(joined: tuple[Json, ...]) -> None:
    """Gemini's stream ends with an empty part for the signature; pi and others put it on the text. It is sent once, at
    Gemini's place."""
    world = World(*GEMINI, "gemini_generate")
    made = ({"text": "Looked.", "thought": True}, {"text": "It is empty."}, {"text": "", "thoughtSignature": SIGNATURE})
    ask = gemini_loop(world, *made)
    sent = world.send(gemini(ask, model(made[0], *joined), asked({"text": "Fine."})))
    assert sent.messages[1]["parts"] == list(made)


def test_a11_a_joined_signature_under_words_of_another_grouping() -> None:
    """The text of two parts in one stays as the client has it, followed by the signature, once."""
    world = World(*GEMINI, "gemini_generate")
    ask = gemini_loop(world, {"text": "It is"}, {"text": " empty."}, {"text": "", "thoughtSignature": SIGNATURE})
    sent = world.send(
        gemini(ask, model({"text": "It is empty.", "thoughtSignature": SIGNATURE}), asked({"text": "Fine."}))
    )
    assert sent.messages[1]["parts"][-1] == {"text": "", "thoughtSignature": SIGNATURE}
    assert json.dumps(sent.messages).count("thoughtSignature") == 1


@pytest.mark.parametrize("sentinel", [SKIP, base64.b64encode(SKIP.encode()).decode()])
def test_a12_a_sentinel_gives_way_to_the_true_signature(sentinel: str) -> None:
    """A12: a value that says "no signature" is a missing signature; the real one, if stored, replaces it."""
    world = World(*GEMINI, "gemini_generate")
    ask = gemini_loop(world, runs("ls", SIGNATURE))
    sent = world.send(gemini(ask, model(runs("ls", sentinel)), asked(ran())))
    assert signatures(sent.messages[1]) == [SIGNATURE]
    stranger = world.send(gemini(asked({"text": "Hm?"}), model(runs("ls", sentinel)), asked(ran())))
    assert signatures(stranger.messages[1]) == [sentinel]


def test_a12_a_call_without_a_signature_behind_a_thought() -> None:
    """A12: a thought's text is not a signature; an unknown call still gets the sentinel."""
    world = World("gemini", "gemini-3-pro-preview", "gemini_generate")
    turn = model({"text": "I look.", "thought": True}, runs("ls"))
    sent = world.send(gemini(asked({"text": "Look."}), turn, asked(ran())))
    assert signatures(sent.messages[1]) == [SKIP]


def test_a_seal_among_turns_without_one() -> None:
    """A turn with another provider's seal loses it, whatever its neighbours have."""
    world = World("deepseek", "deepseek-v4-pro")
    sealed = said("Hm.", reasoning_details=[{"type": "reasoning.encrypted", "data": "c2VhbA==", "format": "x"}])
    sent = world.send(chat(user("One?"), said("Yes."), user("Two?"), sealed, user("Three?"), said("No."), user("So?")))
    assert "reasoning_details" not in sent.messages[3]
    assert sent.plan.counts.stripped == 1


def test_a12_a_sentinel_on_the_chat_face() -> None:
    """A12: the same for a signature in `extra_content`."""
    world = World(*GEMINI)
    world.answer(chat(user("Look.")), chat_reply(said(None, call("fc-1", "ls", SIGNATURE))))
    step = said(None, call("fc-1", "ls", SKIP))
    sent = world.send(chat(user("Look."), step, result_of(step)))
    assert sent.messages[1]["tool_calls"] == [call("fc-1", "ls", SIGNATURE)]


URL_SAFE = SIGNATURE.translate(str.maketrans("+/", "-_"))


@pytest.mark.parametrize("form", [URL_SAFE, URL_SAFE.rstrip("="), SIGNATURE.rstrip("=")])
def test_a13_a_re_encoded_signature_is_sent_unchanged(form: str) -> None:
    """A13: Google reads a signature in any base64 alphabet: the request lost nothing and is not changed."""
    world = World(*GEMINI, "gemini_generate")
    ask = gemini_loop(world, runs("ls", SIGNATURE))
    sent = world.send(gemini(ask, model(runs("ls", form)), asked(ran())))
    assert signatures(sent.messages[1]) == [form]
    assert sent.plan.edits == ()


@pytest.mark.parametrize("form", [SIGNATURE, URL_SAFE])
def test_a13_a_foreign_signature_is_known_in_any_form(form: str) -> None:
    """A13: the signature of another account is recognised in another alphabet."""
    world = World(*GEMINI, "gemini_generate")
    ask = gemini_loop(world, runs("ls", SIGNATURE))
    sent = world.send(gemini(ask, model(runs("ls", form)), asked(ran())), account="account-2")
    assert signatures(sent.messages[1]) == [SKIP]


@pytest.mark.parametrize("name", ["claude-opus-4-6", "claude-opus-5-5"])
def test_a14_signed_thinking_without_text_comes_back(name: str) -> None:
    """A14: only the signature counts: a block with empty text is kept where it is and restored where it is lost."""
    world = World("anthropic", name, "anthropic_messages")
    ask, turn = user("How many?"), says(thinking("", "EsigEmpty"), words("Three."))
    world.answer(claude(ask), claude_reply(*turn["content"]))
    kept = world.send(claude(ask, turn, user("Sure?")))
    assert kept.plan.edits == ()
    assert world.send(claude(ask, says(words("Three.")), user("Sure?"))).body == kept.body


def sse(*events: Json) -> bytes:
    return b"".join(f"event: {e['type']}\ndata: {json_of(e)}\n\n".encode() for e in events)


def json_of(event: Json) -> str:
    return json.dumps(event)


CUT = sse(
    {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], "model": "m"}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Looking."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "thinking_delta", "thinking": "Now li"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "signature_delta", "signature": "EsigHal"}},
)


def continued_after_cut(*blocks: Json) -> Sent:
    world = World("anthropic", "claude-opus-4-6", "anthropic_messages")
    world.answer(claude(user("Look.")), CUT)
    return world.send(claude(user("Look."), says(*blocks), user("Go on.")))


def test_a15_a_signature_exists_only_when_its_block_has_ended() -> None:
    """A15: of a stream that was cut inside a thinking block, no signature is ever restored."""
    sent = continued_after_cut(words("Looking."))
    assert kinds(sent.messages[1]) == ["text"]


def test_a15_half_a_signature_from_the_client_is_dropped() -> None:
    """A15: half a signature kept after an abort would be refused forever; it is removed and reported."""
    sent = continued_after_cut(words("Looking."), thinking("Now li", "EsigHal"))
    assert kinds(sent.messages[1]) == ["text"]
    assert sent.plan.counts.stripped == 1
    assert sent.plan.findings
