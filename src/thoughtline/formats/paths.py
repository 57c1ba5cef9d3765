"""Addresses of a format: how a client's path is recognised, and how an upstream's is made from its base.

A base is what the provider's own SDK takes. A version (`/v1`) is never doubled.
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
    """A path of a format, recognised. `lead` is what stands before it; `model` and `is_streaming` where it says them.

    `needs_provider`: it means something only under a provider's name. `place` is where on Vertex: a version, a project
    and a location (`v1/projects/P/locations/L`), or only the version.
    """

    lead: Sequence[str] = ()
    action: Action = "generate"
    model: str = ""
    is_streaming: bool = False
    needs_provider: bool = False
    place: str = ""


FindsPath: TypeAlias = Callable[[list[str]], ClientPath | None]
"""A path in segments, recognised by one format."""


def by_tail(*tails: tuple[Action, str]) -> FindsPath:
    """Paths by how they end.

    Clients put the version before a path once, twice or not at all; under a provider's name its own base path may come
    first (`/api/paas/v4`, `/anthropic`, `/compatible-mode/v1`).
    """
    known = [(action, tail.split("/")) for action, tail in tails]

    def find(segments: list[str]) -> ClientPath | None:
        given = without_last_slash(segments)
        for action, tail in known:
            lead = given[: -len(tail)]
            is_vertex = lead[-2:] == ["endpoints", "openapi"]  # for models whose contracts there nobody knows
            if given[-len(tail) :] == tail and is_lead(lead) and not is_vertex:
                return ClientPath(lead, action)
        return None

    return find


class PublishedMethods(NamedTuple):
    """What a format's methods are called on Vertex, and whose models they are of. `counted` is a model's name that
    stands for all where tokens are counted. `version` is a member, with its value, of
    bodies whose address names the model.

    https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude, read 2026-11.
    """

    publisher: str
    generate: str
    stream: str
    counting: str
    counted: str = ""
    version: tuple[str, str] | None = None

    def members(self, *, names_model: bool) -> tuple[tuple[str, bytes | None], ...]:
        """What a body needs that was made for another address: a version, and no model where the address has it."""
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
        """What stands behind a place."""
        if action == "count_tokens":
            named, method = self.counted or model, self.counting
        else:
            named, method = model, self.stream if is_streaming else self.generate
        return f"/publishers/{self.publisher}/models/{quote(named, safe='@')}:{method}"


def is_lead(segments: Sequence[str]) -> bool:
    """Whether this may stand before a path of a format."""
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
    """A path behind a version that the base may have already."""
    return base + path if ends_in_version(base) else f"{base}/{version}{path}"


def below_openai(base: str, path: str) -> str:
    """A path of OpenAI's: an SDK's base has its version in it, and a host alone means the first."""
    return base + path if urlsplit(base).path else f"{base}/v1{path}"
