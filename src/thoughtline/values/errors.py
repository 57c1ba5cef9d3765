"""Every error this package raises on purpose.

    ThoughtlineError
    ├── DecodeError          bytes that don't match their format        client or upstream, 400 or 502
    │   └── LimitExceeded    bytes that go beyond a bound we set               client or upstream, 413 or 502
    ├── Untranslatable       a request whose meaning its upstream can't express   client, 400
    ├── EncodeError          a typed value that its target wire can't hold    ours, 500
    │   └── ForeignSeal      a seal that another provider made                ours, 500
    ├── Declined             a request that we don't forward                    its own, with a code and a remedy
    ├── AddressError         a request that has no address upstream           ours, 500
    │   └── AddressRefused   a path or model that could lead out of it        client, 400
    ├── SettingsError        settings that can't be used, all problems   ours, 500
    └── StoreError           a store that failed to do its work           ours, 503
        ├── StoreUnavailable it may work again later: down, full, locked       ours, 503
        │   └── StoreDamaged its file is no longer a database                  ours, 503
        ├── StoreRefused     it never will without a change of settings        ours, 503
        ├── NewerStore       it was written by a newer version of us           ours, 503
        └── WrongKey         it was encrypted with a key that we don't have    ours, 503

Each says whose fault it is and which HTTP status it maps to. Messages have the position and the problem, never the
content: they contain no reasoning, signatures or credentials, so all of them may be shown to a client.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Literal, NamedTuple, Self

from msgspec import Struct

FailureKind = Literal["unreachable", "late", "busy", "overloaded", "broken", "key_rejected"]
"""Failures of a server, as opposed to errors in the request."""


class Fault(Enum):
    """Who has to change something to fix the error."""

    CLIENT = "client"
    UPSTREAM = "upstream"
    NETWORK = "network"
    OURS = "ours"


class ThoughtlineError(Exception):
    """Base of every error of this package."""

    fault: Fault = Fault.OURS

    @property
    def status(self) -> int:
        """The HTTP status for a client."""
        return {Fault.CLIENT: 400, Fault.UPSTREAM: 502, Fault.NETWORK: 502, Fault.OURS: 500}[self.fault]

    def to_keep(self) -> Self:
        """The same error without frames: they hold the request's data, and from Python 3.13 on that of their callers
        too.
        """
        self.__traceback__ = self.__cause__ = self.__context__ = None
        return self


class DecodeError(ThoughtlineError):
    """Bytes that can't be decoded.

    `place` is a JSON pointer into the body (`/messages/3/role`), `byte N` if the bytes are not JSON at all, or either
    of them after `stream`.
    """

    fault = Fault.CLIENT

    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(f"{problem} (at {place})" if place else problem)
        self.problem = problem
        self.place = place

    def within(self, prefix: str) -> DecodeError:
        """The same error, with its position seen from further out."""
        inner = "" if self.place == "/" else self.place
        error = type(self)(self.problem, f"{prefix} {inner}" if inner.startswith("byte ") else prefix + inner)
        error.fault = self.fault
        return error

    def from_upstream(self) -> DecodeError:
        """The same error, found in an upstream's data."""
        self.fault = Fault.UPSTREAM
        return self


class LimitExceeded(DecodeError):
    """Input beyond a bound that keeps memory finite."""

    @property
    def status(self) -> int:
        return 413 if self.fault is Fault.CLIENT else 502


class Untranslatable(ThoughtlineError):
    """A request for something that its upstream has no way to do.

    `place` is a JSON pointer into the client's body, `remedy` tells the client what to do.
    """

    fault = Fault.CLIENT

    def __init__(self, problem: str, place: str, remedy: str) -> None:
        super().__init__(f"{problem} (at {place}); {remedy}")
        self.problem = problem
        self.place = place
        self.remedy = remedy


class EncodeError(ThoughtlineError):
    """A typed value that the target format has no place for."""


class ForeignSeal(EncodeError):
    """A signature or encrypted block on its way to a provider that did not make it."""


class Declined(ThoughtlineError):
    """A request that is not forwarded, or an upstream that gave no answer: with a stable code and a remedy."""

    def __init__(
        self,
        status: int,
        code: str,
        problem: str,
        remedy: str = "",
        retry_after_seconds: float | None = None,
        fault: Fault | None = None,
    ) -> None:
        super().__init__(problem)
        self._status = status
        self.retry_after_seconds = retry_after_seconds
        self.code = code
        self.remedy = remedy
        by_status = Fault.CLIENT if status < 500 else Fault.UPSTREAM if status in (502, 504) else Fault.OURS
        self.fault = fault or by_status

    @property
    def status(self) -> int:
        return self._status


class AddressError(ThoughtlineError):
    """A request for which settings give no URL: a provider without one, or a format that it does not speak."""


class AddressRefused(AddressError):
    """A path or a model's name that could lead out of its provider's URL."""

    fault = Fault.CLIENT


class InputProblem(NamedTuple):
    """One problem in the user's input: position, key, problem, remedy. Never the value."""

    place: str
    key: str
    message: str
    remedy: str

    @property
    def summary(self) -> str:
        """Everything except the remedy."""
        return f"{self.place}: {self.key}: {self.message}" if self.key else f"{self.place}: {self.message}"

    def __str__(self) -> str:
        return f"{self.summary} ({self.remedy})"


class SettingsError(ThoughtlineError):
    """Settings that can't be used. `problems` are all that were found, not only the first."""

    def __init__(self, problems: Iterable[InputProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class StoreError(ThoughtlineError):
    """A store that failed to do its work."""

    @property
    def status(self) -> int:
        return 503


class StoreUnavailable(StoreError):
    """It may work again later: a server that is down, a full disk, a locked or read-only file."""


class StoreDamaged(StoreUnavailable):
    """Its file is no longer a database: its content is lost."""


class StoreRefused(StoreError):
    """It never works without a change of settings: an unreadable URL or key, a missing driver."""


class NewerStore(StoreError):
    """It was written by a newer version of this program, which this one can't read safely."""


class WrongKey(StoreError):
    """It was encrypted with a key that we don't have."""


class ErrorReply(Struct, frozen=True, gc=False):
    """An error response, the provider's or ours. `code` is the provider's own, or ours if `is_ours`.

    Ours is in every format, even in those without a member for a provider's. `request_id` is ours.
    """

    status: int
    message: str
    code: str | None = None
    param: str | None = None
    is_ours: bool = False
    request_id: str | None = None
