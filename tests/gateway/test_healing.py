"""Unlisted providers that refuse: the client gets a 200, and the next request is right at once."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import httpx
import pytest
from msgspec.structs import replace

from tests.gateway.forgetful_clients import TWO_TURNS, Forgetful, forget_everything
from tests.gateway.gateways import Running, running
from tests.gateway.test_translation import lane
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.faces import CASES, Body, Case
from tests.sim.served_simulators import served
from tests.translation.lanes import BODY_TYPES, Client, Upstream
from thoughtline.destinations.catalogue import Provider
from thoughtline.settings import ReplaySettings, Settings
from thoughtline.values.turns import FormatName


def _unheard_of(start: str, model: str = "novel-9") -> Case:
    """A simulator whose model has an unknown name."""
    case = next(case for case in CASES if case.id.startswith(start))
    return case._replace(model=model, profile="reseller" if case.simulator == "deepseek" else case.profile)


STRICT = [
    _unheard_of("deepseek-openai_chat"),
    _unheard_of("deepseek-anthropic_messages"),
    _unheard_of("deepseek-openai_responses"),
    _unheard_of("kimi-openai_chat"),
    _unheard_of("kimi-anthropic_messages"),
    _unheard_of("mimo-openai_chat"),
    _unheard_of("mimo-anthropic_messages"),
    _unheard_of("anthropic-classic"),
    _unheard_of("gemini-openai_chat"),
    _unheard_of("openai-openai_responses-gpt-5-stored"),
    _unheard_of("openrouter-openai_chat-anthropic", "anthropic/novel-9"),
]


@contextlib.contextmanager
def acme(
    url: str, format: FormatName, replay: ReplaySettings | None = None, store: str = "memory://"
) -> Iterator[Running]:
    """A gateway that knows nothing about its provider."""
    settings = Settings(providers={"acme": Provider("acme", url, (format,))}, replay=replay or ReplaySettings())
    with running({}, settings, store_url=store) as gateway:
        yield gateway


def lost_elsewhere(case: Case, mark: str) -> Forgetful:
    """A conversation whose first turn did not go through the gateway, so that its reasoning is lost."""
    dialogue = Forgetful(served(case.simulator, case.profile).url, case, TWO_TURNS.format(mark=mark))
    dialogue.go_on(dialogue.ask())
    return dialogue


def told(response: httpx.Response, name: str) -> int:
    """A number of the replay header."""
    parts = dict(part.strip().split("=") for part in response.headers["x-thoughtline-replay"].split(","))
    return int(parts[name])


def ask_through(gateway: Running, dialogue: Forgetful) -> httpx.Response:
    dialogue.base = f"{gateway.url}/acme"
    response = dialogue.post()
    assert response.status_code == 200, response.text
    return response


@pytest.mark.parametrize("case", STRICT, ids=lambda case: case.id)
def test_an_unlisted_strict_provider(case: Case, tmp_path: Path) -> None:
    """The first request is healed, the next one needs no healing; nor after a restart, nor on another replica."""
    _check_learning(case, f"sqlite:///{tmp_path}/kept.db")


@pytest.mark.parametrize("shared_url", ["redis", "postgres"], indirect=True)
def test_an_unlisted_strict_provider_before_replicas(shared_url: str) -> None:
    """The same with a database server as the store."""
    _check_learning(STRICT[0], shared_url)


def _check_learning(case: Case, store: str) -> None:
    url = served(case.simulator, case.profile).url
    refusals = _refusals(case)
    with acme(url, case.format, store=store) as gateway, acme(url, case.format, store=store) as replica:
        first = lost_elsewhere(case, f"first {case.id}")
        assert told(ask_through(gateway, first), "healed") == 1
        assert told(ask_through(gateway, first), "healed") == 0
        assert told(ask_through(gateway, lost_elsewhere(case, f"second {case.id}")), "healed") == 0
        replica.wait_for(replica.state.lessons.refresh())
        assert told(ask_through(replica, lost_elsewhere(case, f"third {case.id}")), "healed") == 0
    with acme(url, case.format, store=store) as again:
        assert told(ask_through(again, lost_elsewhere(case, f"fourth {case.id}")), "healed") == 0
    assert _refusals(case) - refusals == 1


def _refusals(case: Case) -> int:
    stats = served(case.simulator, case.profile).app.simulation.stats()
    return sum(conversation["refusals"] for conversation in stats["conversations"])


@pytest.mark.parametrize("case", STRICT, ids=lambda case: case.id)
def test_what_went_through_the_gateway_needs_no_healing_twice(case: Case) -> None:
    """A conversation seen from its start is restored, for any provider."""
    with acme(served(case.simulator, case.profile).url, case.format) as gateway:
        for mark in ("one", "two"):
            dialogue = Forgetful(f"{gateway.url}/acme", case, TWO_TURNS.format(mark=f"through {mark} {case.id}"))
            dialogue.go_on(dialogue.ask())
            response = ask_through(gateway, dialogue)
            assert (told(response, "restored"), told(response, "blank"), told(response, "missing")) == (1, 0, 0)
        assert told(response, "healed") == 0


FORBIDDING = [_unheard_of(start) for start in ("mistral", "groq", "cerebras")]


@pytest.mark.parametrize("case", FORBIDDING, ids=lambda case: case.id)
def test_an_unlisted_provider_that_refuses_other_fields(case: Case) -> None:
    """Its own answer shows which one it accepts: nothing is refused."""
    with acme(served(case.simulator, case.profile).url, case.format) as gateway:
        dialogue = Forgetful(f"{gateway.url}/acme", case, TWO_TURNS.format(mark=f"forbidden {case.id}"))
        dialogue.go_on(dialogue.ask())
        response = ask_through(gateway, dialogue)
        assert (told(response, "restored"), told(response, "healed")) == (1, 0)


def with_its_own_field(body: Body, format: FormatName) -> None:
    """A client that writes reasoning into `reasoning_content` for every provider."""
    forget_everything(body, format)
    for message in body["messages"]:
        if message["role"] == "assistant":
            message["reasoning_content"] = "Let me see."


@pytest.mark.parametrize("case", FORBIDDING, ids=lambda case: case.id)
def test_an_unlisted_provider_that_refuses_the_clients_field(case: Case) -> None:
    """Reasoning goes into another field, or nowhere: at most two attempts, and none for the next request."""
    dialogue = lost_elsewhere(case, f"own field {case.id}")
    dialogue = Forgetful(dialogue.base, case, TWO_TURNS.format(mark=f"own {case.id}"), change=with_its_own_field)
    dialogue.go_on(dialogue.ask())
    with acme(served(case.simulator, case.profile).url, case.format) as gateway:
        assert told(ask_through(gateway, dialogue), "healed") == 1
        assert told(ask_through(gateway, dialogue), "healed") == 0


KIMI = STRICT[3]


def test_healing_without_learning() -> None:
    """`learn = false`: every request is healed, none is learned from."""
    with acme(served("kimi").url, KIMI.format, ReplaySettings(learn=False)) as gateway:
        dialogue = lost_elsewhere(KIMI, "unlearned")
        assert [told(ask_through(gateway, dialogue), "healed") for _ in range(2)] == [1, 1]
        assert gateway.state.lessons.corrections == ()


def test_no_healing() -> None:
    """`heal = false`: the provider's refusal, unchanged."""
    with acme(served("kimi").url, KIMI.format, ReplaySettings(heal=False)) as gateway:
        dialogue = lost_elsewhere(KIMI, "unhealed")
        direct = dialogue.post()
        dialogue.base = f"{gateway.url}/acme"
        response = dialogue.post()
    assert (response.status_code, response.content) == (direct.status_code, direct.content)
    assert response.status_code == 400


