"""Streams that are passed on in their own format: markers go, every other byte stays, no event is added or late."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.continuity.streams import STREAMS, Quote, ascii_only, deltas_of, escaped, google, items_of, plain
from thoughtline.continuity.tagged_streams import TaggedStream
from thoughtline.continuity.tags import TagMode, visible_text
from thoughtline.formats import FORMATS
from thoughtline.formats.framing import MAX_EVENT_BYTES
from thoughtline.values.turns import FormatName

TAGGED = 'Well:\n<think a="b">so "it" is\\</THINK> é🧠 `<think>` <'
LIFTED_IN_PLACE = ("openai_chat", "ollama_chat", "gemini_generate")
IN_PLACE = {name: row for name, row in STREAMS.items() if row[0] in LIFTED_IN_PLACE}
QUOTES: dict[str, Quote] = {"plain": plain, "ascii": ascii_only, "google": google}


def _stream(format: FormatName, mode: TagMode = "markers") -> TaggedStream:
    row = FORMATS[format]
    assert row.texts is not None
    return TaggedStream(row.texts, mode, row.dialect)


def _filtered(format: FormatName, pieces: list[bytes], mode: TagMode = "markers") -> bytes:
    stream = _stream(format, mode)
    return b"".join([stream.feed(piece) for piece in pieces]) + stream.finish()


def _events(stream: bytes) -> int:
    return len(re.findall(rb"^data:", stream, re.MULTILINE)) or stream.count(b'"done"') or stream.count(b'"candidates"')


@pytest.mark.parametrize("quote", QUOTES.values(), ids=list(QUOTES))
@pytest.mark.parametrize(("format", "stream"), STREAMS.values(), ids=list(STREAMS))
def test_a_tag_cut_at_every_byte_gives_the_same_stream(format: FormatName, stream: Any, quote: Quote) -> None:
    """Wherever the network cuts, inside an escape too: the same bytes, the same visible text, the same events."""
    sent = b"".join(stream([TAGGED[:12], TAGGED[12:19], TAGGED[19:]], quote))
    whole = _filtered(format, [sent])
    wanted = visible_text(TAGGED, "markers")
    assert deltas_of(format, whole)[0] == wanted
    assert items_of(format, whole)[0] == wanted
    assert _events(whole) == _events(sent)
    for at in range(len(sent)):
        assert _filtered(format, [sent[:at], sent[at:]]) == whole
    assert _filtered(format, [sent[at : at + 1] for at in range(len(sent))]) == whole


@pytest.mark.parametrize(("format", "stream"), STREAMS.values(), ids=list(STREAMS))
def test_a_text_in_any_pieces_gives_the_same_visible_text(format: FormatName, stream: Any) -> None:
    """The model's own cuts: every two deltas a text can come in, and one for each character."""
    text = "a<think>b</think>c"
    for pieces in [[text[:at], text[at:]] for at in range(len(text) + 1)] + [list(text)]:
        sent = b"".join(stream(pieces, google))
        out = _filtered(format, [sent])
        assert deltas_of(format, out)[0] == "abc"
        assert items_of(format, out)[0] == "abc"
        assert _events(out) == _events(sent)


@given(text=st.text(alphabet=st.sampled_from('<>/think`\n "é\\'), max_size=60), cuts=st.lists(st.integers(0, 60)))
@settings(max_examples=60)
def test_any_text_in_any_pieces(text: str, cuts: list[int]) -> None:
    """Visible text is what a whole text would have given, in every format."""
    places = sorted({min(cut, len(text)) for cut in cuts})
    pieces = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
    for name, stream in STREAMS.values():
        out = _filtered(name, [b"".join(stream(pieces, plain))])
        assert deltas_of(name, out)[0] == visible_text(text, "markers")


@pytest.mark.parametrize(("format", "stream"), STREAMS.values(), ids=list(STREAMS))
def test_a_stream_without_tags_keeps_every_byte(format: FormatName, stream: Any) -> None:
    """Comments, odd spacing, escapes, brackets that are no tags: byte for byte."""
    for quote in (plain, ascii_only, google, escaped):
        sent = b"".join(stream(["Hello ", "a < b <b>x</b>\n", "`<think>`", " end"], quote))
        assert _filtered(format, [sent]) == sent


@pytest.mark.parametrize(("format", "stream"), STREAMS.values(), ids=list(STREAMS))
def test_an_event_is_late_only_while_a_tag_may_come(format: FormatName, stream: Any) -> None:
    """Each event goes on in the step that brought it, unless its text ends in what could become a tag."""
    tagged = _stream(format)
    events = stream(["one", "two <b> ", "x<thi", "nk>three", " four<", "5", "end"], plain)
    late = [event for event in events if not tagged.feed(event)]
    assert len(late) == 2
    assert b'"x<thi"' in late[0]
    assert b'" four<"' in late[1]


def test_only_the_string_of_the_delta_changes() -> None:
    """The bytes around it, and the escapes within it, stay as the provider wrote them."""
    before = b'data: {"id":1.50, "choices" : [{"delta":{"content": "\\u00e9\\n\\u003cthink\\u003e\\/x" ,"a":[ ]}}]}\n\n'
    after = b'data: {"id":1.50, "choices" : [{"delta":{"content": "\\u00e9\\n\\/x" ,"a":[ ]}}]}\n\n'
    assert _filtered("openai_chat", [before]) == after


