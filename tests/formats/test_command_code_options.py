"""What a request to Command Code asks for, and results and pictures in it, in both directions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from thoughtline.formats import FORMATS
from thoughtline.formats.command_code_generate import options
from thoughtline.providers import COMMAND_CODE
from thoughtline.values.items import Text, ToolResult, Unknown
from thoughtline.values.options import FunctionTool, JsonPart, Media, Options, ResultContent, Thinking, ToolChoice
from thoughtline.values.turns import Transcript, Turn

SCHEMA = {"type": "object", "properties": {}}
LOOK = FunctionTool("look", "Looks.", Raw(json.dumps(SCHEMA).encode()))


def written(asked: Options) -> dict[str, Any]:
    members = options.encode_options(asked, COMMAND_CODE).members
    return {name: json.loads(value) for name, value in members}


def test_a_new_request_has_all_that_the_envelope_must_have() -> None:
    """The same for every request: a prompt that is the same can be cached."""
    wire = FORMATS["command_code_generate"]
    draft = Transcript(wire.name, (), b'{"model":"m"}').with_turns((Turn("user", (Text("Hi."),)),))
    body = json.loads(wire.bodies.encode_request(draft, wire.dialect))
    assert set(body["config"]) == {
        *("workingDir", "date", "environment", "structure", "isGitRepo"),
        *("currentBranch", "mainBranch", "gitStatus", "recentCommits"),
    }
    assert body["memory"] == ""
    assert body["params"]["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Hi."}]}]


def test_every_request_streams_and_asks_for_no_more_than_is_given() -> None:
    """Whatever the client asked for."""
    assert written(Options("m", max_tokens=500_000)) == {"model": "m", "stream": True, "max_tokens": 200_000}


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, None),
        (ToolChoice("auto"), {"type": "auto"}),
        (ToolChoice("required"), {"type": "any"}),
        (ToolChoice("named", "look"), {"type": "tool", "name": "look"}),
    ],
)
def test_which_tool(choice: ToolChoice | None, expected: Any) -> None:
    """There and back."""
    made = written(Options("m", tools=(LOOK,), tool_choice=choice))
    assert made.get("tool_choice") == expected
    assert made["tools"] == [{"name": "look", "description": "Looks.", "input_schema": SCHEMA}]
    read = options.decode_options(json.dumps(made).encode())
    [tool] = read.options.tools
    assert isinstance(tool, FunctionTool)
    assert (tool.name, json.loads(bytes(tool.parameters or b""))) == ("look", SCHEMA)
    assert (read.options.tool_choice, read.leftovers) == (choice, ())


def test_a_model_that_may_call_nothing_is_offered_nothing() -> None:
    """There is no word for it."""
    assert "tools" not in written(Options("m", tools=(LOOK,), tool_choice=ToolChoice("none")))


def test_effort_is_read() -> None:
    """It switches thinking."""
    read = options.decode_options(b'{"model":"m","reasoning_effort":"xhigh","later":1}')
    assert read.options.thinking == Thinking("on", "xhigh", None, True)
    assert read.leftovers == ("/later",)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ('"sunny"', ResultContent(("sunny",))),
        ('{"type":"error-text","value":"no"}', ResultContent(("no",), True)),
        ('{"type":"json","value":{"a":1}}', ResultContent((JsonPart(Raw(b'{"a":1}')),))),
        ('{"type":"content","value":[{"type":"text","text":"a"}]}', ResultContent(("a",))),
        ('{"odd":1}', ResultContent(('{"odd":1}',))),
    ],
)
def test_results(output: str, expected: ResultContent) -> None:
    """In every shape that the AI SDK has."""
    assert options.decode_result(ToolResult(Raw(output.encode()), "c1", "look")) == expected


def test_results_are_written_as_text_with_the_name_of_their_tool() -> None:
    """A picture goes next to it."""
    picture = Media("image", "image/png", data="AA==")
    made = options.encode_result(ResultContent(("a", picture)), "c1", "look")
    assert made.item == ToolResult(Raw(b'"a"'), "c1", "look")
    assert made.rest == (picture,)
    failed = options.encode_result(ResultContent(("no",), True), "c1", "look").item
    assert json.loads(bytes(failed.content)) == {"type": "error-text", "value": "no"}


@pytest.mark.parametrize(
    ("part", "media"),
    [
        ({"type": "image", "image": "data:image/png;base64,AA=="}, Media("image", "image/png", data="AA==")),
        ({"type": "image", "image": "https://a.example/p"}, Media("image", url="https://a.example/p")),
        (
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}},
            Media("document", "application/pdf", data="AA=="),
        ),
    ],
)
def test_pictures_and_files(part: dict[str, Any], media: Media) -> None:
    """There and back."""
    assert options.decode_media(Unknown(part["type"], Raw(json.dumps(part).encode()))) == media
    made = options.encode_media(media)
    assert made is not None
    assert json.loads(bytes(made.raw)) == part


def test_what_has_no_part() -> None:
    """Sound, and what a provider keeps under a name."""
    assert options.encode_media(Media("audio", "audio/wav", data="AA==")) is None
    assert options.encode_media(Media("document", file_id="f1")) is None
    assert options.decode_media(Unknown("video", Raw(b'{"type":"video"}'))) is None
