"""Thinking tags in typed values: the events of a stream, the items of a turn, a whole reply.

For translated answers, and for formats in which reasoning is an item of its own. Removing markers changes only texts;
lifting splits one text into several items, so positions are counted again.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.continuity.tagged_streams import edit_whole, edits_in_place
from thoughtline.continuity.tags import Run, Scanner, TagMode, visible_text
from thoughtline.formats import FORMATS
from thoughtline.providers import Dialect
from thoughtline.values.events import CallDelta, Event, ItemDone, ReasoningDelta, TextDelta, TurnDone
from thoughtline.values.items import NO_RAW, UNKNOWN_FORMAT, Item, ReasoningFormat, ReasoningText, Text
from thoughtline.values.turns import FormatName, Reply


class _OpenText(Struct):
    """A text under construction, and the item made from it. Only the first text keeps the original id."""

    scanner: Scanner
    next_id: str | None
    id: str | None = None
    position: int | None = None
    words: list[str] = []
    is_lifted: bool = False
    is_touched: bool = False
    has_begun: bool = False


class TaggedEvents:
    """Edits events: events in, events out."""

    def __init__(self, mode: TagMode, reasoning_format: ReasoningFormat = UNKNOWN_FORMAT) -> None:
        self._mode: TagMode = mode
        self._format = reasoning_format
        self._texts: dict[tuple[int, int], _OpenText] = {}
        self._positions: dict[tuple[int, int], int] = {}
        self._count: dict[int, int] = {}

    def feed(self, event: Event) -> list[Event]:
        """The events that replace one event."""
        if self._mode == "off":
            return [event]
        match event:
            case TextDelta():
                at = (event.choice, event.position)
                text = self._texts.setdefault(at, _OpenText(Scanner(self._mode), event.item_id))
                return self._edited(at, text, text.scanner.feed(event.text))
            case ItemDone(item=Text(seal=None) as item):
                return self._done(event, item)
            case ReasoningDelta() | CallDelta() | ItemDone():
                return [replace(event, position=self._mapped(event.choice, event.position))]
            case TurnDone():
                return [*self._cut_short(event.choice), event]
            case _:
                return [event]

    def finish(self) -> list[Event]:
        """The held-back rest of texts that were never closed."""
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

    def _edited(self, at: tuple[int, int], text: _OpenText, runs: list[Run]) -> list[Event]:
        """The decided part of a text, as deltas of the items that it becomes."""
        choice, position = at
        out: list[Event] = []
        for verdict, words in runs:
            if verdict == "drop":
                text.is_touched = True
                continue
            if text.position is None or (verdict == "lift") != text.is_lifted:
                out += self._closed(choice, text)
                text.position = self._fresh(choice) if self._mode == "lift" else position
                text.has_begun = True
                text.is_lifted = verdict == "lift"
                if not text.is_lifted:
                    text.id, text.next_id = text.next_id, None
            text.words.append(words)
            if text.is_lifted:
                out.append(ReasoningDelta(choice, text.position, words))
            else:
                out.append(TextDelta(choice, text.position, words, item_id=text.id))
        return out

    def _closed(self, choice: int, text: _OpenText) -> list[Event]:
        """The open item is complete."""
        if text.position is None:
            return []
        words, position = "".join(text.words), text.position
        text.words, text.position, text.is_touched = [], None, True
        made = ReasoningText(words, None, self._format) if text.is_lifted else Text(words, id=text.id)
        return [ItemDone(choice, position, made)]

    def _done(self, event: ItemDone, item: Text) -> list[Event]:
        at = (event.choice, event.position)
        text = self._texts.pop(at, None)
        if text is not None:
            return [*self._edited(at, text, text.scanner.finish()), *self._ended(event, item, text)]
        if not item.text:
            return [replace(event, position=self._mapped(*at))]
        text = _OpenText(Scanner(self._mode), item.id)
        edited = self._edited(at, text, [*text.scanner.feed(item.text), *text.scanner.finish()])
        return [one for one in (*edited, *self._ended(event, item, text)) if isinstance(one, ItemDone)]

    def _ended(self, event: ItemDone, item: Text, text: _OpenText) -> list[Event]:
        """The end of a text; the original item if there was no tag in it."""
        if text.position is not None and not text.is_touched:
            return [replace(event, position=text.position)]
        if not text.has_begun and self._mode != "lift":
            return [replace(event, item=replace(item, text="", raw=NO_RAW))]
        return self._closed(event.choice, text)

    def _cut_short(self, choice: int) -> list[Event]:
        out: list[Event] = []
        for at in [at for at in self._texts if at[0] == choice]:
            text = self._texts.pop(at)
            out += self._edited(at, text, text.scanner.finish())
            out += self._closed(choice, text)
        return out


def edit_items(
    items: tuple[Item, ...], mode: TagMode, reasoning_format: ReasoningFormat = UNKNOWN_FORMAT
) -> tuple[Item, ...]:
    """The items of a turn as the client gets them."""
    tagged = TaggedEvents(mode, reasoning_format)
    done = [one for at, item in enumerate(items) for one in tagged.feed(ItemDone(0, at, item))]
    return tuple(one.item for one in done if isinstance(one, ItemDone))


def shown_items(items: tuple[Item, ...], mode: TagMode, *, shows_seals: bool = True) -> tuple[Item, ...]:
    """The items of a turn for its record: texts as the client saw them, so that the turn is recognized.

    A text that the client got together with its seal was not edited; without `shows_seals` the client got only the
    text. Lifted text is no reasoning of the record: tags in visible text never become reasoning there.
    """
    if mode == "off":
        return items
    return tuple(
        replace(item, text=shown, raw=NO_RAW)
        if isinstance(item, Text)
        and (item.seal is None or not shows_seals)
        and (shown := visible_text(item.text, mode)) != item.text
        else item
        for item in items
    )


def edit_reply(reply: Reply, mode: TagMode, reasoning_format: ReasoningFormat = UNKNOWN_FORMAT) -> Reply:
    """A whole reply for a client; the same object if it has no tags."""
    for position, candidate in enumerate(reply.candidates):
        edited = edit_items(candidate.turn.items, mode, reasoning_format)
        if edited != candidate.turn.items:
            reply = reply.with_items(position, edited)
    return reply


def edit_body(format: FormatName, body: bytes, mode: TagMode, dialect: Dialect | None = None) -> bytes:
    """A whole response in its own format: edited in place if possible, else decoded and encoded again."""
    row = FORMATS[format]
    dialect = dialect or row.dialect
    if mode == "off":
        return body
    if edits_in_place(row.texts, mode, is_stream=False):
        return edit_whole(row.texts, body, mode, dialect)
    edited = edit_reply(row.bodies.decode_response(body, dialect), mode, dialect.reasoning_format)
    return row.bodies.encode_response(edited, dialect) if edited.is_edited else body
