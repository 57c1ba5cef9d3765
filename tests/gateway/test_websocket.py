"""Responses over a WebSocket: a frame is served like a POST; what a connection knows, who may open one, its end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from websockets.exceptions import InvalidStatus

from tests.clients.upstreams import Upstream as Simulator
from tests.clients.upstreams import start
from tests.gateway.gateways import Running, running
from tests.gateway.sockets import (
    ASKED,
    AUTH,
    RESPONSES,
    USER,
    Held,
    answering,
    begun,
    left,
    over_http,
    say_hi,
    talking,
    text_of,
    until,
)
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.faces import HTTP
from thoughtline.gateway import websocket
from thoughtline.gateway.client_keys import ClientKeys
from thoughtline.settings import RouteSettings, ServerSettings, Settings

Json = dict[str, Any]

TURNS = 10
STEPS = [f'think: Step {n}.\nsay: Now {n}.\ncall: weather {{"city": "{n}"}}' for n in range(TURNS - 1)]
SCRIPT = "Go.\nscript:\n" + "\n---\n".join([*STEPS, "think: Enough.\nsay: It is cold."])
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "name": "weather", "parameters": WEATHER}


class Row(NamedTuple):
    simulator: str
    model: str
    profile: str | None = None


ROWS = (
    Row("openai", "gpt-5"),
    Row("deepseek", "deepseek-v4-pro"),
    Row("kimi", "kimi-k2.6"),
    Row("anthropic", "claude-opus-5-5", "bound"),
    Row("gemini", "gemini-3-pro-preview"),
)
rows = pytest.mark.parametrize("row", ROWS, ids=[row.simulator for row in ROWS])


def results(output: list[Json]) -> list[Json]:
    """The tools' results for the calls of an answer."""
    calls = [item for item in output if item["type"] == "function_call"]
    return [{"type": "function_call_output", "call_id": call["call_id"], "output": "-5"} for call in calls]


def by_frames(gateway: Running, row: Row) -> str:
    """A conversation in which each frame brings only new items; the model's last text."""
    with talking(f"{gateway.url}/{row.simulator}/v1/responses", model=row.model, tools=[TOOL]) as talk:
        told = talk.ask(input=[{"role": "user", "content": SCRIPT}])
        while new := results(told.output):
            told = talk.ask(input=new, previous_response_id=told.id)
    return told.said


def by_posts(gateway: Running, row: Row) -> str:
    """The same over HTTP, by a client that sends back everything."""
    given: list[Json] = [{"role": "user", "content": SCRIPT}]
    while True:
        body = text_of({**ASKED, "model": row.model, "tools": [TOOL], "input": given})
        lines = HTTP.post(f"{gateway.url}/{row.simulator}/v1/responses", content=body, headers=AUTH).text.splitlines()
        events = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        output = [one["item"] for one in events if one["type"] == "response.output_item.done"]
        given += output + results(output)
        if not results(output):
            return str(output[-1]["content"][0]["text"])


def bodies_of(row: Row, talk: Callable[[Running, Row], str]) -> tuple[str, list[Json], Simulator]:
    """The last text, and the provider's requests."""
    simulator = start(row.simulator, row.profile)
    bodies: list[Json] = []
    app = simulator.watched.app

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        async def note() -> Any:
            message = await receive()
            if message["type"] == "http.request":
                bodies.append(json.loads(message["body"]))
            return message

        await app(scope, note, send)

    simulator.watched.app = noting  # type: ignore[assignment]  # it is only called
    with over_http(row.simulator, simulator.url) as gateway:
        said = talk(gateway, row)
    simulator.watched.app = app
    return said, bodies, simulator


@rows
def test_the_provider_is_asked_as_over_http(row: Row) -> None:
    """Law: frames with only new items become the same bodies as a POST with everything; and the reasoning of every turn
    that is sent again is whole."""
    said, bodies, simulator = bodies_of(row, by_frames)
    assert said == "It is cold."
    assert simulator.refusals() == []
    assert simulator.verdicts() == [["whole"] * before for before in range(TURNS)]
    said_over_http, over_http, _ = bodies_of(row, by_posts)
    assert said_over_http == said
    assert [list(body) for body in bodies] == [list(body) for body in over_http]
    assert bodies == over_http


