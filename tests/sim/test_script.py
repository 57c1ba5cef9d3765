"""The script language and the small agent, as tables."""

from __future__ import annotations

import pytest

from thoughtline_sim.ledger import runs_of
from thoughtline_sim.model import OfferedTools, play, sample
from thoughtline_sim.pieces import CallTool, Piece, Redacted, Say, ScriptedTurn, Think
from thoughtline_sim.reading import Json
from thoughtline_sim.script import WORDS, read_script
from thoughtline_sim.values import InputMessage, Tool

SCRIPTS: dict[str, tuple[str, tuple[Piece, ...]]] = {
    "think and say": ("think: hm\nsay: yes", (Think("hm"), Say("yes"))),
    "a call with its arguments": (
        'think: a\ncall: weather {"city": "Paris"}',
        (Think("a"), CallTool("weather", '{"city": "Paris"}')),
    ),
    "a call without arguments": ("no-think\ncall: now", (CallTool("now", "{}"),)),
    "parallel calls": ("no-think\ncall: a\ncall: b {}", (CallTool("a", "{}"), CallTool("b", "{}"))),
    "interleaved": ("think: a\ncall: x\nthink: b\nsay: c", (Think("a"), CallTool("x", "{}"), Think("b"), Say("c"))),
    "redacted": ("redacted\nsay: x", (Redacted("hidden"), Say("x"))),
    "text over several lines": ("think: one\n  two\nsay: three", (Think("one\n  two"), Say("three"))),
    "an empty thought": ("think:\nsay: x", (Think(""), Say("x"))),
    "long": ("long 5", (Think("The a"),)),
    "no thought": ("no-think\nsay: x", (Say("x"),)),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_pieces(name: str) -> None:
    """What each line makes the model say."""
    text, pieces = SCRIPTS[name]
    assert read_script(f"Hello.\nscript:\n{text}") == (ScriptedTurn(pieces),)


def test_turns_are_divided() -> None:
    """`---` ends a turn; a turn that does not say what it thinks thinks something."""
    steps = read_script("script:\nsay: a\n---\nsay: b") or ()
    assert [step.pieces[1] for step in steps] == [Say("a"), Say("b")]
    assert all(isinstance(step.pieces[0], Think) for step in steps)


def test_how_the_stream_is_cut() -> None:
    """Numbers are for the turn they stand in; what is no number counts as none."""
    (step,) = read_script("script:\nsay: a\nchunk 3\ndelay 20\ncut x\nno-ids\nstop: length") or ()
    assert (step.chunk_chars, step.delay_ms, step.cut_after, step.has_ids, step.finish) == (3, 20, 0, False, "length")


def test_a_model_can_recall_its_private_input() -> None:
    """The system prompt, wherever it stands, and reasoning that came back; never the visible conversation."""
    script = "script:\nno-think\nrecall: \\d{3}"
    prompt = InputMessage("user", 0, f"Not 999.\n{script}")

    def first_piece(*history: InputMessage, **body: Json) -> Piece:
        return play((*history, prompt), OfferedTools(), script, body).pieces[0]

    assert first_piece() == Say("I don't know.")
    assert first_piece(InputMessage("system", 0, "It was 417.")) == Say("417")
    assert play((prompt, InputMessage("tool", 1, thoughts=("so 418",))), OfferedTools(), script).pieces == (Say("418"),)
    for body in ({"system": "417"}, {"system": [{"text": "417"}]}, {"instructions": "417"}):
        assert first_piece(**body) == Say("417")
    assert first_piece(systemInstruction={"parts": [{"text": "x"}, {"text": "417"}]}) == Say("417")
    assert play((prompt,), OfferedTools(), "script:\nno-think\nrecall: (", {"system": "("}).pieces == (
        Say("I don't know."),
    )


def test_no_script() -> None:
    """Only the mark makes a script."""
    assert read_script("think: this is only talk about thinking") is None


def test_every_example_is_read() -> None:
    """The examples in the table of words are in the language."""
    for word in WORDS:
        assert read_script(f"script:\n{word.example}") is not None
        assert word.example.startswith(word.name)


USER = InputMessage("user", 0, "hi")
CALLED = InputMessage("assistant", 1)
RESULT = InputMessage("tool", 2, results=("1",))
WEATHER = Tool("weather", {"properties": {"city": {"type": "string"}}, "required": ["city"]})


def test_the_agent() -> None:
    """Calls the first tool, then answers; after new words it calls again."""
    offer = OfferedTools((WEATHER, Tool("other", {})))
    assert play((USER,), offer).pieces[1] == CallTool("weather", '{"city":"Paris"}')
    assert isinstance(play((USER, CALLED, RESULT), offer).pieces[1], Say)
    assert isinstance(play((USER, CALLED, RESULT, CALLED, USER), offer).pieces[1], CallTool)


def test_the_agent_follows_its_script() -> None:
    """A forced tool is called, with `none` there is no call."""
    tools = (WEATHER, Tool("other", {}))
    assert play((USER,), OfferedTools(tools, "other")).pieces[1] == CallTool("other", "{}")
    assert isinstance(play((USER,), OfferedTools(tools, None, False)).pieces[1], Say)


def test_split_messages_are_one_turn() -> None:
    """A client that splits a turn does not move the script on."""
    assert len(runs_of((USER, CALLED, CALLED, RESULT, CALLED))) == 2


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({}, {}),
        ({"required": ["a"], "properties": {"a": {"type": "integer"}}}, {"a": 2}),
        ({"required": ["a"], "properties": {"a": {"enum": ["x", "y"]}}}, {"a": "x"}),
        ({"required": ["a"], "properties": {"a": {"anyOf": [{"type": "boolean"}]}}}, {"a": True}),
        ({"required": ["a"], "properties": {"a": {"type": "object", "required": ["b"]}}}, {"a": {"b": "Paris"}}),
    ],
)
def test_arguments_fit_the_schema(schema: dict[str, object], arguments: dict[str, object]) -> None:
    """Every required property has a value of its type."""
    assert sample(schema) == arguments
