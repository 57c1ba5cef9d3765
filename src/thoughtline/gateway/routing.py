"""What an address asks for: which format, which provider, which model, or something to pass on as it is. Pure."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Literal, NamedTuple
from urllib.parse import unquote

from thoughtline.replay.detection import ALIASES
from thoughtline.turns import FormatName

Action = Literal["generate", "count_tokens", "models", "passthrough"]


class Route(NamedTuple):
    """`path` is what stands behind the provider's name. `model` and `is_streaming` where the address says them."""

    action: Action
    format: FormatName | None
    provider: str | None
    path: str
    model: str = ""
    is_streaming: bool = False


class _Pattern(NamedTuple):
    path: re.Pattern[str]
    format: FormatName
    action: Action = "generate"


# Clients put the version before a path once, twice or not at all; under a provider's name its own base path may come
# first (`/api/paas/v4`, `/anthropic`, `/compatible-mode/v1`).
_LEAD = r"(?:/[\w.~-]+)*?"
_GEMINI = r"/(?:models|tunedModels)/(?P<model>[^/]+(?:/[^/]+)*)"
_PATTERNS = (
    _Pattern(re.compile(rf"{_LEAD}/chat/completions/?"), "openai_chat"),
    _Pattern(re.compile(rf"{_LEAD}/responses/?"), "openai_responses"),
    _Pattern(re.compile(rf"{_LEAD}/messages/?"), "anthropic_messages"),
    _Pattern(re.compile(rf"{_LEAD}/messages/count_tokens/?"), "anthropic_messages", "count_tokens"),
    _Pattern(re.compile(rf"{_LEAD}{_GEMINI}:(?P<stream>streamG|g)enerateContent"), "gemini_generate"),
    _Pattern(re.compile(rf"{_LEAD}{_GEMINI}:countTokens"), "gemini_generate", "count_tokens"),
    _Pattern(re.compile(rf"{_LEAD}/api/chat/?"), "ollama_chat"),
    _Pattern(re.compile(r"/model/(?P<model>[^/]+)/converse(?P<stream>-stream)?"), "bedrock_converse"),
)
_VERSIONS = re.compile(r"(?:/v\d+(?:beta|alpha)?\d*)*")
_MODELS = re.compile(r"(?:/v\d+(?:beta|alpha)?)*/models/?")


def route_of(method: str, path: str, providers: Container[str]) -> Route:
    """What to do with a request. Whatever is no known address is passed on, if there is anybody to pass it to."""
    first, _, rest = path.lstrip("/").partition("/")
    name = ALIASES.get(first.lower(), first.lower())
    if name in providers:
        return _route(method, "/" + rest, name)
    return _route(method, path, None)


def _route(method: str, path: str, provider: str | None) -> Route:
    if method == "POST":
        for pattern in _PATTERNS:
            found = pattern.path.fullmatch(path)
            if found is not None and (provider is not None or _is_plain(path, pattern.format)):
                named = found.groupdict()
                streams = named.get("stream") in ("streamG", "-stream")
                return Route(pattern.action, pattern.format, provider, path, unquote(named.get("model") or ""), streams)
    if method == "GET" and _MODELS.fullmatch(path):
        return Route("models", None, provider, path)
    return Route("passthrough", None, provider, path)


def _is_plain(path: str, format: FormatName) -> bool:
    """Without a provider's name nothing but versions may stand before the path of a format."""
    tails = {
        "openai_chat": "/chat/completions",
        "openai_responses": "/responses",
        "anthropic_messages": "/messages",
        "gemini_generate": "/models/",
        "ollama_chat": "/api/chat",
        "bedrock_converse": "/model/",
    }
    tail = tails.get(format, "")
    return _VERSIONS.fullmatch(path[: path.find(tail)]) is not None
