"""How to start a program so that it uses the gateway: from the steps of its row, without changing its own files."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from thoughtline.clients import Address, Client, fill_words, lines_of
from thoughtline.clients.row import Passing, SetupStep


class OwnFile(NamedTuple):
    """A file for one program only. Its path goes into the variable `name`, or after the flag."""

    name: str
    suffix: str
    text: str


class OwnHome(NamedTuple):
    """A folder in place of the user's home, for the variable `name`: the lines are in the step's own file there, and
    the other files next to it are the user's own.
    """

    name: str
    step: SetupStep
    lines: str


class ShellLines(NamedTuple):
    """The variables that shell lines set, and the commands among them, each split into words."""

    variables: dict[str, str]
    commands: list[list[str]]


class Launch(NamedTuple):
    """A command with its first arguments, the variables to set and to remove, and the files and folders to create."""

    command: str
    arguments: list[str]
    variables: dict[str, str]
    without: tuple[str, ...]
    files: list[OwnFile]
    homes: list[OwnHome]
    choice: tuple[str, ...] = ()
    choosers: tuple[str, ...] = ()

    def words(self, arguments: list[str]) -> list[str]:
        """The user's own arguments, with the model among them if the program expects it there."""
        command = 1 if arguments[:1] and arguments[0] in self.choosers else 0
        is_session = command or not arguments or arguments[0].startswith("-")
        is_named = any(word in ("-m", "--model") or word.startswith("--model=") for word in arguments)
        if not self.choice or not is_session or is_named:
            return arguments
        return [*arguments[:command], *self.choice, *arguments[command:]]


def launch_of(client: Client, address: Address, key: str) -> Launch | None:
    """None for a client without a program, or one that only its own file can set up."""
    if client.program is None:
        return None
    program = client.program
    choice = tuple(fill_words(client, word, address) for word in program.choice)
    launch = Launch(
        program.command, [], {}, program.without, files=[], homes=[], choice=choice, choosers=program.choosers
    )
    for step in client.steps:
        lines = lines_of(client, step, address, key=key)
        if step.language == "shell":
            _obey(launch, shell_lines(lines))
        elif step.passing is not None and step.passing.kind == "home":
            launch.homes.append(OwnHome(step.passing.name, step, lines))
        elif step.passing is not None:
            _pass(launch, step.passing, lines, step.language)
    return launch


def shell_lines(lines: str) -> ShellLines:
    """Read `export NAME=value` lines, and the commands among them."""
    every = list(_commands(lines))
    exported = (word.partition("=")[::2] for words in every if words[0] == "export" for word in words[1:])
    return ShellLines(dict(exported), [words for words in every if words[0] != "export"])


def _commands(lines: str) -> Iterator[list[str]]:
    """Each command, split into words; it continues in the next line while a quote is open."""
    begun = ""
    for line in lines.splitlines():
        begun += f"{line}\n"
        try:
            words = shlex.split(begun)
        except ValueError:
            continue
        begun = ""
        if words:
            yield words


def _obey(launch: Launch, shell: ShellLines) -> None:
    """Only a command line that continues with a flag starts a session; `cline auth` does not."""
    launch.variables.update(shell.variables)
    for command, *arguments in shell.commands:
        if command == launch.command and arguments and arguments[0].startswith("-"):
            launch.arguments.extend(arguments)


def _pass(launch: Launch, passing: Passing, lines: str, suffix: str) -> None:
    if passing.kind == "flags":
        for setting in _settings(tomllib.loads(lines)):
            launch.arguments.extend((passing.name, setting))
    elif passing.kind == "content":
        launch.variables[passing.name] = msgspec.json.encode(msgspec.json.decode(lines)).decode()
    elif passing.script:
        launch.files.append(OwnFile(passing.name, "js", passing.script.replace("<lines>", lines)))
    else:
        launch.files.append(OwnFile(passing.name, suffix, f"{lines}\n"))


def _settings(table: dict[str, Any], path: str = "") -> Iterator[str]:
    """Each value of a document as `dotted.key=value`."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _settings(value, f"{path}{name}.")
        else:
            yield f"{path}{name}={msgspec.json.encode(value).decode()}"
