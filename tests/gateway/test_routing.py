"""The request that an address means."""

from __future__ import annotations

import pytest

from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.gateway.routing import Route, route_of

CHAT, RESPONSES, MESSAGES = "openai_chat", "openai_responses", "anthropic_messages"
GEMINI, OLLAMA, BEDROCK = "gemini_generate", "ollama_chat", "bedrock_converse"

KNOWN = [
    ("/v1/chat/completions", "generate", CHAT, None, ""),
    ("/chat/completions", "generate", CHAT, None, ""),
    ("/v1/v1/chat/completions", "generate", CHAT, None, ""),
    ("/deepseek/v1/chat/completions", "generate", CHAT, "deepseek", ""),
    ("/deepseek/chat/completions", "generate", CHAT, "deepseek", ""),
    ("/moonshot/v1/chat/completions", "generate", CHAT, "kimi", ""),
    ("/DeepSeek/v1/chat/completions", "generate", CHAT, "deepseek", ""),
    ("/glm/api/paas/v4/chat/completions", "generate", CHAT, "glm", ""),
    ("/v1/responses", "generate", RESPONSES, None, ""),
    ("/openai/v1/responses", "generate", RESPONSES, "openai", ""),
    ("/v1/messages", "generate", MESSAGES, None, ""),
    ("/v1/messages/count_tokens", "count_tokens", MESSAGES, None, ""),
    ("/deepseek/anthropic/v1/messages", "generate", MESSAGES, "deepseek", ""),
    ("/v1beta/models/gemini-3-pro:generateContent", "generate", GEMINI, None, "gemini-3-pro"),
    ("/v1beta/models/gemini/gemini-3-pro:generateContent", "generate", GEMINI, None, "gemini/gemini-3-pro"),
    ("/gemini/v1beta/models/gemini-3-pro:streamGenerateContent", "generate", GEMINI, "gemini", "gemini-3-pro"),
    ("/v1beta/models/ollama/qwen3:14b:generateContent", "generate", GEMINI, None, "ollama/qwen3:14b"),
    ("/gemini/v1/models/gemini-3-pro:countTokens", "count_tokens", GEMINI, "gemini", "gemini-3-pro"),
    ("/api/chat", "generate", OLLAMA, None, ""),
    ("/ollama/api/chat", "generate", OLLAMA, "ollama", ""),
    ("/bedrock/model/us.anthropic.claude%3A0/converse", "generate", BEDROCK, "bedrock", "us.anthropic.claude:0"),
]

PASSED_ON = [
    ("POST", "/deepseek/v1/embeddings", "deepseek", "/v1/embeddings"),
    ("GET", "/deepseek/v1/models/x", "deepseek", "/v1/models/x"),
    ("GET", "/openai/v1/responses/resp_1", "openai", "/v1/responses/resp_1"),
    ("POST", "/openai/v1/responses/resp_1/cancel", "openai", "/v1/responses/resp_1/cancel"),
    ("POST", "/v1/embeddings", None, "/v1/embeddings"),
    ("POST", "/nobody/v1/chat/completions", None, "/nobody/v1/chat/completions"),
    ("DELETE", "/v1/chat/completions", None, "/v1/chat/completions"),
]


@pytest.mark.parametrize(("path", "action", "format", "provider", "model"), KNOWN)
def test_addresses_of_clients(path: str, action: str, format: str, provider: str | None, model: str) -> None:
    """With and without a version or a provider, and with a provider's own base path."""
    route = route_of("POST", path, PROVIDERS)
    assert (route.action, route.format, route.provider, route.model) == (action, format, provider, model)


@pytest.mark.parametrize("path", ["/gemini/v1beta/models/g:streamGenerateContent", "/bedrock/model/m/converse-stream"])
def test_addresses_that_stream(path: str) -> None:
    """Two formats put the choice of streaming in the address."""
    assert route_of("POST", path, PROVIDERS).is_streaming
    assert not route_of("POST", path.replace("streamG", "g").replace("-stream", ""), PROVIDERS).is_streaming


@pytest.mark.parametrize(("method", "path", "provider", "rest"), PASSED_ON)
def test_other_addresses_are_passed_on(method: str, path: str, provider: str | None, rest: str) -> None:
    """An unknown address is passed on unchanged after the provider's name."""
    assert route_of(method, path, PROVIDERS) == Route("passthrough", None, provider, rest)


@pytest.mark.parametrize("path", ["/v1/models", "/models", "/v1beta/models"])
def test_models_are_listed_here(path: str) -> None:
    """Without a provider the gateway makes the list itself."""
    assert route_of("GET", path, PROVIDERS) == Route("models", None, None, path)
    assert route_of("GET", "/deepseek" + path, PROVIDERS) == Route("models", None, "deepseek", path)


@pytest.mark.parametrize("path", ["/v1/responses/responses", "/messages/v1/messages", "/v1x/chat/completions"])
def test_only_versions_stand_before_a_path(path: str) -> None:
    """If no provider is named; anything else is passed on to the default one."""
    assert route_of("POST", path, PROVIDERS).action == "passthrough"


@pytest.mark.parametrize("path", ["/gemini/models/a//b:generateContent", "/gemini/models/:generateContent"])
def test_a_model_has_a_name(path: str) -> None:
    """An address with an empty model part is not an address of the format."""
    assert route_of("POST", path, PROVIDERS).action == "passthrough"
