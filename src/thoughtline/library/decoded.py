"""Encodes what an SDK has decoded: dictionaries, pydantic models, and models inside dictionaries."""

from __future__ import annotations

from typing import Any

import msgspec


def json_of(value: object) -> bytes:
    """Encode a value as JSON. Raises `TypeError` for other types."""
    return msgspec.json.encode(value, enc_hook=_dumped)


def _dumped(value: Any) -> object:
    """Dump a model without unset members: SDKs have members for everything that a provider might send."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"a {type(value).__name__} is not JSON")
    return dump(mode="json", exclude_unset=True)
