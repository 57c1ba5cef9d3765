r"""Lone surrogates (`\ud83d`) in requests: read, and sent on as they came."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.engine.sessions import who_asks
from thoughtline.formats import FORMATS, Wire
from thoughtline.formats.lone_surrogates import MAX_ESCAPES, as_sent, readable
from thoughtline.values.errors import DecodeError
from thoughtline.values.items import Text

ROWS = list(FORMATS.values())
CUT = "the output was cut here: \ud83d"

BODIES: dict[str, dict[str, object]] = {
    "openai_chat": {"messages": [{"role": "user", "content": CUT}, {"role": "assistant", "content": "Yes."}]},
    "openai_responses": {
        "input": [
            {"role": "user", "content": CUT},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
        ]
    },
    "anthropic_messages": {"messages": [{"role": "user", "content": CUT}, {"role": "assistant", "content": "Yes."}]},
    "gemini_generate": {
        "contents": [{"role": "user", "parts": [{"text": CUT}]}, {"role": "model", "parts": [{"text": "Yes."}]}]
    },
    "gemini_interactions": {
        "input": [
            {"type": "user_input", "content": [{"type": "text", "text": CUT}]},
            {"type": "model_output", "content": [{"type": "text", "text": "Yes."}]},
        ]
    },
    "ollama_chat": {"messages": [{"role": "user", "content": CUT}, {"role": "assistant", "content": "Yes."}]},
    "bedrock_converse": {
        "messages": [
            {"role": "user", "content": [{"text": CUT}]},
            {"role": "assistant", "content": [{"text": "Yes."}]},
        ]
    },
}


BODIES["command_code_generate"] = {"memory": "", "params": BODIES["openai_chat"]}
BODIES["gemini_code_assist"] = {"model": "m", "request": BODIES["gemini_generate"]}
BODIES["bedrock_invoke"] = {"anthropic_version": "bedrock-2023-05-31", **BODIES["anthropic_messages"]}


def name_of(row: Wire) -> str:
    return row.name


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_a_request_with_a_lone_surrogate_is_read_and_keeps_its_bytes(row: Wire) -> None:
    """The words around it are there, and an edit of another turn leaves it as the client wrote it."""
    body = json.dumps(BODIES[row.name]).encode()
    assert b"\\ud83d" in body
    transcript = row.bodies.decode_request(body, row.dialect)
    user, assistant = (next(turn for turn in transcript.turns if turn.role == role) for role in ("user", "assistant"))
    assert isinstance(user.items[0], Text)
    assert user.items[0].text.startswith("the output was cut here")
    assert row.bodies.encode_request(transcript, row.dialect) == body
    edited = transcript.with_items(transcript.turns.index(assistant), (Text("Of course \U0001f600"),))
    written = row.bodies.encode_request(edited, row.dialect)
    assert b"the output was cut here: \\ud83d" in written
    assert "Of course \U0001f600".encode() in written


@pytest.mark.parametrize(
    ("sent", "spelled"),
    [
        (rb'"\ud83d"', rb'"\uE03d"'),
        (rb'"\uDE00"', rb'"\uF600"'),
        (rb'"\ud83dA\uDBFF"', rb'"\uE03dA\uF3FF"'),
        (rb'"\ud83d\ud83d\ude00"', rb'"\uE03d\ud83d\ude00"'),
        (rb'"\\ud83d \udfff"', rb'"\\ud83d \uE7ff"'),
        (rb'"\\\ud83d"', rb'"\\\uE03d"'),
        (rb'"\\ud83d\ude00"', rb'"\\ud83d\uE600"'),
        (rb'"\ud83d \ue0b0"', rb'"\uE03d \ue0b0"'),
    ],
)
def test_spellings(sent: bytes, spelled: bytes) -> None:
    """Lone surrogates, in either case; whole characters, escaped backslashes and real private use stay."""
    assert readable(sent) == spelled
    assert as_sent(spelled) == sent
    json.loads(spelled).encode()


@pytest.mark.parametrize(
    "body", [rb'"\ud83d\ude00"', rb'"\\ud83d"', b'"plain"', rb'"\ud83d \uE03d"', rb'"\udA3d"', b"\\"]
)
def test_nothing_to_spell(body: bytes) -> None:
    """Without a lone surrogate, or if the change could not be reversed."""
    assert readable(body) is None


def test_lone_surrogates_are_bounded() -> None:
    """As many as a client would leave are accepted; a body made of nothing else is rejected."""
    assert readable(b'"' + rb"\ud83d " * (MAX_ESCAPES - 1) + b'"') is not None
    assert readable(b'"' + rb"\ud83d " * MAX_ESCAPES + b'"') is None


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=40), st.booleans())
def test_there_and_back(text: str, capitals: bool) -> None:
    """Any body comes back as it was sent, and has the same length in between."""
    body = json.dumps(text).encode()
    if capitals:
        body = re.sub(rb"\\ud[0-9a-f]{3}", lambda escape: b"\\u" + escape[0][2:].upper(), body)
    spelled = readable(body)
    if spelled is not None:
        assert len(spelled) == len(body)
        assert as_sent(spelled) == body
        json.loads(spelled).encode()
    else:
        json.loads(body).encode()


def test_what_is_broken_otherwise_is_still_refused() -> None:
    """A lone surrogate does not excuse anything else."""
    row = FORMATS["openai_chat"]
    with pytest.raises(DecodeError):
        row.bodies.decode_request(rb'{"messages":[{"role":"user","content":"\ud83d"}', row.dialect)


def test_model_and_session_are_found() -> None:
    """A reader that looks for one member finds it next to a lone surrogate."""
    body = rb'{"messages":[{"role":"user","content":"\ud83d"}],"model":"kimi-k2","session_id":"one"}'
    who, model = who_asks("t", {}, body)
    assert (who.session, model) == ("one", "kimi-k2")
