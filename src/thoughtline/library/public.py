"""What `import thoughtline` offers, and where the names of before have moved to."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from thoughtline.engine.audit import audit as audit
from thoughtline.library.door import ReplayLine
from thoughtline.library.door import remember as remember
from thoughtline.library.installing import install as install
from thoughtline.library.installing import uninstall as uninstall
from thoughtline.library.telling import last as last
from thoughtline.values.errors import DecodeError as DecodeError
from thoughtline.values.errors import EncodeError as EncodeError
from thoughtline.values.errors import LimitExceeded as LimitExceeded
from thoughtline.values.errors import SettingsError as SettingsError
from thoughtline.values.errors import StoreError as StoreError
from thoughtline.values.errors import ThoughtlineError as ThoughtlineError

Line = ReplayLine

_ALL_OF = ("thoughtline.core", "thoughtline.items", "thoughtline.preserver")
_SOME_OF: Mapping[str, Sequence[str]] = {
    "thoughtline.codecs": (
        "OpenRouterReasoningCodec",
        "ReasoningCodec",
        "codec_for",
    ),
    "thoughtline.engine": (
        "AskedAddress",
        "ContractBook",
        "Lessons",
        "Prepared",
        "Replayer",
        "StoreSettings",
        "StreamWatch",
        "Watch",
        "account_of",
        "open_store",
        "provider_of",
        "read_address",
        "session_of",
        "tenant_of",
    ),
    "thoughtline.errors": (
        "Fault",
        "ForeignSeal",
    ),
    "thoughtline.line": (
        "AsyncExchange",
        "LineReport",
        "SyncExchange",
    ),
}
_NOW_CALLED = {"Issuer": "Destination", "Target": "Destination"}


def names_moved() -> Mapping[str, Sequence[str]]:
    """Names that stood at the top up to version 0.1, by module: they work for one more release, with a warning."""
    all_of: dict[str, Sequence[str]] = {module: import_module(module).__all__ for module in _ALL_OF}
    return {**_SOME_OF, **all_of} | {"thoughtline.core": (*all_of["thoughtline.core"], *_NOW_CALLED)}


def moved(name: str) -> Any:
    """What a name of before stands for. Raises `AttributeError` for any other name."""
    home = next((module for module, names in names_moved().items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'thoughtline' has no attribute {name!r}")
    now = _NOW_CALLED.get(name, name)
    advice = f"from {home} import {now}" + (f" as {name}" if now != name else "")
    warnings.warn(f"thoughtline.{name} moves: write `{advice}`", DeprecationWarning, stacklevel=3)
    return getattr(import_module(home), now)
