"""The settings of a line: a program's arguments, over the gateway's file and environment."""

from __future__ import annotations

import os
from os import PathLike, fspath
from pathlib import Path

from thoughtline.settings import Flags, Settings, home_folder, load_settings


def settings_of(store: str | PathLike[str] | None, config: str | PathLike[str] | Settings | None) -> Settings:
    """Return the settings. A store is an address, or the path of a SQLite file."""
    if not isinstance(store, str | PathLike | None):
        raise TypeError(f"store is an address such as 'sqlite:///thoughts.db', or a path, not {type(store).__name__}")
    if not isinstance(config, str | PathLike | Settings | None):
        raise TypeError(f"config is a path or Settings, not {type(config).__name__}")
    flags = Flags(store=None if store is None else _address_of(store))
    if isinstance(config, Settings):
        if store is not None:
            raise TypeError("config is Settings, which name a store: name no other, or pass the path of a file")
        return config
    return load_settings(None if config is None else Path(config), os.environ, flags, home_folder())


def _address_of(store: str | PathLike[str]) -> str:
    text = fspath(store)
    return text if isinstance(store, str) and ":" in text.partition("/")[0] else f"sqlite:///{os.path.abspath(text)}"
