"""Thinking tags in visible answers through the gateway: left, removed, or lifted into the reasoning."""

from __future__ import annotations

import itertools
import json
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from tests.gateway.failing_simulators import BY_FORMAT, ON, Stage, Talk, stage
from tests.gateway.gateways import moved_in, running
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.faces import HTTP
from tests.translation.lanes import BODY_TYPES, UPSTREAMS, Upstream
from thoughtline.destinations.catalogue import PROVIDERS, TagMode
from thoughtline.formats import FORMATS
from thoughtline.gateway.pieces import Piece
from thoughtline.gateway.tagging import tags_in_stream
from thoughtline.providers import OPENAI_RESPONSES
from thoughtline.settings import ContinuitySettings, Settings
from thoughtline.values.items import ReasoningSummary, ReasoningText, Text
from thoughtline.values.turns import FormatName

QUIET = ContinuitySettings()
SAYS = 'Well, <Think a="1">inner words</think> so be it. `<think>` is a tag.'
SHOWN = {
    "off": SAYS,
    "markers": "Well, inner words so be it. `<think>` is a tag.",
    "lift": "Well,  so be it. `<think>` is a tag.",
}


def _begun(one: Stage, client: FormatName, chunk: int = 2) -> Talk:
    """A conversation whose first turn thinks and has tags in its text, in pieces of this size."""
    says = f"think: for itself\nsay: {SAYS}\nchunk {chunk}\n---\nthink: again\nsay: The end."
    talk = one.begin(client, 2)
    opening = talk.client.wire.say(f"tags {client} {chunk}\nscript:\n{says}")
    talk.client.history[-1] = opening
    return talk


def _visible(talk: Talk) -> str:
    [candidate] = talk.client.replies[-1].candidates
    return "".join(item.text for item in candidate.turn.items if isinstance(item, Text))


def _thought(talk: Talk) -> str:
    [candidate] = talk.client.replies[-1].candidates
    items = candidate.turn.items
    texts = [item.text for item in items if isinstance(item, ReasoningText)]
    return "\n".join([*texts, *(item.summary for item in items if isinstance(item, ReasoningSummary))])


def _is_sealed_whole(target: Upstream, client: FormatName, *, is_streaming: bool) -> bool:
    """A text that comes with its signature is left alone: Gemini's for a Gemini client."""
    return target.format == client == "gemini_generate" and not is_streaming


@pytest.mark.parametrize("mode", SHOWN)
@pytest.mark.parametrize("target", UPSTREAMS, ids=lambda one: one.format)
def test_tags(target: Upstream, mode: TagMode) -> None:
    """In every client's format, translated or not, whole and streamed in small pieces; and in the next turn, where the
    client sends back what it was shown, the model's own thinking is found again and comes back whole.

    Gemini signs text, and lifting may split it: such a signature has no place any more, and none is required.
    """
    with stage(target, continuity=QUIET, tags=mode) as one:
        app = one.targets[target.provider]
        for client, is_streaming in itertools.product(BODY_TYPES, (False, True)):
            talk = _begun(one, client, 2 + is_streaming)
            talk.step(is_streaming=is_streaming)
            done = "off" if _is_sealed_whole(target, client, is_streaming=is_streaming) else mode
            assert " ".join(_visible(talk).split()) == " ".join(SHOWN[done].split()), (client, is_streaming)
            assert ("inner words" in _thought(talk)) is (done == "lift")
            assert talk.step(is_streaming=is_streaming)
            is_split = target.format in ("gemini_generate", "gemini_code_assist") and done == "lift"
            allowed = ("whole", "missing") if is_split else ("whole",)
            assert app.simulation.log[-1]["verdicts"][0] in allowed, (client, is_streaming)
        one.check_answers()


@pytest.mark.parametrize("client", BODY_TYPES)
def test_markers_go_by_themselves_where_continuity_is_on(client: FormatName) -> None:
    """With continuity on and no setting for tags; not with such a setting, nor for a request that is not continued."""
    pair = (BY_FORMAT["openai_chat"], BY_FORMAT["anthropic_messages"])
    with stage(*pair, continuity=ON) as one:
        talk = _begun(one, client)
        talk.step(is_streaming=True)
        assert _visible(talk) == SHOWN["markers"]
        # The other model is told what the first thought, and finds it by the words that the client was shown.
        assert talk.step("deepseek").checkpoints == 1
    with stage(*pair, continuity=ON, tags="off") as one:
        talk = _begun(one, client)
        talk.step(is_streaming=True)
        assert _visible(talk) == SHOWN["off"]
    with stage(*pair, continuity=QUIET) as one:
        talk = _begun(one, client)
        talk.step(is_streaming=True)
        assert _visible(talk) == SHOWN["off"]


def test_tags_of_one_provider() -> None:
    """`[providers.NAME] tags` overrides `[tags]`."""
    target = BY_FORMAT["openai_chat"]
    with stage(target, continuity=QUIET, tags="off") as one:
        state = one.gateway.state
        rows = {**state.settings.providers, "deepseek": replace(state.settings.providers["deepseek"], tags="markers")}
        one.gateway.app.state = state._replace(settings=replace(state.settings, providers=rows))
        talk = _begun(one, "openai_chat")
        talk.step(is_streaming=True)
        assert _visible(talk) == SHOWN["markers"]


