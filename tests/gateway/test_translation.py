"""Every client's format to every upstream's, through the gateway: over real sockets, against the strict simulators."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from tests.gateway.gateways import Running, moved_in, running
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.served_simulators import NOW, listening
from tests.translation.lanes import BODY_TYPES, MORE_UPSTREAMS, UPSTREAMS, Answer, Client, Json, Upstream
from tests.translation.pairs import HARDEST, SCRIPTS, hold
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.settings import Settings, TranslationSettings
from thoughtline.values.turns import FormatName
from thoughtline_sim.app import SimulatorApp, simulator_app

PATHS: dict[FormatName, str] = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
    "ollama_chat": "/api/chat",
}


class GatewayLane:
    """A client at a gateway whose one provider is a face of a simulator."""

    def __init__(self, upstream: Upstream, client: FormatName, gateway: Running, simulator: SimulatorApp) -> None:
        self.upstream = upstream
        self.client = client
        self._url = f"{gateway.url}/{upstream.provider}"
        self._simulation = simulator.simulation
        self._http = httpx.Client(headers={"authorization": "Bearer a-key"}, timeout=60)

    def exchange(self, body: bytes, is_streaming: bool) -> Answer:
        response = self._http.post(self._url + self._path(is_streaming), content=self._named(body))
        return Answer(response.status_code, response.content)

    def _path(self, is_streaming: bool) -> str:
        if self.client != "gemini_generate":
            return PATHS[self.client]
        return f"/v1beta/models/{self.upstream.model}:" + (
            "streamGenerateContent?alt=sse" if is_streaming else "generateContent"
        )

    def _named(self, body: bytes) -> bytes:
        return body.replace(b'"some/model"', f'"{self.upstream.model}"'.encode())

    @property
    def verdicts(self) -> list[str]:
        return list(self._simulation.log[-1]["verdicts"])

    @property
    def refusals(self) -> int:
        return sum(entry["status"] != 200 for entry in self._simulation.log)


@contextlib.contextmanager
def lane(upstream: Upstream, client: FormatName) -> Iterator[GatewayLane]:
    """A gateway and a simulator of their own."""
    simulator = simulator_app(upstream.simulator, upstream.profile, seed=7, now=lambda: NOW)
    row = moved_in(upstream.provider, listening(simulator), upstream.format)
    settings = Settings(providers={**PROVIDERS, upstream.provider: row})
    with running({}, settings) as gateway:
        yield GatewayLane(upstream, client, gateway, simulator)


@pytest.mark.parametrize("client", BODY_TYPES)
@pytest.mark.parametrize("upstream", UPSTREAMS, ids=lambda upstream: upstream.id)
def test_no_pair_is_refused_or_loses_reasoning(upstream: Upstream, client: FormatName) -> None:
    """Ten turns with parallel tools and interleaved thinking, whole and streamed, with a client that keeps everything
    and one that strips everything: no 4xx, and all thinking comes back whole. The easier dialogues run without a
    gateway, in `tests/translation`."""
    with lane(upstream, client) as one:
        for dialogue in HARDEST:
            hold(one, dialogue)  # type: ignore[arg-type]  # a lane by what it does
            assert set(one.verdicts) <= {"whole", "none"}, dialogue.id


BOUND = next(one for one in MORE_UPSTREAMS if one.profile == "bound")
REMINDERS: dict[FormatName, Json] = {
    "openai_chat": {"role": "system", "content": "Reminder {}."},
    "openai_responses": {"type": "message", "role": "developer", "content": "Reminder {}."},
    "anthropic_messages": {"role": "system", "content": "Reminder {}."},
    "ollama_chat": {"role": "system", "content": "Reminder {}."},
}


def reminder(client: FormatName, number: int) -> Json:
    return {name: value.format(number) for name, value in REMINDERS[client].items()}


@pytest.mark.parametrize("strips", [False, True], ids=["keeps", "strips"])
@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("client", REMINDERS)
def test_a_later_system_message_unbinds_nothing(
    client: FormatName, place: str, is_streaming: bool, strips: bool
) -> None:
    """A model whose thinking is bound to everything before it, and a client that adds a system message at every turn,
    before or after the user's or a tool's message: no 4xx, and all thinking comes back whole."""
    script = "\n---\n".join(SCRIPTS["tools"](turn) for turn in range(6))
    with lane(BOUND, client) as one:
        extra = {"thinking": {"type": "adaptive"}} if client == "anthropic_messages" else {}
        # A dictionary of literals is narrower than one of any JSON.
        talk = Client(one, f"{place}\nscript:\n{script}", strips, extra=extra)  # type: ignore[arg-type]
        for turn in range(6):
            talk.ask(is_streaming)
            assert set(one.verdicts) <= {"whole"}, f"turn {turn}"
            count = len(talk.history)
            talk.go_on()
            is_result = place == "before" and turn % 2 == 0  # results come right after their calls
            talk.history.insert(
                count if place == "before" and not is_result else len(talk.history), reminder(client, turn)
            )
        assert len(one.verdicts) == 5


@pytest.mark.parametrize("edit", ["changed", "moved", "dropped", "added"])
def test_an_earlier_system_message_unbinds_what_follows(edit: str) -> None:
    """A system message before a turn was changed: its thinking and all later thinking is no longer valid and is
    removed; thinking before it stays."""
    script = "\n---\n".join(SCRIPTS["plain"](turn) for turn in range(4))
    with lane(BOUND, "anthropic_messages") as one:
        # A dictionary of literals is narrower than one of any JSON.
        talk = Client(one, f"{edit}\nscript:\n{script}", extra={"thinking": {"type": "adaptive"}})  # type: ignore[arg-type]
        for turn in range(3):
            talk.ask(is_streaming=False)
            talk.go_on()
            if turn == 0:
                talk.history.append(reminder("anthropic_messages", turn))
        history = talk.history
        at = history.index(reminder("anthropic_messages", 0))
        match edit:
            case "changed":
                history[at] = reminder("anthropic_messages", 9)
            case "moved":
                history[at - 1], history[at] = history[at], history[at - 1]
            case "dropped":
                del history[at]
            case "added":
                history.insert(at, reminder("anthropic_messages", 9))
        talk.ask(is_streaming=False)
        assert one.verdicts == ["whole", "missing", "missing"]


@pytest.mark.parametrize("marks", [True, False], ids=["marked", "not marked"])
def test_the_setting_decides_whether_prompts_get_a_mark_for_caching(marks: bool) -> None:
    """A Codex-like request to Claude: `[translation] cache_marks` sets one mark, or none."""

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, b'{"id":"m","type":"message","role":"assistant","content":[],"stop_reason":"end_turn"}')

    body = {"model": "claude-sonnet-4-5", "input": "Hi.", "tools": [{"type": "function", "name": "look"}]}
    with (
        upstream(answer) as up,
        running({"anthropic": up.url}, Settings(translation=TranslationSettings(cache_marks=marks))) as gateway,
    ):
        key = {"authorization": "Bearer a-key"}
        assert httpx.post(f"{gateway.url}/anthropic/v1/responses", json=body, headers=key).status_code == 200
        assert up.got[0].body.count(b'"cache_control"') == int(marks)


SAID = {"role": "user", "parts": {"text": "Hi."}}
DECLARED = {"functionDeclarations": [{"name": "look", "parameters": {"type": "OBJECT", "properties": {}}}]}


@pytest.mark.parametrize(
    "body",
    [
        {"contents": SAID},
        {"contents": [SAID], "tools": DECLARED},
        {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}], "tools": DECLARED},
        {"contents": SAID, "systemInstruction": {"parts": {"text": "Be brief."}}},
    ],
    ids=["contents", "parts and tools", "tools", "instructions"],
)
def test_a_gemini_client_may_send_single_objects(body: Json) -> None:
    """Google accepts one object in place of a list; translated, such a request means the same."""
    with lane(UPSTREAMS[0], "gemini_generate") as one:
        answer = one.exchange(json.dumps(body).encode(), False)
        assert answer.status == 200, answer.body


@pytest.mark.parametrize("body", [b'{"contents": {', b'{"tools": {}, "contents": 7}'])
def test_single_objects_in_a_body_that_is_wrong_give_a_400(body: bytes) -> None:
    """And no other error."""
    with lane(UPSTREAMS[0], "gemini_generate") as one:
        assert one.exchange(body, False).status == 400


# --- asked to think ---------------------------------------------------------------------------------------------------

ASKED: Json = {"role": "user", "content": "What is there?"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
UNSIGNED: list[Json] = [
    ASKED,
    {"role": "assistant", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "-"},
]
OFFERED = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
CLAUDES = [("anthropic", "claude-sonnet-4-5"), ("openrouter", "anthropic/claude-sonnet-4.5")]


def asked_of(
    provider: str, model: str, messages: list[Json], think: bool = True, **extra: object
) -> tuple[httpx.Response, Json]:
    """A chat client's request to Claude, which is translated: its answer, and what was finally sent."""
    simulator = simulator_app(provider, seed=7, now=lambda: NOW)
    bodies: list[bytes] = []

    async def keeping(scope: Any, receive: Any, send: Any) -> None:
        async def hear() -> Any:
            message = await receive()
            bodies.append(message.get("body", b""))
            return message

        await simulator(scope, hear, send)

    row = replace(PROVIDERS[provider], base_url=listening(keeping), bases={}, paths={}, formats=("openai_chat",))
    if provider == "anthropic":
        row = replace(row, formats=("anthropic_messages",))
    settings = Settings(providers={provider: row}, translation=TranslationSettings(think=think))
    with running({}, settings) as gateway:
        path, body = "/v1/chat/completions", {"model": model, "messages": messages, "tools": OFFERED, **extra}
        if provider == "openrouter":
            path, body = "/api/chat", {**body, "stream": False}
        answer = httpx.post(f"{gateway.url}/{provider}{path}", json=body, headers={"authorization": "Bearer a-key"})
    return answer, json.loads(b"".join(bodies[-1:]) or b"{}")


