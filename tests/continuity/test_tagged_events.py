"""Thinking tags in typed values: events, items, replies and the bodies of every format."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.continuity.desks import CLAUDE, DEEPSEEK, GEMINI, NOVA, OLLAMA, OPENAI, ChatTurn, Model, encoded, response
from tests.continuity.streams import STREAMS, deltas_of, items_of, plain
from thoughtline.continuity.tagged_events import TaggedEvents, edit_body, edit_items, shown_items
from thoughtline.continuity.tags import TagMode
from thoughtline.formats import FORMATS
from thoughtline.values.events import CallDelta, Event, ItemDone, ReasoningDelta, TextDelta, TurnDone
from thoughtline.values.items import ReasoningText, Seal, Text, ToolCall
from thoughtline.values.turns import Finish, FormatName

TEXT = "a<think>b</think>c"
EVERY = [DEEPSEEK, CLAUDE, GEMINI, OPENAI, OLLAMA, NOVA]
FINISH = TurnDone(0, Finish("stop", "stop"))


def _fed(mode: TagMode, events: list[Event]) -> list[Event]:
    tagged = TaggedEvents(mode)
    return [out for event in events for out in tagged.feed(event)] + tagged.finish()


def _events_of(pieces: list[str]) -> list[Event]:
    return [*(TextDelta(0, 0, piece) for piece in pieces), ItemDone(0, 0, Text("".join(pieces))), FINISH]


def _words(events: list[Event], kind: type[TextDelta] | type[ReasoningDelta]) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


@pytest.mark.parametrize("at", range(len(TEXT) + 1))
def test_markers_go_from_deltas_and_from_the_item(at: int) -> None:
    """Wherever the text is cut."""
    out = _fed("markers", _events_of([TEXT[:at], TEXT[at:]]))
    assert _words(out, TextDelta) == "abc"
    assert [event.item for event in out if isinstance(event, ItemDone)] == [Text("abc")]
    assert out[-1] == FINISH


@pytest.mark.parametrize("at", range(len(TEXT) + 1))
def test_lifted_text_is_an_item_of_reasoning_in_its_place(at: int) -> None:
    """Text, reasoning, text: three items, each with its deltas and ended before the next begins."""
    out = _fed("lift", _events_of([TEXT[:at], TEXT[at:]]))
    assert _words(out, ReasoningDelta) == "b"
    done = [(event.position, event.item) for event in out if isinstance(event, ItemDone)]
    assert done == [(0, Text("a")), (1, ReasoningText("b")), (2, Text("c"))]
    places = [event.position for event in out if isinstance(event, (TextDelta, ReasoningDelta, ItemDone))]
    assert places == sorted(places)


def test_items_after_a_lifted_text_are_counted_again() -> None:
    """A call that was at 1 comes after the items of the text."""
    call = ToolCall("bash", "{}", "c1")
    text = "<think>b</think>c"
    events: list[Event] = [TextDelta(0, 0, text), ItemDone(0, 0, Text(text)), CallDelta(0, 1, "{}", "c1")]
    out = _fed("lift", [*events, ItemDone(0, 1, call), FINISH])
    assert [event.position for event in out if isinstance(event, ItemDone)] == [0, 1, 2]
    assert next(event.position for event in out if isinstance(event, CallDelta)) == 2


def test_untouched_items_are_the_ones_that_came() -> None:
    """With their raw JSON; and in the mode `off` everything is."""
    item = Text("plain", raw=msgspec.Raw(b'{"type":"text","text":"plain"}'))
    for mode in ("off", "markers", "lift"):
        out = _fed(mode, [TextDelta(0, 0, "plain"), ItemDone(0, 0, item), FINISH])
        assert [event.item for event in out if isinstance(event, ItemDone)] == [item]
    events = _events_of([TEXT])
    assert _fed("off", events) == events


def test_the_first_text_keeps_the_id_of_its_item() -> None:
    """Behind lifted reasoning too, and whether it came in pieces or at once."""
    item = Text("<think>b</think>c<think>d</think>e", id="msg_1")
    wanted = (ReasoningText("b"), Text("c", id="msg_1"), ReasoningText("d"), Text("e"))
    assert edit_items((item,), "lift") == wanted
    out = _fed("lift", [TextDelta(0, 0, item.text, item_id="msg_1"), ItemDone(0, 0, item), FINISH])
    assert tuple(event.item for event in out if isinstance(event, ItemDone)) == wanted


def test_what_is_signed_is_not_touched() -> None:
    """A text with a seal is what was signed, or it is nothing."""
    item = Text("<think>x</think>", seal=Seal("s" * 20))
    assert _fed("markers", [ItemDone(0, 0, item)]) == [ItemDone(0, 0, item)]
    assert edit_items((item,), "lift") == (item,)
    assert shown_items((item,), "markers") == (item,)


def test_a_stream_that_is_cut_gives_what_was_held() -> None:
    """Neither an item nor a turn was ended."""
    assert _words(_fed("markers", [TextDelta(0, 0, "a<thin")]), TextDelta) == "a<thin"
    assert _words(_fed("lift", [TextDelta(0, 0, "<think>a<"), TurnDone(0, None)]), ReasoningDelta) == "a<"


def test_a_record_shows_what_its_client_was_shown() -> None:
    """So that the turn is known again; and what was lifted is no reasoning of the record's."""
    items = (ReasoningText("native"), Text(TEXT), ToolCall("bash", "<think>"))
    assert shown_items(items, "markers") == (ReasoningText("native"), Text("abc"), ToolCall("bash", "<think>"))
    assert shown_items(items, "lift") == (ReasoningText("native"), Text("ac"), ToolCall("bash", "<think>"))
    assert shown_items(items, "off") is items


