"""The rule of identity: one test for each row of the table in `replay/matching.py`, named after it."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest

from tests.replay.dialogues import (
    Json,
    Sent,
    World,
    asked,
    call,
    chat,
    chat_reply,
    gemini,
    gemini_reply,
    model,
    ran,
    result,
    runs,
    said,
    user,
)
from thoughtline.replay import matching

THOUGHT = "The folder knows."
LONG = "three files and a folder " * 12
UNIQUE = "call_9fQ2mZx81LkPq7Rt"


def world() -> World:
    return World("deepseek", "deepseek-v4-pro")


def system(text: str) -> Json:
    return {"role": "system", "content": text}


def learn(at: World, prompt: str = "Be brief.", name: str = "call_1", thought: str = THOUGHT, **how: Any) -> None:
    """A model calls `ls`, and its thought is stored."""
    members = how.pop("members", {})
    at.answer(
        chat(system(prompt), user("Look."), **members), chat_reply(said(None, call(name), reasoning=thought)), **how
    )


def again(at: World, prompt: str = "Be brief.", name: str = "call_1", command: str = "ls", **how: Any) -> Sent:
    """The client sends the step again, without its thought."""
    members = how.pop("members", {})
    step = (said(None, call(name, command)), result(name))
    return at.send(chat(system(prompt), user("Look."), *step, **members), **how)


def thought_in(sent: Sent) -> bool:
    return THOUGHT in str(sent.body)


def test_same() -> None:
    learn(at := world())
    assert thought_in(again(at))


def test_other_user() -> None:
    """Not even by an id that is unique."""
    learn(at := world(), name=UNIQUE, members={"user": "anna"})
    assert thought_in(again(at, name=UNIQUE, members={"user": "anna"}))
    refused = again(at, name=UNIQUE, members={"user": "bert"})
    assert not thought_in(refused)
    assert "other-user" in refused.rules


def test_other_frame() -> None:
    learn(at := world())
    refused = again(at, prompt="Be long.")
    assert not thought_in(refused)
    assert "other-frame" in refused.rules


def test_unique_id() -> None:
    learn(at := world(), name=UNIQUE)
    assert thought_in(again(at, prompt="Be long.", name=UNIQUE))


@pytest.mark.parametrize("kept", [True, False])
def test_seal(kept: bool) -> None:
    """The client kept the first step's signature: that is proof, and the second step follows it."""
    at = World("gemini", "gemini-3-pro-preview", "gemini_generate")
    brief, long = ({"systemInstruction": {"parts": [{"text": text}]}} for text in ("Be brief.", "Be long."))
    first, second = asked({"text": "Look."}), asked(ran("a b c"))
    at.answer(gemini(first) | brief, gemini_reply(runs("ls", "c2VhbCBvZiB0aGUgZmlyc3Q=")))
    step = model(runs("ls", "c2VhbCBvZiB0aGUgZmlyc3Q=" if kept else None))
    at.answer(gemini(first, step, second) | brief, gemini_reply(runs("pwd", "c2VhbCBvZiB0aGUgc2Vjb25k")))
    after = gemini(first, step, second, model(runs("pwd")), asked(ran("/"))) | long
    sent = at.send(after)
    assert ("c2VhbCBvZiB0aGUgc2Vjb25k" in str(sent.body)) == kept


def test_session() -> None:
    learn(at := world(), session="42")
    assert thought_in(again(at, prompt="Be long.", session="42"))
    assert not thought_in(again(at, prompt="Be long.", session="43"))


@pytest.mark.parametrize("text", [LONG, "three files"])
def test_long_run(text: str) -> None:
    """From the third turn on, and only by results that are long enough."""
    at, before, after = world(), [user("It is 14:03. Look.")], [user("It was about two. Look.")]
    for number in range(1, 5):
        name, thought = f"call_{number}", f"thought {number}"
        step = said(None, call(name, f"ls {number}"), reasoning=thought)
        at.answer(chat(*before), chat_reply(step))
        before += [step, result(name, f"{text} {number}")]
        after += [said(None, call(name, f"ls {number}")), result(name, f"{text} {number}")]
    sent = str(at.send(chat(*after)).body)
    assert ("thought 4" in sent) == (text is LONG)


def test_ranked() -> None:
    """Both are right; the one of the same model is chosen."""
    at = world()
    learn(at, thought=THOUGHT)
    learn(at.elsewhere("deepseek", "deepseek-v5"), thought="The newer one.")
    assert thought_in(again(at))
    assert "The newer one." in str(again(at, model="deepseek-v5").body)


def test_several() -> None:
    at = world()
    for thought in (THOUGHT, "Another one."):
        learn(at, thought=thought)
    sent = again(at)
    assert not thought_in(sent)
    assert "ambiguous" in sent.rules


def test_different() -> None:
    learn(at := world())
    assert not thought_in(again(at, command="pwd"))


def test_each_row_has_a_test() -> None:
    """And no test is of a row that there is not."""
    table = (matching.__doc__ or "").partition("found\n")[2].partition("\n\n")[0]
    rows = set(re.findall(r"^    ([a-z-]+) ", table, re.MULTILINE))
    tests = {
        name.removeprefix("test_").replace("_", "-") for name in vars(sys.modules[__name__]) if name.startswith("test_")
    }
    assert len(rows) == 10
    assert tests - {"each-row-has-a-test"} == rows