def test_a_provider_that_has_websockets_is_asked_over_one() -> None:
    """One connection for the client's own; no request uses HTTP, and restored reasoning is whole there too."""
    simulator = start("openai")
    with running({"openai": simulator.url}) as gateway:
        assert by_frames(gateway, ROWS[0]) == "It is cold."
    assert simulator.refusals() == []
    assert simulator.verdicts() == [["whole"] * before for before in range(TURNS)]
    assert simulator.watched.seen == []  # of HTTP


def test_at_the_root_and_over_routes() -> None:
    """The model of each frame decides the provider, as over HTTP."""
    openai, kimi = start("openai"), start("kimi")
    settings = Settings(routes={"best": RouteSettings("best", ("kimi/kimi-k2.6",))})
    with running({"openai": openai.url, "kimi": kimi.url}, settings) as gateway:
        with talking(f"{gateway.url}/v1/responses") as talk:
            script = {"role": "user", "content": "Hi.\nscript:\nthink: a\nsay: Hello."}
            for model in ("openai/gpt-5", "kimi/kimi-k2.6", "best"):
                assert talk.ask(input=[script], model=model).said == "Hello."
            assert talk.ask(input=[script], model="nobody").error == (404, "unknown_model")
        assert [line["via"] for line in gateway.lines] == ["", "", "best", ""]
    assert [len(one.watched.app.simulation.log) for one in (openai, kimi)] == [1, 2]


# what a connection knows


def test_a_prewarm_sends_nothing_and_is_remembered() -> None:
    """It has an id, no output, and the next frame continues from it."""
    developer = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]}
    with answering() as (up, gateway), talking(gateway.url + RESPONSES) as talk:
        warm = talk.ask(input=[developer], generate=False)
        assert [one["type"] for one in warm.events] == ["response.created", "response.completed"]
        assert (warm.last["response"]["output"], warm.last["response"]["usage"]["total_tokens"]) == ([], 0)
        assert up.got == []
        talk.ask(input=[USER], previous_response_id=warm.id)
        body = json.loads(up.got[0].body)
    assert body["input"] == [developer, USER]
    assert not {"previous_response_id", "generate", "type"} & body.keys()


def test_a_prewarm_after_an_unknown_response() -> None:
    with running({}) as gateway, talking(gateway.url + RESPONSES) as talk:
        warm = talk.ask(input=[], generate=False, previous_response_id="resp_nobody")
        assert warm.error == (400, "previous_response_not_found")


SUMMARY = {"type": "compaction", "encrypted_content": "x"}


@pytest.mark.parametrize(
    "given",
    [[SUMMARY, USER], [USER, {"type": "message", "id": "msg_1", "role": "assistant", "content": "hi"}, USER]],
    ids=["compacted", "whole"],
)
def test_what_stands_for_everything_replaces_it(given: list[Json]) -> None:
    """A compacted conversation, and one that contains the response it claims to follow: nothing is sent twice."""
    with answering() as (up, gateway), talking(gateway.url + RESPONSES) as talk:
        first = talk.ask(input=[USER])
        talk.ask(input=given, previous_response_id=first.id)
        body = json.loads(up.got[1].body)
    assert body["input"] == given
    assert "previous_response_id" not in body


def test_other_ids_are_for_the_store_and_the_provider() -> None:
    """An id of another connection, of HTTP, of nobody: found in the store, or refused with OpenAI's error."""
    kimi = start("kimi")
    script = [{"role": "user", "content": "Hi.\nscript:\nsay: One.\n---\nsay: Two.\n---\nsay: Three."}]
    with running({"kimi": kimi.url}) as gateway:
        url = f"{gateway.url}/kimi/v1/responses"
        with talking(url, model="kimi-k2.6") as talk, talking(url, model="kimi-k2.6") as other:
            unkept = talk.ask(input=script)
            kept = talk.ask(input=script, store=True)
            assert other.ask(input=[USER], previous_response_id=kept.id).said == "Two."
            assert other.ask(input=[USER], previous_response_id=unkept.id).error == (400, "previous_response_not_found")
            assert talk.ask(input=[USER], previous_response_id="resp_x").error == (400, "previous_response_not_found")
            assert talk.ask(input=[USER], previous_response_id=3).error == (400, "bad_previous_response_id")
        with talking(url, {"authorization": "Bearer another"}, model="kimi-k2.6") as stranger:
            told = stranger.ask(input=[USER], previous_response_id=kept.id)
            assert told.error == (400, "previous_response_not_found")


