"""Sends requests to providers, and gives each failure a verdict. `http_client.py` is the HTTP client,
`upstream_socket.py` sends over a WebSocket."""

from __future__ import annotations

from thoughtline.destinations.catalogue import Provider
from thoughtline.gateway.access import Neighbours
from thoughtline.gateway.connecting import ConnectFailed
from thoughtline.gateway.http_client import HttpClient, UpstreamCut, UpstreamResponse
from thoughtline.gateway.in_flight import InFlight
from thoughtline.gateway.signing import Signers
from thoughtline.gateway.verdicts import broken_off, late, unreachable


class Upstreams:
    """Everything that requests to providers share."""

    def __init__(self, in_flight: InFlight | None = None) -> None:
        self.in_flight = in_flight or InFlight()
        self.client = HttpClient(self.in_flight.most_idle)
        self.neighbours = Neighbours()
        self.signers = Signers()

    async def send(
        self, provider: Provider, method: str, url: str, headers: list[tuple[str, str]], body: bytes
    ) -> UpstreamResponse:
        """Send a request, and return when the provider has begun to answer. Raises `Declined` if it does not."""
        try:
            return await self.client.send(method, url, headers, body, timeouts=provider.timeouts)
        except ConnectFailed as failed:
            raise unreachable(provider.name, url, failed) from None
        except TimeoutError:
            raise late(provider.name) from None
        except UpstreamCut:
            raise broken_off(provider.name) from None

    async def close(self) -> None:
        self.client.close()