def test_a_lesson_expires(tmp_path: Path) -> None:
    """After its expiry the provider is tried again, and its new answer counts."""
    with acme(served("kimi").url, KIMI.format) as gateway:
        ask_through(gateway, lost_elsewhere(KIMI, "learned"))
        lessons = gateway.state.lessons
        old = tuple(replace(one, expires_at=one.learned_at + 1e-9) for one in lessons.corrections)
        assert old
        gateway.wait_for(lessons.keep(old, frozenset()))
        assert told(ask_through(gateway, lost_elsewhere(KIMI, "expired")), "healed") == 1


HISTORY: Body = {
    "model": "novel-9",
    "messages": [
        {"role": "user", "content": "list the files"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "a"},
    ],
    "tools": [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}],
}
MISSING = b'{"error":{"message":"thinking is enabled but reasoning_content is missing in assistant tool call message"}}'
PASS_BACK = b'{"error":{"message":"The `reasoning_content` in the thinking mode must be passed back to the API."}}'
OTHERS = (
    (400, b'{"error":{"message":"max_tokens is too large"}}'),
    (400, b"not json at all \xff\xfe"),
    (401, b'{"error":{"message":"Incorrect API key provided"}}'),
    (404, b'{"error":{"message":"no such model"}}'),
    (422, b'{"detail":[{"loc":["body","tools"],"msg":"field required"}]}'),
    (429, b'{"error":{"message":"slow down"}}'),
    (500, b"<html>oops</html>"),
    (529, b'{"type":"error","error":{"type":"overloaded_error"}}'),
)


