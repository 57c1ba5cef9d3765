"""Compactions, summarized conversations: they go back to the format that made them, and to no other without being
expanded.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.translation.lanes import EVERY_CLIENT
from tests.translation.noted_answers import Source, events_of, gathered, made_stream, messages_stream, stream, whole
from tests.translation.sdk_types import check_body, check_request, check_stream
from tests.translation.test_requests import BY_FORMAT, body_of, transcript_of, translated, user
from thoughtline.formats import FORMATS
from thoughtline.translation import translate_request
from thoughtline.values.errors import Untranslatable
from thoughtline.values.turns import FormatName

Json = dict[str, Any]
SEALED = "gAAAAABpSEALED=="
ITEM = {"type": "compaction", "id": "cmp_1", "encrypted_content": SEALED}
BLOCK = {"type": "compaction", "content": "They spoke of rain.", "encrypted_content": SEALED, "signature": SEALED}
SAID = {"type": "message", "role": "assistant", "content": "It rains."}
FOREIGN = {client: [to for to in BY_FORMAT if to != client] for client in ("openai_responses", "anthropic_messages")}


def responses(*elements: Json) -> Json:
    return {"model": "m", "input": [*elements, user("And now?")]}


def messages(*blocks: Json) -> Json:
    turns = [user("Hi"), {"role": "assistant", "content": list(blocks)}, user("And now?")]
    return {"model": "m", "max_tokens": 9, "messages": turns}


# --- requests ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "body"), [("openai_responses", responses(ITEM)), ("anthropic_messages", messages(BLOCK))]
)
def test_it_goes_back_to_its_own_format_unchanged(client: FormatName, body: Json) -> None:
    """Not a byte of the request is touched."""
    transcript = transcript_of(client, body)
    request = translate_request(transcript, client, BY_FORMAT[client].contract, "m")
    bodies = FORMATS[client].bodies
    assert bodies.encode_request(request.transcript, FORMATS[client].dialect) == json.dumps(body).encode()
    assert request.findings == ()


@pytest.mark.parametrize("to", FOREIGN["openai_responses"])
@pytest.mark.parametrize("kind", ["compaction", "compaction_summary", "context_compaction"])
def test_a_sealed_one_alone_stays_behind(to: FormatName, kind: str) -> None:
    """A session goes on without it, under any of its names; a finding tells."""
    request = translated("openai_responses", responses(user("Hi"), ITEM | {"type": kind}), to)
    assert SEALED not in request.transcript.body.decode()
    assert [finding.place for finding in request.findings] == ["/input/1"]


@pytest.mark.parametrize("to", FOREIGN["openai_responses"])
def test_a_sealed_one_stays_behind_where_its_turns_are_sent(to: FormatName) -> None:
    """A client that still sends the turns before it loses nothing; a finding tells, and no other provider gets it."""
    request = translated("openai_responses", responses(user("Hi"), SAID, ITEM), to)
    sent = request.transcript.body.decode()
    assert "It rains." in sent
    assert SEALED not in sent
    assert [finding.place for finding in request.findings if "compaction" in finding.message] == ["/input/2"]
    check_request(to, request.transcript.body)


@pytest.mark.parametrize("to", FOREIGN["anthropic_messages"])
def test_one_in_the_clear_goes_on_as_words(to: FormatName) -> None:
    """Any model can read Anthropic's summary; its sealed and signed parts go to no other."""
    request = translated("anthropic_messages", messages(BLOCK, {"type": "text", "text": "It rains."}), to)
    sent = request.transcript.body.decode()
    assert sent.index("They spoke of rain.") < sent.index("It rains.")
    assert SEALED not in sent
    found = [finding.place for finding in request.findings if "compaction" in finding.message]
    assert found == ["/messages/1/content/0"]
    check_request(to, request.transcript.body)


