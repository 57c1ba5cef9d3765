"""Nothing is decoded or computed twice in a request: each answer is read once, whatever is made of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from tests.gateway.gateways import moved, running
from tests.sim.faces import HTTP
from tests.sim.served_simulators import served
from thoughtline.destinations.catalogue import TagMode
from thoughtline.engine import capture
from thoughtline.formats import FORMATS
from thoughtline.formats.streaming import PayloadStreamDecoder
from thoughtline.replay import chains, matching, plans
from thoughtline.settings import Settings

SAYS = "Hello.\nscript:\nthink: A greeting.\nsay: Hello <think>to</think> you."
Result = TypeVar("Result")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each function ran since the counts were cleared."""
    counts: Counter[str] = Counter()

    def counting(name: str, do: Callable[..., Result]) -> Callable[..., Result]:
        def done(*given: Any, **named: Any) -> Result:
            counts[name] += 1
            return do(*given, **named)

        return done

    for name, row in FORMATS.items():
        bodies = row.bodies._replace(
            decode_request=counting(f"{name} requests", row.bodies.decode_request),
            decode_response=counting("answers", row.bodies.decode_response),
        )
        monkeypatch.setitem(FORMATS, name, replace(row, bodies=bodies))
    monkeypatch.setattr(PayloadStreamDecoder, "__init__", counting("answers", PayloadStreamDecoder.__init__))
    monkeypatch.setattr(capture, "provenance_of", counting("provenances", capture.provenance_of))
    by_lineage = counting("lineages", plans.match_by_lineage)
    for module in (plans, chains, matching):
        monkeypatch.setattr(module, "match_by_lineage", by_lineage)
    return counts


def chat(*, is_streaming: bool) -> tuple[str, dict[str, Any]]:
    said = [
        {"role": "user", "content": SAYS},
        {"role": "assistant", "content": "Well?"},
        {"role": "user", "content": "So."},
    ]
    return "/v1/chat/completions", {"model": "deepseek-v4-pro", "messages": said, "stream": is_streaming}


def messages(*, is_streaming: bool) -> tuple[str, dict[str, Any]]:
    _, body = chat(is_streaming=is_streaming)
    return "/v1/messages", {**body, "max_tokens": 1000}


def responses(*, is_streaming: bool) -> tuple[str, dict[str, Any]]:
    _, body = chat(is_streaming=is_streaming)
    return "/v1/responses", {"model": body["model"], "input": body["messages"], "stream": is_streaming}


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("tags", ["off", "lift"])
@pytest.mark.parametrize("client", [chat, messages, responses])
def test_an_answer_is_read_once(
    client: Callable[..., tuple[str, dict[str, Any]]], tags: TagMode, is_streaming: bool, counted: Counter[str]
) -> None:
    """In its own format and in others, with tags and without."""
    path, body = client(is_streaming=is_streaming)
    row = replace(moved("deepseek", served("deepseek").url), formats=("openai_chat",))
    with running({}, Settings(providers={"deepseek": row}, tags=tags)) as gateway:
        for _ in range(2):
            counted.clear()
            response = HTTP.post(f"{gateway.url}/deepseek{path}", json=body)
            assert response.status_code == 200
            assert counted["answers"] == 1
            assert counted["provenances"] == 1
            assert counted["lineages"] == 1
            assert all(count == 1 for name, count in counted.items() if name.endswith("requests")), counted


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "streamed"])
def test_an_answer_that_is_written_again_is_read_once(is_streaming: bool, counted: Counter[str]) -> None:
    """Lifting tags in Messages makes new blocks: of the answer read, not of the one written."""
    path, body = messages(is_streaming=is_streaming)
    with running({"anthropic": served("anthropic").url}, Settings(tags="lift")) as gateway:
        response = HTTP.post(f"{gateway.url}/anthropic{path}", json={**body, "model": "claude-sonnet-4-5"})
        assert response.status_code == 200
        assert b"<think>" not in response.content
        assert counted["answers"] == 1
