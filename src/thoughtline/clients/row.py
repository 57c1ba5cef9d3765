"""A client as a row of data."""

from __future__ import annotations

from typing import Literal, NamedTuple

from thoughtline.values.turns import FormatName

Language = Literal["shell", "json", "toml", "yaml", "python", "words"]

CHAT: FormatName = "openai_chat"
RESPONSES: FormatName = "openai_responses"
MESSAGES: FormatName = "anthropic_messages"
GEMINI: FormatName = "gemini_generate"
CODE_ASSIST: FormatName = "gemini_code_assist"

SHELL = "In the shell that starts it:"


class SetupStep(NamedTuple):
    """Lines, and where they go."""

    where: str
    language: Language
    lines: str


class Client(NamedTuple):
    """A row. `provider` is the one it is pointed at if none is named; `habit` is what it does to reasoning; `tried`, as
    which version it went through a gateway, and how. `agents` are how its user agents begin, in small letters."""

    name: str
    title: str
    aliases: tuple[str, ...]
    formats: tuple[FormatName, ...]
    provider: str
    steps: tuple[SetupStep, ...]
    habit: str
    notes: tuple[str, ...] = ()
    tried: str = ""
    agents: tuple[str, ...] = ()
