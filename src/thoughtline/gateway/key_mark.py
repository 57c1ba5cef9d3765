"""A file beside the admin token that says: client keys were made for this gateway.

A store that is empty, or another than it was, would otherwise be a gateway that never had keys, and so an open one.
"""

from __future__ import annotations

import logging
from pathlib import Path

log = logging.getLogger(__name__)

FILE_NAME = "client-keys-required"
_TEXT = "Client keys were made for this gateway: without one nobody gets in. `thoughtline keys open` undoes that.\n"


class KeyMark:
    """The mark in a data directory."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / FILE_NAME
        self._is_told = False

    @property
    def is_set(self) -> bool:
        return self.made_at is not None

    @property
    def made_at(self) -> float | None:
        """When it was made; None if there is none."""
        try:
            return self.path.stat().st_mtime
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return float("inf")  # it can't be looked at, which is no reason to open the door

    def set(self) -> None:
        """Make it. Where that can't be done the setting has to say it, which is told once."""
        if self.is_set:
            return
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.touch(0o600)
            self.path.write_text(_TEXT)
        except OSError as error:
            if not self._is_told:
                told = "%s can't be written (%s): set require_client_keys = true in [server], or a lost store opens it"
                log.warning(told, self.path, error.strerror)
            self._is_told = True

    def clear(self) -> None:
        self.path.unlink(missing_ok=True)
