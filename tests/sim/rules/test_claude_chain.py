"""Bound thinking: the chain of blocks, the kinds of account, and who may read what."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sim.faces import Body, Case, Dialogue, invoke
from tests.sim.violations import OPENING, answered, called, case_of, other_account

BOUND = case_of("anthropic", "anthropic_messages", "bound")
BETA = "thinking-binding-controls-2026-08-01"
SENTENCE = (
    "messages.{at}: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove "
    'the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
REQUIRES = f" That setting requires the `{BETA}` value in the `anthropic-beta` header."
MISSING = " A thinking block that stood before this block is missing or misplaced."
SCRIPT = "{mark}\nscript:\n" + "\n---\n".join(f"think: thought {turn}\nsay: answer {turn}" for turn in range(5))


def case(model: str = "claude-opus-5-5", profile: str = "bound") -> Case:
    return BOUND._replace(model=model, profile=profile)


def conversation(turns: int, mark: str, at: Case = BOUND, **extra: Any) -> Dialogue:
    """A client that keeps everything, after some turns of the model and with the user's next words."""
    dialogue = Dialogue(at, SCRIPT.format(mark=mark), **extra)
    for _ in range(turns):
        dialogue.go_on(dialogue.ask())
    return dialogue


def asking(dialogue: Dialogue, behaviour: str | None) -> Dialogue:
    """The beta, and what is to become of a broken chain."""
    dialogue.headers["anthropic-beta"] = BETA
    if behaviour:
        dialogue.body["thinking"] = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": behaviour}}
    return dialogue


def refusal(dialogue: Dialogue) -> str:
    response = dialogue.post()
    assert response.status_code == 400, response.text
    return str(response.json()["error"]["message"])


def transformations(dialogue: Dialogue, *, is_streaming: bool = False) -> Any:
    response = dialogue.post(is_streaming=is_streaming)
    assert response.status_code == 200, response.text
    return response.json().get("input_transformations")


def without_thinking(dialogue: Dialogue, *places: int) -> Dialogue:
    for at in places:
        dialogue.history[at]["content"] = [b for b in dialogue.history[at]["content"] if b["type"] != "thinking"]
    return dialogue


@pytest.mark.parametrize("gone", [(), (1,), (1, 3), (5,), (3, 5), (1, 3, 5)])
def test_a_run_of_the_chain_is_good(gone: tuple[int, ...]) -> None:
    """Blocks may be left out from the start, from the end, or all."""
    assert without_thinking(conversation(3, f"run {gone}"), *gone).post().status_code == 200


def test_a_hole_ends_the_chain() -> None:
    """A block left out from the middle: the next one is named."""
    dialogue = without_thinking(conversation(3, "hole"), 3)
    assert refusal(dialogue) == SENTENCE.format(at="5.content.0") + REQUIRES + MISSING


def test_a_hole_that_was_always_there_is_none() -> None:
    """A turn that never came back leaves no hole for blocks made afterwards."""
    dialogue = without_thinking(conversation(2, "never sent"), 3)
    dialogue.go_on(dialogue.ask())
    assert dialogue.post().status_code == 200


def test_a_block_put_back_late() -> None:
    """What was made while a block was gone is not good behind it."""
    dialogue = conversation(2, "late")
    whole = dialogue.history[3]["content"]
    without_thinking(dialogue, 3)
    dialogue.go_on(dialogue.ask())
    dialogue.history[3]["content"] = whole
    assert refusal(dialogue) == SENTENCE.format(at="5.content.0") + REQUIRES + MISSING


def test_several_blocks_of_one_answer() -> None:
    """Blocks of one answer are links of the chain too."""
    script = "several\nscript:\nthink: a\ncall: weather {}\nthink: b\ncall: weather {}\n---\nthink: c\nsay: d"
    dialogue = Dialogue(BOUND, script)
    for _ in range(2):
        dialogue.go_on(dialogue.ask())
    assert dialogue.post().status_code == 200
    del dialogue.history[1]["content"][2]
    assert refusal(dialogue) == SENTENCE.format(at="3.content.0") + REQUIRES + MISSING


def test_drop_block_ends_with_the_first_bad_one() -> None:
    """The failing block and every later one are dropped, reported and not billed."""
    dialogue = asking(conversation(4, "dropped"), "drop_block")
    billed = dialogue.post().json()["usage"]["input_tokens"]
    assert transformations(dialogue) == []
    without_thinking(dialogue, 3)
    dropped = [
        {"type": "thinking_dropped", "path": f"messages.{at}.content.0", "reason": "prefix_binding_mismatch"}
        for at in (5, 7)
    ]
    assert transformations(dialogue) == dropped
    assert dialogue.post().json()["usage"]["input_tokens"] < billed - 200
    start = dialogue.post(is_streaming=True).text.splitlines()[1]
    assert '"input_transformations":[{"type":"thinking_dropped","path":"messages.5.content.0"' in start


