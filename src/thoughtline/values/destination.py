"""Where a request goes."""

from __future__ import annotations

from msgspec import Struct

from thoughtline.values.turns import FormatName


class Destination(Struct, frozen=True, gc=False):
    """A provider at an address, the model as it names it, and the account: seals go back only there."""

    provider: str
    endpoint: str
    model: str
    format: FormatName
    account: str = ""
