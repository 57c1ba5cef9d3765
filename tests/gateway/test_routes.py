"""`[routes.NAME]`: a model name that falls over, stays where it was answered, and leaves alone what fails."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from tests.gateway.upstreams import EVENTS, Answer, Got, Out, Upstream, upstream
from tests.gateway.world import Running, running
from thoughtline.catalogue import Provider, Timeouts
from thoughtline.settings import RouteSettings, Settings

Json = dict[str, Any]
Messages = list[Json]
STALE = 3
"""How often a request is sent whose connection is closed at once: it may have been an old one."""

UNREACHABLE = "http://127.0.0.1:1"
HELLO: Messages = [{"role": "user", "content": "hello"}]


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def said(name: str) -> bytes:
    """A whole chat answer of a provider."""
    message = {"role": "assistant", "content": f"I am {name}.", "reasoning_content": f"thought of {name}"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"id": "c", "object": "chat.completion", "model": name, "choices": [choice]}).encode()


def told(name: str) -> list[bytes]:
    """The events of a streamed one."""
    deltas: list[tuple[Json, str | None]] = [
        ({"role": "assistant", "reasoning_content": f"thought of {name}"}, None),
        ({"content": f"I am {name}."}, None),
        ({}, "stop"),
    ]
    chunks = [
        {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
        for delta, end in deltas
    ]
    return [*(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks), b"data: [DONE]\n\n"]


async def answer_well(name: str, got: Got, out: Out) -> None:
    if json.loads(got.body).get("stream"):
        await out.stream()
        for event in told(name):
            await out.chunk(event)
        await out.end()
    else:
        await out.whole(200, said(name))


class Team:
    """Upstreams of one format under names, each answering well until a test says what it does instead."""

    def __init__(self) -> None:
        self.does: dict[str, Answer] = {}
        self.ups: dict[str, Upstream] = {}

    def answer_of(self, name: str) -> Answer:
        async def answer(got: Got, out: Out) -> None:
            instead = self.does.get(name)
            await (instead(got, out) if instead is not None else answer_well(name, got, out))

        return answer

    def asked(self, name: str) -> int:
        return len(self.ups[name].got)


@contextlib.contextmanager
def team(
    *names: str,
    weights: tuple[int, ...] = (),
    clock: Clock | None = None,
    keys: Mapping[str, tuple[str, ...]] | None = None,
    store_url: str = "memory://",
    shared: Team | None = None,
) -> Iterator[tuple[Running, Team]]:
    """A gateway with a route `team` to these upstreams, in this order."""
    found = shared or Team()
    with contextlib.ExitStack() as stack:
        for name in names:
            if name not in found.ups:
                found.ups[name] = stack.enter_context(upstream(found.answer_of(name)))
        rows = {
            name: Provider(
                name,
                found.ups[name].url,
                ("openai_chat",),
                api_keys=(keys or {}).get(name, ()),
            )
            for name in names
        }
        route = RouteSettings("team", tuple(f"{name}/{name}-1" for name in names), weights)
        settings = Settings(providers=rows, routes={"team": route})
        gateway = stack.enter_context(running({}, settings, store_url, clock=clock or Clock()))
        yield gateway, found


def ask(gateway: Running, messages: Sequence[Json] = HELLO, model: str = "team", **more: Any) -> httpx.Response:
    headers = {"authorization": "Bearer a-key", **more.pop("headers", {})}
    body = {"model": model, "messages": messages, **more}
    return httpx.post(f"{gateway.url}/v1/chat/completions", json=body, headers=headers, timeout=60)


def who(response: httpx.Response) -> str:
    """The target that answered, by its header."""
    assert response.status_code == 200, response.text
    return response.headers["x-thoughtline-target"].partition("/")[0]


def answers(status: int, body: bytes = b"{}", *headers: tuple[str, str]) -> Answer:
    async def answer(got: Got, out: Out) -> None:
        await out.whole(status, body, *headers)

    return answer


def streams(*events: bytes) -> Answer:
    async def answer(got: Got, out: Out) -> None:
        await out.stream(EVENTS)
        for event in events:
            await out.chunk(event)
        await out.end()

    return answer


async def cuts(got: Got, out: Out) -> None:
    out.cut()


async def cuts_after_head(got: Got, out: Out) -> None:
    await out.head(200, EVENTS, ("transfer-encoding", "chunked"))
    out.cut()


OVERLOADED = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
FAILURES: dict[str, Answer] = {
    **{f"status {status}": answers(status) for status in (408, 409, 429, 500, 502, 503, 504, 520, 529)},
    "overloaded in a refusal": answers(400, OVERLOADED),
    "overloaded in an answer": answers(200, OVERLOADED),
    "busy by a number, in an answer": answers(200, b'{"error":{"code":429,"message":"slow down"}}'),
    "MiniMax is busy": answers(200, b'{"base_resp":{"status_code":1002,"status_msg":"rate limit"}}'),
    "broken off": cuts,
    "broken off after its head": cuts_after_head,
}
STREAMED: dict[str, Answer] = {
    **FAILURES,
    "an error is the first event": streams(b"event: error\ndata: " + OVERLOADED + b"\n\n"),
    "an error behind comments": streams(
        b": PROCESSING\n\n", b": PROCESSING\n\n", b'data: {"error":{"code":502,"message":"provider"}}\n\n'
    ),
    "an error in two pieces": streams(b"event: error\nda", b"ta: " + OVERLOADED + b"\n\n"),
    "nothing at all": cuts_after_head,
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_a_failure_leads_to_the_next_target(failure: Answer) -> None:
    """The client sees the answer of the second, and nothing of the first; log and header say who gave it."""
    with team("one", "two") as (gateway, ups):
        ups.does["one"] = failure
        response = ask(gateway)
        assert who(response) == "two"
        assert response.content == said("two")
        assert ups.asked("one") == (1 if failure is not cuts else STALE)
        assert ups.asked("two") == 1
        [line] = gateway.lines
        assert (line["provider"], line["model"], line["attempts"], line["status"]) == ("two", "two-1", 2, 200)


@pytest.mark.parametrize("failure", STREAMED.values(), ids=STREAMED)
def test_a_failure_before_a_stream_leads_to_the_next_target(failure: Answer) -> None:
    """The client's stream is the second's, byte for byte."""
    with team("one", "two") as (gateway, ups):
        ups.does["one"] = failure
        response = ask(gateway, stream=True)
        assert who(response) == "two"
        assert response.content == b"".join(told("two"))
        assert ups.asked("two") == 1


def test_a_target_that_nobody_listens_at() -> None:
    """The connection is refused: the next one is asked."""
    with team("one", "two") as (gateway, _):
        move(gateway, "one", base_url=UNREACHABLE)
        assert who(ask(gateway)) == "two"


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("has_head", [False, True], ids=["silent", "only a head"])
def test_time_to_first_byte(is_streaming: bool, has_head: bool) -> None:
    """A target that says nothing in time is left; a status line alone says nothing."""

    async def silent(got: Got, out: Out) -> None:
        if has_head:
            await out.head(200, EVENTS, ("transfer-encoding", "chunked"))
        await out.gone()

    with team("one", "two") as (gateway, ups):
        move(gateway, "one", timeouts=Timeouts(first_byte=0.05))
        ups.does["one"] = silent
        assert who(ask(gateway, stream=is_streaming)) == "two"


REFUSALS = {
    "a bad request": (400, b'{"error":{"message":"max_tokens is too large","type":"invalid_request_error"}}'),
    "no such model": (404, b'{"error":{"message":"no such model"}}'),
    "too large": (413, b'{"error":{"message":"too long"}}'),
    "not understood": (422, b'{"detail":"field required"}'),
    "the caller's key": (401, b'{"error":{"message":"Incorrect API key provided"}}'),
    "moderated": (403, b'{"error":{"message":"flagged","metadata":{"flagged_input":"x"}}}'),
}


@pytest.mark.parametrize(("status", "body"), REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "streamed"])
def test_a_refusal_of_the_request_is_for_the_client(status: int, body: bytes, is_streaming: bool) -> None:
    """It is passed on as it came; nobody else is asked, and nothing is held against the target."""
    with team("one", "two") as (gateway, ups):
        ups.does["one"] = answers(status, body)
        for _ in range(4):
            response = ask(gateway, stream=is_streaming)
            assert (response.status_code, response.content) == (status, body)
        assert (ups.asked("one"), ups.asked("two")) == (4, 0)


def test_a_refusal_of_ours_is_for_the_client() -> None:
    """What can't be carried into the first target's format is told, whoever else there is."""
    body = {"model": "team", "input": "hello", "tools": [{"type": "file_search", "vector_store_ids": ["v"]}]}
    with team("one", "two") as (gateway, ups):
        response = httpx.post(f"{gateway.url}/v1/responses", json=body)
        assert (response.status_code, response.json()["error"]["code"]) == (400, "untranslatable")
        assert (ups.asked("one"), ups.asked("two")) == (0, 0)


@pytest.mark.parametrize("failure", [answers(503, b'{"error":"busy"}'), cuts], ids=["an error", "broken off"])
def test_a_target_that_cannot_take_the_request(failure: Answer) -> None:
    """Where the first fails and the second could not be asked at all, the client hears what the first said."""
    body = {"model": "team", "input": "hello", "tools": [{"type": "file_search", "vector_store_ids": ["v"]}]}
    with team("one", "two") as (gateway, ups):
        move(gateway, "one", formats=("openai_responses",))
        ups.does["one"] = failure
        response = httpx.post(f"{gateway.url}/v1/responses", json=body)
        assert response.status_code in (502, 503)
        assert who_failed(response) == "one"
        assert ups.asked("two") == 0


def who_failed(response: httpx.Response) -> str:
    return response.headers["x-thoughtline-target"].partition("/")[0]


def move(gateway: Running, name: str, **changes: Any) -> None:
    """Change the row of a provider."""
    rows = dict(gateway.state.settings.providers)
    rows[name] = replace(rows[name], **changes)
    gateway.app.state = gateway.state._replace(settings=replace(gateway.state.settings, providers=rows))


def test_when_all_fail() -> None:
    """The client gets what the last one said."""
    with team("one", "two", "three") as (gateway, ups):
        ups.does = {name: answers(503, f'{{"error":"{name}"}}'.encode()) for name in ("one", "two", "three")}
        response = ask(gateway)
        assert (response.status_code, response.content) == (503, b'{"error":"three"}')
        assert [ups.asked(name) for name in ("one", "two", "three")] == [1, 1, 1]


def test_after_the_first_byte_nobody_else_is_asked() -> None:
    """A stream that breaks off is broken off for the client too: two answers in one would be worse."""

    async def begins(got: Got, out: Out) -> None:
        await out.stream()
        await out.chunk(told("one")[0])
        out.cut()

    with team("one", "two") as (gateway, ups):
        ups.does["one"] = begins
        with pytest.raises(httpx.RemoteProtocolError):
            ask(gateway, stream=True)
        assert ups.asked("two") == 0


def go_on(messages: Messages, response: httpx.Response) -> Messages:
    """The conversation goes on, without the reasoning."""
    message = response.json()["choices"][0]["message"]
    return [*messages, {"role": "assistant", "content": message["content"]}, {"role": "user", "content": "and then?"}]


def test_a_breaker_opens_cools_down_and_closes() -> None:
    """After three failures a target is left alone; when the pause is over one request tries it, and then it is back."""
    clock = Clock()
    with team("one", "two", clock=clock) as (gateway, ups):
        ups.does["one"] = answers(500)
        assert [who(ask(gateway, [{"role": "user", "content": f"{n}"}])) for n in range(5)] == ["two"] * 5
        assert ups.asked("one") == 3
        clock.now += 16
        ask(gateway, [{"role": "user", "content": "a probe"}])
        assert ups.asked("one") == 4
        ask(gateway, [{"role": "user", "content": "open for longer now"}])
        clock.now += 16
        ask(gateway, [{"role": "user", "content": "still open"}])
        assert ups.asked("one") == 4
        clock.now += 16
        del ups.does["one"]
        assert who(ask(gateway, [{"role": "user", "content": "a probe that is answered"}])) == "one"
        assert who(ask(gateway, [{"role": "user", "content": "closed"}])) == "one"


def test_half_open_is_one_probe() -> None:
    """While one request tries a target, the others don't wait for it to fail."""
    clock = Clock()
    with team("one", "two", clock=clock) as (gateway, ups):
        ups.does["one"] = answers(500)
        for number in range(3):
            ask(gateway, [{"role": "user", "content": f"{number}"}])
        clock.now += 16
        during: list[str] = []

        async def asked_meanwhile(got: Got, out: Out) -> None:
            if not during:
                during.append("")
                other = {"model": "team", "messages": [{"role": "user", "content": "meanwhile"}]}
                async with httpx.AsyncClient(headers={"authorization": "Bearer a-key"}) as client:
                    during[0] = who(await client.post(f"{gateway.url}/v1/chat/completions", json=other))
            await out.whole(200, said("one"))

        ups.does["one"] = asked_meanwhile
        assert who(ask(gateway, [{"role": "user", "content": "the probe"}])) == "one"
        assert during == ["two"]