@pytest.mark.parametrize(
    ("profile", "model", "beta", "behaviour", "outcome"),
    [
        ("bound", "claude-opus-5-5", False, "", 400),
        ("bound", "claude-opus-5-5", True, "", 400),
        ("older", "claude-opus-5-5", False, "", None),
        ("older", "claude-opus-5-5", True, "", "thinking_mismatch_allowed"),
        ("older", "claude-opus-5-5", True, "error", 400),
        ("older", "claude-opus-5-5", True, "drop_block", "thinking_dropped"),
        ("older", "claude-fable-5-2", False, "", 400),
        ("older", "claude-mythos-5-1", False, "", 400),
        ("older", "claude-opus-6", False, "", 400),
        ("oauth", "claude-opus-5-5", False, "", None),
        ("oauth", "claude-opus-5-5", True, "", "thinking_dropped"),
        ("bound", "claude-opus-5", True, "error", []),
        ("bound", "claude-sonnet-5", True, "drop_block", []),
    ],
)
def test_accounts(profile: str, model: str, beta: bool, behaviour: str, outcome: Any) -> None:
    """A changed prefix, by account, model and what the request asks for."""
    dialogue = conversation(1, f"{profile} {model} {beta} {behaviour}", case(model, profile))
    dialogue.body["system"] = "Be brief."
    if beta:
        asking(dialogue, behaviour)
    if outcome == 400:
        cause = " The `system` prompt differs from the one this block was created with."
        assert refusal(dialogue) == SENTENCE.format(at="1.content.0") + ("" if beta else REQUIRES) + cause
        return
    found = {"type": outcome, "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}
    assert transformations(dialogue) == ([found] if isinstance(outcome, str) else outcome)


def test_what_older_accounts_are_billed_for() -> None:
    """An older account's stale block reaches the model and is billed; a subscription's is dropped."""
    tokens = {}
    for profile in ("older", "oauth"):
        dialogue = conversation(1, "billing", case(profile=profile))
        dialogue.body["system"] = "Be brief."
        tokens[profile] = dialogue.post().json()["usage"]["input_tokens"]
    assert tokens["oauth"] < tokens["older"] - 50


def test_counting_tokens_checks_the_chain() -> None:
    """The same refusal; no report."""
    dialogue = without_thinking(conversation(3, "count"), 3)
    dialogue.case = dialogue.case._replace(path="/v1/messages/count_tokens")
    assert refusal(dialogue) == SENTENCE.format(at="5.content.0") + REQUIRES + MISSING
    assert set(asking(dialogue, "drop_block").post().json()) == {"input_tokens"}


def test_another_models_blocks_are_dropped() -> None:
    """Without a word, unless the beta is there; on the way back they are read again."""
    dialogue = called(BOUND, "model")
    dialogue.body["model"] = "claude-haiku-5-5"
    assert transformations(dialogue) is None
    assert transformations(asking(dialogue, None)) == [
        {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "model_binding_mismatch"}
    ]
    dialogue.go_on(dialogue.ask())
    dialogue.body["model"] = "claude-opus-5-5"
    assert transformations(dialogue) == []


@pytest.mark.parametrize("model", ["claude-sonnet-5-5", "claude-haiku-5-5"])
def test_blocks_of_another_account(model: str) -> None:
    """Sonnet 5.5's and Haiku 5.5's are dropped; those of others are refused."""
    dialogue = asking(called(case(model), f"account {model}"), None)
    other_account(dialogue)
    assert transformations(dialogue) == [
        {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "organization_binding_mismatch"}
    ]
    opus = called(BOUND, "account")
    other_account(opus)
    assert refusal(opus) == "messages.1.content.0: Invalid `signature` in `thinking` block"


def on_bedrock(profile: str, mark: str, **extra: Any) -> Dialogue:
    at = invoke("us.anthropic.claude-opus-5-5", profile, thinking={"type": "adaptive"}, anthropic_beta=[BETA])
    dialogue = Dialogue(at, OPENING.format(mark=mark), **extra)
    dialogue.go_on(dialogue.ask())
    return dialogue


@pytest.mark.parametrize(("is_bound", "reason"), [(True, "end_user_binding_mismatch"), (False, "")])
def test_end_users_on_bedrock(is_bound: bool, reason: str) -> None:
    """Amazon binds a block to the end user that the request names, unless it opts out."""
    thinking: Body = {"type": "adaptive", "block_binding": {} if is_bound else {"bind_to_end_user": False}}
    dialogue = on_bedrock("bound", f"user {is_bound}", metadata={"user_id": "u-1"}, thinking=thinking)
    assert transformations(dialogue) == []
    dialogue.body["metadata"] = {"user_id": "u-2"}
    found = {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": reason}
    assert transformations(dialogue) == ([found] if reason else [])


def test_the_first_field_on_bedrock() -> None:
    """Bedrock's first page: another name for the field, and the beta alone drops."""
    dialogue = on_bedrock("first-binding", "first")
    dialogue.body["system"] = "Be brief."
    assert [found["type"] for found in transformations(dialogue)] == ["thinking_dropped"]
    dialogue.body["thinking"] = {"type": "adaptive", "block_binding": {"mismatch_behavior": "error"}}
    assert dialogue.post().json() == {
        "message": "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different "
        'conversation. Remove the block, or set `thinking.block_binding.mismatch_behavior` to "drop_block". The '
        "`system` prompt differs from the one this block was created with."
    }


def test_all_three_turns_of_a_tool_round() -> None:
    """A conversation with tools, whole, is taken."""
    assert answered(BOUND, "whole").post().status_code == 200
