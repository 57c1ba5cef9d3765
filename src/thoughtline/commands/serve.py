"""`thoughtline serve`: the gateway, and a banner that says how to use it."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
from pathlib import Path

from msgspec.structs import replace
from rich.console import Console
from rich.markup import escape

from thoughtline.addresses import server_url
from thoughtline.catalogue import PROVIDERS
from thoughtline.clients import DEFAULT_URL, MODELS, Address, key_variables
from thoughtline.commands.background import end_with_parent
from thoughtline.commands.options import flags_of, log_options
from thoughtline.commands.with_sim import RunningSim, check_sim, start_sim, to_paste
from thoughtline.gateway.admin_token import FILE_NAME, admin_token
from thoughtline.gateway.checking import check_start
from thoughtline.gateway.masking import masked_url
from thoughtline.gateway.serving import ServeOptions, listen, serve
from thoughtline.settings import Settings, data_directory, home_folder

KEEPS_BODIES = "the last 50 requests are kept in memory with their whole content ([debug] keep_bodies)"


def run(chosen: argparse.Namespace) -> int:
    """Raises what keeps it from starting: `cli` says it, in the form that all commands have."""
    if chosen.while_parent_lives:
        end_with_parent()
    flags, sim = flags_of(chosen), None
    if chosen.sim:
        check_sim(chosen.sim)
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
