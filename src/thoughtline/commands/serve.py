"""`thoughtline serve`: the gateway, and a banner that explains its use."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import secrets
import signal
import socket
import threading
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace
from rich.console import Console
from rich.markup import escape

from thoughtline.clients import DEFAULT_URL, Address, example_models, key_variables
from thoughtline.commands.options import add_log_options, add_server_options, flags_of, log_options
from thoughtline.destinations.addresses import own_url, server_url
from thoughtline.destinations.catalogue import listed
from thoughtline.gateway.admin_token import FILE_NAME, admin_token
from thoughtline.gateway.checking import check_start
from thoughtline.gateway.listening import listen
from thoughtline.gateway.log_writer import LogWriter
from thoughtline.gateway.masking import masked_url
from thoughtline.gateway.serving import ServeOptions, serve
from thoughtline.providers import canonical_name
from thoughtline.settings import Settings, data_directory, home_folder, is_loopback
from thoughtline.terminal import program
from thoughtline.values.errors import Declined
from thoughtline.values.nearest import did_you_mean
from thoughtline_sim.app import sim_server, simulator_app
from thoughtline_sim.simulators import SIMULATORS

_TOOLS = [{"type": "function", "function": {"name": "shell", "parameters": {"type": "object", "properties": {}}}}]
_SCRIPT = "script:\nthink: Two and two are four.\nsay: Four.\n---\nthink: Still four.\nsay: Yes, four."
_QUESTION = {"role": "user", "content": _SCRIPT}
_REST = [{"role": "assistant", "content": "Four."}, {"role": "user", "content": "Are you sure?"}]
_LOOK_SECONDS = 0.5
KEEPS_BODIES = "the last 50 requests are kept in memory with their whole content ([debug] keep_bodies)"


REPLAY_IS = {
    "observe": "only observed: requests go up unchanged; the log and a header say what would have been done",
    "off": "off: nothing is put back or captured ([replay] mode)",
}


class RunningSim(NamedTuple):
    """A running simulator: its URL, its provider, and one of its models."""

    url: str
    provider: str
    model: str


class ListeningPlace(NamedTuple):
    """Where the gateway listens, and the URL for programs on this machine."""

    url: str
    own: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser)
    parser.add_argument(
        "--sim", metavar="NAME", help="use a strict simulator in place of a real provider; no key is needed"
    )
    parser.add_argument(
        "--observe",
        action="store_const",
        const="observe",
        help="change no request; report what would have been done ([replay] mode)",
    )
    parser.add_argument("--while-parent-lives", action="store_true", help=argparse.SUPPRESS)  # for `run --serve`
    add_log_options(parser)


def run(chosen: argparse.Namespace) -> int:
    """Raises any error that prevents the start: `cli` prints it like those of all commands."""
    if chosen.while_parent_lives:
        end_with_parent()
    flags, sim = flags_of(chosen), None
    if chosen.sim:
        sim = start_sim(chosen.sim)
        flags = replace(flags, upstream=sim.url, provider=sim.provider)
    options = ServeOptions(chosen.config, flags, log=log_options(chosen))
    settings = options.settings()
    folder = data_directory(os.environ, home_folder())
    token = admin_token(settings, folder)
    logging.getLogger("thoughtline").addHandler(logging.NullHandler())  # the start itself prints what this would log
    store_works = asyncio.run(check_start(settings, options.mark))
    code = secrets.token_urlsafe(24)
    with listen(settings.server) as listener:
        host, port = listener.getsockname()[:2]
        place = ListeningPlace(server_url(host, port), own_url(host, port))

        def on_up(log: LogWriter) -> None:
            if options.log.level == "quiet":
                return
            console = Console(stderr=True)
            with console.capture() as shown:
                show_banner(
                    console,
                    settings,
                    place,
                    code=code,
                    token_file=folder / FILE_NAME,
                    needs_key=sim is None,
                    store_works=store_works,
                )
                if sim is not None:
                    show_sim(console, place.own, sim)
            log.write(shown.get().encode())

        return 0 if serve(options._replace(admin_token=token, login_code=code), settings, listener, on_up=on_up) else 1


def end_with_parent() -> None:
    """Stop this process, in order, after its parent has exited."""
    parent = os.getppid()

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=look, name="end-with-parent", daemon=True).start()


def start_sim(name: str) -> RunningSim:
    """Serve a simulator on a port that the system chooses, until the process ends. Raises for an unknown name."""
    if name not in SIMULATORS:
        raise Declined(404, "unknown_simulator", f"no simulator {name};", did_you_mean(name, SIMULATORS))
    app = simulator_app(name, seed=time.time_ns())
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    threading.Thread(target=sim_server(app).run, args=([listener],), name=f"sim-{name}", daemon=True).start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    return RunningSim(url, _provider_of(name), SIMULATORS[name].models[0])


def _provider_of(name: str) -> str:
    """Some providers have a simulator for each generation: `deepseek-r1`, `gemini-2.5`."""
    whole = canonical_name(name)
    return whole if whole in listed() else canonical_name(name.partition("-")[0])


def to_paste(url: str, model: str) -> str:
    """Two requests for a shell. The second omits the model's reasoning; the provider gets it all the same."""
    return "\n".join([_curl(url, model, [_QUESTION]), _curl(url, model, [_QUESTION, *_REST])])


