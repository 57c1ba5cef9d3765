"""The admin API's token: set by a person, or generated once and stored so that only its owner can read it."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from thoughtline.settings import Settings, make_private
from thoughtline.stores import is_in_memory
from thoughtline.values.errors import InputProblem, SettingsError

FILE_NAME = "admin-token"
_LEAST_LENGTH = 16


def admin_token(settings: Settings, data_dir: Path) -> str:
    """Return the token from the settings, or else the one in the data directory, which is generated if missing.

    Several processes may do this at the same time: all get the same token.
    """
    if settings.server.admin_token is not None:
        return settings.server.admin_token
    try:
        return _kept(data_dir)
    except OSError as error:
        if is_in_memory(settings.store_url):
            return secrets.token_urlsafe(32)  # a gateway that stores nothing must be able to start
        raise SettingsError([_unwritable(data_dir, error)]) from None


def _kept(data_dir: Path) -> str:
    make_private(data_dir)
    place = data_dir / FILE_NAME
    token = _read(place)
    while token is None:
        token = _make(place)
    return token


def _unwritable(data_dir: Path, error: OSError) -> InputProblem:
    remedy = "set XDG_DATA_HOME to a folder that can be; or keep nothing on disk with --store memory://"
    return InputProblem(str(data_dir), "", f"this folder can't be written: {error.strerror}", remedy)


def _read(place: Path) -> str | None:
    try:
        found = place.read_text("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    if len(found) < _LEAST_LENGTH or not found.isascii():
        raise SettingsError([InputProblem(str(place), "", "this is no token", "delete the file: a new one is made")])
    if place.stat().st_mode & 0o077:
        place.chmod(0o600)
    return found


def _make(place: Path) -> str | None:
    """Write it completely under another name first, so that no process reads a part of it. The first to link it
    wins."""
    descriptor, written = tempfile.mkstemp(prefix=f".{FILE_NAME}-", dir=place.parent)  # mode 0600
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
        with suppress(FileExistsError):
            os.link(written, place)
    finally:
        os.unlink(written)
    return _read(place)
