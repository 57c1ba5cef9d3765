"""`python -m bench.fuzz`: what it keeps can be replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bench.fuzz import Fuzz, cut_of
from bench.fuzz import replay as replayed
from thoughtline.formats import FORMATS
from thoughtline.values.events import Event


class Forgetful:
    """A decoder that loses what comes before a cut behind the tenth byte."""

    def __init__(self, dialect: Any) -> None:
        self._fed = 0

    def feed(self, data: bytes) -> list[Event]:
        self._fed += 1
        if self._fed > 1 and len(data) > 10:
            raise ValueError("broken")
        return []

    def finish(self) -> list[Event]:
        return []


def test_an_input_is_always_cut_at_the_same_place() -> None:
    """Otherwise a failure that depends on it would not come again."""
    data = bytes(range(200))
    assert cut_of(data) == cut_of(bytes(data))
    assert {cut_of(data[:size]) for size in range(100)} != {0}
    assert all(cut_of(data[:size]) <= size for size in range(100))


def test_what_failed_fails_again(tmp_path: Path) -> None:
    """Run after run, until the code is corrected; then the same files pass."""
    wire = FORMATS["openai_chat"]
    broken = replace(wire, stream_decoder=Forgetful)
    fuzz = Fuzz(broken, tmp_path, seed=1)
    fuzz.run(1.0)
    kept = list((tmp_path / wire.name / "failures").iterdir())
    assert len(kept) > 0
    failures = replayed(broken, tmp_path)
    assert failures == replayed(broken, tmp_path)
    assert sum("failures/" in words for words in failures) == len(kept)
    assert not replayed(wire, tmp_path)
