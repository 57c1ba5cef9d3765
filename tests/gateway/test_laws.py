"""Law 7: in a same-format exchange the client's bytes are the upstream's bytes, even if our decoder raises."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gateway.conftest import provider_of
from tests.gateway.forgetful_clients import TEN_TURNS, Forgetful
from tests.gateway.gateways import Running, running
from tests.gateway.upstreams import Got, Out, Upstream, upstream
from tests.sim.faces import CASES, HTTP, Body, Case, Dialogue
from thoughtline.engine.capture import StreamWatch
from thoughtline.values.events import Event
from thoughtline.values.turns import FormatName

IDS = (
    "deepseek-openai_chat",
    "anthropic-bound",
    "openai-openai_responses-gpt-5",
    "gemini-gemini_generate-gemini-3-pro",
    "gemini-gemini_generate-gemini-3.7",
    "code-assist-gemini_code_assist-gemini",
    "gemini-gemini_interactions",
    "ollama-ollama_chat",
    "bedrock-bedrock_converse-us",
    "bedrock-bedrock_invoke-us",
)
STREAMS = [next(case for case in CASES if case.id.startswith(one)) for one in IDS]


class Replaying:
    """Answers with the latest scripted pieces."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.kind = ""

    async def __call__(self, got: Got, out: Out) -> None:
        await out.stream(("content-type", self.kind))
        for piece in self.pieces:
            if piece:
                await out.chunk(piece)
        await out.end()


@pytest.fixture(scope="module")
def lane() -> Iterator[tuple[Replaying, Upstream, Running]]:
    """One gateway in front of one upstream that acts as every provider."""
    replaying = Replaying()
    names = [provider_of(case) for case in STREAMS]
    with upstream(replaying) as up, running(dict.fromkeys(names, up.url)) as gateway:
        yield replaying, up, gateway


@pytest.fixture(scope="module")
def recorded() -> dict[str, tuple[bytes, str]]:
    """A stream of each format, and its content type."""
    answers = {case.id: Dialogue(case, TEN_TURNS.format(mark="law")).post(is_streaming=True) for case in STREAMS}
    return {name: (answer.content, answer.headers["content-type"]) for name, answer in answers.items()}


def leave_alone(body: Body, format: FormatName) -> None:
    """A client that sends its history unchanged."""


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places})
    return [data[start:end] for start, end in zip([0, *ends], [*ends, len(data)], strict=True)]


TEXTS = st.text(max_size=40)
TURNS = st.lists(st.tuples(TEXTS, TEXTS), max_size=4)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    case=st.sampled_from(STREAMS),
    turns=TURNS,
    places=st.lists(st.integers(0, 10**6), max_size=30),
    garbage=st.one_of(st.just(b""), st.binary(min_size=1, max_size=80)),
    at=st.integers(0, 10**6),
    raises_at=st.one_of(st.none(), st.integers(0, 12)),
)
def test_the_clients_bytes_are_the_upstreams(
    lane: tuple[Replaying, Upstream, Running],
    recorded: dict[str, tuple[bytes, str]],
    case: Case,
    turns: list[tuple[str, str]],
    places: list[int],
    garbage: bytes,
    at: int,
    raises_at: int | None,
) -> None:
    """For any history, any cuts, any damage to the stream, and a decoder that fails at any piece."""
    replaying, _, gateway = lane
    stream, replaying.kind = recorded[case.id]
    at %= len(stream) + 1
    stream = stream[:at] + garbage + stream[at:]
    replaying.pieces = cut(stream, places)
    dialogue = Forgetful(f"{gateway.url}/{provider_of(case)}", case, "hi", change=leave_alone)
    for question, answer in turns:
        dialogue.history.extend([dialogue.wire.say(question or "?"), _answered(dialogue, answer or "!")])
    dialogue.history.append(dialogue.wire.say("go on"))
    with failing_at(raises_at):
        response = HTTP.send(dialogue.request(is_streaming=True), stream=True)
        assert response.status_code == 200
        assert b"".join(response.iter_raw()) == stream


def _answered(dialogue: Dialogue, text: str) -> dict[str, Any]:
    """A model turn in the format."""
    said, spoken = dialogue.wire.say(text), dialogue.case.format
    if spoken == "gemini_interactions":
        return {**said, "type": "model_output"}
    return {**said, "role": "model" if spoken in ("gemini_generate", "gemini_code_assist") else "assistant"}


@contextlib.contextmanager
def failing_at(number: int | None) -> Iterator[None]:
    """The decoder raises an unexpected error, from one of its pieces on."""
    if number is None:
        yield
        return
    read, pieces = StreamWatch.read, itertools.count()

    def fail(watch: StreamWatch, data: bytes) -> list[Event]:
        if next(pieces) >= number:
            raise RuntimeError("a decoder's fault")
        return read(watch, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StreamWatch, "read", fail)
        yield
