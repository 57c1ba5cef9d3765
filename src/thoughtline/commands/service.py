"""`thoughtline service`: a gateway that starts when its user logs in, through systemd or launchd."""

from __future__ import annotations

import argparse
import asyncio
import os
import plistlib
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from thoughtline.commands.options import add_config_option, read_settings
from thoughtline.commands.run import answers
from thoughtline.destinations.addresses import own_url
from thoughtline.settings import Flags, data_directory, home_folder
from thoughtline.terminal import program
from thoughtline.values.errors import Declined

DONE, NOT_RUNNING = 0, 1
LABEL = "dev.thoughtline.gateway"
_UNIT = """\
# Written by `thoughtline service install`; `thoughtline service uninstall` deletes it.
[Unit]
Description=thoughtline, a gateway that remembers what models thought

[Service]
Type=exec
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
# Variables that the settings name, one NAME=value on a line.
EnvironmentFile=-{variables}
Restart=on-failure
# Running streams may finish: 30 s at most.
TimeoutStopSec=45

[Install]
WantedBy=default.target
"""


class Service(NamedTuple):
    """A file that the system reads at login, and the commands that activate it."""

    path: Path
    text: bytes
    start: tuple[tuple[str, ...], ...]
    stop: tuple[tuple[str, ...], ...]
    look: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, about in (
        ("install", "start a gateway now and at every login"),
        ("uninstall", "stop it, and start it no more"),
        ("status", "say whether it is installed and running"),
    ):
        add_config_option(actions.add_parser(name, help=about, description=about))


def run(options: argparse.Namespace) -> int:
    """Exit status: 0 success or running, 1 not running, 2 failure."""
    settings = read_settings(options, Flags())
    url = own_url(settings.server.host, settings.server.port)
    service = service_of(sys.platform, own_command(options.config), home_folder(), os.environ)
    match options.action:
        case "install":
            return _install(service, url)
        case "uninstall":
            return _uninstall(service)
        case _:
            return _status(service, url)


def own_command(config: Path | None) -> list[str]:
    """How the system starts this program, without a shell's folder or PATH."""
    own = Path(sys.argv[0])
    found = own if own.stem == "thoughtline" and own.is_file() else None
    words = [str(found.absolute())] if found else [sys.executable, "-m", "thoughtline.cli"]
    return [*words, "serve", *(["--config", str(config.absolute())] if config else [])]


def service_of(platform: str, command: list[str], home: Path, environment: Mapping[str, str]) -> Service:
    """The service for this system. Raises if it is unknown."""
    if platform == "darwin":
        return _launchd(command, home, environment)
    if platform == "win32":
        line = subprocess.list2cmdline(command)
        remedy = f'Use the Task Scheduler: schtasks /create /sc onlogon /tn thoughtline /tr "{line}"'
        raise Declined(400, "no_service", "There is no service for Windows here.", remedy)
    folder = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    words = " ".join(map(_quoted, command))
    text = _UNIT.format(command=words, variables=folder / "thoughtline" / "thoughtline.env")
    control = ("systemctl", "--user")
    return Service(
        folder / "systemd" / "user" / "thoughtline.service",
        text.encode(),
        start=((*control, "daemon-reload"), (*control, "enable", "--now", "thoughtline.service")),
        stop=((*control, "disable", "--now", "thoughtline.service"),),
        look=(*control, "is-active", "thoughtline.service"),
    )


def _quoted(word: str) -> str:
    """As systemd.service(5) requires: percent signs doubled, spaces within double quotes."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if " " in word else escaped


def _launchd(command: list[str], home: Path, environment: Mapping[str, str]) -> Service:
    path = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    log = data_directory(environment, home) / "gateway.log"
    content = {
        "Label": LABEL,
        "ProgramArguments": command,
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ExitTimeOut": 45,
        "StandardErrorPath": str(log),
    }
    domain = f"gui/{os.getuid() if hasattr(os, 'getuid') else 0}"
    return Service(
        path,
        plistlib.dumps(content),
        start=(("launchctl", "bootstrap", domain, str(path)),),
        stop=(("launchctl", "bootout", f"{domain}/{LABEL}"),),
        look=("launchctl", "print", f"{domain}/{LABEL}"),
    )


def _install(service: Service, url: str) -> int:
    try:
        service.path.parent.mkdir(parents=True, exist_ok=True)
        service.path.write_bytes(service.text)
    except OSError as error:
        remedy = "Make that folder writable for you."
        raise Declined(500, "unwritable", f"{service.path} can't be written: {error.strerror}.", remedy) from None
    sys.stdout.write(f"{service.path} is written\n")
    _do(service.start)
    sys.stdout.write(f"The gateway starts now and at every login, at {url}. To undo: {program()} service uninstall\n")
    return DONE


def _uninstall(service: Service) -> int:
    if not service.path.exists():
        sys.stdout.write("It is not installed: there is nothing to undo.\n")
        return DONE
    try:
        _do(service.stop)
    finally:
        service.path.unlink()
    sys.stdout.write(f"{service.path} is deleted; the gateway starts no more by itself\n")
    return DONE


def _status(service: Service, url: str) -> int:
    is_there = service.path.exists()
    sys.stdout.write(f"installed: {f'yes, {service.path}' if is_there else 'no'}\n")
    if is_there and shutil.which(service.look[0]):
        done = subprocess.run(service.look, capture_output=True, text=True, check=False)
        sys.stdout.write(f"running:   {'yes' if done.returncode == 0 else 'no'}\n")
    is_up = asyncio.run(answers(url))
    sys.stdout.write(f"answers:   {f'yes, at {url}' if is_up else f'no, not at {url}'}\n")
    if not is_up and not is_there:
        sys.stdout.write(f"To have one always: {program()} service install\n")
    return DONE if is_up else NOT_RUNNING


def _do(commands: tuple[tuple[str, ...], ...]) -> None:
    """Run commands of the system. On failure raises with all of them, so that they can be run by hand."""
    by_hand = f"To do it by hand: {' && '.join(map(shlex.join, commands))}"
    for words in commands:
        if shutil.which(words[0]) is None:
            raise Declined(500, "no_service", f"There is no {words[0]} here.", by_hand)
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            errors = done.stderr.strip().splitlines()
            why = errors[-1].rstrip(".") if errors else f"status {done.returncode}"
            problem = f"`{shlex.join(words)}` failed: {why}. Are you logged in to a session of your own?"
            raise Declined(500, "no_service", problem, by_hand)
