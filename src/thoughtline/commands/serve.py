"""`thoughtline serve`: the gateway, and a banner that says how to use it."""

from __future__ import annotations

import argparse
import asyncio
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

from thoughtline.addresses import server_url
from thoughtline.catalogue import PROVIDERS
from thoughtline.clients import DEFAULT_URL, MODELS, Address, key_variables
from thoughtline.commands.options import add_log_options, add_server_options, flags_of, log_options
from thoughtline.gateway.admin_token import FILE_NAME, admin_token
from thoughtline.gateway.checking import check_start
from thoughtline.gateway.masking import masked_url
from thoughtline.gateway.serving import ServeOptions, listen, serve
from thoughtline.providers import canonical_name
from thoughtline.settings import Settings, data_directory, home_folder
from thoughtline.values.errors import Declined
from thoughtline.values.nearest import did_you_mean
from thoughtline_sim.app import sim_server, simulator_app
from thoughtline_sim.simulators import SIMULATORS

_TOOLS = [{"type": "function", "function": {"name": "shell", "parameters": {"type": "object", "properties": {}}}}]
_QUESTION = {"role": "user", "content": "script:\nthink: Two and two are four.\nsay: Four."}
_REST = [{"role": "assistant", "content": "Four."}, {"role": "user", "content": "Are you sure?"}]
_LOOK_SECONDS = 0.5
KEEPS_BODIES = "the last 50 requests are kept in memory with their whole content ([debug] keep_bodies)"


class RunningSim(NamedTuple):
    """Where a simulator listens, which provider it is, and a model of its."""

    url: str
    provider: str
    model: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser)
    parser.add_argument(
        "--sim", metavar="NAME", help="use a strict simulator in place of a real provider; no key is needed"
    )
    parser.add_argument("--while-parent-lives", action="store_true", help=argparse.SUPPRESS)  # for `run --serve`
    add_log_options(parser)


def run(chosen: argparse.Namespace) -> int:
    """Raises what keeps it from starting: `cli` says it, in the form that all commands have."""
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
    asyncio.run(check_start(settings, options.mark))
    code = secrets.token_urlsafe(24)
    with listen(settings) as listener:
        url = server_url(*listener.getsockname()[:2])

        def on_up() -> None:
            if options.log.level != "quiet":
                console = Console(stderr=True)
                show_banner(console, settings, url, code, folder / FILE_NAME)
                if sim is not None:
                    show_sim(console, url, sim)

        return 0 if serve(options._replace(admin_token=token, login_code=code), settings, listener, on_up=on_up) else 1


def end_with_parent() -> None:
    """Stop this process, in order, once the one that started it has gone."""
    parent = os.getppid()

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=look, name="end-with-parent", daemon=True).start()


def start_sim(name: str) -> RunningSim:
    """Serve a simulator on a port that the system chooses, until the process ends. Raises for one that is none."""
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
    return whole if whole in PROVIDERS else canonical_name(name.partition("-")[0])


def to_paste(url: str, model: str) -> str:
    """Two requests for a shell. The second has forgotten what the model thought; the provider gets it all the same."""
    return "\n".join([_curl(url, model, [_QUESTION]), _curl(url, model, [_QUESTION, *_REST])])


def _curl(url: str, model: str, messages: list[dict[str, str]]) -> str:
    body = msgspec.json.encode({"model": model, "tools": _TOOLS, "messages": messages}).decode()
    head = f"curl -si {url}/v1/chat/completions -H 'content-type: application/json' -H 'authorization: Bearer any'"
    return f"{head} -d '{body}'"


def show_sim(console: Console, url: str, sim: RunningSim) -> None:
    """What to do with a provider that is only played."""
    lines = [
        "",
        f"  {sim.provider} is a strict simulator at {sim.url}: no key is needed.",
        "  Paste both lines into another shell. The second request has lost what the model thought;",
        "  x-thoughtline-replay in its answer says what was put back.",
        "",
        to_paste(url, sim.model),
    ]
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def show_banner(console: Console, settings: Settings, url: str, code: str, token_file: Path) -> None:
    """Where it is, what it remembers in, and how three common clients use it."""
    rows = [("listening", f"{url}/PROVIDER, or models named provider/model")]
    if settings.default_provider:
        provider = settings.providers[settings.default_provider]
        rows.append(("default", f"{provider.name} at {provider.base_url}"))
    rows += [
        ("store", masked_url(settings.store_url)),
        ("workers", str(settings.server.workers)),
        ("dashboard", _login(console, settings, url, code=code, token_file=token_file)),
        *([("bodies", KEEPS_BODIES)] if settings.debug.keep_bodies else []),
        ("", ""),
        *_ways_in(settings.default_provider or next(iter(PROVIDERS)), url),
    ]
    console.print("[bold]thoughtline[/bold] remembers what models thought, and puts it back", highlight=False)
    for name, text in rows:
        console.print(f"  [dim]{name:<12}[/dim] {escape(text)}", highlight=False, soft_wrap=True)


def _login(console: Console, settings: Settings, url: str, *, code: str, token_file: Path) -> str:
    """A link for a person, good once; in the log of a service, where the token is."""
    if console.is_terminal:
        return f"{url}/login?token={code}   (once)"
    if settings.server.admin_token is not None:
        return f"{url}   (the token is in your settings)"
    if token_file.exists():
        return f"{url}   (the token is in {token_file})"
    return f"{url}   (no token could be kept: set THOUGHTLINE_ADMIN_TOKEN)"


def _ways_in(provider: str, url: str) -> list[tuple[str, str]]:
    """Whole lines to paste: address, model and key are all in them."""
    address = Address(f"{url}/{provider}", MODELS.get(provider, "MODEL"))
    key = key_variables(address)[1]
    options = f"--provider {provider}" + (f" --url {url}" if url != DEFAULT_URL else "")
    return [
        ("Claude Code", f"thoughtline run claude {options}"),
        ("Codex", f"thoughtline run codex {options}"),
        ("OpenAI SDK", f'OpenAI(base_url="{address.base}/v1", api_key=os.environ["{key}"])   model="{address.model}"'),
        ("others", f"thoughtline connect CLIENT {options}"),
    ]
