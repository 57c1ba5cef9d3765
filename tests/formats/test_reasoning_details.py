"""`reasoning_details`: entries that keep their JSON, and entries put together from a stream."""

from __future__ import annotations

import json
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from tests.descriptions import without_raw
from thoughtline.formats.reasoning_details import DetailsMerger, decode_detail, encode_detail
from thoughtline.values.errors import DecodeError, EncodeError
from thoughtline.values.items import (
    ANTHROPIC_CLAUDE_V1,
    GOOGLE_GEMINI_V1,
    OPENAI_RESPONSES_V1,
    UNKNOWN_FORMAT,
    Item,
    Reasoning,
    ReasoningEncrypted,
    ReasoningFormat,
    ReasoningServerToolCall,
    ReasoningSummary,
    ReasoningText,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)

# --- one entry -------------------------------------------------------------------------------------------------------

ENTRIES: dict[str, tuple[bytes, Item]] = {
    "text": (
        b'{"type":"reasoning.text","text":"why","signature":"c2ln","id":"r1","format":"google-gemini-v1","index":2}',
        ReasoningText("why", "c2ln", GOOGLE_GEMINI_V1, "r1", 2),
    ),
    "text without anything else": (b'{"type":"reasoning.text"}', ReasoningText("", None, ANTHROPIC_CLAUDE_V1)),
    "text of nulls": (
        b'{"type":"reasoning.text","text":null,"signature":null,"id":null,"format":null,"index":null}',
        ReasoningText("", None, UNKNOWN_FORMAT),
    ),
    "text with an empty signature": (
        b'{"type":"reasoning.text","text":"why","signature":"","format":"unknown"}',
        ReasoningText("why", "", UNKNOWN_FORMAT),
    ),
    "summary": (
        b'{"type":"reasoning.summary","summary":"in short","format":"openai-responses-v1","index":0}',
        ReasoningSummary("in short", OPENAI_RESPONSES_V1, None, 0),
    ),
    "encrypted": (
        b'{"type":"reasoning.encrypted","data":"ZGF0YQ==","id":"rs_1","format":"openai-responses-v1","index":0}',
        ReasoningEncrypted("ZGF0YQ==", OPENAI_RESPONSES_V1, "rs_1", 0),
    ),
    "summary of nulls": (
        b'{"type":"reasoning.summary","summary":null,"format":null}',
        ReasoningSummary("", UNKNOWN_FORMAT),
    ),
    "encrypted nothing": (b'{"type":"reasoning.encrypted","format":"unknown"}', ReasoningEncrypted("", UNKNOWN_FORMAT)),
    "server tool call without a name": (
        b'{"type":"reasoning.server_tool_call","format":"unknown"}',
        ReasoningServerToolCall("", UNKNOWN_FORMAT),
    ),
    "server tool call": (
        b'{"type":"reasoning.server_tool_call","tool_name":"search","arguments":"{}","result":"x","format":"unknown"}',
        ReasoningServerToolCall("search", UNKNOWN_FORMAT),
    ),
    "a format nobody has heard of": (
        b'{"type":"reasoning.text","text":"why","format":"novel-v9"}',
        ReasoningText("why", None, ReasoningFormat("novel-v9")),
    ),
    "odd spelling and unknown members": (
        b'{ "zeta":1.0,"text" : "\\u0077hy", "type":"reasoning.text","format":"unknown" , "alpha":{"text":[]} }',
        ReasoningText("why", None, UNKNOWN_FORMAT),
    ),
}
STRANGERS: dict[str, tuple[bytes, str]] = {
    "unknown type": (b'{"type":"reasoning.novel","text":"why"}', "reasoning.novel"),
    "unknown type that uses our names for other things": (
        b'{"type":"reasoning.novel","text":["why"]}',
        "reasoning.novel",
    ),
    "no type": (b'{"text":"why"}', ""),
}


def entry_of(raw: bytes) -> Reasoning | Unknown:
    return decode_detail(Raw(raw))


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_is_typed_and_keeps_its_json(name: str) -> None:
    """Each kind of entry as an item; written again it is the bytes it came from."""
    raw, item = ENTRIES[name]
    decoded = entry_of(raw)
    assert without_raw(decoded) == item
    assert encode_detail(decoded) == raw


