"""What is kept of a request to explain it: references to what serving it has made anyway. Sentences come when asked.

It holds no credential, and nothing that was said but a provider's words when it refused, and bodies if settings say so.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct

from thoughtline.gateway.choosing import Target
from thoughtline.gateway.journal import Line
from thoughtline.gateway.masking import MASK
from thoughtline.providers import Contract
from thoughtline.replay.refusals import Correction, Refusal
from thoughtline.values.outcome import NoteChain

MAX_BODY = 512 * 2**10
"""Bytes of a body that are kept, where bodies are."""

_SHORTEST_SECRET = 8


class RefusalNote(Struct, frozen=True, gc=False):
    """An error of a provider: `seconds` after the request began, in its own words, and what it means if it is one
    about reasoning."""

    status: int
    seconds: float
    words: str
    code: str
    refusal: Refusal | None


class KeptBodies(Struct, frozen=True, gc=False):
    """What the client sent and what went up last, without keys."""

    client: bytes
    upstream: bytes
    is_cut: bool


def kept_bodies(client: bytes, upstream: bytes, secrets: Iterable[str]) -> KeptBodies:
    """The beginnings of both, without these secrets."""
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            client, upstream = (body.replace(secret.encode(), MASK.encode()) for body in (client, upstream))
    return KeptBodies(client[:MAX_BODY], upstream[:MAX_BODY], max(len(client), len(upstream)) > MAX_BODY)


TokenCounts: TypeAlias = tuple[int, int, int, int]
"""As the provider counts them: input, output, of that reasoning, of the input cached."""


class AttemptNote(Struct, frozen=True, gc=False):
    """One target asked. `contract` is what was believed at last, `corrections` what this request's refusals taught."""

    target: Target
    endpoint: str
    is_translated: bool
    status: int
    error: str
    started_seconds: float
    upstream_seconds: float
    bytes_up: int
    sends: int
    refusals: tuple[RefusalNote, ...]
    was_healed: bool
    contract: Contract | None
    corrections: tuple[Correction, ...]
    notes: NoteChain | None


class Served(Struct, frozen=True, gc=False):
    """A request, over or under way. `message` is our own error's; `user_agent` and `path` are as they came."""

    line: Line
    is_over: bool
    began_at: float
    seconds: float
    first_byte_seconds: float | None
    path: str
    user_agent: str
    client_key: str
    message: str
    tokens: TokenCounts | None
    attempts: tuple[AttemptNote, ...]

    @property
    def id(self) -> str:
        return self.line.request

    @property
    def refusal(self) -> str:
        """What was said to it last, by us or by a provider, if it was refused; also if it was healed then."""
        words = [one.words for attempt in self.attempts for one in attempt.refusals]
        return self.message or (words[-1] if words else "")
