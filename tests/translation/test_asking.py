"""What a request asks for beside its conversation: worked out once, and never taken for another's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thoughtline.formats import FORMATS
from thoughtline.replay.detection import resolve
from thoughtline.translation.asking import Target, TranslatedOptions
from thoughtline.translation.requests import options_of
from thoughtline.values.destination import Destination
from thoughtline.values.options import FunctionTool
from thoughtline.values.turns import FormatName

CLAUDE = resolve(Destination("anthropic", "https://upstream.example", "claude-sonnet-4-5", "anthropic_messages"))
TARGET = Target("anthropic_messages", CLAUDE, "claude-sonnet-4-5", is_streaming=False, missing_tools="leave_out")
TOOL = {"type": "function", "name": "look", "parameters": {"type": "object"}}


def translated(format: FormatName = "openai_chat", target: Target = TARGET, **members: Any) -> TranslatedOptions:
    return options_of(json.dumps(members).encode(), FORMATS[format], target)


def test_a_conversation_that_grows_asks_for_the_same() -> None:
    """What was made of the first request is what the next one gets."""
    first = translated(model="m", messages=[{"role": "user", "content": "a"}], temperature=0.5)
    assert translated(model="m", messages=[{"role": "user", "content": "b"}], temperature=0.5) is first


@pytest.mark.parametrize("change", [{"temperature": 0.6}, {"stop": "x"}, {"max_tokens": 9}, {"model": "n"}])
def test_another_member_asks_for_something_else(change: dict[str, Any]) -> None:
    """Each body has what its own members say."""
    members: dict[str, Any] = {"model": "m", "messages": [], "temperature": 0.5}
    first, other = translated(**members), translated(**(members | change))
    assert other is not first
    assert other.read != first.read


def test_another_target_is_asked_otherwise() -> None:
    """Model, contract and stream are part of what is asked."""
    plain = translated(messages=[], model="m")
    assert json.loads(
        translated(target=TARGET._replace(model="claude-opus-4-8"), messages=[], model="m").body
    ) != json.loads(plain.body)
    assert translated(target=TARGET._replace(is_streaming=True), messages=[], model="m").options.is_streaming


def test_tools_that_stand_in_a_conversation_are_its_own() -> None:
    """Codex offers tools by items of `input`: they are not those of a conversation with other items."""
    plain = translated("openai_responses", model="m", input=[{"role": "user", "content": "a"}])
    later = {"type": "additional_tools", "tools": [TOOL]}
    offered = translated("openai_responses", model="m", input=[{"role": "user", "content": "a"}, later])
    assert plain.offered.options.tools == ()
    assert [tool.name for tool in offered.offered.options.tools if isinstance(tool, FunctionTool)] == ["look"]


def test_long_ones_are_not_kept() -> None:
    """What is kept stays small."""
    members: dict[str, Any] = {"model": "m", "messages": [], "user": "u", "metadata": {"long": "x" * 200_000}}
    assert translated(**members) is not translated(**members)
