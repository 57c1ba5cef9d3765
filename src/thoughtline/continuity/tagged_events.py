"""Thinking tags in typed values: the events of a stream, the items of a turn, a whole reply.

For lanes that are translated, and for formats in which reasoning is an item of its own. Taking markers out changes
texts and nothing else; lifting makes several items of one text, so that positions are counted anew.
"""

from __future__ import annotations

from msgspec.structs import replace

from thoughtline.continuity.tagged_streams import LIFTED_IN_PLACE, edit_whole
from thoughtline.continuity.tags import Run, Scanner, TagMode, split
from thoughtline.formats import FORMATS
from thoughtline.providers import Dialect
from thoughtline.values.events import CallDelta, Event, ItemDone, ReasoningDelta, TextDelta, TurnDone
from thoughtline.values.items import NO_RAW, UNKNOWN_FORMAT, Item, ReasoningFormat, ReasoningText, Text
from thoughtline.values.turns import FormatName, Reply


class _OpenText:
    """A text that grows: what is held back of it, and the items it has become so far."""

    def __init__(self, mode: TagMode) -> None:
        self.scanner = Scanner(mode)
        self.held = ""
        self.segments = 0
        self.is_touched = False
        self.words: list[str] = []
        self.is_lifted = False
        self.position: int | None = None
        self.item_id: str | None = None
        self.shown_id: str | None = None
        self.has_named = False


class TaggedEvents:
    """Events in, events out."""

    def __init__(self, mode: TagMode, reasoning_format: ReasoningFormat = UNKNOWN_FORMAT) -> None:
        self._mode: TagMode = mode
        self._format = reasoning_format
        self._texts: dict[tuple[int, int], _OpenText] = {}
        self._positions: dict[tuple[int, int], int] = {}
        self._count: dict[int, int] = {}

    def feed(self, event: Event) -> list[Event]:
        """What one event becomes."""
        if self._mode == "off":
            return [event]
        match event:
            case TextDelta():
                return self._delta(event)
            case ItemDone(item=Text(seal=None) as item):
                return self._done(event, item)
            case ReasoningDelta() | CallDelta() | ItemDone():
                return [replace(event, position=self._mapped(event.choice, event.position))]
            case TurnDone():
                return [*self._cut_short(event.choice), event]
            case _:
                return [event]

    def finish(self) -> list[Event]:
        """Texts that nobody ended: what was held back of them."""
        return [one for choice in sorted({choice for choice, _ in self._texts}) for one in self._cut_short(choice)]

    # --- positions ----------------------------------------------------------------------------------------------------

    def _mapped(self, choice: int, position: int) -> int:
        if self._mode != "lift":
            return position
        known = self._positions.get((choice, position))
        if known is None:
            known = self._positions[choice, position] = self._fresh(choice)
        return known

    def _fresh(self, choice: int) -> int:
        found = self._count.get(choice, 0)
        self._count[choice] = found + 1
        return found

    # --- texts --------------------------------------------------------------------------------------------------------

    def _delta(self, event: TextDelta) -> list[Event]:
        text = self._texts.setdefault((event.choice, event.position), _OpenText(self._mode))
        text.held += event.text
        text.item_id = event.item_id
        return self._settled(event.choice, event.position, text, text.scanner.feed(event.text))

    def _settled(self, choice: int, position: int, text: _OpenText, runs: list[Run]) -> list[Event]:
        out: list[Event] = []
        for verdict, count in runs:
            words, text.held = text.held[:count], text.held[count:]
            if verdict == "drop":
                text.is_touched = True
                continue
            is_lifted = verdict == "lift"
            if text.position is None or is_lifted != text.is_lifted:
                out += self._closed(choice, text)
                text.position = self._fresh(choice) if self._mode == "lift" else position
                text.is_lifted = is_lifted
                text.shown_id = None if is_lifted or text.has_named else text.item_id
                text.has_named = text.has_named or not is_lifted
            text.words.append(words)
            delta = ReasoningDelta if is_lifted else TextDelta
            out.append(delta(choice, text.position, words, item_id=text.shown_id))
        return out

    def _closed(self, choice: int, text: _OpenText, whole: Text | None = None) -> list[Event]:
        """The item that is being told is whole."""
        if text.position is None:
            return []
        words, position = "".join(text.words), text.position
        text.words, text.position = [], None
        text.segments += 1
        if text.is_lifted:
            return [ItemDone(choice, position, ReasoningText(words, None, self._format))]
        named = replace(whole, text=words, raw=NO_RAW) if whole is not None else Text(words)
        named = replace(named, id=text.shown_id)  # the id that it was announced with, which is the first text's alone
        return [ItemDone(choice, position, named)]

    def _done(self, event: ItemDone, item: Text) -> list[Event]:
        text = self._texts.pop((event.choice, event.position), None)
        if text is None:
            return self._all_at_once(event, item)
        out = self._settled(event.choice, event.position, text, text.scanner.finish())
        if not text.is_touched and text.segments == 0 and text.position is not None:
            return [*out, ItemDone(event.choice, text.position, item)]
        if text.position is None and text.segments == 0 and self._mode != "lift":
            return [*out, ItemDone(event.choice, event.position, replace(item, text="", raw=NO_RAW))]
        return out + self._closed(event.choice, text, item)

    def _all_at_once(self, event: ItemDone, item: Text) -> list[Event]:
        """A text that came without deltas."""
        parts = split_item(item, self._mode, self._format)
        if self._mode != "lift":
            return [ItemDone(event.choice, event.position, parts[0])]
        return [ItemDone(event.choice, self._fresh(event.choice), part) for part in parts]

    def _cut_short(self, choice: int) -> list[Event]:
        out: list[Event] = []
        for key in [key for key in self._texts if key[0] == choice]:
            text = self._texts.pop(key)
            out += self._settled(choice, key[1], text, text.scanner.finish())
            out += self._closed(choice, text)
        return out