def _curl(url: str, model: str, messages: list[dict[str, str]]) -> str:
    body = msgspec.json.encode({"model": model, "tools": _TOOLS, "messages": messages}).decode()
    head = f"curl -si {url}/v1/chat/completions -H 'content-type: application/json' -H 'authorization: Bearer any'"
    return f"{head} -d '{body}'"


def show_sim(console: Console, url: str, sim: RunningSim) -> None:
    """How to use a simulated provider."""
    lines = [
        "",
        f"  {sim.provider} is a strict simulator at {sim.url}: no key is needed.",
        "  Paste both lines into another shell. The second request leaves out the model's reasoning, as many clients",
        "  do; x-thoughtline-replay in its response says what was put back.",
        "",
        to_paste(url, sim.model),
    ]
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def show_banner(
    console: Console,
    settings: Settings,
    place: ListeningPlace,
    *,
    code: str,
    token_file: Path,
    needs_key: bool = True,
    store_works: bool = True,
) -> None:
    """Where it listens, which store it uses, and how to connect common clients."""
    named = settings.default_provider or next(iter(listed()))
    rows = [("listening", f"{place.url}   send requests to {place.own}/PROVIDER, for example /{named}")]
    if not is_loopback(settings.server.host):
        rows.append(("", "other machines can reach it: protect it with client keys and TLS (docs/security.md)"))
    if settings.default_provider:
        provider = settings.providers[settings.default_provider]
        rows.append(("default", f"{provider.name} at {provider.base_url}"))
    rows += [
        ("store", masked_url(settings.store_url) + ("" if store_works else "   (fails now: memory only)")),
        ("workers", str(settings.server.workers)),
        ("dashboard", _login(console, settings, place.own, code=code, token_file=token_file)),
        *([("replay", REPLAY_IS[settings.replay.mode])] if settings.replay.mode != "on" else []),
        *([("bodies", KEEPS_BODIES)] if settings.debug.keep_bodies else []),
        *_ways_in(named, place.own, needs_key=needs_key),
    ]
    console.print("[bold]thoughtline[/bold] remembers what models thought, and puts it back", highlight=False)
    for name, text in rows:
        console.print(f"  [dim]{name:<12}[/dim] {escape(text)}", highlight=False, soft_wrap=True)


def _login(console: Console, settings: Settings, url: str, *, code: str, token_file: Path) -> str:
    """A link for a person, valid once; in the log of a service, the location of the token."""
    if console.is_terminal:
        return f"{url}/login?token={code}   (works once)"
    if settings.server.admin_token is not None:
        return f"{url}   (log in with the token in your settings)"
    if token_file.exists():
        return f"{url}   (log in with the token in {token_file})"
    return f"{url}   (no token could be kept: set THOUGHTLINE_ADMIN_TOKEN)"


def _ways_in(provider: str, url: str, *, needs_key: bool) -> list[tuple[str, str]]:
    """Complete commands to paste: with URL, model and key."""
    address = Address(f"{url}/{provider}", example_models().get(provider, "MODEL"))
    key = f'os.environ["{key_variables(address)[1]}"]' if needs_key else '"any"'
    own = program()
    options = f"--provider {provider}" + (f" --url {url}" if url != DEFAULT_URL else "")
    return [
        ("Claude Code", f"{own} run claude {options}"),
        ("Codex", f"{own} run codex {options}"),
        ("OpenAI SDK", f'OpenAI(base_url="{address.base}/v1", api_key={key})   model="{address.model}"'),
        ("others", f"{own} connect CLIENT {options}"),
    ]
