"""`thoughtline record`: what a client and a provider say to each other, in a file without anything secret in it.

A gateway that changes nothing stands between them, for as long as the client runs. What passes is held in memory; only
what was scrubbed is written.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import signal
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from thoughtline import clients
from thoughtline.clients.launching import Launch, launch_of
from thoughtline.commands.chosen_client import add_model_options, chosen_client, key_for
from thoughtline.commands.loopback import listening, state_for
from thoughtline.commands.options import add_config_option, read_settings
from thoughtline.commands.run import environment_for, made_ready
from thoughtline.commands.shims import unwrapped
from thoughtline.commands.version import package_version
from thoughtline.providers import canonical_name
from thoughtline.recording.form import WriteOptions, recording_of, recording_text
from thoughtline.recording.taking import MAX_BYTES, RecordingGateway, TakenExchanges
from thoughtline.settings import Flags, Settings
from thoughtline.terminal import counted, program
from thoughtline.values.errors import Declined
from thoughtline.values.nearest import did_you_mean

_NOTHING = 1
"""The exit status where no client ran and nothing was recorded."""


class ProgramToStart(NamedTuple):
    """A program with its arguments and its environment."""

    words: list[str]
    environment: dict[str, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_options(parser)
    parser.add_argument("--to", type=Path, metavar="FILE", help="the file to write (default: one named after the time)")
    parser.add_argument(
        "--replace-texts", action="store_true", help="also replace what users, tools and models say, word by word"
    )
    parser.add_argument("--through", metavar="URL", help="record in front of the gateway at this address")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: the system chooses)")
    add_config_option(parser)
    parser.add_argument(
        "arguments",
        nargs="*",
        metavar="-- CLIENT ARGS",
        help="a client that `thoughtline connect` lists, or any program, with its arguments; without one, it records "
        "until Ctrl-C",
    )


def run(options: argparse.Namespace) -> int:
    """The exit status is the client's own."""
    file: Path = options.to or Path(time.strftime("thoughtline-recording-%Y%m%d-%H%M%S.json"))
    if file.exists():
        raise Declined(409, "file_exists", f"{file} exists.", "Name another with --to.")
    if not file.parent.is_dir():
        raise Declined(404, "no_folder", f"There is no folder {file.parent}.", "Name another with --to.")
    settings = recording_settings(read_settings(options, Flags()), options)
    taken = TakenExchanges()
    recorded = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    status = asyncio.run(_record(options, settings, taken))
    if not taken.answered:
        sys.stderr.write("thoughtline record: nothing was recorded: no model was asked\n")
        return status if options.arguments else _NOTHING
    notes = [f"{counted(taken.left_out, 'exchange')} left out: a recording holds {MAX_BYTES >> 20} MiB"]
    made = recording_of(
        taken.answered,
        WriteOptions(
            random.SystemRandom(),
            recorded,
            package_version(),
            replaces_texts=options.replace_texts,
            notes=notes if taken.left_out else (),
        ),
    )
    write(file, recording_text(made))
    _print(f"wrote {counted(len(taken.answered), 'exchange')} to {file}; look at it before you send it to anybody")
    for note in made["notes"]:
        _print(note)
    _print(f"what would be sent for it: {program()} replay {file}")
    return status


def recording_settings(settings: Settings, options: argparse.Namespace) -> Settings:
    """The user's own, but that nothing is changed on the way or remembered. Raises for an unknown provider."""
    named = canonical_name(options.provider) if options.provider else settings.default_provider
    if named is not None and named not in settings.providers:
        problem = f"no provider {options.provider};"
        raise Declined(404, "unknown_provider", problem, did_you_mean(options.provider, settings.providers))
    if options.through and urlsplit(options.through).scheme not in ("http", "https"):
        raise Declined(400, "bad_url", f"{options.through} is no address.", "Write it as http://127.0.0.1:8642.")
    plain = {
        name: replace(provider, replay="off", continuity="off", tags="off", content="native")
        for name, provider in settings.providers.items()
    }
    off = replace(settings.replay, mode="off")
    return replace(settings, providers=plain, replay=off, default_provider=named, store_url="memory://")


def write(file: Path, data: bytes) -> None:
    """For its owner alone; never over another file."""
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            opened.write(data)
    except OSError as error:
        raise Declined(500, "unwritable", f"{file} can't be written: {error.strerror}.", "") from None


async def _record(options: argparse.Namespace, settings: Settings, taken: TakenExchanges) -> int:
    """Serve until the client ends, or a signal comes; the exit status."""
    through = (options.through or "").rstrip("/").removesuffix("/v1")
    gateway = RecordingGateway(state_for(settings), taken, through=through, provider=settings.default_provider or "")
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    async with listening(gateway, options.port) as url:
        command = command_for(options, url) if options.arguments else None
        if command is None:
            base = f"{url}/{canonical_name(options.provider)}" if options.provider else f"{url}/PROVIDER"
            _print(f"listening on {base}; Ctrl-C ends it and writes the file")
            with _signals(lambda number: loop.call_soon_threadsafe(stopped.set)):
                await stopped.wait()
            return 0
        process = await asyncio.create_subprocess_exec(*command.words, env=command.environment)
        with _signals(lambda number: _pass_on(process, number)):
            status = await process.wait()
        return status if status >= 0 else 128 - status


def command_for(options: argparse.Namespace, url: str) -> ProgramToStart:
    """The client of this name, set as `thoughtline run` sets it; else the program of this name, with the address in
    the variables that SDKs read. Raises `Declined` if it can't be started."""
    name, arguments = options.arguments[0], options.arguments[1:]
    if clients.find(name) is None:
        base = f"{url}/{canonical_name(options.provider)}" if options.provider else url
        return ProgramToStart([*unwrapped(_found(name)), *arguments], _with_addresses(base, url))
    chosen = chosen_client(argparse.Namespace(**{**vars(options), "client": name, "url": url, "context": None}))
    launch = launch_of(chosen.client, chosen.address, key_for(chosen.address, os.environ).value)
    if launch is None:
        remedy = f"Record without it, and set it by hand: {program()} connect {name} --url {url}"
        raise Declined(
            400, "not_startable", f"{chosen.client.title} can't be configured by flags or variables.", remedy
        )
    environment = environment_for(launch, chosen.gateway, os.environ)
    words, environment = made_ready(_found(launch.command), launch, arguments, environment)
    return ProgramToStart([*unwrapped(words[0]), *words[1:]], environment)


def _found(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Declined(404, "not_installed", f"no program {name} in PATH, and no client of this name;", "")
    return found


def _with_addresses(base: str, url: str) -> dict[str, str]:
    variables = {
        "OPENAI_BASE_URL": f"{base}/v1",
        "OPENAI_API_BASE": f"{base}/v1",
        "ANTHROPIC_BASE_URL": base,
        "GOOGLE_GEMINI_BASE_URL": base,
        "THOUGHTLINE_RECORDS_AT": base,
    }
    return environment_for(Launch("", [], variables, (), files=[], homes=[]), url, os.environ)


@contextmanager
def _signals(handle: Callable[[int], object]) -> Iterator[None]:
    """While a client runs, what ends it does not end us: the file is still to be written."""

    def on_signal(number: int, _: FrameType | None) -> None:
        handle(number)

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _pass_on(process: Process, number: int) -> None:
    """A terminal's Ctrl-C reaches the client by itself."""
    if number == signal.SIGTERM and process.returncode is None:
        process.terminate()


def _print(words: str) -> None:
    sys.stderr.write(f"thoughtline record: {words}\n")
    sys.stderr.flush()
