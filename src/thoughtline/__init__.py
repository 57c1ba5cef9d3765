"""thoughtline remembers a model's reasoning, and restores it where the provider expects it.

    remember   adds memory to an SDK's client; a `Line` holds the store, and has a method for each SDK
    Replayer   prepares a request with a store, heals a rejected one, saves what a `Watch` captured of the response
    audit      reports what a provider would reject in a request
    FORMATS    bytes of any format to typed turns and back

Without our store: `needs` names the keys to look up, the caller fetches their records, `plan` decides what to restore,
remove or report. The names are those of `public.py`, which is loaded when one of them is first used.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from thoughtline.public import *  # noqa: F403  `public` lists its names
    from thoughtline.public import __all__ as __all__


def __getattr__(name: str) -> object:
    is_private = name.startswith("_") and name != "__all__"
    if not is_private and find_spec(f"{__name__}.{name}") is None:
        public = import_module(f"{__name__}.public")
        if name in (*public.__all__, "__all__"):
            return getattr(public, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    names: list[str] = import_module(f"{__name__}.public").__all__
    return names
