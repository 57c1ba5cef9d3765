"""Anthropic: thinking altered, moved or minted elsewhere."""

from __future__ import annotations

import pytest

from tests.sim.faces import Body, Dialogue, verdicts_of
from tests.sim.violations import Edit, answered, called, case_of, flipped, other_account

CLASSIC = case_of("anthropic", "anthropic_messages", "classic")
ADAPTIVE = case_of("anthropic", "anthropic_messages", "adaptive")
BOUND = case_of("anthropic", "anthropic_messages", "bound")
DOCS = "https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking"


def refusal(dialogue: Dialogue) -> str:
    """The sentence of an Anthropic error, its envelope checked."""
    response = dialogue.post()
    body = response.json()
    assert response.status_code == 400, body
    assert response.headers["content-type"] == "application/json"
    assert list(body) == ["type", "error", "request_id"]
    assert body["type"] == "error"
    assert body["error"]["type"] == "invalid_request_error"
    assert body["request_id"].startswith("req_")
    return str(body["error"]["message"])


def block(dialogue: Dialogue, at: int = 1) -> Body:
    first: Body = dialogue.history[at]["content"][0]
    return first


def test_no_thinking_before_the_call() -> None:
    """(d1) Thinking is on and the turn that called does not start with it."""
    dialogue = called(CLASSIC, "d1")
    del dialogue.history[1]["content"][0]
    assert refusal(dialogue) == (
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. "
        "When `thinking` is "
        "enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost "
        "set of `tool_use` "
        "and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this "
        f"requirement, disable `thinking`. Please consult our documentation at {DOCS}"
    )


@pytest.mark.parametrize(
    ("thread", "beta", "status"),
    [({"type": "create"}, False, 400), ({"type": "create"}, True, 200), ({"type": "continue"}, True, 404)],
)
def test_threads(thread: Body, beta: bool, status: int) -> None:
    """Unknown without the beta; with it one may begin, and none is found again."""
    dialogue = called(CLASSIC, "threads")
    dialogue.body["thread"] = thread
    if beta:
        dialogue.headers["anthropic-beta"] = "message-threads-2026-08-12"
    response = dialogue.post()
    assert response.status_code == status
    if status == 404:
        assert response.json()["error"]["details"] == {"error_code": "thread_not_found"}


def test_older_turns_may_lose_theirs() -> None:
    """Thinking of earlier turns is optional."""
    dialogue = answered(CLASSIC, "older")
    for at in (1, 3):
        del dialogue.history[at]["content"][0]
    assert dialogue.post().status_code == 200
    assert verdicts_of(dialogue) == ["missing", "missing"]


def test_adaptive_turns_may_have_none() -> None:
    """The rule about the first block is one of `enabled`."""
    dialogue = called(ADAPTIVE, "adaptive")
    del dialogue.history[1]["content"][0]
    assert dialogue.post().status_code == 200


def _trim(dialogue: Dialogue) -> None:
    block(dialogue)["thinking"] = block(dialogue)["thinking"].rstrip(".")


def _mark(dialogue: Dialogue) -> None:
    block(dialogue)["cache_control"] = {"type": "ephemeral"}


def _after_the_call(dialogue: Dialogue) -> None:
    content = dialogue.history[1]["content"]
    content[0], content[1] = content[1], content[0]


@pytest.mark.parametrize(("edit", "at"), [(_trim, 0), (_mark, 0), (_after_the_call, 1)])
def test_latest_turn_modified(edit: Edit, at: int) -> None:
    """(d2) Trimmed, marked for the cache, moved."""
    dialogue = called(CLASSIC, f"d2 {edit.__name__}")
    edit(dialogue)
    assert refusal(dialogue) == (
        f"messages.1.content.{at}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
        "modified. These blocks must remain as they were in the original response."
    )


INTERLEAVED = """{mark}
script:
think: First this.
call: weather {{"city": "Paris"}}
think: Then that.
redacted
call: weather {{"city": "Rome"}}
---
say: Done.
"""


