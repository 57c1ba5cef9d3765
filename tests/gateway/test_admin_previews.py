"""What continuity would quote of a session, to whom, and what it would not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.managed_gateways import Managed, managed

PREVIEW = "/api/continuity/preview"


@pytest.fixture
def gateway() -> Iterator[Managed]:
    with managed() as one:
        yield one


def test_the_newest_are_quoted_to_a_model_that_can_not_take_them(gateway: Managed) -> None:
    """As many as are asked for, oldest first, with the text as it goes up; the others are told, with why."""
    answers = gateway.ask("list the files", session="s", turns=4)
    thoughts = [one["reasoning_content"] for one in answers]
    found = gateway.get(PREVIEW, session="s", target="anthropic/claude-opus-5-5", count=2)
    assert [one["text"] for one in found["quotes"]] == thoughts[-2:]
    assert [one["model"] for one in found["quotes"]] == ["deepseek/deepseek-v4-pro"] * 2
    assert [one["why"] for one in found["leftOut"]] == ["older", "older"]
    assert found["text"].startswith("[Host continuation checkpoint]")
    assert all(thought in found["text"] for thought in thoughts[-2:])
    assert found["addedChars"] == len(found["text"])
    assert (found["isEnabled"], found["mode"], found["count"]) == (False, "handoff", 2)


def test_what_a_model_gets_natively_is_not_quoted(gateway: Managed) -> None:
    """Its own turns, and text that it accepts from any model; unless everything is to be quoted."""
    gateway.ask("list the files", session="s", turns=2)
    own = gateway.get(PREVIEW, session="s", target="deepseek/deepseek-v4-pro")
    assert ([one["why"] for one in own["leftOut"]], own["quotes"], own["text"]) == (["own", "own"], [], "")
    native = gateway.get(PREVIEW, session="s", target="kimi/kimi-k3")
    assert [one["why"] for one in native["leftOut"]] == ["native", "native"]
    assert len(gateway.get(PREVIEW, session="s", target="kimi/kimi-k3", mode="always")["quotes"]) == 2


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"session": "nobody", "target": "kimi/kimi-k3"}, 404, "unknown_session"),
        ({"session": "s", "target": "nobody/model"}, 400, "unknown_target"),
        ({"session": "s", "target": "kimi"}, 400, "unknown_target"),
        ({"session": "s", "target": "kimi/kimi-k3", "count": "many"}, 400, "bad_parameter"),
    ],
)
def test_what_can_not_be_shown_is_refused(gateway: Managed, query: dict[str, str], status: int, code: str) -> None:
    gateway.ask("list the files", session="s")
    response = gateway.admin.get(PREVIEW, params=query)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