def test_a_probe_that_is_refused_closes_the_breaker() -> None:
    """Who can say that a request is wrong is back."""
    clock = Clock()
    with team("one", "two", clock=clock) as (gateway, ups):
        ups.does["one"] = answers(500)
        for number in range(3):
            ask(gateway, [{"role": "user", "content": f"{number}"}])
        clock.now += 16
        ups.does["one"] = answers(400, b'{"error":{"message":"too long"}}')
        assert ask(gateway, [{"role": "user", "content": "wrong"}]).status_code == 400
        del ups.does["one"]
        assert who(ask(gateway, [{"role": "user", "content": "right"}])) == "one"


def test_a_pause_that_is_asked_for() -> None:
    """`retry-after` of a provider with one key of ours opens its breaker at once, for so long."""
    clock = Clock()
    with team("one", "two", clock=clock, keys={"one": ("k1",), "two": ("k2",)}) as (gateway, ups):
        ups.does["one"] = answers(429, b"{}", ("retry-after", "100"))
        ask(gateway)
        del ups.does["one"]
        clock.now += 99
        assert who(ask(gateway, [{"role": "user", "content": "too early"}])) == "two"
        clock.now += 2
        assert who(ask(gateway, [{"role": "user", "content": "in time"}])) == "one"


def test_the_limit_of_one_caller_is_not_anothers() -> None:
    """With the callers' own keys, one who has used up its quota shuts nobody else out."""
    with team("one", "two") as (gateway, ups):
        ups.does["one"] = answers(429, b"{}", ("retry-after", "3600"))
        for number in range(5):
            ask(gateway, [{"role": "user", "content": f"{number}"}])
        del ups.does["one"]
        assert who(ask(gateway, headers={"authorization": "Bearer another"})) == "one"


