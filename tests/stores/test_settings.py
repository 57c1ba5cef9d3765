"""Settings of a store, and which values are refused."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.stores import (
    StoreSettings,
    decode_duration,
    decode_size,
    default_url,
    durable_store,
    keys_from_environment,
    open_store,
)
from thoughtline.values.errors import StoreRefused


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("2h", 7200), ("7d", 604800), ("2w", 1209600), ("1d12h", 129600), ("0.5h", 1800)],
)
def test_lengths_of_time(text: str, seconds: float) -> None:
    """In the usual notation."""
    assert decode_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [("4096", 4096), ("1GiB", 2**30), ("64 MiB", 2**26), ("500MB", 500_000_000), ("1.5kB", 1500), ("10B", 10)],
)
def test_sizes(text: str, size: int) -> None:
    """In the usual notation."""
    assert decode_size(text) == size


@pytest.mark.parametrize("text", ["", "7", "d", "7 days", "-1d", "1y", "1d 2h", "\uff11d", "1e3s", "nan"])
def test_no_length_of_time(text: str) -> None:
    """The refusal shows the value and the notation."""
    with pytest.raises(StoreRefused, match="not a duration: write it as"):
        decode_duration(text)


@pytest.mark.parametrize("text", ["", "GiB", "-1", "1XB", "1 GiB extra", "1gib"])
def test_no_size(text: str) -> None:
    """The refusal shows the value and the notation."""
    with pytest.raises(StoreRefused, match="not a size: write it as"):
        decode_size(text)


@given(st.text(max_size=30))
def test_nothing_but_a_refusal(text: str) -> None:
    """For any text."""
    for decode in (decode_duration, decode_size):
        with suppress(StoreRefused):
            assert decode(text) >= 0


HOME = Path("/ada")


@pytest.mark.parametrize(
    ("platform", "environment", "folder"),
    [
        ("linux", {}, "/ada/.local/share"),
        ("linux", {"XDG_DATA_HOME": "/data"}, "/data"),
        ("linux", {"XDG_DATA_HOME": "data"}, "/ada/.local/share"),
        ("darwin", {"XDG_DATA_HOME": "/data"}, "/ada/Library/Application Support"),
        ("win32", {}, "/ada/AppData/Local"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local"),
    ],
)
def test_the_default_store(platform: str, environment: dict[str, str], folder: str) -> None:
    """A file in the user's data directory."""
    assert default_url(environment, HOME, platform) == f"sqlite:///{folder}/thoughtline/thoughtline.db"


def test_keys_from_the_environment() -> None:
    """If they are set; an empty one counts as missing."""
    assert keys_from_environment({}) == (None, None)
    names = {"THOUGHTLINE_ENCRYPTION_KEY": "a", "THOUGHTLINE_PREVIOUS_ENCRYPTION_KEY": ""}
    assert keys_from_environment(names) == ("a", None)


@pytest.mark.parametrize(
    "url",
    ["", "thoughts.db", "mysql://host", "sqlite:", "sqlite://", "sqlite:///", "sqlite://host/x", "sqlite:///x?mode=ro"],
)
async def test_an_address_that_is_none(url: str) -> None:
    """The refusal lists the known ones."""
    with pytest.raises(StoreRefused):
        await open_store(url)


@pytest.mark.parametrize(("url", "driver"), [("redis://host", "redis"), ("postgresql://host", "asyncpg")])
def test_a_driver_that_is_missing(url: str, driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal says what to install."""
    name = {"redis": "redis", "asyncpg": "postgres"}[driver]
    for module in [module for module in sys.modules if module.split(".")[0] == driver]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, driver, None)
    monkeypatch.delitem(sys.modules, f"thoughtline.stores.{name}", raising=False)
    monkeypatch.delitem(sys.modules, f"thoughtline.stores.{name}_schema", raising=False)
    with pytest.raises(StoreRefused, match=rf"thoughtline\[{name}\]"):
        durable_store(url, StoreSettings(), lambda: 0.0)


def test_drivers_are_imported_when_chosen() -> None:
    """Not before."""
    drivers = {"redis", "asyncpg", "sqlite3", "cryptography"}
    script = f"import sys, thoughtline.stores; print(sorted({drivers} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"
