"""What `import thoughtline` offers is a promise: it changes on purpose only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import thoughtline
from tests.user_code import USER_CODE
from thoughtline import core, engine, errors, items
from thoughtline.library.public import names_moved
from thoughtline.values import errors as values_errors

FRONT = {
    *("Line", "remember", "install", "uninstall", "last", "audit"),
    *("DecodeError", "EncodeError", "LimitExceeded", "SettingsError", "StoreError", "ThoughtlineError"),
}


def test_public_names_are_these() -> None:
    """A dozen: adding or dropping one means changing this list and the changelog."""
    assert set(thoughtline.__all__) == FRONT
    assert thoughtline.__all__ == sorted(thoughtline.__all__, key=lambda name: (name.islower(), name))
    for name in thoughtline.__all__:
        assert getattr(thoughtline, name) is not None


def test_submodules_offer_what_they_list() -> None:
    """Nothing but names that are there; every error of the package is among `errors`."""
    for module in (core, engine, errors, items):
        assert set(module.__all__) <= set(dir(module))
    every = [one for one in vars(values_errors).values() if isinstance(one, type) and issubclass(one, Exception)]
    assert {one.__name__ for one in every} <= set(errors.__all__)


def test_names_of_before_work_and_warn() -> None:
    """Every name that stood at the top is where the warning says, and is the same thing."""
    moved = [(name, home) for home, names in names_moved().items() for name in names]
    assert len(moved) == 89 - 7  # seven of them are still at the top
    for name, home in moved:
        with pytest.warns(DeprecationWarning, match=rf"from {home} import \w+") as warned:
            found = getattr(thoughtline, name)
        assert warned[0].filename == __file__
        names: dict[str, object] = {}
        exec(str(warned[0].message).partition("`")[2].rstrip("`"), names)
        assert names[name] is found


def test_what_is_at_the_top_does_not_warn() -> None:
    """Nor does a submodule."""
    code = "import thoughtline; [getattr(thoughtline, name) for name in thoughtline.__all__]; import thoughtline.core"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_the_import_loads_nothing_that_is_not_used() -> None:
    """No module but the package itself, so no HTTP library, server or terminal; names come when they are used."""
    code = "import sys; before = {*sys.modules}; import thoughtline; print(*({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint({"httpx", "httpx2", "uvicorn", "rich", "asyncio", "msgspec", "httptools", "ssl"})
    assert [name for name in done.stdout.split() if name.startswith("thoughtline")] == ["thoughtline"]


def test_a_line_loads_no_http_library_and_no_server() -> None:
    """The application brings an HTTP library; thoughtline brings none."""
    code = "import sys, thoughtline; thoughtline.Line('memory://'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint({"httpx", "httpx2", "uvicorn", "rich", "httptools", "prometheus_client"})
    assert not [name for name in done.stdout.split() if name.startswith("thoughtline.gateway")]


def test_names_that_there_are_not() -> None:
    """Only public ones are there to be listed; a module of the package is no name of it until it is imported."""
    assert dir(thoughtline) == sorted(thoughtline.__all__)
    for name in ("Remember", "_private", "__wrapped__", "public_names"):
        with pytest.raises(AttributeError, match=name):
            getattr(thoughtline, name)


def test_code_of_users_type_checks(tmp_path: Path) -> None:
    """With `mypy --strict`, as it is printed in the pages."""
    (tmp_path / "app.py").write_text(USER_CODE)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "app.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("Success"), done.stdout
