"""Settings of a store: one frozen value, read once. Durations and sizes have the usual notation, such as 7d or
64MiB."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from thoughtline.values.errors import StoreRefused
from thoughtline.values.setting import setting

KEY_VARIABLE = "THOUGHTLINE_ENCRYPTION_KEY"
PREVIOUS_KEY_VARIABLE = "THOUGHTLINE_PREVIOUS_ENCRYPTION_KEY"

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_BYTES = {"": 1, "B": 1}
_BYTES |= {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BYTES |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


class StoreSettings(Struct, frozen=True, rename="camel"):
    """How long records are kept, how many, and how safely."""

    ttl_seconds: Annotated[float, setting("how long after its last use a turn is kept", "duration", key="ttl")] = (
        7 * 86400.0
    )
    memory_entries: Annotated[
        int, setting("means nothing any more: `memory_size` is the bound", ge=1, le=10_000_000)
    ] = 2000
    memory_bytes: Annotated[
        int, setting("how much memory turns may take in front of the store", "size", key="memory_size")
    ] = 64 * 2**20
    max_bytes: Annotated[
        int,
        setting(
            "how large the store may grow before the least recently used turns are removed", "size", key="max_size"
        ),
    ] = 2**30
    encryption_key: Annotated[str | None, setting("encrypts stored turns", "secret", short="ENCRYPTION_KEY")] = None
    previous_encryption_key: Annotated[
        str | None,
        setting("still decrypts turns stored before the key was changed", "secret", short="PREVIOUS_ENCRYPTION_KEY"),
    ] = None
    clean_seconds: Annotated[float, setting("how often expired turns are removed", "duration", key="clean_every")] = (
        60.0
    )
    timeout_seconds: Annotated[
        float, setting("how long one call of the store may take before memory alone is used", "duration", key="timeout")
    ] = 2.0
    trust_seconds: Annotated[
        float,
        setting(
            "how long memory answers for keys that several turns may share before it asks the store again",
            "duration",
            key="trust",
        ),
    ] = 10.0


def keys_from_environment(environment: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the current and the previous encryption key from the environment."""
    return environment.get(KEY_VARIABLE) or None, environment.get(PREVIOUS_KEY_VARIABLE) or None


def decode_duration(text: str) -> float:
    """Decode `"2h"`, `"7d"`, `"90s"`, `"1d12h"` to seconds."""
    if re.fullmatch(r"(?:\d+(?:\.\d+)?[smhdw])+", text, re.ASCII) is None:
        raise StoreRefused(f"{text!r} is not a duration: write it as 90s, 15m, 2h, 7d or 2w")
    return float(sum(float(number) * _SECONDS[unit] for number, unit in re.findall(r"([\d.]+)(.)", text)))


def decode_size(text: str) -> int:
    """Decode `"1GiB"`, `"500MB"`, `"4096"` to bytes."""
    parts = re.fullmatch(r"(\d+(?:\.\d+)?) ?([A-Za-z]*)", text, re.ASCII)
    if parts is None or parts[2] not in _BYTES:
        raise StoreRefused(f"{text!r} is not a size: write it as 500MB, 64MiB or 1GiB")
    return int(float(parts[1]) * _BYTES[parts[2]])


def default_url(environment: Mapping[str, str], home: Path, platform: str = sys.platform) -> str:
    """Return the address of the embedded store in the user's data directory."""
    folders = {"darwin": home / "Library" / "Application Support", "win32": home / "AppData" / "Local"}
    folder = folders.get(platform, home / ".local" / "share")
    if platform == "win32" and environment.get("LOCALAPPDATA"):
        folder = Path(environment["LOCALAPPDATA"])
    xdg = Path(environment.get("XDG_DATA_HOME", ""))
    if platform not in folders and xdg.is_absolute():  # its specification says to ignore a relative path
        folder = xdg
    return f"sqlite:///{folder / 'thoughtline' / 'thoughtline.db'}"