@pytest.mark.parametrize("name", STRANGERS)
def test_an_entry_of_another_type_passes_through(name: str) -> None:
    """Its type is known, its JSON stays."""
    raw, kind = STRANGERS[name]
    assert entry_of(raw) == Unknown(kind, Raw(raw))
    assert encode_detail(entry_of(raw)) == raw


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        pytest.param(b'{"type":"reasoning.text","text":1}', "/d/0/text", id="text"),
        pytest.param(b'{"type":"reasoning.summary","summary":[]}', "/d/0/summary", id="summary"),
        pytest.param(b'{"type":"reasoning.encrypted","data":{}}', "/d/0/data", id="data"),
        pytest.param(b'{"type":"reasoning.server_tool_call","tool_name":1}', "/d/0/tool_name", id="tool name"),
        pytest.param(b'{"type":"reasoning.text","index":"0"}', "/d/0/index", id="index"),
        pytest.param(b'{"type":1}', "/d/0/type", id="type"),
        pytest.param(b'"why"', "/d/0", id="no object"),
    ],
)
def test_a_wrong_member_has_its_place(raw: bytes, place: str) -> None:
    """An entry of a type we know must be what its type says."""
    with pytest.raises(DecodeError) as wrong:
        decode_detail(Raw(raw), "/d/0")
    assert wrong.value.place == place


formats = st.sampled_from([UNKNOWN_FORMAT, ANTHROPIC_CLAUDE_V1, OPENAI_RESPONSES_V1, ReasoningFormat("novel-v9")])
ids = st.none() | st.text(max_size=5)
indexes = st.none() | st.integers(0, 9)
typed_items: st.SearchStrategy[Item] = (
    st.builds(ReasoningText, st.text(), st.none() | st.text(), formats, ids, indexes)
    | st.builds(ReasoningSummary, st.text(), formats, ids, indexes)
    | st.builds(ReasoningEncrypted, st.text(), formats, ids, indexes)
)


@settings(max_examples=100, deadline=None)
@given(item=typed_items)
def test_any_item_without_json_is_written_and_read_again(item: Item) -> None:
    """What was made elsewhere says the same when it comes back."""
    assert without_raw(entry_of(encode_detail(item))) == item


def test_an_edited_item_is_written_as_it_is_now() -> None:
    """Its old JSON no longer says what the item says."""
    decoded = entry_of(b'{"type":"reasoning.text","text":"why","format":"unknown","index":0}')
    assert isinstance(decoded, ReasoningText)
    assert json.loads(encode_detail(replace(decoded, text="because"))) == {
        "type": "reasoning.text",
        "text": "because",
        "format": "unknown",
        "index": 0,
    }


@pytest.mark.parametrize(
    "block",
    [
        b'{"type":"thinking","thinking":"why","signature":"c2ln"}',
        b'{"type":"thinking","text":["why"],"signature":"c2ln"}',
        b'{"reasoningText":{"text":"why","signature":"c2ln"}}',
        b'"why"',
    ],
    ids=["other names", "our names for other things", "no type", "no object"],
)
def test_json_of_another_wire_is_not_passed_on(block: bytes) -> None:
    """An item whose JSON is no such entry is written from what we know of it."""
    written = encode_detail(ReasoningText("why", "c2ln", ANTHROPIC_CLAUDE_V1, raw=Raw(block)))
    assert json.loads(written) == {
        "type": "reasoning.text",
        "text": "why",
        "signature": "c2ln",
        "format": "anthropic-claude-v1",
    }


@pytest.mark.parametrize(
    "item",
    [
        Text("so"),
        ToolCall("look", "{}"),
        ToolResult(Raw(b'"x"')),
        ReasoningServerToolCall("search"),
        ReasoningServerToolCall("search", raw=Raw(b'{"type":"web_search_call"}')),
    ],
    ids=["text", "call", "result", "server tool call", "server tool call of another wire"],
)
def test_what_is_no_entry_is_refused(item: Item) -> None:
    """An encoder never drops an item silently."""
    with pytest.raises(EncodeError, match=type(item).__name__):
        encode_detail(item)


# --- a stream of entries ---------------------------------------------------------------------------------------------

Entry = dict[str, Any]


def text(text: str | None, index: int | None = 0, **more: Any) -> Entry:
    return {"type": "reasoning.text", "text": text, "index": index, **more}


def summary(summary: str, index: int = 0, **more: Any) -> Entry:
    return {"type": "reasoning.summary", "summary": summary, "index": index, **more}


def encrypted(data: str, index: int = 0, **more: Any) -> Entry:
    return {"type": "reasoning.encrypted", "data": data, "index": index, **more}


def signature(signature: str | None, index: int = 0) -> Entry:
    return {"type": "reasoning.text", "signature": signature, "index": index}