@pytest.mark.parametrize("session", [None, "s-1"], ids=["untold", "told"])
def test_a_conversation_stays_where_it_was_answered(session: str | None) -> None:
    """After a failure it goes on with the second, also when the first is back; other conversations go to the first."""
    headers = {"x-thoughtline-session": session} if session else {}
    with team("one", "two") as (gateway, ups):
        ups.does["one"] = answers(500)
        response = ask(gateway, headers=headers)
        del ups.does["one"]
        messages = HELLO
        for _ in range(3):
            messages = go_on(messages, response)
            response = ask(gateway, messages, headers=headers)
            assert who(response) == "two"
        assert who(ask(gateway, [{"role": "user", "content": "somebody else"}])) == "one"
        ups.does["two"] = answers(500)
        messages = go_on(messages, response)
        response = ask(gateway, messages, headers=headers)
        assert who(response) == "one"
        del ups.does["two"]
        assert who(ask(gateway, go_on(messages, response), headers=headers)) == "one"


def test_it_stays_there_on_another_replica_and_after_a_restart(shared_url: str) -> None:
    """Who made the latest turn is in its record: whoever shares the store knows."""
    with team("one", "two", store_url=shared_url) as (gateway, ups):
        with team("one", "two", store_url=shared_url, shared=ups) as (replica, _):
            ups.does["one"] = answers(500)
            response = ask(gateway)
            del ups.does["one"]
            messages = go_on(HELLO, response)
            assert who(ask(replica, messages)) == "two"
        with team("one", "two", store_url=shared_url, shared=ups) as (again, _):
            assert who(ask(again, messages)) == "two"
            assert who(ask(again, [{"role": "user", "content": "somebody else"}])) == "one"


