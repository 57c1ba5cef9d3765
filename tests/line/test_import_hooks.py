"""A hook is called once a module has been imported, and changes nothing else."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from thoughtline.library.import_hooks import ImportHook


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_now_and_later(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For an imported module at once, for another when its code has run; after the end for none."""
    for name in ("of_before", "of_later", "of_after"):
        (folder / f"{name}.py").write_text("import sys\nloader = __spec__.loader\n")
        monkeypatch.delitem(sys.modules, name, raising=False)
    met: list[str] = []
    before = importlib.import_module("of_before")

    def meet(module: ModuleType) -> None:
        assert module.loader is module.__loader__
        met.append(module.__name__)

    hook = ImportHook(("of_before", "of_later", "of_after"), meet)
    hook.begin()
    assert met == [before.__name__]
    later = importlib.import_module("of_later")
    assert type(later.__loader__) is type(before.__loader__)
    assert later.__spec__ is not None
    assert later.__spec__.loader is later.__loader__
    hook.end()
    hook.end()
    importlib.import_module("of_after")
    assert met == ["of_before", "of_later"]


def test_a_module_that_there_is_not(folder: Path) -> None:
    """The import fails as usual; a module that fails during import triggers nothing."""
    (folder / "of_trouble.py").write_text("raise ValueError('trouble')")
    met: list[ModuleType] = []
    hook = ImportHook(("of_trouble", "of_nowhere"), met.append)
    hook.begin()
    try:
        with pytest.raises(ModuleNotFoundError, match="of_nowhere"):
            importlib.import_module("of_nowhere")
        with pytest.raises(ValueError, match="trouble"):
            importlib.import_module("of_trouble")
    finally:
        hook.end()
    assert met == []