def merged(pieces: list[Entry]) -> tuple[list[tuple[str, bool]], list[Entry]]:
    """What each piece brought, and the entries in the end."""
    merger = DetailsMerger()
    brought = [merger.add(Raw(json.dumps(piece).encode())) for piece in pieces]
    return brought, [json.loads(bytes(raw)) for raw in merger.raws()]


NOVEL: Entry = {"type": "reasoning.novel", "index": 0, "text": "a"}

MERGES: dict[str, tuple[list[Entry], list[Entry]]] = {
    "texts are joined": ([text("a"), text("b"), text("c")], [text("abc")]),
    "summaries are joined": ([summary("a"), summary("b")], [summary("ab")]),
    "an index each": ([text("a"), text("b", 1), text("c")], [text("ac"), text("b", 1)]),
    "without an index": ([text("a", None), text("b", None)], [text("ab", None)]),
    "no index is not index 0": ([text("a"), text("b", None)], [text("a"), text("b", None)]),
    "a type each": ([text("a"), summary("b"), text("c")], [text("ac"), summary("b")]),
    "an id each": ([text("a", id="x"), text("b", id="y"), text("c", id="x")], [text("ac", id="x"), text("b", id="y")]),
    "one id": ([text("a", id="x"), text("b", id="x")], [text("ab", id="x")]),
    "an id said once": ([text("a", id="x"), text("b"), text("c", id=None)], [text("abc", id="x")]),
    "no id goes with the last": (
        [text("a", id="x"), text("b", id="y"), text("c")],
        [text("a", id="x"), text("bc", id="y")],
    ),
    "first-seen order": ([summary("a", 3), text("b", 1), summary("c", 3)], [summary("ac", 3), text("b", 1)]),
    "a signature at the end": ([text("a"), signature("s")], [text("a", signature="s")]),
    "a signature after other entries": (
        [text("a"), encrypted("d", 1), signature("s")],
        [text("a", signature="s"), encrypted("d", 1)],
    ),
    "a signature is replaced": ([text("a", signature="s"), signature("t")], [text("a", signature="t")]),
    "a null takes no signature away": ([text("a", signature="s"), signature(None)], [text("a", signature="s")]),
    "an empty signature takes none away": ([text("a", signature="s"), signature("")], [text("a", signature="s")]),
    "a signature alone": ([signature("s")], [signature("s")]),
    "a null text": ([text(None), text("a"), text(None)], [text("a")]),
    "data is never joined": ([encrypted("a"), encrypted("b")], [encrypted("a"), encrypted("b")]),
    "equal data is kept twice": ([encrypted("a", id="x"), encrypted("a", id="x")], [encrypted("a", id="x")] * 2),
    "summary and data of one item": (
        [summary("a"), summary("b"), encrypted("d", id="rs_1")],
        [summary("ab"), encrypted("d", id="rs_1")],
    ),
    "server tool calls are never joined": (
        [{"type": "reasoning.server_tool_call", "tool_name": "t", "index": 0}] * 2,
        [{"type": "reasoning.server_tool_call", "tool_name": "t", "index": 0}] * 2,
    ),
    "unknown types are never joined": ([NOVEL, NOVEL], [NOVEL, NOVEL]),
    "unknown types with our names for other things": (
        [{"type": "reasoning.novel", "text": 1}, text("a")],
        [{"type": "reasoning.novel", "text": 1}, text("a")],
    ),
    "unknown members": (
        [text("a", x={"y": 1}), text("b", z=[2]), text("c", x=None)],
        [text("abc", x={"y": 1}, z=[2])],
    ),
    "the last of an unknown member": ([text("a", x=1), text("b", x=2)], [text("ab", x=2)]),
    "a format said late": ([text("a", format=None), text("b", format="f")], [text("ab", format="f")]),
    "nothing": ([], []),
}


@pytest.mark.parametrize("name", MERGES)
def test_entries_of_a_stream_are_put_together(name: str) -> None:
    """By index, type and id: text is joined, a signature replaced, and everything else kept."""
    pieces, entries = MERGES[name]
    assert merged(pieces)[1] == entries


@pytest.mark.parametrize("name", MERGES)
def test_what_each_piece_brings_is_the_readable_text(name: str) -> None:
    """Reasoning text or summary that is new, and which of the two it is."""
    pieces, _ = MERGES[name]
    readable = ("reasoning.text", "reasoning.summary")
    expected = [
        ((piece.get("text") or piece.get("summary") or "") if piece["type"] in readable else "", "summary" in piece)
        for piece in pieces
    ]
    assert merged(pieces)[0] == expected


