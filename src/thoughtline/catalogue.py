"""The providers that are built in, as rows: where each is, how it is asked, which formats it speaks.

A row says where; what a provider demands is its contract (`replay.detection`), how its bytes look is a format.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from thoughtline.turns import FormatName

AuthStyle = Literal["bearer", "x-api-key", "x-goog-api-key", "api-key", "query", "none"]


class Timeouts(Struct, frozen=True):
    """In seconds. `first_byte` is until the status line, `read` between two pieces of a body, `total` for all of it."""

    connect: float = 10.0
    first_byte: float = 600.0
    read: float = 300.0
    total: float = 3600.0


class Provider(Struct, frozen=True):
    """A row.

    `base_url` is what the provider's own SDK takes; `bases` are the addresses of formats that live elsewhere. Without
    `api_keys` the caller's own credential goes up. `contract` names a row of `replay.contracts` that holds whatever the
    model, `dialect` one of `providers`; both are None where detection decides.
    """

    name: str
    base_url: str
    formats: tuple[FormatName, ...]
    bases: dict[FormatName, str] = {}
    auth: AuthStyle = "bearer"
    api_keys: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    timeouts: Timeouts = Timeouts()
    contract: str | None = None
    dialect: str | None = None
    streams_only: bool = False


PROVIDERS: dict[str, Provider] = {}