def split_item(item: Text, mode: TagMode, reasoning_format: ReasoningFormat = UNKNOWN_FORMAT) -> tuple[Item, ...]:
    """One text as the items it becomes: itself if it has no tags."""
    scanner = Scanner(mode)
    runs = [*scanner.feed(item.text), *scanner.finish()]
    if item.seal is not None or all(run.verdict == "keep" for run in runs):
        return (item,)
    if mode == "markers":
        return (replace(item, text=split(item.text, mode).visible, raw=NO_RAW),)
    found: list[Item] = []
    at = 0
    for verdict, count in runs:
        words = item.text[at : at + count]
        at += count
        if verdict == "keep":
            found.append(replace(item, text=words, raw=NO_RAW, id=None if found else item.id))
        elif verdict == "lift":
            found.append(ReasoningText(words, None, reasoning_format))
    return tuple(_joined(found))


def _joined(items: list[Item]) -> list[Item]:
    """Neighbours of one kind that a marker stood between are one item."""
    joined: list[Item] = []
    for item in items:
        last = joined[-1] if joined else None
        if (isinstance(item, Text) and isinstance(last, Text)) or (
            isinstance(item, ReasoningText) and isinstance(last, ReasoningText)
        ):
            joined[-1] = replace(last, text=last.text + item.text)
        else:
            joined.append(item)
    return joined


def edit_items(
    items: tuple[Item, ...], mode: TagMode, reasoning_format: ReasoningFormat = UNKNOWN_FORMAT
) -> tuple[Item, ...]:
    """The items of a turn as a client gets them."""
    found: list[Item] = []
    for item in items:
        found += split_item(item, mode, reasoning_format) if isinstance(item, Text) and mode != "off" else (item,)
    return tuple(found)


def shown_items(items: tuple[Item, ...], mode: TagMode, *, shows_seals: bool = True) -> tuple[Item, ...]:
    """The items of a turn for its record: texts as the client was shown them, so that it is known again by them.

    A text that a client got together with its seal was left alone; without `shows_seals` it got the words alone. What
    was lifted is no reasoning of the record's: tags in visible text are never promoted.
    """
    if mode == "off":
        return items
    return tuple(
        replace(item, text=shown, raw=NO_RAW)
        if isinstance(item, Text)
        and (item.seal is None or not shows_seals)
        and (shown := split(item.text, mode).visible) != item.text
        else item
        for item in items
    )


def edit_reply(reply: Reply, mode: TagMode, reasoning_format: ReasoningFormat = UNKNOWN_FORMAT) -> Reply:
    """A whole reply on its way to a client; the very same one if it has no tags."""
    for position, candidate in enumerate(reply.candidates):
        edited = edit_items(candidate.turn.items, mode, reasoning_format)
        if edited != candidate.turn.items:
            reply = reply.with_items(position, edited)
    return reply


def edit_body(format: FormatName, body: bytes, mode: TagMode, dialect: Dialect | None = None) -> bytes:
    """A whole response that stays in its format: in place where that can be, else read and written again."""
    if mode == "off":
        return body
    dialect = dialect or FORMATS[format].dialect
    if mode == "markers" or format in LIFTED_IN_PLACE:
        return edit_whole(
            format, body, mode, dialect.carrier if dialect.carrier == "reasoning" else "reasoning_content"
        )
    bodies = FORMATS[format].bodies
    edited = edit_reply(bodies.decode_response(body, dialect), mode, dialect.reasoning_format)
    return bodies.encode_response(edited, dialect) if edited.is_edited else body
