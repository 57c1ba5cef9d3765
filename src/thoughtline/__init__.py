"""thoughtline remembers what a model thought, and puts it back where the provider wants it.

    remember   makes the client of an SDK remember; a `Line` says where, and has a door for each SDK
    Replayer   prepares a request over a store, heals a refused one, saves what a `Watch` heard of the response
    audit      says what a provider would refuse in a request
    FORMATS    bytes of any wire to typed turns and back

Without a store of ours: `needs` says which keys to look for, the caller fetches their records, `plan` decides what to
put back, take out or report. The names are those of `public.py`, which is loaded when one of them is first used.
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