@pytest.mark.parametrize("to", FOREIGN["anthropic_messages"])
def test_one_that_failed_says_nothing(to: FormatName) -> None:
    """Anthropic's without words is nothing to Anthropic too: the turn goes on without it, and a finding tells."""
    failed = {"type": "compaction", "content": None}
    request = translated("anthropic_messages", messages(failed, {"type": "text", "text": "It rains."}), to)
    assert "compaction" not in json.dumps(body_of(request))
    assert any("compaction" in finding.message for finding in request.findings)


@pytest.mark.parametrize("to", FOREIGN["openai_responses"])
def test_a_request_to_compact_is_rejected_if_it_can_not_be_served(to: FormatName) -> None:
    """The client waits for a compaction and nothing else."""
    with pytest.raises(Untranslatable) as refused:
        translated("openai_responses", responses(user("Hi"), SAID, {"type": "compaction_trigger"}), to)
    assert (refused.value.status, refused.value.place) == (400, "/input/2")


# --- answers ----------------------------------------------------------------------------------------------------------

_message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
_message |= {"content": [{"type": "output_text", "text": "It rains.", "annotations": []}]}
_whole = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
_whole |= {"output": [ITEM, _message], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
_blocks = messages_stream({"text": ""}, {"text": "It rains."})
_blocks[1] = {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": None}}
_told = {"type": "compaction_delta", "content": BLOCK["content"], "encrypted_content": SEALED}
_blocks[2] = {"type": "content_block_delta", "index": 0, "delta": _told}
_answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
_content = {name: value for name, value in BLOCK.items() if name != "signature"}
ANSWERS: dict[FormatName, Source] = {
    "openai_responses": Source(
        "openai_responses",
        _whole,
        [
            {"type": "response.created", "response": {"id": "resp_1", "model": "m", "output": []}},
            {"type": "response.output_item.added", "output_index": 0, "item": ITEM | {"encrypted_content": "gA"}},
            {"type": "response.output_item.done", "output_index": 0, "item": ITEM},
            {"type": "response.output_item.done", "output_index": 1, "item": _message},
            {"type": "response.completed", "response": _whole},
        ],
    ),
    "anthropic_messages": Source(
        "anthropic_messages",
        _answer | {"content": [_content, {"type": "text", "text": "It rains."}]},
        _blocks,
    ),
}


@pytest.mark.parametrize("to", EVERY_CLIENT)
@pytest.mark.parametrize("write", [whole, stream, gathered, made_stream])
@pytest.mark.parametrize("source", ANSWERS)
def test_a_client_of_another_format_gets_a_finding(source: FormatName, write: Any, to: FormatName) -> None:
    """Whole and streamed: the words without the compaction, and one finding that names it."""
    if source == to:
        return
    out = write(ANSWERS[source], to)
    (check_body if write in (whole, gathered) else check_stream)(to, out.body)
    assert b"It rains." in out.body
    assert SEALED.encode() not in out.body
    assert [finding.message for finding in out.findings] == [f"{to} has no place for what came as compaction"]


@pytest.mark.parametrize("write", [whole, stream, gathered, made_stream])
@pytest.mark.parametrize("source", ANSWERS)
def test_a_client_of_its_own_format_gets_it_whole(source: FormatName, write: Any) -> None:
    """Also where a stream is gathered into a whole answer, or one is made of it."""
    out = write(ANSWERS[source], source)
    found = [one for event in events_of(source, out.body) for one in _compactions(event)]
    expected = ITEM if source == "openai_responses" else _content
    if write is stream and source == "anthropic_messages":
        assert json.dumps(_told).encode() in out.body  # the provider's own bytes
    else:
        assert expected in found
    assert out.findings == ()


def _compactions(value: Any) -> list[Json]:
    """Every compaction in a value, at any position."""
    if isinstance(value, list):
        return [found for one in value for found in _compactions(one)]
    if not isinstance(value, dict):
        return []
    inner = [found for one in value.values() for found in _compactions(one)]
    return [value, *inner] if value.get("type") == "compaction" else inner
