"""Where a request goes."""

from __future__ import annotations

from msgspec import Struct

from thoughtline.values.turns import FormatName


class Destination(Struct, frozen=True, gc=False):
    """A provider at a URL, its name for the model, and the account: seals are sent back only there."""

    provider: str
    endpoint: str
    model: str
    format: FormatName
    account: str = ""
