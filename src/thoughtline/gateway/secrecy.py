"""What opens this gateway is no provider's business, wherever in a request's head somebody has put it."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from thoughtline.gateway.access import KnowsKeys
from thoughtline.values.errors import Declined

_BASIC = re.compile(r"\bbasic\s+([A-Za-z0-9+/]+)", re.IGNORECASE)
"""Also behind another scheme, which is what becomes of it for a provider of another format."""

_CLIENT_KEY = re.compile(r"tl-[A-Za-z0-9_-]{49}")


def check_what_goes_up(
    provider: str, url: str, headers: Sequence[tuple[str, str]], token: str | None, keys: KnowsKeys
) -> None:
    """Raises if the admin token or a client key would reach a provider."""
    joined = "\n".join([url, *[value for _, value in headers]])
    if not ("%" in url or (token and token in joined) or _CLIENT_KEY.search(joined) or _BASIC.search(joined)):
        return  # as nearly always
    for text in _texts(url, headers):
        if token and token in text:
            raise Declined(
                403,
                "admin_token",
                f"This is the gateway's admin token, which {provider} must not see.",
                "Ask with a key of the provider's; GET /api/openapi.json lists what the token is for.",
            )
        if any(keys.find(found) for found in _CLIENT_KEY.findall(text)):
            raise Declined(
                403,
                "client_key",
                f"There is a client key of the gateway's where {provider} would see it.",
                "Show it as a bearer token, and nowhere else.",
            )


def _texts(url: str, headers: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield url
    if "%" in url:
        yield unquote(url)
    for _, value in headers:
        yield value
        yield from map(_password, _BASIC.findall(value))


def _password(basic: str) -> str:
    """Who asks and with which password, in the clear; empty if that can't be told."""
    try:
        return b64decode(basic + "==").decode("latin-1")
    except (binascii.Error, ValueError):
        return ""
