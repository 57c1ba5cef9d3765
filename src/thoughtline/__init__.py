"""thoughtline remembers a model's reasoning, and restores it where the provider expects it.

    remember   makes the client of an SDK remember; install every client of the process
    Line       says where, and has a door for each SDK; `last` what it did for the last call
    audit      says what a provider would refuse in a request

The rest is in submodules: `errors` are all that is raised, `codecs` and `preserver` keep the reasoning of single
messages, `items` are what a conversation is made of, `core` is replay without a store and without HTTP, and `engine` is
what a line is built on. The names here are those of `library/public.py`, which is loaded when one is first used.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thoughtline.library.public import DecodeError as DecodeError
    from thoughtline.library.public import EncodeError as EncodeError
    from thoughtline.library.public import LimitExceeded as LimitExceeded
    from thoughtline.library.public import Line as Line
    from thoughtline.library.public import SettingsError as SettingsError
    from thoughtline.library.public import StoreError as StoreError
    from thoughtline.library.public import ThoughtlineError as ThoughtlineError
    from thoughtline.library.public import audit as audit
    from thoughtline.library.public import install as install
    from thoughtline.library.public import last as last
    from thoughtline.library.public import remember as remember
    from thoughtline.library.public import uninstall as uninstall

__all__ = [
    "DecodeError",
    "EncodeError",
    "LimitExceeded",
    "Line",
    "SettingsError",
    "StoreError",
    "ThoughtlineError",
    "audit",
    "install",
    "last",
    "remember",
    "uninstall",
]


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is None:
        public = import_module(f"{__name__}.library.public")
        return getattr(public, name) if name in __all__ else public.moved(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__]
