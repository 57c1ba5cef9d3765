"""The client, URL and key that `connect` and `run` use."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import NamedTuple

from thoughtline import clients
from thoughtline.clients import SETTABLE, Address, Client
from thoughtline.commands.options import add_config_option, read_settings
from thoughtline.destinations.addresses import own_url
from thoughtline.providers import canonical_name
from thoughtline.settings import Flags, Settings
from thoughtline.values.errors import Declined
from thoughtline.values.nearest import did_you_mean, nearest


class ChosenClient(NamedTuple):
    """A client and its target."""

    client: Client
    address: Address
    gateway: str
    settings: Settings


class Key(NamedTuple):
    """A key, and the environment variable it comes from; without one it is a placeholder."""

    value: str
    variable: str


def add_client_options(parser: argparse.ArgumentParser) -> None:
    add_model_options(parser)
    parser.add_argument("--context", type=_tokens, metavar="TOKENS", help="the model's context size")
    parser.add_argument("--url", type=_setting, help="the gateway (default: the one in the settings)")
    add_config_option(parser)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Who is to be asked."""
    parser.add_argument(
        "--provider", type=_setting, help="whose models to use (default: the provider that the client is made for)"
    )
    parser.add_argument("--model", type=_setting, help="the model; without --provider it may be PROVIDER/MODEL")


def chosen_client(options: argparse.Namespace) -> ChosenClient:
    """Raises `Declined` for an unknown name."""
    client = clients.find(options.client)
    if client is None:
        near = clients.nearest(options.client)
        remedy = f"did you mean {near}?" if near else "`thoughtline connect` lists them all"
        raise Declined(404, "unknown_client", f"no client {options.client};", remedy)
    settings = read_settings(options, Flags())
    _check_provider(options, settings)
    gateway = options.url or own_url(settings.server.host, settings.server.port)
    address = clients.address_of(client, gateway, options.provider, model=options.model, context=options.context)
    return ChosenClient(client, address, gateway.rstrip("/").removesuffix("/v1"), settings)


def key_for(address: Address, environment: Mapping[str, str]) -> Key:
    """The key in the environment for the gateway, or for the provider."""
    for name in clients.key_variables(address):
        if SETTABLE.fullmatch(environment.get(name, "").strip()):
            return Key(environment[name].strip(), name)
    return Key(clients.KEY, "")


def _check_provider(options: argparse.Namespace, settings: Settings) -> None:
    """The settings list the providers of their own gateway. A gateway given by URL may have others."""
    named = options.provider
    if named is None and "/" in (options.model or "") and options.model not in settings.routes:
        named = options.model.partition("/")[0]
    if named is None or canonical_name(named) in settings.providers:
        return
    problem, remedy = f"no provider {named};", did_you_mean(named, settings.providers)
    if options.url is None:
        raise Declined(404, "unknown_provider", problem, remedy)
    if near := nearest(named, settings.providers):
        sys.stderr.write(f"thoughtline {options.command}: {named} is not built in; did you mean {near}?\n")


def _tokens(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1_000 <= int(text[:12]) <= 100_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of tokens; for example 262144")
    return int(text)


def _setting(text: str) -> str:
    """A value that is safe in any client's file."""
    if not SETTABLE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} can't be written into a settings file")
    return text
