"""A client for a running gateway's admin API: its URL and token come from the settings or the options."""

from __future__ import annotations

import argparse
import os
from collections.abc import AsyncIterator
from urllib.parse import urlencode

import msgspec

from thoughtline.commands.http_client import NO_ANSWER, answer_to, read_whole
from thoughtline.commands.options import add_config_option
from thoughtline.destinations.addresses import own_url
from thoughtline.gateway.admin.answers import Failure
from thoughtline.gateway.admin_token import admin_token
from thoughtline.settings import Settings, data_directory, home_folder
from thoughtline.values.errors import Declined


def add_gateway_options(parser: argparse.ArgumentParser) -> None:
    """Options for the gateway's URL and token."""
    parser.add_argument("--url", help="a running gateway (default: the one in the settings)")
    parser.add_argument(
        "--token", help="its admin token (default: from the settings, otherwise the one made at the first start)"
    )
    add_config_option(parser)


class AdminClient:
    """Calls the admin API. Raises `Declined` if the gateway does not answer or refuses."""

    def __init__(self, url: str, token: str, instead: str = "") -> None:
        self.url = url.rstrip("/")
        self._headers = [("authorization", f"Bearer {token}")]
        self._instead = instead

    @classmethod
    def of(cls, settings: Settings, options: argparse.Namespace) -> AdminClient:
        """The gateway in the options, else that of the settings."""
        token = options.token or admin_token(settings, data_directory(os.environ, home_folder()))
        instead = "use --store" if hasattr(options, "store") else ""
        return cls(options.url or own_url(settings.server.host, settings.server.port), token, instead)

    async def ask(self, method: str, path: str, query: dict[str, str] | None = None) -> bytes:
        url = f"{self.url}{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            async with answer_to(method, url, self._headers) as response:
                body = await read_whole(response)
        except NO_ANSWER:
            raise self._unreachable() from None
        if response.status != 200:
            raise _refused(response.status, body)
        return body

    async def events(self, path: str) -> AsyncIterator[tuple[str, bytes]]:
        """Server-sent events as they arrive: name and data."""
        try:
            async with answer_to("GET", f"{self.url}{path}", self._headers) as response:
                if response.status != 200:
                    raise _refused(response.status, await read_whole(response))
                rest = b""
                while (piece := await response.read()) is not None:
                    *whole, rest = (rest + piece).split(b"\n\n")
                    for event in whole:
                        if event.startswith(b"event: "):
                            name, _, data = event.partition(b"\n")
                            yield name.removeprefix(b"event: ").decode(), data.removeprefix(b"data: ")
        except NO_ANSWER:
            raise self._unreachable() from None

    def _unreachable(self) -> Declined:
        remedy = (
            f"Start it, name it with --url, or {self._instead}."
            if self._instead
            else "Start it, or name it with --url."
        )
        return Declined(502, "no_gateway", f"No gateway answers at {self.url}.", remedy)


def _refused(status: int, body: bytes) -> Declined:
    try:
        problem = msgspec.json.decode(body, type=Failure).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Declined(status, "refused", f"The gateway answers {status}.", "")
    remedy = "Give its admin token with --token." if status == 401 else problem.remedy
    return Declined(status, problem.code, f"The gateway answers {status}: {problem.message}", remedy)