def test_weights() -> None:
    """Conversations are spread as the weights say, and each stays where it began."""
    with team("one", "two", weights=(3, 1)) as (gateway, _):
        first: dict[int, str] = {}
        for number in range(60):
            opening = [{"role": "user", "content": f"conversation {number}"}]
            response = ask(gateway, opening)
            first[number] = who(response)
            if number % 10 == 0:
                assert who(ask(gateway, go_on(opening, response))) == first[number]
        counts = {name: list(first.values()).count(name) for name in ("one", "two")}
        assert 35 <= counts["one"] <= 55  # 45 of 60 by the weights; the draw is by the conversations' names


def _key(got: Got) -> str:
    return (got.header("authorization") or "").removeprefix("Bearer ")


def test_keys_are_rotated_and_kept_to() -> None:
    """Conversations are spread over a provider's keys, and each keeps its own."""
    with team("one", keys={"one": ("k1", "k2", "k3")}) as (gateway, ups):
        used: set[str] = set()
        for number in range(12):
            opening = [{"role": "user", "content": f"conversation {number}"}]
            response = ask(gateway, opening)
            ask(gateway, go_on(opening, response))
            first, second = (_key(got) for got in ups.ups["one"].got[-2:])
            assert first == second
            used.add(first)
        assert used == {"k1", "k2", "k3"}


