"""The moments when a client may leave or the gateway may die: a turn that a client has seen to its end is kept."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.gateway.conftest import Gateways, provider_of
from tests.gateway.forgetful_clients import Forgetful
from tests.gateway.gateway_processes import started
from tests.gateway.gateways import Running, running
from tests.sim.faces import CASES, HTTP, Body, Call, Case
from tests.sim.served_simulators import served
from thoughtline.gateway.journal import Line
from thoughtline.settings import ReplaySettings, Settings
from thoughtline.stores import MemoryStore, Saved, StoreSettings
from thoughtline.values.records import Record

KILLS = 32
TWO_TURNS = """How is the weather? {mark}
script:
think: Two cities, so two calls at once, and a thought that takes a few pieces.
say: I shall look.
call: weather {{"city": "Paris"}}
call: weather {{"city": "Zürich"}}
---
think: Now I know.
say: Both are sunny.
"""

# What tells a client, in each format, that the model's turn is over; the event is complete with its empty line.
ENDS = {
    "openai_chat": re.compile(rb'"finish_reason": ?"[^\n]*\n\r?\n'),
    "openai_responses": re.compile(rb'data: ?\{"type": ?"response.completed"[^\n]*\n\r?\n'),
    "anthropic_messages": re.compile(rb'"stop_reason": ?"[^\n]*\n\r?\n'),
    "gemini_generate": re.compile(rb'"finishReason": ?"[^\n]*\n\r?\n'),
    "ollama_chat": re.compile(rb'"done": ?true[^\n]*\n'),
}
IDS = (
    "deepseek-openai_chat",
    "deepseek-anthropic_messages",
    "deepseek-openai_responses",
    "kimi-openai_chat",
    "mimo-openai_chat",
    "anthropic-classic",
    "anthropic-bound",
    "gemini-gemini_generate-gemini-3-pro",
    "gemini-openai_chat",
    "openai-openai_responses-gpt-5",
    "xai-openai_responses",
    "openrouter-openai_chat-anthropic",
    "ollama-ollama_chat",
)
STRICT = [next(case for case in CASES if case.id.startswith(one)) for one in IDS]


def read_to_the_end(dialogue: Forgetful, at_the_end: Callable[[], None]) -> bytes:
    """All bytes up to the moment when the client knows that the turn is over; the rest is not read."""
    heard = b""
    response = HTTP.send(dialogue.request(is_streaming=True), stream=True)
    assert response.status_code == 200, response.read()
    for piece in response.iter_raw():
        heard += piece
        if ENDS[dialogue.case.format].search(heard):
            at_the_end()
            response.close()
            return heard
    raise AssertionError("the stream had no end")


def assert_next_turn_is_restored(dialogue: Forgetful) -> None:
    response = dialogue.post()
    assert response.status_code == 200, response.text
    log = served(dialogue.case.simulator, dialogue.case.profile).app.simulation.log
    assert log[-1]["verdicts"] == ["whole"]
    assert response.headers["x-thoughtline-replay"].startswith("restored=1,")


def test_kill_minus_nine_after_the_end_of_a_turn(tmp_path: Path) -> None:
    """In random formats, whole and streamed, cut anywhere: the restarted gateway knows the turn."""
    chance = random.Random(20261115)
    kinds = [case for case in STRICT if case.profile != "classic"]  # one simulator for each provider's name
    rows = {provider_of(case): served(case.simulator, case.profile).url for case in kinds}
    store = f"sqlite:///{tmp_path}/kept.db"
    waiting: Forgetful | None = None
    restored = 0
    for kill in range(KILLS + 1):
        case = chance.choice(kinds)
        with started(store, rows) as gateway:
            if waiting is not None:
                waiting.base = f"{gateway.url}/{provider_of(waiting.case)}"
                assert_next_turn_is_restored(waiting)
                restored += 1
            waiting = Forgetful(f"{gateway.url}/{provider_of(case)}", case, TWO_TURNS.format(mark=f"kill {kill}"))
            waiting.headers = {"x-sim-chunk": str(chance.choice((2, 7, 24)))}
            is_streaming = chance.random() < 0.8
            if is_streaming:
                heard = read_to_the_end(waiting, gateway.kill)
            else:
                heard = waiting.post().content
                gateway.kill()
        waiting.go_on(waiting.hear(heard, is_streaming=is_streaming))
    assert restored == KILLS


@pytest.mark.parametrize("case", STRICT, ids=lambda case: case.id)
def test_asked_again_before_the_stream_has_ended(gateways: Gateways, case: Case) -> None:
    """The next request, sent on another connection as soon as the end was seen, is restored."""
    dialogue = Forgetful(f"{gateways(case).url}/{provider_of(case)}", case, TWO_TURNS.format(mark="at once"))
    dialogue.headers = {"x-sim-delay": "5"}
    heard = b""
    with HTTP.stream(**_parts(dialogue)) as response:
        for piece in response.iter_raw():
            heard += piece
            if ENDS[case.format].search(heard):
                dialogue.go_on(dialogue.hear(heard, is_streaming=True))
                assert_next_turn_is_restored(dialogue)
                break


@pytest.mark.parametrize("case", STRICT, ids=lambda case: case.id)
def test_a_hang_up_at_the_end_of_a_turn(gateways: Gateways, case: Case) -> None:
    """A client that has seen the end and reads no further finds its turn."""
    dialogue = Forgetful(f"{gateways(case).url}/{provider_of(case)}", case, TWO_TURNS.format(mark="hang up"))
    dialogue.headers = {"x-sim-delay": "5"}
    heard = read_to_the_end(dialogue, lambda: None)
    dialogue.go_on(dialogue.hear(heard, is_streaming=True))
    assert_next_turn_is_restored(dialogue)


class Slow(MemoryStore):
    """Is slow, and records whether the client had seen the end of the turn before it was saved."""

    def __init__(self, has_seen_end: threading.Event) -> None:
        super().__init__(StoreSettings(), time.time)
        self._has_seen_end = has_seen_end
        self.came_late: list[bool] = []

    async def save(self, records: Sequence[Record]) -> Saved:
        await asyncio.sleep(0.05)
        self.came_late.append(self._has_seen_end.is_set())
        return await super().save(records)


@pytest.mark.parametrize("case", STRICT, ids=lambda case: case.id)
def test_the_end_waits_for_the_record(case: Case) -> None:
    """The bytes that tell the client that its turn is over wait until the record is saved."""
    has_seen_end = threading.Event()
    store = Slow(has_seen_end)
    settings = Settings(replay=ReplaySettings(hold_ms=20_000))
    name = provider_of(case)
    with running({name: served(case.simulator, case.profile).url}, settings, store=store) as gateway:
        dialogue = Forgetful(f"{gateway.url}/{name}", case, TWO_TURNS.format(mark="held"))
        heard = read_to_the_end(dialogue, has_seen_end.set)
        dialogue.go_on(dialogue.hear(heard, is_streaming=True))
        assert_next_turn_is_restored(dialogue)
    assert store.came_late[0] is False


def hang_up_in_the_middle(gateway: Running, dialogue: Forgetful) -> Line:
    """Ask, read a little, disconnect; what the gateway reports at the end."""
    with gateway.listening() as next_line:
        response = HTTP.send(dialogue.request(is_streaming=True), stream=True)
        heard = next(response.iter_raw())
        assert not ENDS[dialogue.case.format].search(heard)
        response.close()
        return next_line()


def by_heart(dialogue: Forgetful) -> None:
    """The first turn of the script, as a client has it that saw it elsewhere: other ids, no reasoning."""
    calls = [Call(f"call_{city}", "weather") for city in ("Paris", "Zürich")]
    said = {"role": "assistant", "content": "I shall look.", "tool_calls": [_written(call) for call in calls]}
    dialogue.history.extend([said, *dialogue.wire.results(calls)])


def _written(call: Call) -> Body:
    arguments = json.dumps({"city": call.id.removeprefix("call_")})
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def test_a_hang_up_in_the_middle(gateways: Gateways) -> None:
    """The upstream continues to its end, and so does the capture."""
    case = STRICT[0]
    gateway = gateways(case)
    dialogue = Forgetful(f"{gateway.url}/{provider_of(case)}", case, TWO_TURNS.format(mark="half"))
    dialogue.headers = {"x-sim-delay": "5"}
    line = hang_up_in_the_middle(gateway, dialogue)
    assert (line.captured, line.status, line.note) == (1, 200, "")
    by_heart(dialogue)
    assert_next_turn_is_restored(dialogue)


CUT = """How is the weather? {mark}
script:
think: A thought that was thought to its end, in several pieces.
say: It is sunny in Paris, and I am about to say a lot more about it.
chunk 6
cut {events}
---
say: Once more.
"""


def cut_short(gateways: Gateways, case: Case, events: int) -> dict[str, Any]:
    """A turn that the upstream cut off, sent back by its client as far as it was received: the request as it
    arrived."""
    dialogue = Forgetful(
        f"{gateways(case).url}/{provider_of(case)}", case, CUT.format(mark=f"{case.id} {events}", events=events)
    )
    heard = b""
    response = HTTP.send(dialogue.request(is_streaming=True), stream=True)
    with contextlib.suppress(httpx.RemoteProtocolError):
        for piece in response.iter_raw():
            heard += piece
        raise AssertionError("the stream was not cut")
    dialogue.hear(heard, is_streaming=True)
    dialogue.history.append(dialogue.wire.say("Go on."))
    answer = dialogue.post()
    assert answer.status_code == 200, answer.text
    return dict(served(case.simulator, case.profile).app.simulation.log[-1])


SIGNED = [case for case in STRICT if case.simulator in ("anthropic", "gemini", "openai", "openrouter")]


@pytest.mark.parametrize("events", [4, 8, 11])
@pytest.mark.parametrize("case", SIGNED, ids=lambda case: case.id)
def test_a_seal_of_a_turn_that_was_cut_short(gateways: Gateways, case: Case, events: int) -> None:
    """It is never sent back, however much of the turn was received."""
    seen = cut_short(gateways, case, events)
    assert [thought for message in seen["messages"] for thought in message["thoughts"]] == []


def test_the_text_of_a_turn_that_was_cut_short(gateways: Gateways) -> None:
    """Where only text is needed, it is restored."""
    seen = cut_short(gateways, STRICT[0], 15)
    thoughts = [thought for message in seen["messages"] for thought in message["thoughts"]]
    assert thoughts == ["A thought that was thought to its end, in several pieces."]


def _parts(dialogue: Forgetful) -> dict[str, Any]:
    request = dialogue.request(is_streaming=True)
    return {"method": request.method, "url": request.url, "headers": request.headers, "content": request.content}
