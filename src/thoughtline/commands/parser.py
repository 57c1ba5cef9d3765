"""The commands, and an argument parser that suggests corrections."""

from __future__ import annotations

import argparse
import re
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

from thoughtline.commands.version import version_line
from thoughtline.values.nearest import nearest

_CHOICE = re.compile(r"invalid choice: '(?P<word>[^']*)'")


class Command(NamedTuple):
    """A row of the table. Its module is imported on use: a command only loads its own code."""

    name: str
    help: str
    module: str

    def load(self) -> ModuleType:
        """Its `add_arguments` and its `run`."""
        return import_module(f"thoughtline.commands.{self.module}")


COMMANDS: tuple[Command, ...] = (
    Command("serve", "run the gateway", "serve"),
    Command("demo", "show a session that breaks, and the same one through the gateway", "demo"),
    Command("audit", "list what a provider would refuse in a request, where and why", "audit"),
    Command("run", "start a client so that it uses the gateway", "run"),
    Command("connect", "show what to set in a client so that it uses the gateway, or set it", "connect"),
    Command("service", "start the gateway at every login, or no longer", "service"),
    Command("doctor", "check settings, store and providers, and say how to fix what is wrong", "doctor.report"),
    Command("explain", "show what happened to a request, and why", "explain"),
    Command("facts", "list what is believed of models and hosts, from where and since when; update it", "facts"),
    Command("verify", "prove with your own key what is believed of a provider's model", "verify"),
    Command("record", "write what a client and a provider say into a file, without anything secret", "record"),
    Command("replay", "show what would be sent for each request of a recording, off the network", "replay"),
    Command("cache", "show what is remembered, or delete it", "cache"),
    Command("keys", "manage the gateway's own client keys", "keys"),
    Command("eval", "measure what checkpoints do for a model that takes over", "handoff_eval"),
    Command("sim", "run a strict provider simulator on loopback", "sim"),
    Command("init", "write a settings file with every setting explained", "init"),
    Command("completion", "print a completion script for your shell", "completion"),
    Command("version", "print the version", "version"),
)


class Parser(argparse.ArgumentParser):
    """Its subparsers are of the same kind, and each reports unknown options itself."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        found, unknown = super().parse_known_args(args, namespace)
        strange = next((word for word in unknown if word.startswith("-")), None)
        if strange is not None:
            self.error(f"unrecognized arguments: {strange}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        super().error(message + self._remedy(message))

    def _remedy(self, message: str) -> str:
        choice = _CHOICE.search(message)
        if choice is not None:
            return _meant(choice["word"], [str(word) for action in self._actions for word in action.choices or ()])
        if message.startswith("unrecognized arguments: -"):
            options = [one for one in self._option_string_actions if one not in ("-h", "--help")]
            return _meant(message.rpartition(" ")[2].partition("=")[0], options)
        return ""


def _meant(word: str, known: Any) -> str:
    near = nearest(word, known)
    return f"; did you mean {near}?" if near else ""


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """The commands and their options, or those of one command; `docs/cli.md` is generated from it."""
    root = Parser(
        prog="thoughtline",
        description="Remembers what a model thought and puts it back where the provider wants it.",
    )
    root.add_argument("--version", action="version", version=version_line())
    commands = root.add_subparsers(dest="command", metavar="COMMAND")
    for command in COMMANDS:
        added = commands.add_parser(command.name, help=command.help, description=command.help)
        if only in (None, command.name):
            command.load().add_arguments(added)
    return root
