"""Well-behaved clients: six turns with tools against every face, whole and streamed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sim.faces import CASES, Case, Dialogue, converse, decoded, streamed, verdicts_of
from thoughtline import providers
from thoughtline.values.items import ToolCall, reasoning_of, seal_of

SIX_TURNS = """How is the weather? {mark}
script:
think: Two cities, so two calls at once.
call: weather {{"city": "Paris"}}
call: weather {{"city": "Zürich"}}
---
think: One more, to compare.
say: Let me look at a third.
call: weather {{"city": "Rome"}}
---
think: Now I can answer.
say: Paris is warm, “Zürich” is mild.
---
think: The user asks again.
call: weather {{"city": "Oslo"}}
---
no-think
call: weather {{"city": "Bergen"}}
---
long 900
say: It is cold in the north.
"""

NO_REASONING = ("openai", "openai_chat")


def parts_of(reply: Any) -> Any:
    """What a reply says, without the numbers that differ from one answer to the next."""
    items = reply.candidates[0].turn.items
    return [(type(item).__name__, getattr(item, "text", getattr(item, "arguments", ""))) for item in items]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "streamed"])
def test_six_turns_with_tools(case: Case, is_streaming: bool) -> None:
    """A client that keeps what it got is never refused, and its reasoning is seen to come back whole."""
    dialogue = Dialogue(case, SIX_TURNS.format(mark=f"{case.id} {is_streaming}"))
    for turn in range(6):
        whole = dialogue.ask(is_streaming=is_streaming)
        if turn < 5:
            dialogue.go_on(whole)
    verdicts = verdicts_of(dialogue)
    assert len(verdicts) == 5
    has_reasoning = (case.simulator, case.format) != NO_REASONING
    assert set(verdicts) <= ({"whole", "none"} if has_reasoning else {"none"}), verdicts
    if has_reasoning:
        assert verdicts.count("whole") >= 3


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_product_reads_every_answer(case: Case) -> None:
    """A stream folds into what the whole answer says, calls, seals and all; and the answer has reasoning to keep."""
    opening = SIX_TURNS.format(mark=f"reads {case.id}")
    whole = decoded(case, Dialogue(case, opening).post().content)
    stream = streamed(case, Dialogue(case, opening).post(is_streaming=True).content)
    assert whole.error is None
    assert parts_of(whole) == parts_of(stream)
    assert whole.candidates[0].finish == stream.candidates[0].finish
    items = stream.candidates[0].turn.items
    assert [item.name for item in items if isinstance(item, ToolCall)] == ["weather", "weather"]
    if (case.simulator, case.format) != NO_REASONING:
        assert reasoning_of(items) or any(seal_of(item) for item in items)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_without_a_script_it_is_a_small_agent(case: Case) -> None:
    """It calls the first tool with arguments that fit, and answers when it has the result."""
    dialogue = Dialogue(case, f"What is the weather like? {case.id}")
    first = dialogue.ask()
    assert [call.name for call in dialogue.wire.calls(first)] == ["weather"]
    dialogue.go_on(first)
    assert not dialogue.wire.calls(dialogue.ask())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "streamed"])
def test_a_turn_that_ends_at_the_limit(case: Case, is_streaming: bool) -> None:
    """`stop: length`, in each provider's own word."""
    dialogue = Dialogue(case, f"limit {is_streaming}\nscript:\nthink: a\nsay: b\nstop: length")
    content = dialogue.post(is_streaming=is_streaming).content
    reply = streamed(case, content) if is_streaming else decoded(case, content)
    finish = reply.candidates[0].finish
    assert finish is not None
    assert finish.reason == "length"


SIGNED = [case for case in CASES if case.simulator == "anthropic" or "bedrock_converse-us.anthropic" in case.id]


@pytest.mark.parametrize("case", SIGNED, ids=lambda case: case.id)
@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "streamed"])
def test_signed_blocks_that_show_nothing(case: Case, is_streaming: bool) -> None:
    """`think:` without text is a block with a signature and no words, and goes back as one."""
    opening = f"empty {is_streaming}\nscript:\nthink:\nredacted\nredacted\ncall: weather {{}}\n---\nsay: b"
    dialogue = Dialogue(case, opening)
    dialogue.go_on(dialogue.ask(is_streaming=is_streaming))
    assert dialogue.post().status_code == 200
    assert verdicts_of(dialogue) == ["whole"]


WITHOUT_IDS = [case for case in CASES if case.format in ("gemini_generate", "ollama_chat")]


@pytest.mark.parametrize("case", WITHOUT_IDS, ids=lambda case: case.id)
def test_calls_without_ids(case: Case) -> None:
    """`no-ids`, where a wire lets a call have none: the conversation goes on all the same."""
    dialogue = Dialogue(case, "ids\nscript:\nthink: a\ncall: weather {}\nno-ids\n---\nsay: b")
    whole = dialogue.ask()
    assert [call.id for call in dialogue.wire.calls(whole)] == [""]
    dialogue.go_on(whole)
    assert dialogue.post().status_code == 200


def test_kimis_call_ids_collide() -> None:
    """Two turns, two calls, one id: a client that takes it for a key is wrong."""
    case = next(case for case in CASES if case.simulator == "kimi" and case.format == "openai_chat")
    dialogue = Dialogue(case, SIX_TURNS.format(mark="collide"))
    first = dialogue.ask()
    dialogue.go_on(first)
    second = dialogue.ask()
    assert [call.id for call in dialogue.wire.calls(first)] == ["functions.weather:0", "functions.weather:1"]
    assert [call.id for call in dialogue.wire.calls(second)] == ["functions.weather:0"]


R1 = Case("deepseek-r1", "openai_chat", "/chat/completions", "deepseek-reasoner", providers.DEEPSEEK)
NOVA = converse("us.amazon.nova-2-lite", providers.BEDROCK_PLAIN, {"reasoningConfig": {"type": "enabled"}})


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", [R1, NOVA], ids=lambda case: case.id)
def test_where_reasoning_is_forbidden(case: Case, is_streaming: bool) -> None:
    """A client that keeps its reasoning to itself goes six turns; the simulator knows that it is gone."""
    dialogue = Dialogue(case, SIX_TURNS.format(mark=f"stripped {case.id} {is_streaming}"))
    for turn in range(6):
        whole = dialogue.ask(is_streaming=is_streaming)
        said_last = dialogue.history[-1]
        said_last.pop("reasoning_content", None)
        if isinstance(said_last["content"], list):
            said_last["content"] = [block for block in said_last["content"] if "reasoningContent" not in block]
        if turn < 5:
            dialogue.go_on(whole)
    assert verdicts_of(dialogue) == ["missing", "missing", "missing", "missing", "none"]
