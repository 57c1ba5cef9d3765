"""Lines of the log: as text and as JSON."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from thoughtline.gateway.admin.trail import AdminLine
from thoughtline.gateway.journal import Journal, Line
from thoughtline.gateway.log_styles import TextLog, style_of
from thoughtline.terminal import Level, LogOptions

ID = "0123456789abcdef"


def line(status: int = 200, **more: Any) -> Line:
    told: dict[str, Any] = {
        "at": 0.0,
        "request": ID,
        "tenant": "t",
        "method": "POST",
        "route": "generate",
        "provider": "kimi",
        "format": "openai_chat",
        "model": "k3",
        "status": status,
        **more,
    }
    return Line(**told)


def words(log: TextLog, told: Line, refusal: str = "") -> str:
    text = log.request(told, refusal)
    assert text is not None
    return text.decode()


DONE = [
    ({"restored": 1}, "restored 1 turn"),
    ({"restored": 3, "missing": 1}, "restored 3 turns, nothing found for 1 turn"),
    ({"blank": 2, "inherited": 1}, "inherited for 1 turn, left 2 turns blank"),
    ({"stripped": 1, "checkpoints": 2}, "stripped 1 turn, quoted 2 checkpoints"),
    ({"handoff": "glm/glm-5", "attempts": 2}, "taken over from glm/glm-5, asked 2 targets"),
    ({"store": "degraded", "note": "the upstream broke off"}, "the upstream broke off, store degraded"),
    ({"code": "client_gone"}, "client gone"),
]


@pytest.mark.parametrize(("counts", "expected"), DONE)
def test_what_was_done(counts: dict[str, Any], expected: str) -> None:
    """With the wording of the documentation."""
    assert f"  {expected}  {ID}" in words(TextLog(LogOptions("text")), line(**counts))


def test_a_healed_request_says_of_what() -> None:
    """Followed by the provider's sentence."""
    told = words(TextLog(LogOptions("text")), line(healed=1), "reasoning_content is missing in message 2")
    assert "healed once: reasoning_content is missing in message 2" in told


def test_a_route_is_named() -> None:
    """Before its target."""
    assert "fast → kimi/k3" in words(TextLog(LogOptions("text")), line(via="fast"))


@pytest.mark.parametrize("format", ["text", "json"])
@pytest.mark.parametrize(
    ("told", "is_wrong"), [(line(), False), (line(400), True), (line(0), True), (line(store="degraded"), True)]
)
def test_quiet_is_what_went_wrong(format: str, told: Line, is_wrong: bool) -> None:
    """In both formats."""
    style = style_of(LogOptions("text" if format == "text" else "json", "quiet"))
    assert style is not None
    assert (style.request(told, "") is not None) is is_wrong
    assert style.begun(told) is None
    assert style.event("goodbye", "") is None
    assert style.event("settings not reloaded", "why") is not None


@pytest.mark.parametrize("level", ["normal", "quiet"])
async def test_json_has_no_words_of_the_provider(level: Level) -> None:
    """They may quote content."""
    journal = Journal(log := io.BytesIO(), style_of(LogOptions("json", level)))
    journal.record(line(400), "a sentence")
    journal.flush()
    told = log.getvalue()
    assert "sentence" not in told.decode()
    assert json.loads(told)["status"] == 400


ADMIN = [("GET", 200, "normal", False), ("GET", 401, "normal", True), ("PATCH", 200, "normal", True)]
ADMIN += [("PATCH", 200, "quiet", False), ("GET", 401, "quiet", True), ("GET", 200, "verbose", True)]


@pytest.mark.parametrize(("method", "status", "level", "is_told"), ADMIN)
def test_the_admin_side(method: str, status: int, level: Level, is_told: bool) -> None:
    """Changes and refusals: a dashboard that constantly reads would drown the rest."""
    told = AdminLine("admin", 0.0, "token", method, path="/api/settings", address="127.0.0.1", status=status)
    assert (TextLog(LogOptions("text", level)).note(told) is not None) is is_told
