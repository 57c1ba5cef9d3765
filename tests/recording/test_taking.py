"""Taking exchanges as they pass: within a bound, and without a difference to the client."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tests.gateway.gateways import running
from tests.sim.served_simulators import served
from thoughtline.commands.loopback import listening, state_for
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.formats import FORMATS
from thoughtline.recording.form import TakenExchange
from thoughtline.recording.taking import RecordingGateway, TakenExchanges
from thoughtline.settings import Settings

BODY = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "Hi."}]}
HEADERS = {"authorization": "Bearer someone"}


def through(
    url: str, *requests: tuple[str, str, Any], provider: str = ""
) -> tuple[TakenExchanges, list[httpx.Response]]:
    """What is taken of these requests to a recorder in front of a gateway, and what the client gets."""
    taken = TakenExchanges()

    async def ask() -> list[httpx.Response]:
        gateway = RecordingGateway(state_for(Settings(providers=PROVIDERS)), taken, through=url, provider=provider)
        async with listening(gateway) as recorder, httpx.AsyncClient(base_url=recorder, headers=HEADERS) as client:
            return [await client.request(method, path, json=body) for method, path, body in requests]

    return taken, asyncio.run(ask())


def test_what_is_taken() -> None:
    """What is asked of a model, with its answer as the client got it; what else there is passes alone."""
    with running({"deepseek": served("deepseek").url}) as gateway:
        taken, responses = through(
            gateway.url,
            ("POST", "/deepseek/v1/chat/completions?a=1", BODY),
            ("GET", "/deepseek/v1/models", None),
            ("POST", "/deepseek/v1/chat/completions", {**BODY, "stream": True}),
        )
    assert [response.status_code for response in responses] == [200] * 3
    assert responses[0].headers["x-thoughtline-replay"].startswith("restored=0")
    whole, stream = taken.answered
    assert (whole.provider, whole.path, whole.status) == ("deepseek", "/v1/chat/completions?a=1", 200)
    assert bytes(whole.answer) == responses[0].content
    assert bytes(stream.answer) == responses[2].content
    assert whole.headers["authorization"] == "Bearer someone"
    assert bytes(whole.request) == responses[0].request.content


def test_whom_an_address_without_a_name_asks() -> None:
    with running({"deepseek": served("deepseek").url}) as gateway:
        taken, _ = through(gateway.url, ("POST", "/v1/chat/completions", BODY), provider="deepseek")
    assert [one.provider for one in taken.answered] == ["deepseek"]


def test_no_gateway_behind_it() -> None:
    """The client hears that, and what to do."""
    taken, [response] = through("http://127.0.0.1:9", ("POST", "/deepseek/v1/chat/completions", BODY))
    assert response.status_code == 502
    assert response.json()["error"]["code"] == "no_gateway"
    assert [one.status for one in taken.answered] == [502]


@pytest.mark.parametrize("path", ["/api/requests", "/some/page"])
def test_a_recorder_without_a_gateway_is_no_gateway(path: str) -> None:
    """It has no dashboard and manages nothing."""
    _, [response] = through("", ("GET", path, None))
    assert (response.status_code, response.json()["error"]["code"]) == (404, "not_recorded")


def test_a_recording_is_bounded() -> None:
    """An exchange that finds no room is left out whole, and counted; smaller ones still find theirs."""
    taken = TakenExchanges(most_bytes=100)
    small, large, last = (TakenExchange("p", FORMATS["openai_chat"], "/", {}) for _ in range(3))
    for exchange, size in ((small, 40), (large, 90), (last, 40)):
        taken.add(exchange)
        taken.grow(exchange, request=b"x" * 10)
        taken.grow(exchange, answer=b"x" * size)
        taken.grow(exchange, answer=b"")
        exchange.status = 200
    assert taken.answered == [small, last]
    assert taken.left_out == 1
