"""The script language: the model's answers, written into the first user message.

    Weather, please.
    script:
    think: I should look it up.
    call: weather {"city": "Paris"}
    ---
    no-think
    say: It is sunny.

Everything after a line `script:` is the script; `---` separates the model's turns. `docs/simulators.md` lists the
words. A line without a word of the language continues the text of the `think:` or `say:` before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from thoughtline_sim.pieces import CallTool, Hosted, Piece, Redacted, Say, ScriptedTurn, Think

MARK = "script:"
DIVIDER = "---"
MAX_LONG = 1_000_000
"""Characters of one `long`: enough for the longest reasoning of any provider, and small enough to send."""

_WORDS = "The answer must follow from what is known, so one more fact is weighed against the others. "


class _Draft:
    """A turn under construction."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.options: dict[str, str] = {}

    def turn(self, number: int) -> ScriptedTurn:
        pieces = tuple(self.pieces)
        has_thought = any(isinstance(piece, (Think, Redacted)) for piece in pieces)
        if "no-think" not in self.options and not has_thought:
            pieces = (Think(f"Turn {number}: what the user wants is clear, and this is the next thing to do."), *pieces)
        chunk_chars, delay_ms, cut_after = (
            number_in(self.options[name]) if name in self.options else None for name in ("chunk", "delay", "cut")
        )
        return ScriptedTurn(
            pieces,
            "length" if self.options.get("stop:") == "length" else None,
            chunk_chars=chunk_chars,
            delay_ms=delay_ms,
            cut_after=cut_after,
            has_ids="no-ids" not in self.options,
        )


class Word(NamedTuple):
    """A row of the language: a piece of the turn, or an option of it."""

    name: str
    example: str
    meaning: str
    piece: Callable[[str], Piece] | None = None


def _named(rest: str) -> tuple[str, str]:
    name, _, arguments = rest.partition(" ")
    return name, arguments.strip() or "{}"


def _long(rest: str) -> Think:
    size = min(number_in(rest), MAX_LONG)
    return Think((_WORDS * (size // len(_WORDS) + 1))[:size])


WORDS: tuple[Word, ...] = (
    Word("think:", "think: I should look it up.", "reasoning; no text gives a signed block that shows nothing", Think),
    Word("say:", "say: It is sunny.", "text that the user sees", Say),
    Word(
        "recall:",
        r"recall: \b\d{3}\b",
        "says what matches a pattern in the system prompt and in reasoning that came back",
        lambda rest: Say("", rest.strip()),
    ),
    Word(
        "call:",
        'call: weather {"city": "Paris"}',
        "a tool call; several in one turn are parallel calls",
        lambda rest: CallTool(*_named(rest)),
    ),
    Word(
        "hosted:",
        'hosted: web_search {"query": "x"}',
        "a tool that the provider runs itself, and its outcome",
        lambda rest: Hosted(*_named(rest)),
    ),
    Word("redacted", "redacted", "reasoning that the provider hides", lambda rest: Redacted(rest or "hidden")),
    Word("no-think", "no-think", "a turn without reasoning, as adaptive models have"),
    Word("long", "long 5000", "reasoning of this many characters", _long),
    Word("no-ids", "no-ids", "calls without ids, where the wire allows it"),
    Word("stop:", "stop: length", "the turn ends at the token limit"),
    Word("chunk", "chunk 3", "characters in a delta of this turn's stream"),
    Word("delay", "delay 20", "milliseconds between the events of this turn's stream"),
    Word("cut", "cut 4", "the stream breaks off after this many events"),
)


def read_script(message: str) -> tuple[ScriptedTurn, ...] | None:
    """The script in a message, or `None` if it has none."""
    lines = message.splitlines()
    mark = next((number for number, line in enumerate(lines) if line.strip().lower() == MARK), None)
    if mark is None:
        return None
    drafts = [_Draft()]
    for line in lines[mark + 1 :]:
        if line.strip() == DIVIDER:
            drafts.append(_Draft())
        else:
            _read_line(drafts[-1], line)
    return tuple(draft.turn(number) for number, draft in enumerate(drafts, 1))


def _read_line(draft: _Draft, line: str) -> None:
    head = line.lstrip()
    for word in WORDS:
        if head.startswith(word.name) and (word.name.endswith(":") or head[len(word.name) :][:1] in ("", " ", ":")):
            rest = head[len(word.name) :].removeprefix(":").removeprefix(" ")
            if word.piece is None:
                draft.options[word.name] = rest
            else:
                draft.pieces.append(word.piece(rest))
            return
    # A line without a word belongs to the text above it.
    if draft.pieces and isinstance(draft.pieces[-1], (Think, Say, Redacted)):
        last = draft.pieces[-1]
        draft.pieces[-1] = msgspec.structs.replace(last, text=f"{last.text}\n{line}")


def number_in(text: str) -> int:
    """The number in a text; 0 for anything else."""
    digits = text.strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0
