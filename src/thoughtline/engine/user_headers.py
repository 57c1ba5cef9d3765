"""Identifies the end user of a request by its headers: programs that serve many people with one key name them there.

Members of the body that name one are read with it (`formats/end_users.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct, field

from thoughtline.values.records import digest

PORTKEY = b"x-portkey-metadata"
"""An object whose `_user` is the user; its other members may differ with every request. Source:
https://portkey.ai/docs/product/observability/metadata, 2026-11."""

_HEADERS = (
    b"x-thoughtline-user",
    # Open WebUI, with `ENABLE_FORWARD_USER_INFO_HEADERS` (open_webui/utils/headers.py, 2026-11)
    b"x-openwebui-user-id",
    b"x-openwebui-user-email",
    # https://docs.litellm.ai/docs/proxy/customers, 2026-10-09
    b"x-litellm-customer-id",
    b"x-litellm-end-user-id",
    # https://docs.helicone.ai/observability/user-metrics, 2026-11
    b"helicone-user-id",
    PORTKEY,
)
USER_HEADERS = frozenset(_HEADERS)


class _Metadata(Struct, gc=False):
    user: str = field(default="", name="_user")


_metadata = msgspec.json.Decoder(_Metadata)


def end_user_in(headers: Mapping[bytes, bytes]) -> str:
    """A digest of the end user; empty if no header names one. Two requests have the same if all of them agree."""
    names = [name_in(header, headers.get(header, b"")) for header in _HEADERS]
    return digest(b"\0".join(names)).hex() if any(names) else ""


def name_in(header: bytes, value: bytes) -> bytes:
    """The name in one of these headers."""
    if header != PORTKEY:
        return value.strip()
    try:
        return _metadata.decode(value).user.strip().encode("utf-8", "replace")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return b""