def test_a_turn_that_fails_leaves_what_was_known() -> None:
    """The client may ask again from there."""
    fails = iter((False, True, False))

    async def answer(got: Got, out: Out) -> None:
        await (out.whole(500, b'{"error":{"message":"no","code":"x"}}') if next(fails) else say_hi(got, out))

    with answering(answer) as (up, gateway), talking(gateway.url + RESPONSES) as talk:
        first = talk.ask(input=[USER])
        assert talk.ask(input=[USER], previous_response_id=first.id).error == (500, "x")
        assert talk.ask(input=[USER], previous_response_id=first.id).said == "hi"
        assert json.loads(up.got[1].body)["input"] == json.loads(up.got[2].body)["input"]


def test_what_is_held_of_all_connections_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client served longest ago has to send everything again; nothing stays of those that left."""
    monkeypatch.setattr(websocket, "MAX_HELD_BYTES", 600)
    with answering() as (up, gateway):
        with talking(gateway.url + RESPONSES) as first, talking(gateway.url + RESPONSES) as second:
            told = first.ask(input=[{"role": "user", "content": "x" * 200}])
            again = second.ask(input=[{"role": "user", "content": "y" * 200}])
            second.ask(input=[USER], previous_response_id=again.id)
            assert json.loads(up.got[2].body)["input"][-1] == USER
            first.ask(input=[USER], previous_response_id=told.id)
            assert json.loads(up.got[3].body)["previous_response_id"] == told.id  # for the provider, who may know
        held = gateway.app.conversations
        gateway.wait_for(until(lambda: held._bytes == 0))


# who may open one


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"origin": "https://evil.example"}, 403, "cross_site"),
        ({"origin": "null"}, 403, "cross_site"),
        ({"sec-fetch-site": "cross-site"}, 403, "cross_site"),
        ({"origin": "http://localhost:3000"}, 403, "cross_site"),
        ({"origin": "http://127.0.0.1:3000"}, 403, "cross_site"),
        ({"origin": "https://localhost"}, 403, "cross_site"),
        ({"origin": "http://[::1]:3000"}, 403, "cross_site"),
        ({"host": "evil.example"}, 421, "unknown_host"),
    ],
)
def test_no_website_opens_one(headers: dict[str, str], status: int, code: str) -> None:
    """A browser would let any page read the answers; the same for a page with a key."""
    with running({}) as gateway:
        head = {**AUTH, "connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13", **headers}
        response = HTTP.get(gateway.url + RESPONSES, headers={**head, "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA=="})
        assert (response.status_code, response.json()["error"]["code"]) == (status, code)
        assert [(line["event"], line["detail"]) for line in gateway.lines] == [("websocket refused", code)]


def test_pages_of_the_gateway_listed_sites_and_editors_may() -> None:
    listed = ("https://app.example", "http://localhost:3000")
    with running({}, Settings(server=ServerSettings(cors=listed))) as gateway:
        for origin in (gateway.url, "vscode-file://vscode-app", *listed):
            with talking(gateway.url + RESPONSES, {**AUTH, "origin": origin}):
                pass


def test_a_listed_page_spends_no_key_of_the_gateway() -> None:
    """As over HTTP: it may read answers, and needs a key of its own. The gateway's own pages may spend the
    gateway's."""
    settings = Settings(server=ServerSettings(cors=("http://localhost:3000",)))
    with upstream(say_hi) as up, over_http("openai", up.url, settings, api_keys=("sk-provider",)) as gateway:
        with pytest.raises(InvalidStatus) as refusal:
            talking(gateway.url + RESPONSES, {"origin": "http://localhost:3000"}).__enter__()
        assert refusal.value.response.status_code == 403
        with talking(f"{gateway.url}/v1/responses", {"origin": "http://localhost:3000"}) as talk:
            assert talk.ask(input=[USER], model="openai/gpt-5").error == (403, "cross_site")
        with talking(gateway.url + RESPONSES, {"origin": gateway.url}) as talk:
            assert talk.ask(input=[USER]).said == "hi"
    assert len(up.got) == 1


