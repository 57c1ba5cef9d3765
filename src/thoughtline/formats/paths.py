"""The URL paths of a format: how a client's path is recognized, and how an upstream's is built from its base.

A base is the one that the provider's own SDK expects. A version (`/v1`) is never doubled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import quote, urlsplit

Action = Literal["generate", "count_tokens", "compact"]

_VERSION = re.compile(r"v[0-9]+(?:(?:beta|alpha)[0-9]*)?")
_LEAD = re.compile(r"[\w.~-]+")


class ClientPath(NamedTuple):
    """A recognized path of a format. `lead` is the part before it; `model` and `is_streaming` are set if the path names
    them.

    `needs_provider`: the path is valid only under a provider's name. `place` is the location on Vertex: a version, a
    project and a location (`v1/projects/P/locations/L`), or only the version.
    """

    lead: Sequence[str] = ()
    action: Action = "generate"
    model: str = ""
    is_streaming: bool = False
    needs_provider: bool = False
    place: str = ""


FindsPath: TypeAlias = Callable[[list[str]], ClientPath | None]
"""Recognizes the paths of one format, given in segments."""


def by_tail(*tails: tuple[Action, str]) -> FindsPath:
    """Paths recognized by their end.

    Clients put the version before a path once, twice or not at all; under a provider's name its own base path may come
    first (`/api/paas/v4`, `/anthropic`, `/compatible-mode/v1`).
    """
    known = [(action, tail.split("/")) for action, tail in tails]

    def find(segments: list[str]) -> ClientPath | None:
        given = without_last_slash(segments)
        for action, tail in known:
            lead = given[: -len(tail)]
            is_vertex = lead[-2:] == ["endpoints", "openapi"]  # for models whose contracts there are unknown
            if given[-len(tail) :] == tail and is_lead(lead) and not is_vertex:
                return ClientPath(lead, action)
        return None

    return find


class PublishedMethods(NamedTuple):
    """A format's method names on Vertex, and the publisher of the models. `counted` is a model name that stands for all
    models when tokens are counted. `version` is a member, with its value, of bodies whose URL names the model.

    https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude, read 2026-11.
    """

    publisher: str
    generate: str
    stream: str
    counting: str
    counted: str = ""
    version: tuple[str, str] | None = None

    def members(self, *, names_model: bool) -> tuple[tuple[str, bytes | None], ...]:
        """Members for a body written for another URL: a version, and no model if the URL has it."""
        if self.version is None:
            return ()
        member, value = self.version
        return ((member, f'"{value}"'.encode()), *([("model", None)] if names_model else []))

    def find(self, segments: list[str]) -> ClientPath | None:
        """`…/publishers/PUBLISHER/models/MODEL:METHOD`."""
        match without_last_slash(segments):
            case [*lead, "publishers", self.publisher, "models", last] if is_lead(lead):
                model, _, method = last.rpartition(":")
            case _:
                return None
        counts = method == self.counting and (not self.counted or model == self.counted)
        action: Action = "count_tokens" if counts else "generate"
        if not model or (action == "generate" and method not in (self.generate, self.stream)):
            return None
        named = model if action == "generate" or not self.counted else ""
        return ClientPath(lead, action, named, method == self.stream, place="/".join(lead))

    def path(self, model: str, action: Action, *, is_streaming: bool) -> str:
        """The path after a location."""
        if action == "count_tokens":
            named, method = self.counted or model, self.counting
        else:
            named, method = model, self.stream if is_streaming else self.generate
        return f"/publishers/{self.publisher}/models/{quote(named, safe='@')}:{method}"


def is_lead(segments: Sequence[str]) -> bool:
    """Whether these segments may precede a path of a format."""
    return all(_LEAD.fullmatch(segment) for segment in segments)


def without_last_slash(segments: list[str]) -> list[str]:
    return segments[:-1] if segments[-1:] == [""] else segments


def is_version(segment: str) -> bool:
    return _VERSION.fullmatch(segment) is not None


def ends_in_version(base: str) -> bool:
    return is_version(urlsplit(base).path.rpartition("/")[2])


def without_version(base: str) -> str:
    return base.rpartition("/")[0] if ends_in_version(base) else base


def versioned(base: str, version: str, path: str) -> str:
    """A path after a version that the base may already have."""
    return base + path if ends_in_version(base) else f"{base}/{version}{path}"


def below_openai(base: str, path: str) -> str:
    """A path of OpenAI: an SDK's base includes its version, and a bare host gets the first version."""
    return base + path if urlsplit(base).path else f"{base}/v1{path}"
