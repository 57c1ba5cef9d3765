"""`with Line(…)` raises if its store can't be opened; without `with`, the report says why memory works alone."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.line.chats import HEADERS, PATH, Answer, Told, request, whole
from thoughtline import Line
from thoughtline.values.errors import StoreError


def unusable(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "junk.db").write_bytes(b"no database" * 100)
    (tmp_path / "folder.db").mkdir()
    return {
        f"sqlite:///{tmp_path / 'junk.db'}": "not a database",
        f"sqlite:///{tmp_path / 'folder.db'}": "folder.db",
        "sqlite:////proc/thoughts.db": "/proc/thoughts.db",  # a folder that not even root can write to
        "redis://127.0.0.1:1/0": "redis",
    }


async def test_with_raises(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A folder, a file that is not a database, a read-only place, a server that is down: sync and async."""
    caplog.set_level(logging.CRITICAL)
    for url, words in unusable(tmp_path).items():
        with pytest.raises(StoreError, match=words), Line(url):
            pass
        with pytest.raises(StoreError, match=words):
            async with Line(url):
                pass


def test_a_report_says_why(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Requests continue, and `problem` is never empty while the store has a problem."""
    caplog.set_level(logging.CRITICAL)
    told = Told(lambda body: Answer(whole()))
    for url, words in unusable(tmp_path).items():
        line = Line(url)
        with line.http_client(httpx2, base_url=told.url, headers=HEADERS) as client:
            answer: Any = client.post(PATH, content=request())
        assert answer.status_code == 200
        assert line.report.store in ("degraded", "memory")
        assert words in line.report.problem
        line.close()


def test_a_line_that_could_not_be_opened_opens_later(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Once the cause is fixed, the same line works."""
    caplog.set_level(logging.CRITICAL)
    file = tmp_path / "thoughts.db"
    file.mkdir()
    line = Line(file)
    with pytest.raises(StoreError), line:
        pass
    file.rmdir()
    with line:
        assert (line.report.store, line.report.problem) == ("ok", "")


def test_how_a_line_is_shown() -> None:
    """Its store and tenant; not the password of a server."""
    assert repr(Line("redis://ann:secret@127.0.0.1:6379/0?x=secret")) == "Line('redis://127.0.0.1:6379/0')"
    assert repr(Line("memory://", tenant="ann")) == "Line('memory://', tenant='ann')"
