"""What an address asks for: which format, which provider, which model, or something to pass on as it is. Pure.

Paths are compared segment by segment, so that the time this takes grows with their length and no faster.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from typing import Literal, NamedTuple
from urllib.parse import unquote

from thoughtline.providers import canonical_name
from thoughtline.values.turns import FormatName

MAX_PATH_BYTES = 2 * 2**10
"""The longest that clients ask for have an ARN of AWS in them, and are a tenth of it."""

Action = Literal["generate", "count_tokens", "models", "passthrough"]


class Route(NamedTuple):
    """`path` is what stands behind the provider's name. `model` and `is_streaming` where the address says them."""

    action: Action
    format: FormatName | None
    provider: str | None
    path: str
    model: str = ""
    is_streaming: bool = False


class _Found(NamedTuple):
    """The address of a format; `lead` is what stands before it."""

    format: FormatName
    lead: Sequence[str] = ()
    action: Action = "generate"
    model: str = ""
    is_streaming: bool = False
    needs_provider: bool = False


class _Tail(NamedTuple):
    segments: list[str]
    format: FormatName
    action: Action = "generate"


_TAILS = (
    _Tail(["chat", "completions"], "openai_chat"),
    _Tail(["responses"], "openai_responses"),
    _Tail(["messages"], "anthropic_messages"),
    _Tail(["messages", "count_tokens"], "anthropic_messages", "count_tokens"),
    _Tail(["api", "chat"], "ollama_chat"),
)
_METHODS: dict[str, tuple[Action, bool]] = {
    "generateContent": ("generate", False),
    "streamGenerateContent": ("generate", True),
    "countTokens": ("count_tokens", False),
}
_MODEL_LISTS = ("models", "tunedModels")
_CONVERSE = {"converse": False, "converse-stream": True}
_LEAD = re.compile(r"[\w.~-]+")
_VERSION = re.compile(r"v[0-9]+(?:(?:beta|alpha)[0-9]*)?")


def route_of(method: str, path: str, providers: Container[str]) -> Route:
    """What to do with a request. Whatever is no known address is passed on, if there is anybody to pass it to."""
    first, _, rest = path.lstrip("/").partition("/")
    name = canonical_name(first)
    if name in providers:
        return _route(method, "/" + rest, name)
    return _route(method, path, None)


def _route(method: str, path: str, provider: str | None) -> Route:
    segments = path.split("/")[1:]
    if method == "POST":
        found = _by_tail(segments) or _of_gemini(segments) or _of_bedrock(segments)
        if found is not None and (provider is not None or _is_plain(found)):
            return Route(found.action, found.format, provider, path, unquote(found.model), found.is_streaming)
    if method == "GET" and _lists_models(segments):
        return Route("models", None, provider, path)
    return Route("passthrough", None, provider, path)


def _by_tail(segments: list[str]) -> _Found | None:
    """Clients put the version before a path once, twice or not at all; under a provider's name its own base path may
    come first (`/api/paas/v4`, `/anthropic`, `/compatible-mode/v1`)."""
    given = _without_last_slash(segments)
    for tail in _TAILS:
        size = len(tail.segments)
        if given[-size:] == tail.segments and _is_lead(given[:-size]):
            return _Found(tail.format, given[:-size], tail.action)
    return None


def _of_gemini(segments: list[str]) -> _Found | None:
    """`/models/MODEL:METHOD`, where a model's name may have slashes and colons."""
    at = next((at for at, segment in enumerate(segments) if segment in _MODEL_LISTS), len(segments))
    name, colon, method = "/".join(segments[at + 1 :]).rpartition(":")
    if not colon or method not in _METHODS or not all(name.split("/")) or not _is_lead(segments[:at]):
        return None
    action, is_streaming = _METHODS[method]
    is_tuned = segments[at] == "tunedModels"
    return _Found("gemini_generate", segments[:at], action, name, is_streaming, is_tuned)


def _of_bedrock(segments: list[str]) -> _Found | None:
    match segments:
        case ["model", model, last] if model and last in _CONVERSE:
            return _Found("bedrock_converse", (), "generate", model, _CONVERSE[last])
        case _:
            return None


def _lists_models(segments: list[str]) -> bool:
    given = _without_last_slash(segments)
    return given[-1:] == ["models"] and all(_VERSION.fullmatch(segment) for segment in given[:-1])


def _is_plain(found: _Found) -> bool:
    """Without a provider's name nothing but versions may stand before the path of a format."""
    return not found.needs_provider and all(_VERSION.fullmatch(segment) for segment in found.lead)


def _is_lead(segments: Sequence[str]) -> bool:
    return all(_LEAD.fullmatch(segment) for segment in segments)


def _without_last_slash(segments: list[str]) -> list[str]:
    return segments[:-1] if segments[-1:] == [""] else segments