@pytest.mark.parametrize("mode", ["markers", "lift"])
@pytest.mark.parametrize("model", EVERY, ids=lambda model: model.format)
def test_whole_bodies_of_every_format(model: Model, mode: TagMode) -> None:
    """Markers are removed; lifted text becomes reasoning after the existing one."""
    body = encoded(response(model, ChatTurn("assistant", TEXT, "native")))
    row = FORMATS[model.format]
    reply = row.bodies.decode_response(edit_body(model.format, body, mode), row.dialect)
    items = reply.candidates[0].turn.items
    visible = "".join(item.text for item in items if isinstance(item, Text))
    lifted = "".join(item.text for item in items if isinstance(item, ReasoningText)).replace("native", "")
    assert (visible, lifted) == (("abc", "") if mode == "markers" else ("ac", "b"))


@pytest.mark.parametrize("mode", ["off", "markers", "lift"])
@pytest.mark.parametrize("model", EVERY, ids=lambda model: model.format)
def test_bodies_without_tags_keep_their_bytes(model: Model, mode: TagMode) -> None:
    """Byte for byte."""
    body = encoded(response(model, ChatTurn("assistant", "Use `<think>` for a < b.", "<think>")))
    assert edit_body(model.format, body, mode) == body


@pytest.mark.parametrize(("format", "stream"), STREAMS.values(), ids=list(STREAMS))
def test_a_stream_read_lifted_and_written_again(format: FormatName, stream: Any) -> None:
    """For formats in which reasoning has events of its own: read, lifted, written; read again it is all there."""
    row = FORMATS[format]
    for pieces in [[TEXT[:at], TEXT[at:]] for at in range(len(TEXT) + 1)]:
        decoder, encoder = row.stream_decoder(row.dialect), row.stream_encoder(row.dialect)
        events = [*decoder.feed(b"".join(stream(pieces, plain))), *decoder.finish()]
        tagged = TaggedEvents("lift", row.dialect.reasoning_format)
        lifted = [out for event in events for out in tagged.feed(event)] + tagged.finish()
        out = b"".join(encoder.encode(event) for event in lifted) + encoder.finish()
        assert deltas_of(format, out) == ("ac", "b")
        assert items_of(format, out) == ("ac", "b")