def test_a_listed_site_may() -> None:
    """The same list as over HTTP."""
    with running({}, Settings(server=ServerSettings(cors=("https://app.example",)))) as gateway:
        headers = {**AUTH, "origin": "https://app.example", "sec-fetch-site": "cross-site"}
        with talking(gateway.url + RESPONSES, headers):
            pass


def test_client_keys_at_the_upgrade_and_at_each_frame() -> None:
    """None, a wrong one, and a provider that the gateway has no key for: over HTTP, before the upgrade. A revoked key
    fails at the next frame."""
    with upstream(say_hi) as up, over_http("openai", up.url, api_keys=("sk-provider",)) as gateway:
        keys = gateway.state.keys
        assert isinstance(keys, ClientKeys)
        made = gateway.wait_for(keys.add("me"))
        key = {"authorization": f"Bearer {made.secret}"}
        for path, headers, status in (
            (RESPONSES, {}, 401),
            (RESPONSES, AUTH, 401),
            ("/kimi/v1/responses", key, 403),
        ):
            with pytest.raises(InvalidStatus) as refusal, talking(gateway.url + path, headers):
                pass
            assert refusal.value.response.status_code == status
        with talking(gateway.url + RESPONSES, key) as talk:
            assert talk.ask(input=[USER]).said == "hi"
            gateway.wait_for(keys.revoke(made.key.id))
            assert talk.ask(input=[USER]).error == (401, "unknown_key")
        assert up.got[0].header("authorization") == "Bearer sk-provider"


def test_at_the_root_each_frame_says_whom_to_ask() -> None:
    """A default provider that the gateway has no key for does not block the others."""
    settings = Settings(default_provider="kimi", configured=frozenset({"openai"}))
    with upstream(say_hi) as up, over_http("openai", up.url, settings, api_keys=("sk-provider",)) as gateway:
        keys = gateway.state.keys
        assert isinstance(keys, ClientKeys)
        made = gateway.wait_for(keys.add("me"))
        with talking(f"{gateway.url}/v1/responses", {"authorization": f"Bearer {made.secret}"}) as talk:
            assert talk.ask(input=[USER], model="kimi-k2.6").error == (403, "no_provider_key")
            assert talk.ask(input=[USER], model="openai/gpt-5").said == "hi"


def test_limits_hold_for_frames() -> None:
    """Each is a request of its key; beyond the limit the error has the time to wait."""
    with upstream(say_hi) as up, over_http("openai", up.url, api_keys=("sk-provider",)) as gateway:
        keys = gateway.state.keys
        assert isinstance(keys, ClientKeys)
        made = gateway.wait_for(keys.add("me", requests_per_minute=2))
        with talking(gateway.url + RESPONSES, {"authorization": f"Bearer {made.secret}"}) as talk:
            assert [talk.ask(input=[USER]).said for _ in range(2)] == ["hi", "hi"]
            told = talk.ask(input=[USER])
            assert told.error == (429, "too_many_requests")
            assert int(told.last["headers"]["retry-after"]) > 0


def test_work_on_frames_is_shared_by_tenant() -> None:
    """Including the first frame of a connection: it doesn't wait with those of all others."""
    long = [{"role": "user", "content": "x"}] * 5000
    with answering() as (_, gateway):
        for key in ("one", "two"):
            with talking(gateway.url + RESPONSES, {"authorization": f"Bearer {key}"}) as talk:
                assert talk.ask(input=long).said == "hi"
        tenants = list(gateway.state.background.work._used)
        assert len(tenants) == 2
        assert "" not in tenants


WRONG = ("", "{", "[]", '{"type":"response.append"}', '{"type":"response.create","stream_id":"s"}')


