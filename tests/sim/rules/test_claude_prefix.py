"""What stands before a thinking block: which edits break it, and the sentence that names the place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.sim.faces import Body, Dialogue
from tests.sim.rules.test_claude_chain import BOUND, REQUIRES, SENTENCE, refusal
from tests.sim.violations import answered

Edit = Callable[[Dialogue], None]
CONTENT = " Content before this block differs from when it was created, first at `messages.{at}`."
TOOLS = " The `tools` list differs from the one this block was created with."
SYSTEM = " The `system` prompt differs from the one this block was created with."


def setting(name: str, value: object) -> Edit:
    return lambda dialogue: dialogue.body.update({name: value})


def _first_words(dialogue: Dialogue) -> None:
    dialogue.history[0]["content"] += " "


def _result_shortened(dialogue: Dialogue) -> None:
    dialogue.history[2]["content"][0]["content"] = "21"


def _input_changed(dialogue: Dialogue) -> None:
    dialogue.history[1]["content"][1]["input"] = {"city": "Rome"}


def _block_added(dialogue: Dialogue) -> None:
    dialogue.history[2]["content"].append({"type": "text", "text": "<system-reminder>now</system-reminder>"})


def _more_tools(dialogue: Dialogue) -> None:
    dialogue.body["tools"].append({"name": "more", "input_schema": {"type": "object"}})


def _description(dialogue: Dialogue) -> None:
    dialogue.body["tools"][0]["description"] = "The weather of a city."


@pytest.mark.parametrize(
    ("edit", "at", "cause"),
    [
        (setting("system", "Be brief."), 1, SYSTEM),
        (_more_tools, 1, TOOLS),
        (_description, 1, TOOLS),
        (_first_words, 1, CONTENT.format(at="0.content.0")),
        (_input_changed, 3, CONTENT.format(at="1.content.1")),
        (_result_shortened, 3, CONTENT.format(at="2.content.0")),
        (_block_added, 3, CONTENT.format(at="2.content.1")),
    ],
)
def test_edits_that_break_it(edit: Edit, at: int, cause: str) -> None:
    """The earliest block behind the edit is named, and where the edit is."""
    dialogue = answered(BOUND, f"{at} {cause} {edit}")
    edit(dialogue)
    assert refusal(dialogue) == SENTENCE.format(at=f"{at}.content.0") + REQUIRES + cause


def _markers(dialogue: Dialogue) -> None:
    text = dialogue.history[0]["content"]
    dialogue.history[0]["content"] = [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]
    dialogue.body["tools"][0]["cache_control"] = {"type": "ephemeral"}


def _deferred(dialogue: Dialogue) -> None:
    dialogue.body["tools"].append({"name": "later", "input_schema": {"type": "object"}, "defer_loading": True})


def _keys_reordered(dialogue: Dialogue) -> None:
    dialogue.body["tools"] = [dict(reversed(tool.items())) for tool in dialogue.body["tools"]]


def _system_appended(dialogue: Dialogue) -> None:
    dialogue.history.append({"role": "system", "content": "The user is in a hurry."})


def _parameters(dialogue: Dialogue) -> None:
    dialogue.body.update(max_tokens=4000, output_config={"effort": "low"}, metadata={"user_id": "u"})
    dialogue.body["thinking"] = {"type": "adaptive", "display": "summarized"}
    dialogue.body["tool_choice"] = {"type": "none"}


def _user_message_split(dialogue: Dialogue) -> None:
    dialogue.history.insert(3, {"role": "user", "content": [dialogue.history[2]["content"].pop()]})
    dialogue.history[2]["content"] = dialogue.history[2]["content"] or dialogue.history.pop(3)["content"]


@pytest.mark.parametrize(
    "edit", [_markers, _deferred, _keys_reordered, _system_appended, _parameters, _user_message_split]
)
def test_edits_that_do_not(edit: Edit) -> None:
    """Markers, deferred tools, key order, what is appended, parameters outside the conversation."""
    dialogue = answered(BOUND, f"fine {edit.__name__}")
    edit(dialogue)
    assert dialogue.post().status_code == 200


def test_system_as_text_or_as_blocks() -> None:
    """The same prompt in either form."""
    dialogue = Dialogue(BOUND, "either", system="Be kind.")
    dialogue.go_on(dialogue.ask())
    dialogue.body["system"] = [{"type": "text", "text": "Be kind."}]
    assert dialogue.post().status_code == 200


@pytest.mark.parametrize(("place", "status"), [(0, 200), (1, 400)])
def test_attribution_of_claude_code(place: int, status: int) -> None:
    """Anthropic takes the line away where it is the first entry of `system`, and reads it anywhere else."""

    def system(version: str) -> list[Body]:
        texts = ["You are a tool."]
        texts.insert(place, f"x-anthropic-billing-header: cc_version={version};")
        return [{"type": "text", "text": text} for text in texts]

    dialogue = Dialogue(BOUND, f"attribution {place}", system=system("2.1.1"))
    dialogue.go_on(dialogue.ask())
    dialogue.body["system"] = system("2.1.2")
    assert dialogue.post().status_code == status


def test_a_deferred_tool_counts_once_it_is_referred_to() -> None:
    """A changed description breaks what came after the reference, and nothing before it."""
    later = {"name": "later", "input_schema": {"type": "object"}, "defer_loading": True}
    script = "deferred\nscript:\nthink: a\ncall: later {}\n---\nthink: b\nsay: c"
    dialogue = Dialogue(BOUND, script)
    dialogue.body["tools"].append(later)
    for _ in range(2):
        dialogue.go_on(dialogue.ask())
    dialogue.body["tools"][1] = {**later, "description": "Changed."}
    assert refusal(dialogue).startswith(SENTENCE.format(at="3.content.0"))
