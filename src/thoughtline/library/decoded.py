"""What an SDK has decoded, as JSON again: dictionaries, models of pydantic, and models inside of dictionaries."""

from __future__ import annotations

from typing import Any

import msgspec


def json_of(value: object) -> bytes:
    """Raises `TypeError` for what is neither."""
    return msgspec.json.encode(value, enc_hook=_dumped)


def _dumped(value: Any) -> object:
    """Without what nobody set: SDKs have members for all that a provider might say."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"a {type(value).__name__} is not JSON")
    return dump(mode="json", exclude_unset=True)
