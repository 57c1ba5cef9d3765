"""`<think>…</think>` at the beginning of visible text, for models that are known to put their reasoning there.

Only a tag at the start of the text counts. The reasoning is between the tags, the text after them, both with their
white space: joined again they give the original text, except for white space before the tag and a missing end tag.
"""

from __future__ import annotations

OPEN = "<think>"
CLOSE = "</think>"


def split(text: str) -> tuple[str | None, str]:
    """The reasoning at the beginning of a text (None if there is none), and the rest."""
    body = text.lstrip()
    if not body.startswith(OPEN):
        return None, text
    reasoning, _, rest = body[len(OPEN) :].partition(CLOSE)
    return reasoning, rest


def join(reasoning: str, text: str) -> str:
    return OPEN + reasoning + CLOSE + text


class Splitter:
    """The same for a text that comes in pieces. Holds back only characters that may become a tag."""

    def __init__(self) -> None:
        self._held = ""
        self._state: str = "head"

    def feed(self, piece: str) -> tuple[str, str]:
        """The reasoning and the text that this piece completes."""
        if self._state == "text":
            return "", piece
        self._held += piece
        if self._state == "head":
            body = self._held.lstrip()
            if not body.startswith(OPEN):
                if OPEN.startswith(body):
                    return "", ""
                return "", self._release("text")
            self._held, self._state = body[len(OPEN) :], "reasoning"
        reasoning, found, rest = self._held.partition(CLOSE)
        if found:
            self._held, self._state = "", "text"
            return reasoning, rest
        keep = _possible_tag(reasoning)
        self._held = reasoning[len(reasoning) - keep :]
        return reasoning[: len(reasoning) - keep], ""

    def finish(self) -> tuple[str, str]:
        """The characters held back, when nothing more can come."""
        in_reasoning = self._state == "reasoning"
        held = self._release("text")
        return (held, "") if in_reasoning else ("", held)

    def _release(self, state: str) -> str:
        held, self._held, self._state = self._held, "", state
        return held


def _possible_tag(text: str) -> int:
    """How many characters at the end could be the start of a closing tag."""
    for size in range(min(len(CLOSE) - 1, len(text)), 0, -1):
        if CLOSE.startswith(text[-size:]):
            return size
    return 0