@pytest.mark.parametrize("wrong", WRONG)
def test_a_connection_of_wrong_frames_alone_is_closed(wrong: str) -> None:
    """Each is answered and logged; after a few in a row the connection is closed."""
    most = websocket.MAX_BAD_FRAMES
    with running({}) as gateway:
        with talking(gateway.url + RESPONSES) as talk:
            for _ in range(most):
                talk.connection.send(wrong)
                assert talk.heard().last["type"] == "error"
            assert talk.closed() == 1008
        gateway.wait_for(left(gateway))
        assert [line["event"] for line in gateway.lines] == ["websocket frame refused"] * most + ["websocket closed"]


def test_a_good_frame_between_wrong_ones_keeps_a_connection() -> None:
    with answering() as (_up, gateway), talking(gateway.url + RESPONSES) as talk:
        for _ in range(2):
            for _ in range(websocket.MAX_BAD_FRAMES - 1):
                talk.connection.send("{}")
                assert talk.heard().error == (400, "unknown_frame")
            assert talk.ask(input=[USER]).said == "hi"


@pytest.mark.parametrize("frame", ["{}", '{"type":"response.create","generate":false}'], ids=["wrong", "prewarm"])
def test_frames_without_a_request_count_in_the_limits(frame: str) -> None:
    """Like a POST that is refused for its body: a frame costs its key a request, whatever it contains."""
    with upstream(say_hi) as up, over_http("openai", up.url, api_keys=("sk-provider",)) as gateway:
        keys = gateway.state.keys
        assert isinstance(keys, ClientKeys)
        made = gateway.wait_for(keys.add("me", requests_per_minute=3))
        with talking(gateway.url + RESPONSES, {"authorization": f"Bearer {made.secret}"}) as talk:
            assert talk.ask(input=[USER]).said == "hi"
            for _ in range(2):
                talk.connection.send(frame)
                assert talk.heard().last["type"] in ("error", "response.completed")
            assert talk.ask(input=[USER]).error == (429, "too_many_requests")
        assert len(up.got) == 1


# its end


@pytest.mark.parametrize("politely", [True, False], ids=["close", "reset"])
def test_a_turn_is_captured_after_its_client_leaves(politely: bool) -> None:
    """The answer is read to its end, and its turn recorded."""
    held = Held()
    with answering(held) as (_up, gateway):
        with gateway.listening() as next_line:
            with talking(gateway.url + RESPONSES) as talk:
                begun(talk)
                if not politely:
                    talk.connection.socket.close()
            gateway.wait_for(left(gateway))
            held.may_end.set()
            line = next_line()
        assert (line.captured, line.note) == (1, "")


def test_a_client_that_leaves_before_an_answer_is_not_waited_for() -> None:
    async def never(got: Got, out: Out) -> None:
        await out.gone()

    with answering(never) as (up, gateway), gateway.listening() as next_line:
        with talking(gateway.url + RESPONSES) as talk:
            talk.send(input=[USER])
            up.wait_until(lambda up: len(up.got) == 1)
        assert next_line().code == "client_gone"


def test_a_stop_lets_a_turn_finish() -> None:
    """An idle connection is closed at once, with 1001; the other when its turn is over."""
    held = Held()
    with (
        answering(held) as (_up, gateway),
        talking(gateway.url + RESPONSES) as idle,
        talking(gateway.url + RESPONSES) as talk,
    ):
        begun(talk)
        gateway.server.stop()
        assert idle.closed() == 1001
        held.may_end.set()
        assert talk.heard().said == "hi"
        assert talk.closed() == 1001


def test_who_asks_for_nothing_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "IDLE_SECONDS", 0.05)
    with running({}) as gateway, talking(gateway.url + RESPONSES) as talk:
        assert talk.closed() == 1000


def test_a_connection_that_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told so, in OpenAI's words; an active turn is finished first."""
    monkeypatch.setattr(websocket, "AGE_SECONDS", 0.05)
    held = Held()
    with (
        answering(held) as (_up, gateway),
        talking(gateway.url + RESPONSES) as idle,
        talking(gateway.url + RESPONSES) as talk,
    ):
        begun(talk)
        assert idle.heard().error == (400, "websocket_connection_limit_reached")
        assert idle.closed() == 1000
        held.may_end.set()
        assert talk.heard().said == "hi"
        assert talk.heard().error == (400, "websocket_connection_limit_reached")
