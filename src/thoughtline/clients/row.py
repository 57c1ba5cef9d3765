"""A client as a row of data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from thoughtline.providers.knobs import Style
from thoughtline.values.turns import FormatName

Language = Literal["shell", "json", "toml", "yaml", "python", "words"]

CHAT: FormatName = "openai_chat"
RESPONSES: FormatName = "openai_responses"
MESSAGES: FormatName = "anthropic_messages"
GEMINI: FormatName = "gemini_generate"
CODE_ASSIST: FormatName = "gemini_code_assist"

SHELL = "In the shell that starts it:"


class Passing(NamedTuple):
    """How `thoughtline run` passes a step's lines to a program without changing the program's own file.

    `flags`: each value as `name key=value`; `content`: the text in the variable `name`; `path`: a separate file, named
    by the variable or the flag `name`, with the lines as they are or as `script` has them; `home`: a folder that the
    variable `name` makes the program use as the user's home, with the lines in the step's own file there.
    """

    kind: Literal["flags", "content", "path", "home"]
    name: str
    script: str = ""


class SetupStep(NamedTuple):
    """Lines, and where they go. `file` is the client's own, which `thoughtline connect --write` changes; variables of a
    shell step go into its `env`. `elsewhere` are lines for other providers than the one the client is made for. `kept`
    are top-level members of a file that stay if they exist.
    """

    where: str
    language: Language
    lines: str
    file: str = ""
    passing: Passing | None = None
    elsewhere: str = ""
    kept: tuple[str, ...] = ()

    @property
    def is_alternative(self) -> bool:
        """Whether the steps before it do the same."""
        return self.where.startswith("Or ")


class FormatSetup(NamedTuple):
    """How a client is set to speak a format: `words` for the placeholders in its lines; a line without a value is left
    out.

    `thinking` fills the placeholder of that name if the model thinks only on request and the client does not ask by
    itself: for a Claude with a budget, for one that decides itself, for one at OpenRouter.
    """

    format: FormatName
    words: Mapping[str, str]
    thinking: Mapping[Style, str] = MappingProxyType({})


class Program(NamedTuple):
    """What `thoughtline run` starts. `without` are variables that would override those that it sets.

    `choice` is how its command line names the model, for a program that continues a session with that session's model;
    `choosers` are the commands that accept it, besides the program's name alone.
    """

    command: str
    install: str
    without: tuple[str, ...] = ()
    choice: tuple[str, ...] = ()
    choosers: tuple[str, ...] = ()


class Client(NamedTuple):
    """A row. `provider` is the default; `habit` is what the client does to reasoning; `tried`: the version that went
    through a gateway, and how. `agents` are the beginnings of its user agents, in lower case. `spellings` are how it is
    set to speak its formats, the default first; none: it speaks only one.
    """

    name: str
    title: str
    formats: tuple[FormatName, ...]
    steps: tuple[SetupStep, ...]
    habit: str
    provider: str = "deepseek"
    aliases: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tried: str = ""
    agents: tuple[str, ...] = ()
    program: Program | None = None
    spellings: tuple[FormatSetup, ...] = ()