def test_answers_of_one_stream_do_not_mix() -> None:
    """With `n > 1` each choice has its own text."""

    def chunk(choice: int, text: str) -> bytes:
        return b"data: " + json.dumps({"choices": [{"index": choice, "delta": {"content": text}}]}).encode() + b"\n\n"

    out = _filtered("openai_chat", [chunk(0, "a<thi"), chunk(1, "b<thi"), chunk(0, "nk>c"), chunk(1, "s>d")])
    texts = {0: "", 1: ""}
    for line in out.split(b"\n\n")[:-1]:
        choice = json.loads(line[6:])["choices"][0]
        texts[choice["index"]] += choice["delta"]["content"]
    assert texts == {0: "ac", 1: "b<this>d"}


def test_reasoning_calls_and_results_are_not_looked_at() -> None:
    """Only visible text has tags that are markers."""
    chunk = {"reasoning_content": "<think>", "tool_calls": [{"index": 0, "function": {"arguments": '"<think>"'}}]}
    sent = b"data: " + json.dumps({"choices": [{"delta": chunk}]}).encode() + b"\n\n"
    assert _filtered("openai_chat", [sent]) == sent
    thinking = {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "<think>"}}
    sent = b"data: " + json.dumps(thinking).encode() + b"\n\n"
    assert _filtered("anthropic_messages", [sent]) == sent


ODD = {
    "no JSON": b"data: {oops <think>\n\n",
    "no object": b'data: ["<think>"]\n\n',
    "other types": b'data: {"choices":[{"delta":{"content":7}}, 3, null], "x":"<think>"}\n\n',
    "bad UTF-8": b'data: {"choices":[{"delta":{"content":"<think>\xff"}}]}\n\n',
    "no end": b'data: {"choices":[{"delta":{"content":"<thi',
    "an error": b'data: {"error":{"message":"<think> is not allowed"}}\n\n',
    "deep": b'data: {"choices":' + b"[" * 5000 + b"]" * 5000 + b"}\n\n",
}


@pytest.mark.parametrize("sent", ODD.values(), ids=list(ODD))
def test_what_can_not_be_read_passes_as_it_is(sent: bytes) -> None:
    """A filter is no reason for a stream to break."""
    assert _filtered("openai_chat", [sent]) == sent


def test_a_stream_that_is_cut_loses_nothing() -> None:
    """Held-back text comes out at the end, unchanged."""
    sent = b'data: {"choices":[{"delta":{"content":"a<think"}}]}\n\ndata: {"choices":[{"del'
    assert _filtered("openai_chat", [sent]) == sent


def test_several_data_lines_are_one_event() -> None:
    """JSON spread over lines is written on one where a marker goes; else it stays."""
    spread = b'event: x\ndata: {"choices":[{"delta":\ndata: {"content":"a<think>b"}}]}\n\n'
    assert deltas_of("openai_chat", _filtered("openai_chat", [spread]))[0] == "ab"
    assert _filtered("openai_chat", [spread.replace(b"<think>", b"")]) == spread.replace(b"<think>", b"")


def test_an_event_beyond_all_bounds_passes_unread() -> None:
    """Memory stays finite, and the client gets its bytes."""
    stream = _stream("openai_chat")
    out = stream.feed(b'data: {"choices":[{"delta":{"content":"a<thi"}}]}\n\n')
    huge = [b"data: " + b"x" * 2**20] + [b"x" * 2**20] * (MAX_EVENT_BYTES // 2**20)
    out += b"".join(stream.feed(piece) for piece in huge) + stream.feed(b"<think>") + stream.finish()
    assert out.startswith(b'data: {"choices":[{"delta":{"content":"a<thi"}}]}\n\ndata: xxx')
    assert len(out) == len(b'data: {"choices":[{"delta":{"content":"a<thi"}}]}\n\n') + sum(map(len, huge)) + 7
    assert out.endswith(b"<think>")


@pytest.mark.parametrize(("format", "stream"), IN_PLACE.values(), ids=list(IN_PLACE))
def test_lifted_text_becomes_the_reasoning_of_its_format(format: FormatName, stream: Any) -> None:
    """In place: text and reasoning in one event, none added, whatever pieces it comes in."""
    text = "a<think>b\n</think>c"
    for pieces in [[text[:at], text[at:]] for at in range(len(text) + 1)] + [list(text), [text]]:
        sent = b"".join(stream(pieces, plain))
        out = _filtered(format, [sent], "lift")
        assert deltas_of(format, out) == ("ac", "b\n")
        assert _events(out) == _events(sent)


def test_lifted_text_goes_behind_reasoning_that_is_there() -> None:
    """A delta may have both already."""
    sent = b'data: {"choices":[{"delta":{"content":"<think>b","reasoning_content":"a"}}]}\n\n'
    assert deltas_of("openai_chat", _filtered("openai_chat", [sent], "lift")) == ("", "ab")


@pytest.mark.parametrize("format", ["anthropic_messages", "openai_responses", "bedrock_converse"])
def test_where_reasoning_has_events_of_its_own_it_is_not_lifted_in_place(format: FormatName) -> None:
    """Said at once, not half done."""
    with pytest.raises(ValueError, match="in place"):
        _stream(format, "lift")