def test_an_entry_in_one_piece_keeps_its_bytes() -> None:
    """Verbatim, whatever it holds, in memory of its own."""
    raws = [Raw(b'{ "type":"reasoning.text", "x":1.0 ,"text":"\\u0061" }'), Raw(b'{"type":"?","text":[ ]}')]
    merger = DetailsMerger()
    for raw in raws:
        merger.add(raw)
    assert merger.raws() == raws


def test_members_keep_their_order() -> None:
    """Those of the first piece first, then new ones as they came."""
    _, [entry] = merged([{"type": "reasoning.text", "format": "f", "text": "a"}, {**text("b", None), "x": 1}])
    assert list(entry) == ["type", "format", "text", "index", "x"]


def test_a_merger_has_nothing_at_first() -> None:
    """Empty until the first entry."""
    merger = DetailsMerger()
    assert merger.raws() == []
    merger.add(Raw(b'{"type":"reasoning.encrypted","data":"x"}'))
    assert len(merger.raws()) == 1


def test_a_wrong_entry_in_a_stream_is_refused() -> None:
    """By name, with the member."""
    with pytest.raises(DecodeError) as wrong:
        DetailsMerger().add(Raw(b'{"type":"reasoning.text","text":7}'))
    assert wrong.value.place == "/text"


pieces_of_text = st.lists(st.text("ab", max_size=3), min_size=1, max_size=8)


@settings(max_examples=100, deadline=None)
@given(pieces=pieces_of_text)
def test_any_pieces_of_a_text_are_joined(pieces: list[str]) -> None:
    """Repetitions and empty pieces included."""
    brought, [entry] = merged([text(piece, format="anthropic-claude-v1") for piece in pieces])
    assert entry["text"] == "".join(pieces)
    assert [new for new, _ in brought] == pieces


# --- MiniMax: each piece may bring the whole text so far -------------------------------------------------------------

MINIMAX: dict[str, tuple[list[str], list[str]]] = {
    "incremental": (["I ", "think ", "so"], ["I ", "think ", "so"]),
    "incremental repetition": (["no", "no", " more"], ["no", "no", " more"]),
    "incremental after an empty piece": (["", "I ", "think"], ["", "I ", "think"]),
    "incremental repetition after an empty piece": (["", "no", "no", " more"], ["", "no", "no", " more"]),
    "incremental with an empty piece": (["I ", "", "think"], ["I ", "", "think"]),
    "incremental, and then all of it again": (["I ", "think", "I think so"], ["I ", "think", "I think so"]),
    "cumulative": (["I ", "I think ", "I think so"], ["I ", "think ", "so"]),
    "cumulative after an empty piece": (["", "I ", "I think"], ["", "I ", "think"]),
    "cumulative and said again": (["I ", "I think", "I think"], ["I ", "think", ""]),
    "cumulative with an empty end": (["I ", "I think", ""], ["I ", "think", ""]),
    "one piece": (["I think"], ["I think"]),
}


def minimax(piece: str) -> Entry:
    return text(piece, id="reasoning-text-1", format="MiniMax-response-v1")


@pytest.mark.parametrize("name", MINIMAX)
def test_minimax_pieces_are_cumulative_or_not(name: str) -> None:
    """A piece that begins with all the text before it adds only the rest."""
    pieces, new = MINIMAX[name]
    brought, [entry] = merged([minimax(piece) for piece in pieces])
    assert [piece for piece, _ in brought] == new
    assert entry == minimax("".join(new))


def test_other_formats_are_never_cumulative() -> None:
    """A text may well begin with what came before."""
    assert merged([text("a", format="unknown"), text("ab", format="unknown")])[1] == [text("aab", format="unknown")]


@settings(max_examples=100, deadline=None)
@given(pieces=st.lists(st.text("ab", min_size=1, max_size=3), min_size=2, max_size=8))
def test_any_cumulative_minimax_text(pieces: list[str]) -> None:
    """The last piece is the whole text."""
    _, [entry] = merged([minimax(piece) for piece in accumulate(pieces)])
    assert entry == minimax("".join(pieces))


@settings(max_examples=100, deadline=None)
@given(pieces=pieces_of_text)
def test_what_minimax_pieces_bring_adds_up(pieces: list[str]) -> None:
    """Whichever they are taken for, readers of the deltas and of the entry see the same text."""
    brought, [entry] = merged([minimax(piece) for piece in pieces])
    assert entry["text"] == "".join(new for new, _ in brought)