@pytest.mark.parametrize("kept", [(0, 1, 3, 4), (0, 1, 3, 2, 4), (2, 1, 0, 3, 4)], ids=["removed", "swapped", "traded"])
def test_one_of_several_blocks_gone_or_moved(kept: tuple[int, ...]) -> None:
    """(d2) A turn's blocks go back all together and in their order."""
    dialogue = Dialogue(CLASSIC, INTERLEAVED.format(mark=f"several {kept}"))
    dialogue.go_on(dialogue.ask())
    content = dialogue.history[1]["content"]
    dialogue.history[1]["content"] = [content[place] for place in kept]
    assert "cannot be modified" in refusal(dialogue)


def test_one_answer_in_two_messages() -> None:
    """(d2) An answer that is split over several assistant messages is modified."""
    dialogue = Dialogue(CLASSIC, INTERLEAVED.format(mark="split"))
    dialogue.go_on(dialogue.ask())
    content = dialogue.history[1]["content"]
    halves = [{"role": "assistant", "content": content[:2]}, {"role": "assistant", "content": content[2:]}]
    dialogue.history[1:2] = halves
    assert refusal(dialogue).startswith("messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest")


def test_interleaved_and_redacted_pass() -> None:
    """Unchanged, all of it is taken."""
    dialogue = Dialogue(CLASSIC, INTERLEAVED.format(mark="fine"))
    dialogue.go_on(dialogue.ask())
    assert [b["type"] for b in dialogue.history[1]["content"]] == [
        "thinking",
        "tool_use",
        "thinking",
        "redacted_thinking",
        "tool_use",
    ]
    assert dialogue.post().status_code == 200


def _flip(dialogue: Dialogue) -> None:
    block(dialogue)["signature"] = flipped(block(dialogue)["signature"])


def _cut(dialogue: Dialogue) -> None:
    block(dialogue)["signature"] = block(dialogue)["signature"][:-40]


def _empty(dialogue: Dialogue) -> None:
    block(dialogue)["signature"] = ""


def _other_model(dialogue: Dialogue) -> None:
    dialogue.body["model"] = "claude-opus-4-5"


@pytest.mark.parametrize("edit", [_flip, _cut, _empty, _other_model, other_account])
def test_signature_not_ours(edit: Edit) -> None:
    """(d3) Altered, cut, empty, of another model, of another account."""
    dialogue = called(CLASSIC, f"d3 {edit.__name__}")
    edit(dialogue)
    assert refusal(dialogue) == "messages.1.content.0: Invalid `signature` in `thinking` block"


def test_text_of_an_older_turn_changed() -> None:
    """(d3) A good signature under a text that is not its own; in the latest turn that is (d2)."""
    dialogue = answered(CLASSIC, "foreign text")
    block(dialogue)["thinking"] = "I never thought that."
    assert refusal(dialogue) == "messages.1.content.0: Invalid `signature` in `thinking` block"


def test_redacted_not_ours() -> None:
    """(d4)"""
    dialogue = Dialogue(CLASSIC, "d4\nscript:\nredacted\ncall: weather {}\n---\nsay: done")
    dialogue.go_on(dialogue.ask())
    block(dialogue)["data"] = flipped(block(dialogue)["data"])
    assert refusal(dialogue) == "messages.1.content.0: Invalid `data` in `redacted_thinking` block"


def test_the_prompt_that_redacts() -> None:
    """The API's own test prompt turns thinking into redacted blocks."""
    prompt = "ANTHROPIC_MAGIC_STRING_TRIGGER_REDACTED_THINKING_"
    prompt += "46C9A13E193C177646C7398A98432ECCCE4C1253D5E2D82641AC0E52CC2876CB"
    assert Dialogue(CLASSIC, prompt).ask()["content"][0]["type"] == "redacted_thinking"


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        ("null", "messages.1.content.0.thinking.signature.str: Input should be a valid string"),
        ("missing", "messages.1.content.0.thinking.signature: Field required"),
    ],
)
def test_signature_not_given(edit: str, sentence: str) -> None:
    """(d5)"""
    dialogue = called(CLASSIC, f"d5 {edit}")
    if edit == "null":
        block(dialogue)["signature"] = None
    else:
        del block(dialogue)["signature"]
    assert refusal(dialogue) == sentence


