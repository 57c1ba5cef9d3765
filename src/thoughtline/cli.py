"""The command line. Each command is a row, and a few lines over a function that can be called without it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import NamedTuple, NoReturn

from thoughtline.commands.parser import Parser
from thoughtline.values.errors import ThoughtlineError
from thoughtline.values.nearest import did_you_mean

INTERRUPTED, UNREAD = 128 + 2, 128 + 13
"""What a shell gives for a program that SIGINT or SIGPIPE has ended."""


class Command(NamedTuple):
    """A row of the table. `run` imports what it needs when it runs: a command pays for itself alone."""

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def _audit_arguments(parser: argparse.ArgumentParser) -> None:
    from thoughtline.commands import audit as audit_command

    audit_command.add_arguments(parser)


def _audit(options: argparse.Namespace) -> int:
    from thoughtline.commands import audit as audit_command

    return audit_command.run(options)


def _add_sim_arguments(parser: argparse.ArgumentParser) -> None:
    from thoughtline.commands.options import add_log_options

    parser.add_argument("name", nargs="?", metavar="NAME", help="which provider; --list shows all")
    parser.add_argument("--list", action="store_true", help="list the simulators and their profiles")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8700, help="port to listen on (default: 8700)")
    parser.add_argument("--profile", help="which of the provider's contracts (default: the first one listed)")
    add_log_options(parser)


def _run_sim(chosen: argparse.Namespace) -> int:
    from thoughtline.commands.options import log_options
    from thoughtline_sim.app import serve
    from thoughtline_sim.log import SimLog
    from thoughtline_sim.simulators import SIMULATORS

    if chosen.list:
        for each in SIMULATORS.values():
            profiles = f" [{', '.join(each.profiles)}]" if len(each.profiles) > 1 else ""
            print(f"{each.name:14}{each.about}{profiles}")
        return 0
    row = SIMULATORS.get(chosen.name)
    if row is None or chosen.profile not in (None, *row.profiles):
        known, word = (row.profiles, chosen.profile) if row else (SIMULATORS, chosen.name or "")
        what = f"no {'profile' if row else 'simulator'} {word}" if word else "which provider"
        print(f"thoughtline sim: {what}; {did_you_mean(word, known)}", file=sys.stderr)
        return 2
    serve(
        row.name,
        chosen.profile,
        chosen.host,
        port=chosen.port,
        tell=lambda url: print(f"{row.name} on {url} (a page to look at)"),
        log=SimLog(log_options(chosen)),
    )
    return 0


def _serve_arguments(parser: argparse.ArgumentParser) -> None:
    from thoughtline.commands.options import add_log_options, add_server_options

    add_server_options(parser)
    parser.add_argument(
        "--sim", metavar="NAME", help="use a strict simulator in place of a real provider; no key is needed"
    )
    parser.add_argument("--while-parent-lives", action="store_true", help=argparse.SUPPRESS)  # for `run --serve`
    add_log_options(parser)


def _serve(options: argparse.Namespace) -> int:
    from thoughtline.commands import serve as serve_command

    return serve_command.run(options)


def _no_arguments(parser: argparse.ArgumentParser) -> None:
    """A command without options."""


def _run_demo(chosen: argparse.Namespace) -> int:
    from thoughtline.commands.demo import run

    return run()


def _add_connect_arguments(parser: argparse.ArgumentParser) -> None:
    from thoughtline.commands import connect

    connect.add_arguments(parser)


def _run_connect(chosen: argparse.Namespace) -> int:
    from thoughtline.commands import connect

    return connect.run(chosen)


def _add_run_arguments(parser: argparse.ArgumentParser) -> None:
    from thoughtline.commands import run as run_command

    run_command.add_arguments(parser)


def _run_client(chosen: argparse.Namespace) -> int:
    from thoughtline.commands import run as run_command

    return run_command.run(chosen)


def _add_doctor_arguments(parser: argparse.ArgumentParser) -> None:
    from thoughtline.commands.options import add_server_options

    add_server_options(parser)
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")


def _run_doctor(chosen: argparse.Namespace) -> int:
    from thoughtline.commands.doctor.report import run

    return run(chosen)


def _cache_arguments(parser: argparse.ArgumentParser) -> None:
    from thoughtline.commands import cache as cache_command

    cache_command.add_arguments(parser)


def _cache(options: argparse.Namespace) -> int:
    from thoughtline.commands import cache as cache_command

    return cache_command.run(options)


def _explain_arguments(parser: argparse.ArgumentParser) -> None:
    from thoughtline.commands import explain as explain_command

    explain_command.add_arguments(parser)


def _explain(options: argparse.Namespace) -> int:
    from thoughtline.commands import explain as explain_command

    return explain_command.run(options)


def _add_keys_arguments(parser: argparse.ArgumentParser) -> None:
    from thoughtline.commands.options import add_key_actions

    add_key_actions(parser)


def _run_keys(chosen: argparse.Namespace) -> int:
    from thoughtline.commands.keys import run

    return run(chosen)


def _add_eval_arguments(parser: argparse.ArgumentParser) -> None:
    from thoughtline.commands import handoff_eval

    handoff_eval.add_arguments(parser)


def _run_eval(chosen: argparse.Namespace) -> int:
    from thoughtline.commands import handoff_eval

    return handoff_eval.run(chosen)


def _add_init_arguments(parser: argparse.ArgumentParser) -> None:
    from thoughtline.commands import init

    init.add_arguments(parser)


def _run_init(chosen: argparse.Namespace) -> int:
    from thoughtline.commands import init

    return init.run(chosen)


def _add_completion_arguments(parser: argparse.ArgumentParser) -> None:
    from thoughtline.commands.completion import SHELLS

    parser.add_argument("shell", choices=tuple(SHELLS), metavar="SHELL", help=", ".join(SHELLS))


def _run_completion(chosen: argparse.Namespace) -> int:
    from thoughtline.commands.completion import SHELLS, words_of

    sys.stdout.write(SHELLS[chosen.shell](words_of(parser())))
    return 0


def _run_version(chosen: argparse.Namespace) -> int:
    print(_version())
    return 0


def _version() -> str:
    return f"thoughtline {version('thoughtline')} on Python {'.'.join(map(str, sys.version_info[:3]))}"


COMMANDS: tuple[Command, ...] = (
    Command("serve", "run the gateway", _serve_arguments, _serve),
    Command("demo", "show a session that breaks, and the same one through the gateway", _no_arguments, _run_demo),
    Command("audit", "list what a provider would refuse in a request, where and why", _audit_arguments, _audit),
    Command("run", "start a client so that it uses the gateway", _add_run_arguments, _run_client),
    Command(
        "connect",
        "show what to set in a client so that it uses the gateway, or set it",
        _add_connect_arguments,
        _run_connect,
    ),
    Command(
        "doctor",
        "check settings, store and upstreams, and say how to fix what is wrong",
        _add_doctor_arguments,
        _run_doctor,
    ),
    Command("explain", "show what happened to a request, and why", _explain_arguments, _explain),
    Command("cache", "show what is remembered, or delete it", _cache_arguments, _cache),
    Command("keys", "manage the gateway's own client keys", _add_keys_arguments, _run_keys),
    Command("eval", "measure what checkpoints do for a model that takes over", _add_eval_arguments, _run_eval),
    Command("sim", "run a strict provider simulator on loopback", _add_sim_arguments, _run_sim),
    Command("init", "write a settings file with every setting explained", _add_init_arguments, _run_init),
    Command("completion", "print a completion script for your shell", _add_completion_arguments, _run_completion),
    Command("version", "print the version", _no_arguments, _run_version),
)


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """The commands and their options, or those of one command alone; `docs/cli.md` is made from it."""
    root = Parser(
        prog="thoughtline",
        description="Remembers what a model thought and puts it back where the provider wants it.",
    )
    root.add_argument("--version", action="version", version=_version())
    commands = root.add_subparsers(dest="command", metavar="COMMAND")
    for command in COMMANDS:
        added = commands.add_parser(command.name, help=command.help, description=command.help)
        if only in (None, command.name):
            command.add_arguments(added)
    return root


def program() -> NoReturn:
    """Entry point of the console script: `main`, and an end that native threads can't spoil.

    The HTTP client's threads let go of Python objects whenever they get to it. Should that be while the interpreter
    takes itself apart, CPython before 3.14 aborts ("PyGILState_Release: thread state must be current"), and a command
    that did its work would end by SIGABRT. Every command has closed what it opened when it returns.
    """
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the words of a command line say; gives the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    named = next((word for word in words if not word.startswith("-")), "")
    words, behind = _parted(words) if named == "run" else (words, [])
    root = parser(only=named)
    chosen = root.parse_args(words)
    if behind:
        chosen.arguments = behind
    for command in COMMANDS:
        if command.name == chosen.command:
            return _run(command, chosen)
    root.print_help()
    return 0


def _parted(words: list[str]) -> tuple[list[str], list[str]]:
    """What stands before `--` and behind it, which argparse can't take where options may stand between."""
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def _run(command: Command, chosen: argparse.Namespace) -> int:
    """The command's exit status, also where a person stops it, or stops reading what it says."""
    if hasattr(chosen, "config"):
        _warn_of_settings(chosen)
    try:
        status = command.run(chosen)
        sys.stdout.flush()
    except ThoughtlineError as error:
        from thoughtline.commands import failing

        return failing.tell(command.name, error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # it is flushed once more at the end
        return UNREAD
    return status


def _warn_of_settings(chosen: argparse.Namespace) -> None:
    """Of variables that set nothing, and of a file in the working directory, which is read only if it is named."""
    from thoughtline.settings import home_folder, overlooked_file, strange_variables

    for name, remedy in strange_variables(os.environ).items():
        print(f"thoughtline: {name} sets nothing; {remedy}", file=sys.stderr)
    file = overlooked_file(os.environ, home_folder()) if chosen.config is None else None
    if file is not None:
        words = ["thoughtline", chosen.command, *filter(None, [vars(chosen).get("action")])]
        use = " ".join([*words, "--config", f"./{file}"])
        print(f"thoughtline: ./{file} is not read, since nobody named it. To use it: {use}", file=sys.stderr)


if __name__ == "__main__":
    program()