@pytest.mark.parametrize(("status", "body"), OTHERS, ids=[f"{status}-{len(body)}" for status, body in OTHERS])
def test_a_refusal_that_is_not_about_reasoning(status: int, body: bytes) -> None:
    """It is passed on with its status, its headers and its bytes, after one attempt."""

    async def answer(got: Got, out: Out) -> None:
        await out.whole(status, body, ("content-type", "text/odd"), ("retry-after", "7"), ("x-request-id", "abc"))

    with upstream(answer) as up, acme(up.url, "openai_chat") as gateway:
        response = httpx.post(f"{gateway.url}/acme/v1/chat/completions", json=HISTORY)
        assert (response.status_code, response.content) == (status, body)
        assert response.headers["content-type"] == "text/odd"
        assert response.headers["retry-after"] == "7"
        assert response.headers["x-request-id"] == "abc"
        assert len(up.got) == 1


def test_a_refusal_that_nothing_heals() -> None:
    """After two more attempts the client gets the first refusal, which is for its own request."""
    bodies = []

    async def answer(got: Got, out: Out) -> None:
        bodies.append(got.body)
        await out.whole(400, MISSING + b" " * len(bodies), ("x-try", str(len(bodies))))

    with upstream(answer) as up, acme(up.url, "openai_chat") as gateway:
        response = httpx.post(f"{gateway.url}/acme/v1/chat/completions", json=HISTORY)
        assert (response.status_code, response.content) == (400, MISSING + b" ")
        assert response.headers["x-try"] == "1"
        assert told(response, "healed") == 0
        assert len(up.got) == 3
        assert len(set(bodies)) == 3
        assert gateway.state.lessons.corrections == ()


def test_another_trouble_on_the_second_try() -> None:
    """A 429 after a refusal is new: the client gets it, and may retry."""

    async def answer(got: Got, out: Out) -> None:
        if b"reasoning_content" in got.body:
            await out.whole(429, b'{"error":"slow down"}', ("retry-after", "3"))
        else:
            await out.whole(400, MISSING)

    with upstream(answer) as up, acme(up.url, "openai_chat") as gateway:
        response = httpx.post(f"{gateway.url}/acme/v1/chat/completions", json=HISTORY)
        assert (response.status_code, response.headers["retry-after"]) == (429, "3")
        assert len(up.got) == 2


SILENT = """How is the weather? {mark}
script:
no-think
call: weather {{"city": "Bergen"}}
---
think: Now I know.
say: It rains.
---
no-think
say: Good bye.
---
think: Again.
say: Hello.
"""
NONBLANK = Upstream("deepseek", "nonblank", "deepseek", "openai_chat", "deepseek-v4-pro", "/chat/completions")


@pytest.mark.parametrize("client", BODY_TYPES)
def test_a_turn_without_reasoning_where_an_empty_text_does_not_pass(client: FormatName) -> None:
    """One request is healed, in any client format, and the correction is kept."""
    with lane(NONBLANK, client) as one:
        for strips in (False, True):
            talk = Client(one, SILENT.format(mark=strips), strips)  # type: ignore[arg-type]  # by what it does
            for is_streaming in (False, True, False, True):
                talk.ask(is_streaming)
                talk.go_on()
        assert one.refusals == 1


def _says(got: Got) -> list[str]:
    messages = json.loads(got.body)["messages"]
    return [message["reasoning_content"] for message in messages if "reasoning_content" in message]


