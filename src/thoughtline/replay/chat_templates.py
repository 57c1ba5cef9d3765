"""Which earlier reasoning a server's chat template reads: the requests that show it, and how to read the answers.

A template decides silently which reasoning a model sees. llama.cpp renders messages without generating
(`/apply-template`), vLLM counts their tokens (`/tokenize`): reasoning is read if it changes the result. Ollama shows
its template (`/api/show`).
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from thoughtline.formats.json_text import plain_value
from thoughtline.providers import Contract
from thoughtline.providers.contract import Unread, after_last_user, has_calls
from thoughtline.providers.knobs import TEMPLATE_SWITCHES
from thoughtline.providers.row import TemplateAt
from thoughtline.providers.setting_rules import SettingRule
from thoughtline.values.outcome import TurnNote
from thoughtline.values.turns import Transcript

_THOUGHT = "First I compare the two numbers, then I look at the larger one once more."
_USER = {"role": "user", "content": "Which is larger?"}
_CALL = {"id": "call_1", "type": "function", "function": {"name": "compare", "arguments": "{}"}}
_CALLING: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
_RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "9"}
_ANSWER: dict[str, Any] = {"role": "assistant", "content": "Nine."}


class Question(NamedTuple):
    """A POST request to the server, below its root."""

    path: str
    body: dict[str, Any]


class TemplateReading(NamedTuple):
    """The turns whose reasoning is not read, and the switch that makes the template read all of it, if there is one."""

    unread: tuple[Unread, ...] = ()
    switch: SettingRule | None = None


Asking: TypeAlias = Generator[Question, bytes, TemplateReading | None]


def ask(at: TemplateAt, model: str, carrier: str) -> Asking:
    """Yield questions, receive the server's answers (empty if it fails), and return the conclusion, or None if the
    server does not say. `carrier` is the member that reasoning is sent in."""
    if at == "show":
        return _of_go_template(plain_value((yield Question("/api/show", {"model": model})) or b"null"))
    probe = _Probe(at, model, carrier)
    looped = yield from probe.is_read([_USER, _CALLING, _RESULT])
    called = yield from probe.is_read([_USER, _CALLING, _RESULT, _ANSWER, _USER])
    plain = yield from probe.is_read([_USER, _ANSWER, _USER])
    if looped is None or called is None or plain is None:
        return None
    reads: tuple[tuple[Unread, bool], ...] = (("looped", looped), ("called", called), ("plain", plain))
    unread = tuple(kind for kind, is_read in reads if not is_read)
    switch = None if called and plain else (yield from probe.switch())
    return TemplateReading(unread, switch)


class _Probe(NamedTuple):
    at: TemplateAt
    model: str
    carrier: str

    def is_read(self, messages: list[dict[str, Any]], switch: tuple[str, str] | None = None) -> _IsRead:
        """Whether reasoning of the first assistant message changes the result; None if the server does not say."""
        first = next(message for message in messages if message["role"] == "assistant")
        thinking = [{**message, self.carrier: _THOUGHT} if message is first else message for message in messages]
        bare = yield self._question(messages, switch)
        with_thought = yield self._question(thinking, switch)
        before, after = self._rendered(bare), self._rendered(with_thought)
        return None if before is None or after is None else before != after

    def switch(self) -> Generator[Question, bytes, SettingRule | None]:
        """Return the first switch that makes the template read earlier reasoning."""
        for name, value in TEMPLATE_SWITCHES:
            plain = yield from self.is_read([_USER, _ANSWER, _USER], (name, value))
            called = (
                (yield from self.is_read([_USER, _CALLING, _RESULT, _ANSWER, _USER], (name, value))) if plain else 0
            )
            if plain and called:
                return SettingRule(f"chat_template_kwargs.{name}", "default", (value,))
        return None

    def _question(self, messages: list[dict[str, Any]], switch: tuple[str, str] | None) -> Question:
        kwargs = {"chat_template_kwargs": {switch[0]: switch[1] == "true"}} if switch else {}
        return Question(f"/{self.at}", {"model": self.model, "messages": messages, **kwargs})

    def _rendered(self, answer: bytes) -> object:
        """Return the prompt, or its number of tokens."""
        value = plain_value(answer) if answer else None
        return value.get("prompt" if self.at == "apply-template" else "count") if isinstance(value, dict) else None


_IsRead: TypeAlias = Generator[Question, bytes, bool | None]

_ACTION = re.compile(r"\{\{[^{}]{0,400}?\.Thinking\b[^{}]{0,400}?\}\}")
_OF_THE_END = re.compile(r"last", re.IGNORECASE)


def _of_go_template(shown: Any) -> TemplateReading | None:
    """Read Ollama's template. A model without a template for messages is rendered by Ollama's own code, which is not
    known."""
    template = shown.get("template") if isinstance(shown, dict) else None
    if not isinstance(template, str) or ".Messages" not in template or shown.get("renderer"):
        return None
    conditions = [found for found in _ACTION.findall(template) if " if " in found.replace("{{-", "{{ ")]
    if ".Thinking" not in template:
        return TemplateReading(("looped", "called", "plain"))
    if conditions and all(_OF_THE_END.search(one) for one in conditions):
        return TemplateReading(("called", "plain"))
    return TemplateReading()


def unread_turns(transcript: Transcript, notes: Iterable[TurnNote], contract: Contract) -> Iterator[int]:
    """Yield the positions of restored turns whose reasoning the template certainly omits. Some templates keep the
    reasoning of a turn with calls until an answer without calls follows it."""
    turns, start = transcript.turns, after_last_user(transcript.turns)
    positions = {turn.at: position for position, turn in enumerate(turns)}
    answers = [at for at in range(start) if turns[at].role == "assistant" and not has_calls(turns[at])]
    for note in notes:
        position = positions.get(note.at)
        if note.treatment != "restored" or position is None:
            continue
        calls = has_calls(turns[position])
        kind: Unread = "called" if calls else "plain"
        if position >= start:
            kind = "looped"
        is_certain = calls if kind == "looped" else position <= max(answers, default=-1)
        if kind in contract.unread_turns and is_certain:
            yield note.at
