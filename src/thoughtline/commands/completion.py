"""`thoughtline completion SHELL`: shell completion for commands, options and their values."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from thoughtline.clients import CLIENTS
from thoughtline.commands.parser import parser as command_parser
from thoughtline_sim.simulators import SIMULATORS

_BASH = """\
# thoughtline completion bash > ~/.local/share/bash-completion/completions/thoughtline
_thoughtline() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" words
    case "${{COMP_WORDS[1]}}:$COMP_CWORD" in
        *:1) words="{commands}" ;;
{rows}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    [[ ${{#COMPREPLY[@]}} -eq 0 ]] && COMPREPLY=($(compgen -f -- "$word"))
}}
complete -o filenames -F _thoughtline thoughtline
"""

_ZSH = """\
#compdef thoughtline
# thoughtline completion zsh > a folder of your $fpath, as _thoughtline
_thoughtline() {{
    local -a found
    if (( CURRENT == 2 )); then
        found=({commands})
    else
        case "$words[2]" in
{rows}
        esac
    fi
    compadd -a found
    _files
}}
_thoughtline "$@"
"""

_FISH = "# thoughtline completion fish > ~/.config/fish/completions/thoughtline.fish\n"


class CommandWords(NamedTuple):
    """A command, its description, and the words that may follow it."""

    name: str
    help: str
    words: tuple[str, ...]


def _filled(template: str, row: str, commands: list[CommandWords]) -> str:
    rows = "\n".join(row.format(name=each.name, words=" ".join(each.words)) for each in commands)
    return template.format(commands=" ".join(each.name for each in commands), rows=rows)


def fish(commands: list[CommandWords]) -> str:
    lines = [_FISH.rstrip()]
    for each in commands:
        about = each.help.replace("'", "\\'")
        lines.append(f"complete -c thoughtline -n __fish_use_subcommand -f -a {each.name} -d '{about}'")
        seen = f"-n '__fish_seen_subcommand_from {each.name}'"
        for word in each.words:
            option = f"-l {word[2:]}" if word.startswith("--") else f"-a {word}"
            lines.append(f"complete -c thoughtline {seen} {option}")
    return "\n".join(lines) + "\n"


SHELLS: dict[str, Callable[[list[CommandWords]], str]] = {
    "bash": partial(_filled, _BASH, '        {name}:*) words="{words}" ;;'),
    "zsh": partial(_filled, _ZSH, "            {name}) found=({words}) ;;"),
    "fish": fish,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(SHELLS), metavar="SHELL", help=", ".join(SHELLS))


def run(options: argparse.Namespace) -> int:
    sys.stdout.write(SHELLS[options.shell](words_of(command_parser())))
    return 0


def words_of(root: argparse.ArgumentParser) -> list[CommandWords]:
    """The commands of a parser, with their options, the values of these, and the names known for some of them."""
    found = []
    for action in root._subparsers._group_actions if root._subparsers else ():  # argparse shows them nowhere else
        helps = {each.dest: each.help or "" for each in getattr(action, "_choices_actions", ())}
        parsers: dict[str, argparse.ArgumentParser] = dict(action.choices or {})
        for name, parser in parsers.items():
            words = (*_options(parser), *_names(name))
            found.append(CommandWords(name, helps.get(name, ""), tuple(dict.fromkeys(words))))
    return found


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from (option for option in action.option_strings if option.startswith("--"))
        yield from map(str, action.choices or ())


def _names(command: str) -> Iterator[str]:
    """Names that a command accepts without listing them in its parser, for better errors."""
    if command in ("connect", "run"):
        yield from (client.name for client in CLIENTS if command == "connect" or client.program)
    elif command == "sim":
        yield from SIMULATORS
