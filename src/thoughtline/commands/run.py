"""`thoughtline run CLIENT`: start a client with the settings that `connect` prints, without changing its own files."""

from __future__ import annotations

import argparse
import asyncio
import atexit
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from thoughtline.clients import choices_of, key_variables
from thoughtline.clients.launching import Launch, OwnFile, OwnHome, launch_of
from thoughtline.commands.chosen_client import ChosenClient, Key, add_client_options, chosen_client, key_for
from thoughtline.commands.client_files import edited, file_of
from thoughtline.commands.http_client import NO_ANSWER, answer_to
from thoughtline.commands.shims import unwrapped
from thoughtline.settings import data_directory, home_folder, make_private
from thoughtline.terminal import program
from thoughtline.values.errors import Declined

START_SECONDS = 30
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", metavar="CLIENT", help="which client; `thoughtline connect` lists them")
    add_client_options(parser)
    parser.add_argument("--serve", action="store_true", help="also start a gateway, for as long as the client runs")
    parser.add_argument("arguments", nargs="*", metavar="-- ARGS", help="arguments for the client itself")


def run(options: argparse.Namespace) -> int:
    """The exit status is the client's own. Raises `Declined` if it can't be started."""
    chosen = chosen_client(options)
    key = key_for(chosen.address, os.environ)
    launch = launch_of(chosen.client, chosen.address, key.value)
    if launch is None:
        raise Declined(
            400, "not_startable", f"{chosen.client.title} can't be configured by flags or variables.", _by_hand(chosen)
        )
    program = shutil.which(launch.command)
    if program is None:
        install = chosen.client.program.install if chosen.client.program else ""
        raise Declined(404, "not_installed", f"no program {launch.command} in PATH;", f"install it: {install}")
    if not asyncio.run(answers(chosen.gateway)):
        _need_gateway(chosen, options)
    _warn_of_key(chosen, key)
    for choice in choices_of(chosen.client, chosen.address):
        sys.stderr.write(f"thoughtline run: {choice}\n")
    return _become(*made_ready(program, launch, options.arguments, environment_for(launch, chosen.gateway, os.environ)))


def environment_for(launch: Launch, gateway: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with the client's variables. A proxy can't reach a gateway of this machine."""
    kept = {name: value for name, value in environment.items() if name not in launch.without} | launch.variables
    host = urlsplit(gateway).hostname or ""
    if host in ("127.0.0.1", "localhost", "::1") and any(kept.get(name) or kept.get(name.lower()) for name in _PROXIES):
        for name in ("NO_PROXY", "no_proxy"):
            kept[name] = ",".join(dict.fromkeys([*filter(None, kept.get(name, "").split(",")), host]))
    return kept


async def answers(gateway: str) -> bool:
    """Whether a gateway answers."""
    try:
        async with answer_to("GET", f"{gateway}/healthz") as response:
            return response.status == 200
    except NO_ANSWER:
        return False


def _by_hand(chosen: ChosenClient) -> str:
    can_write = any(step.file for step in chosen.client.steps)
    command = f"{program()} connect {chosen.client.name}"
    return f"Change its own settings: {command} --write" if can_write else f"What to set in it: {command}"


def _need_gateway(chosen: ChosenClient, options: argparse.Namespace) -> None:
    if not options.serve:
        remedy = (
            f"Start one in another shell: {program()} serve. For this client alone: --serve. "
            f"At every login: {program()} service install."
        )
        raise Declined(502, "no_gateway", f"No gateway answers at {chosen.gateway}.", remedy)
    if options.url is not None:
        raise Declined(
            400, "not_ours", f"No gateway answers at {chosen.gateway}.", "--serve starts the one in the settings."
        )
    start_gateway(options.config, lambda: asyncio.run(answers(chosen.gateway)))


def start_gateway(config: Path | None, answers: Callable[[], bool]) -> None:
    """Start a gateway and wait until it answers. Its log goes to a file: the terminal is the client's."""
    folder = data_directory(os.environ, home_folder())
    make_private(folder)
    log = folder / "gateway.log"
    words = [sys.executable, "-m", "thoughtline.cli", "serve", "--log", "text", "--while-parent-lives"]
    if config is not None:
        words += ["--config", str(config)]
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=opened, stderr=opened, start_new_session=True
        )
    if os.name == "nt":  # there this process lives as long as the client, and the gateway would not notice its end
        atexit.register(process.terminate)
    until = time.monotonic() + START_SECONDS
    while not answers():
        if process.poll() is not None or time.monotonic() > until:
            raise Declined(500, "no_gateway", f"The gateway did not start. {_last_line(log)}", f"The whole log: {log}")
        time.sleep(0.1)
    sys.stderr.write(f"thoughtline run: started a gateway for the client; its log: {log}\n")


