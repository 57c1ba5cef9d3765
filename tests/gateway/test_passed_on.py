"""A response to a request that is passed on unread says so."""

from __future__ import annotations

import pytest

from tests.gateway.gateways import running
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.faces import HTTP

ASKED = [
    ("xai", "/xai_api.Chat/GetCompletion"),
    ("cohere", "/v2/chat"),
    ("mistral", "/v1/conversations"),
    ("openai", "/v1/embeddings"),
]


async def answer(got: Got, out: Out) -> None:
    await out.whole(200, b"{}")


@pytest.mark.parametrize(("provider", "path"), ASKED)
def test_an_unread_wire(provider: str, path: str) -> None:
    """The header and the log say that nothing was read, so nothing is recorded."""
    with upstream(answer) as up, running({provider: up.url}) as gateway, gateway.listening() as next_line:
        response = HTTP.post(f"{gateway.url}/{provider}{path}", content=b"\x00\x01")
        assert next_line().note == "unread"
    assert response.headers["x-thoughtline-replay"].endswith("unread=1")
    assert up.got[0].body == b"\x00\x01"


def test_asking_for_what_is_there() -> None:
    """A GET has no content to read."""
    with upstream(answer) as up, running({"openai": up.url}) as gateway:
        response = HTTP.get(f"{gateway.url}/openai/v1/files")
    assert "unread" not in response.headers["x-thoughtline-replay"]
