"""What a chat template reads: the questions, and how answers are interpreted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thoughtline.formats import FORMATS
from thoughtline.providers.contract import Unread
from thoughtline.providers.row import TemplateAt
from thoughtline.providers.shared import CONTENT_CONTRACT
from thoughtline.replay.chat_templates import Question, TemplateReading, ask, unread_turns
from thoughtline.values.outcome import TurnNote

MESSAGES = "{{- range $i, $m := .Messages }}%s{{ .Content }}{{ end }}"
TEMPLATES: dict[str, tuple[Unread, ...]] = {
    MESSAGES % "": ("looped", "called", "plain"),
    MESSAGES % "{{- if and .Thinking (gt $i $lastUserIdx) }}<think>{{ .Thinking }}</think>{{ end }}": (
        "called",
        "plain",
    ),
    MESSAGES % "{{ if .Thinking }}<think>{{ .Thinking }}</think>{{ end }}": (),
}
"""Ollama templates, and the turns whose thinking they omit."""


def read(at: TemplateAt, answer: bytes) -> TemplateReading | None:
    """Return the reading of a server that answers every question alike."""
    asking = ask(at, "m", "reasoning_content")
    try:
        next(asking)
        while True:
            asking.send(answer)
    except StopIteration as end:
        reading: TemplateReading | None = end.value
        return reading


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_of_ollama(template: str) -> None:
    """A template's conditions show which turns' thinking it renders."""
    assert read("show", json.dumps({"template": template}).encode()) == TemplateReading(TEMPLATES[template])


@pytest.mark.parametrize(
    "shown", [{}, {"template": "{{ .Prompt }}"}, {"template": MESSAGES % "", "renderer": "qwen3"}, [], None]
)
def test_what_ollama_renders_by_itself_is_not_known(shown: object) -> None:
    assert read("show", json.dumps(shown).encode()) is None


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b"{}"])
@pytest.mark.parametrize("at", ["apply-template", "tokenize"])
def test_a_server_that_does_not_say(at: TemplateAt, answer: bytes) -> None:
    """Without an answer, nothing is known."""
    assert read(at, answer) is None


def test_reasoning_that_makes_no_difference_is_not_read() -> None:
    assert read("apply-template", b'{"prompt": "always the same"}') == TemplateReading(("looped", "called", "plain"))


def test_the_first_question() -> None:
    """The first question names the model, and sets no switch."""
    question: Question = next(ask("tokenize", "m", "reasoning"))
    assert (question.path, question.body["model"]) == ("/tokenize", "m")
    assert "chat_template_kwargs" not in question.body


Message = dict[str, Any]
CALL: Message = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
USER: Message = {"role": "user", "content": "Hi"}
ANSWER: Message = {"role": "assistant", "content": "Hi."}
CALLING: Message = {"role": "assistant", "tool_calls": [CALL]}
RESULT: Message = {"role": "tool", "tool_call_id": "c", "content": "1"}
CONVERSATIONS: list[tuple[list[Message], tuple[Unread, ...], list[int]]] = [
    ([USER, CALLING, RESULT, ANSWER, USER], ("called", "plain"), [1, 3]),
    ([USER, CALLING, RESULT, ANSWER, USER], ("plain",), [3]),
    ([USER, CALLING, RESULT, USER], ("called", "plain"), []),  # some templates keep it until an answer follows
    ([USER, CALLING, RESULT], ("called", "plain"), []),
    ([USER, CALLING, RESULT], ("looped", "called", "plain"), [1]),
]


@pytest.mark.parametrize(("messages", "unread", "expected"), CONVERSATIONS)
def test_only_certain_facts_are_reported(
    messages: list[Message], unread: tuple[Unread, ...], expected: list[int]
) -> None:
    """Of the restored turns, only those that the template certainly omits are reported."""
    body = json.dumps({"model": "m", "messages": messages}).encode()
    transcript = FORMATS["openai_chat"].bodies.decode_request(body, CONTENT_CONTRACT.dialect)
    notes = [TurnNote(turn.at, "restored") for turn in transcript.turns if turn.role == "assistant"]
    contract = type(CONTENT_CONTRACT)(
        "c", "advisory", CONTENT_CONTRACT.dialect, CONTENT_CONTRACT.source, unread_turns=unread
    )
    assert list(unread_turns(transcript, notes, contract)) == expected
    kept = [TurnNote(note.at, "kept") for note in notes]
    assert list(unread_turns(transcript, kept, contract)) == []