def test_thinking_while_it_is_off() -> None:
    """(d6)"""
    dialogue = called(CLASSIC, "d6")
    dialogue.body["thinking"] = {"type": "disabled"}
    assert refusal(dialogue) == (
        "messages.1.content.0: When thinking is disabled, an `assistant` message in the final position cannot contain "
        "`thinking`. To use thinking blocks, enable `thinking` in your request."
    )


def test_thinking_before_another_models_turn_while_it_is_off() -> None:
    """(d6) All since the last user message is the final position."""
    dialogue = called(CLASSIC, "d6 earlier")
    other = {"type": "tool_use", "id": "toolu_01Other", "name": "weather", "input": {"city": "Rome"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_01Other", "content": "warm"}
    dialogue.history.extend([{"role": "assistant", "content": [other]}, {"role": "user", "content": [result]}])
    dialogue.body["thinking"] = {"type": "disabled"}
    assert refusal(dialogue).startswith("messages.1.content.0: When thinking is disabled, an `assistant` message in")


def test_thinking_last() -> None:
    """(d7)"""
    dialogue = answered(CLASSIC, "d7")
    dialogue.history[3]["content"] = dialogue.history[3]["content"][:1]
    assert refusal(dialogue) == "messages.3: The final block in an assistant message cannot be `thinking`."


def test_counting_tokens_checks_too() -> None:
    """The same rules, another answer."""
    case = CLASSIC._replace(path="/v1/messages/count_tokens")
    dialogue = called(CLASSIC, "count")
    dialogue.case = case
    assert set(dialogue.post().json()) == {"input_tokens"}
    _flip(dialogue)
    assert refusal(dialogue) == "messages.1.content.0: Invalid `signature` in `thinking` block"


def test_omitted_text_is_not_compared() -> None:
    """A block that showed nothing may come back with any text."""
    dialogue = called(ADAPTIVE, "omitted")
    assert block(dialogue)["thinking"] == ""
    block(dialogue)["thinking"] = "whatever"
    assert dialogue.post().status_code == 200
    assert verdicts_of(dialogue) == ["altered"]


def test_text_between_calls_comes_as_thinking() -> None:
    """Opus 5.5."""
    dialogue = Dialogue(BOUND, "notes\nscript:\nthink: a\nsay: I will look.\ncall: weather {}")
    assert [b["type"] for b in dialogue.ask()["content"]] == ["thinking", "thinking", "tool_use"]


def test_from_opus_5_on_the_latest_turn_may_change() -> None:
    """Text edited, thinking moved behind the call or left out: measured on Opus 5.5, Sonnet 5.5 and Opus 5."""
    for edit in (_trim, _after_the_call, lambda dialogue: dialogue.history[1]["content"].pop(0)):
        dialogue = called(BOUND, f"adaptive edits {edit}", thinking={"type": "adaptive", "display": "summarized"})
        edit(dialogue)
        assert dialogue.post().status_code == 200


@pytest.mark.parametrize("behaviour", ["", "drop_block"])
def test_a_changed_signature_is_never_dropped(behaviour: str) -> None:
    """One character is a 400, under `drop_block` too."""
    dialogue = called(BOUND, f"tampered {behaviour}")
    if behaviour:
        dialogue.headers["anthropic-beta"] = "thinking-binding-controls-2026-08-01"
        binding = {"prefix_mismatch_behavior": behaviour}
        dialogue.body["thinking"] = {"type": "adaptive", "block_binding": binding}
    _flip(dialogue)
    assert refusal(dialogue) == "messages.1.content.0: Invalid `signature` in `thinking` block"
