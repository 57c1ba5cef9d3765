"""A running gateway, asked as an administrator."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from pyreqwest.client import ClientBuilder
from pyreqwest.exceptions import PyreqwestError

from thoughtline.addresses import own_url
from thoughtline.gateway.admin_token import admin_token
from thoughtline.settings import Settings, data_directory
from thoughtline.values.errors import Declined


def add_gateway_options(parser: argparse.ArgumentParser) -> None:
    """Which gateway, and how it opens."""
    parser.add_argument("--url", help="a running gateway (default: the one of the settings)")
    parser.add_argument(
        "--token", help="its admin token (default: that of the settings, else the one made at its first start)"
    )


class AdminClient:
    """Asks the admin API. `otherwise` is what else could be done if no gateway answers."""

    def __init__(self, url: str, token: str, otherwise: str = "") -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._otherwise = otherwise

    @classmethod
    def of(cls, settings: Settings, options: argparse.Namespace, otherwise: str = "") -> AdminClient:
        token = options.token or admin_token(settings, data_directory(os.environ, Path.home()))
        return cls(options.url or own_url(settings.server.host, settings.server.port), token, otherwise)

    async def ask(self, method: str, path: str) -> bytes:
        """The body of a 200; `Declined` with the status of anything else."""
        async with ClientBuilder().build() as client:
            try:
                response = await client.request(method, self.url + path).bearer_auth(self._token).build().send()
            except PyreqwestError:
                remedy = f"Start it, or name it with --url{self._otherwise}."
                raise Declined(502, "no_gateway", f"No gateway answers at {self.url}.", remedy) from None
            body = (await response.bytes()).to_bytes()
        if response.status != 200:
            remedy = "Give its admin token with --token." if response.status == 401 else ""
            raise Declined(response.status, "refused", f"The gateway answers {response.status}.", remedy)
        return body