@pytest.mark.parametrize(("provider", "model"), CLAUDES)
@pytest.mark.parametrize("think", [True, False], ids=["asked", "not asked"])
def test_the_setting_decides_whether_claude_is_asked_to_think(provider: str, model: str, think: bool) -> None:
    """`[translation] think`; the client sees the thinking, and that it was asked for."""
    answer, sent = asked_of(provider, model, [ASKED], think)
    assert answer.status_code == 200, answer.text
    assert bool(sent.keys() & {"thinking", "reasoning"}) is think
    assert ("asked-to-think" in answer.headers.get("x-thoughtline-findings", "")) is think
    assert not think or "reasoning_content" in answer.text or '"thinking"' in answer.text


@pytest.mark.parametrize(("provider", "model"), CLAUDES)
def test_a_tool_loop_that_began_elsewhere_is_not_refused(provider: str, model: str) -> None:
    """Its first turn has no thinking of Claude's: the model is not asked to think until the user speaks again."""
    history: list[Json] = [*UNSIGNED]
    if provider == "openrouter":
        call = {"function": {"name": "look", "arguments": {}}}
        history = [ASKED, {"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "tool", "content": "-"}]
    answer, _ = asked_of(provider, model, history)
    assert answer.status_code == 200, answer.text
    answer, sent = asked_of(provider, model, [*history, {"role": "assistant", "content": "So."}, ASKED])
    assert answer.status_code == 200, answer.text
    assert sent.keys() & {"thinking", "reasoning"}


def test_an_answer_that_the_client_begins_is_not_thought_about() -> None:
    """Claude refuses to think before text that is already there."""
    answer, sent = asked_of("anthropic", "claude-sonnet-4-5", [ASKED, {"role": "assistant", "content": "It is"}])
    assert answer.status_code == 200, answer.text
    assert "thinking" not in sent