def _last_line(log: Path) -> str:
    return log.read_text("utf-8", "replace").strip().rpartition("\n")[2]


def _warn_of_key(chosen: ChosenClient, key: Key) -> None:
    """Warn if no key is set. A gateway with provider keys, a simulator and a local model need none."""
    provider = chosen.settings.providers.get(chosen.address.base.rpartition("/")[2])
    if key.variable or (provider is not None and not provider.needs_callers_key):
        return
    names = " or ".join(key_variables(chosen.address))
    sys.stderr.write(f"thoughtline run: no key in {names}: the client sends a placeholder\n")


def made_ready(
    program: str, launch: Launch, arguments: list[str], environment: dict[str, str]
) -> tuple[list[str], dict[str, str]]:
    """The words and the environment that start a client, with its files made."""
    first = list(launch.arguments)
    for file in launch.files:
        path = str(_made(file, launch.command))
        if file.name.startswith("-"):
            first += [file.name, path]
        else:
            environment[file.name] = path
    for home in launch.homes:
        environment[home.name] = str(_home(home, launch.command))
    return [program, *first, *launch.words(arguments)], environment


def _become(words: list[str], environment: dict[str, str]) -> int:
    program = words[0]
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name != "nt":  # on Windows exec returns the terminal before the program ends
        os.execve(program, words, environment)
    return subprocess.run([*unwrapped(program), *words[1:]], env=environment).returncode


def _made(file: OwnFile, command: str) -> Path:
    """A file that only its owner can read; the same text gives the same file."""
    path = _folder() / f"{command}-{hashlib.sha256(file.text.encode()).hexdigest()[:12]}.{file.suffix}"
    with _writing(path.parent):
        _write(path, file.text.encode())
    return path


def _home(home: OwnHome, command: str) -> Path:
    """A folder that is the same each time, so that files the client creates in it persist. Apart from the one file that
    is set, it has links to the user's own files; links to deleted files are removed.
    """
    folder, own = _folder() / f"{command}-home", file_of(home.step, home_folder())
    path = file_of(home.step, folder)
    text = edited(home.step, own, own.read_bytes() if own.exists() else None, home.lines)
    with _writing(folder):
        make_private(path.parent)
        for link in path.parent.iterdir():
            if link.is_symlink() and not link.exists():
                link.unlink()
        for entry in own.parent.iterdir() if own.parent.is_dir() else ():
            link = path.parent / entry.name
            if entry.name not in (own.name, path.name) and not os.path.lexists(link):
                _link(link, entry)
        if path.is_symlink():
            path.unlink()  # or the user's own file would be overwritten
        _write(path, text)
    return folder


def _link(link: Path, entry: Path) -> None:
    """Windows requires a privilege for links: without it, copy."""
    try:
        link.symlink_to(entry, target_is_directory=entry.is_dir())
    except (OSError, NotImplementedError):
        if entry.is_dir():
            shutil.copytree(entry, link)
        else:
            shutil.copy2(entry, link)


def _folder() -> Path:
    """The folder for files created for clients."""
    return data_directory(os.environ, home_folder()) / "run"


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        make_private(folder)
        yield
    except OSError as error:
        remedy = "Set XDG_DATA_HOME to a folder that can be written."
        raise Declined(500, "unwritable", f"{folder} can't be written: {error.strerror}.", remedy) from None


def _write(path: Path, data: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
        opened.write(data)
