"""The system prompt of a request with a text at its end, in each format; every other byte stays."""

from __future__ import annotations

from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import members
from thoughtline.values.items import Item, Text
from thoughtline.values.turns import SYSTEM_MEMBER, Transcript, Turn


def inject(transcript: Transcript, text: str) -> Transcript:
    """The request with a text at the end of its system prompt. No text: the very same request."""
    if not text:
        return transcript
    at = _system_position(transcript)
    if at is None:
        return _with_new_system(transcript, text)
    return transcript.with_items(at, _extended(transcript.turns[at].items, text))


def _system_position(transcript: Transcript) -> int | None:
    """The system prompt: the member beside the conversation, else the last of the system messages that open it."""
    for position, turn in enumerate(transcript.turns):
        if turn.at == SYSTEM_MEMBER:
            return None if _is_unreadable(transcript, turn) else position
    if FORMATS[transcript.format].system != "messages":
        return None
    last = None
    for position, turn in enumerate(transcript.turns):
        if turn.role != "system":
            break
        last = position
    return last


def _is_unreadable(transcript: Transcript, turn: Turn) -> bool:
    """Responses take `instructions` as a list too: nothing that a text could be added to."""
    return FORMATS[transcript.format].system == "text" and not turn.items


def _extended(items: tuple[Item, ...], text: str) -> tuple[Item, ...]:
    """One more text. What stood as a string stays one; blocks keep their bytes, with the marks they carry."""
    last = next((at for at in range(len(items) - 1, -1, -1) if isinstance(items[at], Text)), None)
    known = items[last] if last is not None else None
    if last is None or not isinstance(known, Text) or known.raw:
        return (*items, Text(text))
    longer = replace(known, text=f"{known.text}\n\n{text}" if known.text else text)
    return (*items[:last], longer, *items[last + 1 :])


def _with_new_system(transcript: Transcript, text: str) -> Transcript:
    """A system prompt where there was none: beside the conversation, or as its first message."""
    has_member = any(turn.at == SYSTEM_MEMBER for turn in transcript.turns)
    if not has_member and (FORMATS[transcript.format].system != "messages" or _is_prompt(transcript)):
        turn = Turn("system", (Text(text),), SYSTEM_MEMBER, is_edited=True)
        return replace(transcript, turns=(turn, *transcript.turns))
    head = transcript.turns[: int(has_member)]
    return transcript.with_turns((*head, Turn("system", (Text(text),)), *transcript.turns[len(head) :]))


def _is_prompt(transcript: Transcript) -> bool:
    """Ollama's older address has one `prompt`, and `system` beside it."""
    return "single_prompt" in FORMATS[transcript.format].quirks and "prompt" in members(transcript.body)