@pytest.mark.parametrize(
    "kept", [{}, {"reasoning_content": ""}, {"reasoning_content": None}], ids=["", "empty", "null"]
)
@pytest.mark.parametrize("miss", ["blank", "inherit"])
def test_a_turn_without_reasoning_where_no_blank_passes(kept: Body, miss: Literal["blank", "inherit"]) -> None:
    """The next longer filler, twice; no other turn's text is used, and the next request is right at once."""
    ask, called, result = HISTORY["messages"]
    opening = [ask, {**called, "reasoning_content": "Two."}, result]
    silent = {**called, "tool_calls": [{**called["tool_calls"][0], "id": "call_2"}], **kept}

    async def answer(got: Got, out: Out) -> None:
        if all(map(str.strip, _says(got))) and len(_says(got)) == got.body.count(b'"assistant"'):
            await out.whole(200, json.dumps({"choices": [{"message": silent, "finish_reason": "tool_calls"}]}).encode())
        else:
            await out.whole(400, PASS_BACK)

    with upstream(answer) as up:
        providers = {"deepseek": Provider("deepseek", up.url, ("openai_chat",))}
        with running({}, Settings(providers=providers, replay=ReplaySettings(miss=miss))) as gateway:
            url = f"{gateway.url}/deepseek/v1/chat/completions"
            body = {**HISTORY, "model": "deepseek-v4-pro", "messages": opening}
            assert httpx.post(url, json=body).status_code == 200
            body["messages"] = [*opening, silent, {**result, "tool_call_id": "call_2"}]
            answers = [httpx.post(url, json=body) for _ in range(2)]
        assert [(one.status_code, told(one, "healed")) for one in answers] == [(200, 1), (200, 0)]
        assert [_says(got)[1:] for got in up.got[1:]] == [[""], [" "], ["."], ["."]]


MODIFIED = (
    b'{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: `thinking` or '
    b"`redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they "
    b'were in the original response."}}'
)


def test_blocks_that_cannot_be_modified_are_not_stripped() -> None:
    """Removing more can't help: the refusal is passed on, and nothing else was tried."""
    blocks = [
        {"type": "thinking", "thinking": "mine", "signature": "c2lnbmVk"},
        {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {}},
    ]
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a"}]}
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": blocks}, result]
    body = {"model": "novel-9", "max_tokens": 3000, "messages": messages, "thinking": {"type": "adaptive"}}

    async def answer(got: Got, out: Out) -> None:
        await out.whole(400, MODIFIED)

    with upstream(answer) as up, acme(up.url, "anthropic_messages") as gateway:
        response = httpx.post(f"{gateway.url}/acme/v1/messages", json=body)
        assert (response.status_code, response.content) == (400, MODIFIED)
        assert [json.loads(got.body)["messages"] for got in up.got] == [messages]


def _signed(number: int) -> list[Body]:
    """An assistant turn with signed reasoning, and the result of its call."""
    blocks = [
        {"type": "thinking", "thinking": f"thought {number}", "signature": f"c2VhbC1{number}"},
        {"type": "tool_use", "id": f"toolu_{number}", "name": "bash", "input": {"n": number}},
    ]
    result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "a"}
    return [{"role": "assistant", "content": blocks}, {"role": "user", "content": [result]}]


def test_a_seal_that_was_refused() -> None:
    """It is removed for the second attempt and all later requests; the other seals stay."""
    messages = [{"role": "user", "content": "hi"}, *_signed(1), *_signed(2), *_signed(3)]
    body = {"model": "claude-opus-4-8", "max_tokens": 3000, "messages": messages, "thinking": {"type": "adaptive"}}
    refusal = {
        "type": "invalid_request_error",
        "message": "messages.3.content.0: Invalid `signature` in `thinking` block",
    }

    async def answer(got: Got, out: Out) -> None:
        if b"c2VhbC12" in got.body:
            await out.whole(400, json.dumps({"type": "error", "error": refusal}).encode())
        else:
            await out.whole(
                200, b'{"id":"m","type":"message","role":"assistant","content":[],"stop_reason":"end_turn"}'
            )

    with upstream(answer) as up, acme(up.url, "anthropic_messages") as gateway:
        url = f"{gateway.url}/acme/v1/messages"
        assert [told(httpx.post(url, json=body), "healed") for _ in range(2)] == [1, 0]
        assert len(up.got) == 3
        for got in up.got[1:]:
            assert [f"c2VhbC1{number}".encode() in got.body for number in (1, 2, 3)] == [True, False, True]
        assert len(gateway.state.lessons.refused) == 1
