"""`thoughtline serve`: the gateway, and a banner that says how to use it."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import sys
from pathlib import Path

from msgspec.structs import replace
from rich.console import Console
from rich.markup import escape

from thoughtline.addresses import server_url
from thoughtline.commands.options import flags_of, log_options
from thoughtline.commands.with_sim import RunningSim, start_sim, to_paste, unknown_sim
from thoughtline.gateway.admin_token import FILE_NAME, admin_token
from thoughtline.gateway.checking import check_start
from thoughtline.gateway.masking import masked_url
from thoughtline.gateway.serving import ServeOptions, listen, serve
from thoughtline.settings import Settings, data_directory
from thoughtline.values.errors import ThoughtlineError

KEEPS_BODIES = "the last 50 requests are kept in memory with all that was said in them ([debug] keep_bodies)"


def run(chosen: argparse.Namespace) -> int:
    flags, sim = flags_of(chosen), None
    if chosen.sim:
        if problem := unknown_sim(chosen.sim):
            sys.stderr.write(f"thoughtline serve: {problem}\n")
            return 2
        sim = start_sim(chosen.sim)
        flags = replace(flags, upstream=sim.url, provider=sim.provider)
    options = ServeOptions(chosen.config, flags, log=log_options(chosen))
    try:
        settings = options.settings()
        folder = data_directory(os.environ, Path.home())
        token = admin_token(settings, folder)
        asyncio.run(check_start(settings, options.mark))
        listener = listen(settings)
    except ThoughtlineError as error:
        remedy = getattr(error, "remedy", "")
        sys.stderr.write(f"thoughtline serve: {error} {remedy}\n".replace(" \n", "\n"))
        return 2
    host, port = listener.getsockname()[:2]
    with listener:
        code = secrets.token_urlsafe(24)
        if options.log.level != "quiet":
            console, url = Console(stderr=True), server_url(host, port)
            show_banner(console, settings, url, code, folder / FILE_NAME)
            if sim is not None:
                show_sim(console, url, sim)
        return 0 if serve(options._replace(admin_token=token, login_code=code), settings, listener) else 1


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
    """Where it is, what it remembers in, and what to paste into three common clients."""
    at = url if settings.default_provider else f"{url}/deepseek"
    rows = [("listening", f"{url}/PROVIDER, or models named provider/model")]
    if settings.default_provider:
        provider = settings.providers[settings.default_provider]
        rows.append(("default", f"{provider.name} at {provider.base_url}"))
    # The link is for a person, not for the log of a service, and good once.
    kept = (
        "the token is in your settings" if settings.server.admin_token is not None else f"the token is in {token_file}"
    )
    if settings.server.admin_token is None and not token_file.exists():
        kept = "no token could be kept: set THOUGHTLINE_ADMIN_TOKEN"
    login = f"{url}/login?token={code}   (once)" if console.is_terminal else f"{url}   ({kept})"
    rows += [
        ("store", masked_url(settings.store_url)),
        ("workers", str(settings.server.workers)),
        ("look", login),
        *([("bodies", KEEPS_BODIES)] if settings.debug.keep_bodies else []),
        ("", ""),
        ("Claude Code", f"ANTHROPIC_BASE_URL={at} claude"),
        ("Codex", f'base_url = "{at}/v1", wire_api = "responses"   in ~/.codex/config.toml'),
        ("OpenAI SDK", f'OpenAI(base_url="{at}/v1")'),
        ("others", "thoughtline connect CLIENT"),
    ]
    console.print("[bold]thoughtline[/bold] remembers what models thought, and puts it back", highlight=False)
    for name, text in rows:
        console.print(f"  [dim]{name:<12}[/dim] {escape(text)}", highlight=False, soft_wrap=True)