def _recorded(target: Upstream) -> tuple[str, bytes, bytes]:
    """The address, the body and the stream of a request without any tag, recorded from a simulator."""
    with stage(target, continuity=QUIET) as one:
        talk = one.begin(target.format, 1)
        talk.step(is_streaming=True)
        path = talk.lane._path(True).replace("team", target.model)
        return path, talk.client.body(True), talk.lane.response.content


UNCHANGED: list[tuple[FormatName, TagMode]] = [
    *((name, "markers") for name in BODY_TYPES),
    ("openai_chat", "lift"),
    ("gemini_generate", "lift"),
    ("ollama_chat", "lift"),
]


@pytest.mark.parametrize(("format", "mode"), UNCHANGED)
def test_a_stream_without_tags_is_left_alone(format: FormatName, mode: TagMode) -> None:
    """The same bytes, and each event reaches the client before the upstream sends the next."""
    target = BY_FORMAT[format]
    path, body, stream = _recorded(target)
    mark = b"\n" if format == "ollama_chat" else b"\n\n"
    events = [event + mark for event in stream.replace(b"\r\n", b"\n").split(mark) if event]
    received = bytearray()

    async def answer(got: Got, out: Out) -> None:
        kind = "application/x-ndjson" if format == "ollama_chat" else "text/event-stream"
        await out.stream(("content-type", kind))
        sent = 0
        for event in events:
            await out.chunk(event)
            sent += len(event)
            await out.until(lambda due=sent: len(received) >= due)  # type: ignore[misc]  # the sum so far
        await out.end()

    with upstream(answer) as up:
        row = moved_in(target.provider, up.url, format)
        settings = Settings(providers={**PROVIDERS, row.name: row}, tags=mode)
        with running({}, settings) as gateway:
            url = f"{gateway.url}/{row.name}{path}"
            with HTTP.stream("POST", url, content=body, timeout=httpx.Timeout(20)) as response:
                assert response.status_code == 200
                for piece in response.iter_raw():
                    received += piece
    assert bytes(received) == b"".join(events)


def test_an_element_keeps_its_id_from_its_beginning_to_its_end() -> None:
    """Lifting rewrites a Responses stream: the events of an element have one id, the provider's own for the provider's
    element."""
    text = "<think>hm</think>Words."
    elements: list[dict[str, Any]] = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc"},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": text}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}"},
    ]
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "r"}}]
    for at, element in enumerate(elements):
        bare = {key: value for key, value in element.items() if key in ("type", "id", "call_id", "name", "role")}
        events.append({"type": "response.output_item.added", "output_index": at, "item": bare})
        if element["type"] == "message":
            for piece in (text[:9], text[9:]):
                delta = {"type": "response.output_text.delta", "output_index": at, "item_id": "msg_1", "delta": piece}
                events.append(delta)
        if element["type"] == "reasoning":
            kind = "response.reasoning_summary_text.delta"
            events.append({"type": kind, "output_index": at, "item_id": "rs_1", "summary_index": 0, "delta": "so"})
            element["summary"] = [{"type": "summary_text", "text": "so"}]
        events.append({"type": "response.output_item.done", "output_index": at, "item": element})
    events.append({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": elements}})
    stream = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    decoder = FORMATS["openai_responses"].stream_decoder(OPENAI_RESPONSES)
    stage = tags_in_stream("openai_responses", "lift", OPENAI_RESPONSES)
    said, end = Piece(stream, events=decoder.feed(stream)), Piece(b"", events=decoder.finish())
    stage.feed(said)
    stage.end(end)
    out = said.data + end.ending
    ids: dict[int, set[str]] = {}
    for line in out.splitlines():
        event = json.loads(line[6:]) if line.startswith(b"data: {") else {}
        if "output_index" in event:
            ids.setdefault(event["output_index"], set()).add(event.get("item_id") or event["item"]["id"])
    assert all(len(known) == 1 for known in ids.values()), ids
    (final,) = [
        json.loads(line[6:]) for line in out.splitlines() if b'"response.completed"' in line and line[:1] == b"d"
    ]
    told = [element["id"] for element in final["response"]["output"]]
    assert [name for name in told if name in ("rs_1", "msg_1", "fc_1")] == ["rs_1", "msg_1", "fc_1"]


@pytest.mark.parametrize("mode", ["markers", "lift"])
def test_a_stream_that_tells_its_length(mode: TagMode) -> None:
    """It gets shorter, so its length is not declared any more: a client would wait for the rest."""
    chunk = {"id": "1", "choices": [{"index": 0, "delta": {"content": SAYS}, "finish_reason": "stop"}]}
    told = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, told, ("content-type", "text/event-stream"))

    with upstream(answer) as up, running({"deepseek": up.url}, Settings(tags=mode)) as gateway:
        body = {"model": "deepseek-chat", "messages": [], "stream": True}
        response = HTTP.post(f"{gateway.url}/deepseek/v1/chat/completions", json=body)
    chunks = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]
    words = [one["choices"][0]["delta"].get("content") or "" for one in chunks if one["choices"]]
    assert "".join(words) == SHOWN[mode]
    assert response.text.endswith("data: [DONE]\n\n")
    assert "content-length" not in response.headers