@pytest.mark.parametrize("status", [401, 403, 429])
def test_a_rejected_key_is_put_aside(status: int) -> None:
    """The next key is asked at once and the client sees a 200; the rejected one is left alone, then tried again."""
    clock = Clock()
    with team("one", keys={"one": ("k1", "k2")}, clock=clock) as (gateway, ups):

        async def rejects(got: Got, out: Out) -> None:
            if _key(got) == "k1":
                await out.whole(status, b'{"error":{"message":"no"}}')
            else:
                await out.whole(200, said("one"))

        ups.does["one"] = rejects
        for number in range(12):
            assert who(ask(gateway, [{"role": "user", "content": f"conversation {number}"}])) == "one"
        assert [_key(got) for got in ups.ups["one"].got].count("k1") == 1
        del ups.does["one"]
        clock.now += 601
        for number in range(12, 24):
            ask(gateway, [{"role": "user", "content": f"conversation {number}"}])
        assert [_key(got) for got in ups.ups["one"].got].count("k1") > 1


def test_the_limit_of_one_key_is_not_the_targets() -> None:
    """When all keys are told to wait the next target is asked, until the first of them may be asked with again."""
    clock = Clock()
    waits = {"k1": "3000", "k2": "10"}
    with team("one", "two", keys={"one": ("k1", "k2"), "two": ("k3",)}, clock=clock) as (gateway, ups):

        async def limits(got: Got, out: Out) -> None:
            await out.whole(429, b"{}", ("retry-after", waits[_key(got)]))

        ups.does["one"] = limits
        assert who(ask(gateway)) == "two"
        del ups.does["one"]
        clock.now += 11
        for number in range(6):
            assert who(ask(gateway, [{"role": "user", "content": f"conversation {number}"}])) == "one"
        assert {_key(got) for got in ups.ups["one"].got[2:]} == {"k2"}


def test_a_key_is_kept_to_after_a_restart(shared_url: str) -> None:
    """A conversation that had to change its key goes on with the one that made its latest turn."""
    keys, clock = {"one": ("k1", "k2")}, Clock()
    with team("one", keys=keys, store_url=shared_url, clock=clock) as (gateway, ups):
        ask(gateway)
        clock.now += 1
        own = _key(ups.ups["one"].got[-1])

        async def rejects(got: Got, out: Out) -> None:
            await (out.whole(401, b"{}") if _key(got) == own else out.whole(200, said("one")))

        ups.does["one"] = rejects
        messages: Messages = go_on(HELLO, ask(gateway))
        del ups.does["one"]
        with team("one", keys=keys, store_url=shared_url, shared=ups) as (again, _):
            ask(again, messages)
            assert _key(ups.ups["one"].got[-1]) != own


def test_a_provider_whose_keys_are_all_rejected() -> None:
    """The next target is asked: that it has no good key is no business of the client's."""
    with team("one", "two", keys={"one": ("k1", "k2"), "two": ("k3",)}) as (gateway, ups):
        ups.does["one"] = answers(401, b'{"error":{"message":"no"}}')
        assert who(ask(gateway)) == "two"
        assert (ups.asked("one"), ups.asked("two")) == (2, 1)


def test_a_key_never_shows() -> None:
    """Neither in the log nor in an answer."""
    with team("one", keys={"one": ("sk-first-secret", "sk-second-secret")}) as (gateway, ups):
        ups.does["one"] = answers(401, b'{"error":{"message":"no"}}')
        response = ask(gateway)
        shown = f"{response.headers}{response.text}{gateway.lines}"
        assert "secret" not in shown
