"""The script language: what the model is to say, written into the first user message.

    Weather, please.
    script:
    think: I should look it up.
    call: weather {"city": "Paris"}
    ---
    no-think
    say: It is sunny.

Everything after a line `script:` is the script; `---` divides the model's turns. `docs/simulators.md` lists the words.
A line that is no word of the language goes on with the text of the `think:` or `say:` before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from thoughtline_sim.values import CallTool, FinishWord, Hosted, Piece, Redacted, Say, ScriptedTurn, Think

MARK = "script:"
DIVIDER = "---"
MAX_LONG = 1_000_000
"""Characters of one `long`: enough for the longest reasoning any provider gives, and small enough to be written."""

_WORDS = "The answer must follow from what is known, so one more fact is weighed against the others. "


class _Draft:
    """A turn while its lines are read."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.thinks = True
        self.options: dict[str, int] = {}
        self.finish: FinishWord | None = None
        self.has_ids = True

    def step(self, number: int) -> ScriptedTurn:
        pieces = tuple(self.pieces)
        if self.thinks and not any(isinstance(piece, (Think, Redacted)) for piece in pieces):
            pieces = (Think(f"Turn {number}: what the user wants is clear, and this is the next thing to do."), *pieces)
        return ScriptedTurn(
            pieces,
            self.finish,
            self.options.get("chunk"),
            self.options.get("delay"),
            self.options.get("cut"),
            self.has_ids,
        )


class Word(NamedTuple):
    """A row of the language."""

    name: str
    example: str
    meaning: str
    apply: Callable[[_Draft, str], None]


def _think(draft: _Draft, rest: str) -> None:
    draft.pieces.append(Think(rest))


def _say(draft: _Draft, rest: str) -> None:
    draft.pieces.append(Say(rest))


def _recall(draft: _Draft, rest: str) -> None:
    draft.pieces.append(Say("", rest.strip()))


def _call(draft: _Draft, rest: str) -> None:
    name, _, arguments = rest.partition(" ")
    draft.pieces.append(CallTool(name, arguments.strip() or "{}"))


def _hosted(draft: _Draft, rest: str) -> None:
    name, _, arguments = rest.partition(" ")
    draft.pieces.append(Hosted(name, arguments.strip() or "{}"))


def _redacted(draft: _Draft, rest: str) -> None:
    draft.pieces.append(Redacted(rest or "hidden"))


def _no_think(draft: _Draft, rest: str) -> None:
    draft.thinks = False


def _long(draft: _Draft, rest: str) -> None:
    size = min(_number(rest), MAX_LONG)
    draft.pieces.append(Think((_WORDS * (size // len(_WORDS) + 1))[:size]))


def _no_ids(draft: _Draft, rest: str) -> None:
    draft.has_ids = False


def _stop(draft: _Draft, rest: str) -> None:
    draft.finish = "length" if rest == "length" else None


def _option(name: str) -> Callable[[_Draft, str], None]:
    def apply(draft: _Draft, rest: str) -> None:
        draft.options[name] = _number(rest)

    return apply


WORDS: tuple[Word, ...] = (
    Word("think:", "think: I should look it up.", "reasoning; no text gives a signed block that shows nothing", _think),
    Word("say:", "say: It is sunny.", "text that the user sees", _say),
    Word(
        "recall:",
        r"recall: \b\d{3}\b",
        "says what it finds of a pattern in the system prompt and in reasoning that came back",
        _recall,
    ),
    Word("call:", 'call: weather {"city": "Paris"}', "a tool call; several in one turn are parallel calls", _call),
    Word(
        "hosted:", 'hosted: web_search {"query": "x"}', "a tool that the provider runs itself, and its outcome", _hosted
    ),
    Word("redacted", "redacted", "reasoning that the provider hides", _redacted),
    Word("no-think", "no-think", "a turn without reasoning, as adaptive models have", _no_think),
    Word("long", "long 5000", "reasoning of so many characters", _long),
    Word("no-ids", "no-ids", "calls without ids, where the wire allows it", _no_ids),
    Word("stop:", "stop: length", "the turn ends at the token limit", _stop),
    Word("chunk", "chunk 3", "characters in a delta of this turn's stream", _option("chunk")),
    Word("delay", "delay 20", "milliseconds between the events of this turn's stream", _option("delay")),
    Word("cut", "cut 4", "the stream breaks off after so many events", _option("cut")),
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
    return tuple(draft.step(number) for number, draft in enumerate(drafts, 1))


def _read_line(draft: _Draft, line: str) -> None:
    for word in WORDS:
        head = line.lstrip()
        if head.startswith(word.name) and (word.name.endswith(":") or head[len(word.name) :][:1] in ("", " ", ":")):
            word.apply(draft, head[len(word.name) :].removeprefix(":").removeprefix(" "))
            return
    _go_on(draft, line)


def _go_on(draft: _Draft, line: str) -> None:
    """A line of its own kind belongs to the text above it."""
    if draft.pieces:
        last = draft.pieces[-1]
        if isinstance(last, (Think, Say, Redacted)):
            draft.pieces[-1] = msgspec.structs.replace(last, text=f"{last.text}\n{line}")


def _number(text: str) -> int:
    digits = text.strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0
