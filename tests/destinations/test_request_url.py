"""Requests recognised by their address, as the gateway would have sent them."""

from __future__ import annotations

import pytest

from thoughtline.destinations.addresses import address
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.destinations.request_url import Server, server_of
from thoughtline.engine import AskedAddress, provider_of, read_address
from thoughtline.values.turns import FormatName

WITH_ADDRESS = [
    (row.name, spoken) for row in PROVIDERS.values() for spoken in row.formats if row.bases.get(spoken, row.base_url)
]


@pytest.mark.parametrize(("name", "format"), WITH_ADDRESS)
def test_what_the_gateway_asks_is_known_by_the_gateways_names(name: str, format: FormatName) -> None:
    """The provider and the endpoint of a record are the same, whichever of both has made it."""
    row = PROVIDERS[name]
    url = address(row, format, "a-model", is_streaming=True, action="generate", query="")
    found = read_address("POST", url)
    assert found is not None
    assert found.format == format
    served = server_of(found)
    assert served.endpoint == row.bases.get(format, row.base_url)
    assert served.provider == name or PROVIDERS[served.provider].base_url == row.base_url


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (
            "https://api.deepseek.com/chat/completions",
            AskedAddress("openai_chat", "https://api.deepseek.com"),
        ),
        (
            "http://127.0.0.1:9/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
            AskedAddress("gemini_generate", "http://127.0.0.1:9", "gemini-3-pro", is_streaming=True),
        ),
        (
            "http://127.0.0.1:9/v1/messages/count_tokens",
            AskedAddress("anthropic_messages", "http://127.0.0.1:9", action="count_tokens"),
        ),
        ("https://api.deepseek.com/v1/models", None),
    ],
)
def test_an_address_says_format_and_model(url: str, told: AskedAddress | None) -> None:
    """The base is what an SDK was given."""
    assert read_address("POST", url) == told
    assert read_address("GET", url) is None


def test_every_place_on_vertex_is_one_endpoint() -> None:
    """As the gateway has it, whichever project and location an address names."""
    place = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5"
    found = read_address("POST", f"{place}/publishers/anthropic/models/claude-x@1:streamRawPredict")
    assert found == AskedAddress("anthropic_messages", place, "claude-x@1", is_streaming=True)
    assert server_of(found) == Server("vertex", PROVIDERS["vertex"].base_url)


def test_an_unlisted_host() -> None:
    """It is called as the gateway calls it, with the base as its endpoint."""
    found = read_address("POST", "https://llm.example/v1/chat/completions")
    assert found is not None
    assert server_of(found) == Server("upstream", "https://llm.example/v1")
    assert provider_of("https://api.moonshot.cn/v1") == "kimi"
