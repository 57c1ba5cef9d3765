"""The latest requests, explained: outcome, attempts, refusals, and what was done for each turn."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from tests.gateway.gateways import running
from tests.gateway.managed_gateways import CACHE, TOKEN, TOOLS, Json, Managed, Pauses, followed, managed
from tests.gateway.upstreams import Got, Out, Upstream, upstream
from tests.sim.served_simulators import served
from thoughtline.destinations.catalogue import PROVIDERS, Provider
from thoughtline.gateway import recent
from thoughtline.settings import DebugSettings, ReplaySettings, Settings

REQUESTS = "/api/requests"
NOVEL = "novel-9"
USER = {"role": "user", "content": "list the files"}
CALL = {"id": "call_0", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
MISSING = (
    b'{"error":{"message":"The reasoning_content in the thinking mode must be passed back to the API.","code":"x"}}'
)


@pytest.fixture
def gateway() -> Iterator[Managed]:
    with managed() as one:
        yield one


def explained(gateway: Managed, response: httpx.Response) -> Json:
    """Return the explanation of the request with this answer."""
    return gateway.get(f"{REQUESTS}/{response.headers['x-thoughtline-request']}")


def treatments(view: Json) -> list[tuple[str, str]]:
    return [(turn["treatment"], turn["why"]) for turn in view["turns"]]


def acme(**replay: bool) -> Settings:
    """An unlisted provider, as strict as DeepSeek."""
    url = served("deepseek", "reseller").url
    return Settings(
        providers={"acme": Provider("acme", url, ("openai_chat",))}, replay=replace(ReplaySettings(), **replay)
    )


def unseen() -> list[Json]:
    """A history whose turn did not go through the gateway."""
    body = {"model": NOVEL, "messages": [USER], "tools": TOOLS}
    url = f"{served('deepseek', 'reseller').url}/v1/chat/completions"
    message = httpx.post(url, json=body, headers={"authorization": "Bearer x"}).json()["choices"][0]["message"]
    return [USER, *followed({**message, "reasoning_content": None})]


@contextlib.contextmanager
def scripted(messages: Sequence[Json], status: int = 200, body: bytes = b"") -> Iterator[Upstream]:
    """A chat server with these answers in order; or one that refuses everything."""
    left = list(messages)

    async def answer(got: Got, out: Out) -> None:
        if status != 200:
            await out.whole(status, body)
            return
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **left.pop(0)}}
        details = {"cached_tokens": 64}
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": details}
        await out.whole(200, json.dumps({"id": "1", "model": "m", "choices": [choice], "usage": usage}).encode())

    with upstream(answer) as up:
        yield up


def test_a_restored_request(gateway: Managed) -> None:
    """The row has the outcome; the view the provider, the contract, and what was done for each turn."""
    answers = gateway.ask("list the files", session="s", turns=2)
    rows = gateway.get(REQUESTS)["requests"]
    assert [row["outcome"] for row in rows] == ["restored", "ok"]
    assert [row["id"] for row in rows] == [line["request"] for line in reversed(gateway.gateway.lines)]
    view = gateway.get(f"{REQUESTS}/{rows[0]['id']}")
    assert {name: view[name] for name in rows[0]} == rows[0]
    assert treatments(view) == [("restored", "lineage")]
    assert view["turns"][0]["place"] == "/messages/1"
    entries = gateway.get(CACHE)["entries"]
    assert view["turns"][0]["record"] == entries[1]["id"]
    (tried,) = view["tried"]
    assert (tried["provider"], tried["status"], tried["sends"], tried["refusals"]) == ("deepseek", 200, 1, [])
    assert (tried["contract"]["kind"], "deepseek" in tried["contract"]["source"]) == ("presence", True)
    assert view["totalMs"] >= view["upstreamMs"] > 0
    assert view["firstByteMs"] > 0
    assert (view["session"], view["summary"], view["restored"]) == ("s", "1 restored", 1)
    assert view["bodies"] is None
    assert answers[0]["reasoning_content"] not in json.dumps(view)


def test_a_client_that_keeps_its_reasoning(gateway: Managed) -> None:
    """Its turns are kept, neither restored nor missing."""
    (answer,) = gateway.ask("list the files")
    view = explained(gateway, gateway.send([USER, *followed(answer)]))
    assert (treatments(view), view["outcome"], view["kept"]) == ([("kept", "lineage")], "ok", 1)


def test_a_refused_request() -> None:
    """The provider's words, the rule and the remedy; the row has what the client got."""
    with managed(acme(heal=False)) as gateway:
        response = gateway.send(unseen(), provider="acme", model=NOVEL)
        assert response.status_code == 400
        view = explained(gateway, response)
        row = gateway.get(REQUESTS)["requests"][0]
    (refusal,) = view["tried"][0]["refusals"]
    words = response.json()["error"]["message"]
    assert (refusal["status"], refusal["words"], refusal["rule"]) == (400, words, "missing")
    assert (refusal["remedy"], refusal["wasHealed"]) == ("restore", False)
    assert (row["outcome"], row["status"], row["message"]) == ("refused", 400, words[:200])
    assert row["summary"].startswith("client: acme refused it with 400: a turn lacks the reasoning")


def test_a_healed_request() -> None:
    """The hidden refusal, and the learned correction."""
    with managed(acme()) as gateway:
        response = gateway.send(unseen(), provider="acme", model=NOVEL)
        assert response.status_code == 200
        view = explained(gateway, response)
        series = gateway.get("/api/series")
    (tried,) = view["tried"]
    assert (tried["status"], tried["sends"], len(tried["refusals"])) == (200, 2, 1)
    assert (tried["refusals"][0]["wasHealed"], tried["refusals"][0]["rule"]) == (True, "missing")
    assert "learned from a 400" in tried["contract"]["learned"][0]
    assert (view["outcome"], view["healed"], treatments(view)) == ("healed", 1, [("blank", "no_record")])
    assert [sum(series[name]) for name in ("requests", "avoided", "healed", "refused", "errors")] == [1, 1, 1, 0, 0]


def test_an_error_that_is_not_about_reasoning() -> None:
    """No rule and no remedy; its words without quoted keys, and at most 500 characters."""
    quoted = f"Incorrect API key provided: sk-proj-1234567890abcdef, plain-key-of-mine. {'x' * 900}"
    said = {"error": {"message": quoted, "code": "bad"}}
    with scripted((), 400, json.dumps(said).encode()) as up, managed(simulators={"deepseek": up.url}) as gateway:
        view = explained(gateway, gateway.send([USER], key="plain-key-of-mine"))
    (refusal,) = view["tried"][0]["refusals"]
    assert (refusal["rule"], refusal["remedy"], refusal["meaning"], refusal["code"]) == ("", "", "", "bad")
    assert refusal["words"].startswith("Incorrect API key provided: sk-***, ***. xxx")
    assert len(refusal["words"]) == 500


@pytest.mark.parametrize(
    ("said", "history", "session", "reason"),
    [
        ([], [USER, {"role": "assistant", "content": "never said"}, USER], None, "no_record"),
        ([{"content": "hi"}], [USER, {"role": "assistant", "content": "hi there"}, USER], None, "text_differs"),
        (
            [{"content": None, "tool_calls": [CALL]}] * 2,
            [USER, *followed({"role": "assistant", "content": None, "tool_calls": [CALL]})],
            None,
            "ambiguous",
        ),
        (
            [{"content": None, "tool_calls": [CALL]}] * 2,
            [{"role": "user", "content": "c"}, *followed({"role": "assistant", "content": None, "tool_calls": [CALL]})],
            None,
            "unproven",
        ),
    ],
    ids=["no_record", "text_differs", "ambiguous", "unproven"],
)
def test_why_a_turn_is_missing(said: list[Json], history: list[Json], session: str | None, reason: str) -> None:
    """No record; different text; several matches; one match without proof."""
    thought = [{**message, "reasoning_content": f"thought {number}"} for number, message in enumerate(said)]
    with scripted([*thought, {"content": "end"}]) as up, managed(simulators={"deepseek": up.url}) as gateway:
        for number in range(len(said)):
            opening = (
                USER if reason in ("text_differs", "ambiguous") else {"role": "user", "content": f"opening {number}"}
            )
            assert gateway.send([opening], session=session).status_code == 200
        view = explained(gateway, gateway.send(history, session=session))
    assert treatments(view) == [("blank", reason)]
    assert view["turns"][0]["words"].startswith("sent blank: ")


def test_the_only_record_that_looks_like_a_turn() -> None:
    """With another opening nothing proves that the turn is the same, and the reason does not mention several."""
    said: list[Json] = [{"role": "assistant", "content": words} for words in ("One.", "Two.", "Three.", "Four.")]
    history: list[Json] = [USER]
    with (
        scripted([{**one, "reasoning_content": "thought"} for one in said]) as up,
        managed(simulators={"deepseek": up.url}) as gateway,
    ):
        for one in said[:3]:
            gateway.send(history)
            history += [one, USER]
        view = explained(gateway, gateway.send([{"role": "user", "content": "another opening"}, *history[1:]]))
    assert treatments(view)[-1] == ("blank", "unproven")


def test_a_turn_that_had_no_reasoning() -> None:
    """It is not a miss: its model gave none."""
    said = [{"content": "hi"}, {"content": "end"}]
    with scripted(said) as up, managed(simulators={"deepseek": up.url}) as gateway:
        gateway.send([USER])
        view = explained(gateway, gateway.send([USER, {"role": "assistant", "content": "hi"}, USER]))
        stats = gateway.get(CACHE)["stats"]
    assert {why for _, why in treatments(view)} <= {"had_none"}
    assert (stats["hits"], stats["misses"]) == (0, 0)


def test_a_turn_of_another_account(tmp_path: Path) -> None:
    """Its signature is valid only for its own account: it is missing, and the reason says why."""
    use = {"type": "tool_use", "id": "toolu_01AbCdEfGhIjKlMnOpQrStUv", "name": "bash", "input": {}}
    content = [{"type": "thinking", "thinking": "let me", "signature": "c2lnbmF0dXJl" * 20}, use]

    async def answer(got: Got, out: Out) -> None:
        body = {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": content}
        await out.whole(200, json.dumps({**body, "stop_reason": "tool_use", "usage": {}}).encode())

    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 4096,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "tools": [{"name": "bash", "input_schema": {"type": "object"}}],
        "messages": [USER],
    }
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use["id"], "content": "a"}]}
    again = {**body, "messages": [USER, {"role": "assistant", "content": [use]}, result]}
    with upstream(answer) as up:
        for key, sent in (("account-one-key", body), ("account-two-key", again)):
            row = replace(PROVIDERS["anthropic"], base_url=up.url, bases={}, api_keys=(key,))
            settings = Settings(providers={"anthropic": row})
            with managed(settings, f"sqlite:///{tmp_path}/kept.db", simulators={}) as gateway:
                response = gateway.anyone.post("/anthropic/v1/messages", json=sent)
                view = explained(gateway, response)
    assert treatments(view) == [("missing", "other_account")]
    assert "account-two-key" not in json.dumps(view)


def test_a_turn_whose_time_is_over(tmp_path: Path) -> None:
    """It was stored and has expired: the reason distinguishes it from one that was never seen."""
    now = [1_000_000_000.0]
    settings = replace(Settings(), server=replace(Settings().server, admin_token=TOKEN))
    simulators = {"deepseek": served("deepseek").url}
    with running(simulators, settings, f"sqlite:///{tmp_path}/kept.db", clock=lambda: now[0]) as one:
        gateway = Managed(one, Pauses())
        one.state.store._durable._clock = one.state.store._front._clock = lambda: now[0]  # type: ignore[attr-defined] # of a layered store
        (answer,) = gateway.ask("list the files")
        now[0] += 8 * 86400
        view = explained(gateway, gateway.send([USER, *followed({**answer, "reasoning_content": None})]))
    assert treatments(view) == [("blank", "expired")]


def test_tokens_of_the_usage() -> None:
    """Counted by the provider, including cached ones."""
    with scripted([{"content": "hi"}]) as up, managed(simulators={"deepseek": up.url}) as gateway:
        view = explained(gateway, gateway.send([USER]))
    assert view["tokens"] == {"input": 100, "output": 20, "reasoning": 0, "cached": 64}


def test_a_stream_has_tokens_and_a_first_byte(gateway: Managed) -> None:
    """A stream has the same members."""
    response = gateway.send([USER], stream=True, stream_options={"include_usage": True})
    view = explained(gateway, response)
    assert (view["isStreaming"], view["phase"], view["tokens"]["output"] > 0) == (True, "done", True)
    assert 0 < view["firstByteMs"] <= view["totalMs"]


def test_what_the_gateway_declines(gateway: Managed) -> None:
    """The gateway's own errors are kept, too, with their text."""
    response = gateway.anyone.post("/v1/chat/completions", json={"model": "nobody", "messages": []})
    view = explained(gateway, response)
    assert (view["outcome"], view["code"], view["tried"]) == ("declined", "unknown_model", [])
    assert "Which provider has 'nobody'?" in view["message"]


def test_a_provider_that_can_not_be_reached() -> None:
    with managed(simulators={"deepseek": "http://127.0.0.1:9"}) as gateway:
        view = explained(gateway, gateway.send([USER]))
    assert (view["outcome"], view["code"], view["tried"][0]["error"]) == ("failed",) + ("upstream_unreachable",) * 2


def test_one_name_for_a_session(gateway: Managed) -> None:
    """A conversation without a client's name has the same one in log, API and sessions, even if it was refused."""
    gateway.ask("list the files")
    (session,) = gateway.get("/api/sessions")["sessions"]
    (row,) = gateway.get(REQUESTS)["requests"]
    assert session["id"].startswith("~")
    assert row["session"] == session["id"] == gateway.gateway.lines[0]["session"]
    turns = gateway.get(f"/api/sessions/{session['id']}")["turns"]
    assert turns[0]["outcome"]["request"] == row["id"]
    assert [one["id"] for one in gateway.get(REQUESTS, session=session["id"])["requests"]] == [row["id"]]


def test_a_caller_is_known_by_the_name_of_its_key(tmp_path: Path) -> None:
    """In the list, in the explanation, and as a filter."""
    row = replace(PROVIDERS["deepseek"], base_url=served("deepseek").url, bases={}, api_keys=("k",))
    settings = Settings(providers={**PROVIDERS, "deepseek": row})
    with managed(settings, f"sqlite:///{tmp_path}/turns.db", takes_keys=True, simulators={}) as gateway:
        secret = gateway.admin.post("/api/keys", json={"name": "alice"}).json()["secret"]
        assert gateway.send([{"role": "user", "content": "hi"}], key=secret).status_code == 200
        [row] = gateway.get(REQUESTS, caller="Alice")["requests"]
        assert row["caller"] == "alice"
        assert gateway.get(f"{REQUESTS}/{row['id']}")["caller"] == "alice"
        assert gateway.get(REQUESTS, caller="bob")["requests"] == []


def test_a_blank_is_not_called_restored(gateway: Managed) -> None:
    """This is the case that people look up: a turn whose reasoning was not found."""
    answer = gateway.send([*unseen()])
    assert answer.status_code == 200
    row = gateway.get(REQUESTS, limit=1)["requests"][0]
    assert (row["outcome"], row["blank"]) == ("blank", 1)


def test_filters(gateway: Managed) -> None:
    """By session, tenant, provider, model, status, outcome and text; names in any case, a provider by an alias."""
    gateway.ask("first", session="s1", turns=2)
    gateway.ask("second", key="other", provider="kimi", model="kimi-k2-thinking")
    gateway.anyone.post("/v1/chat/completions", json={"model": "nobody", "messages": []})
    every = gateway.get(REQUESTS)["requests"]
    kimi = next(row for row in every if row["provider"] == "kimi")
    expected = {
        "session": ("s1", 2),
        "tenant": (kimi["tenant"], 1),
        "provider": ("Moonshot", 1),
        "model": ("DeepSeek-V4-Pro", 2),
        "status": ("2xx", 3),
        "outcome": ("declined", 1),
        "text": ("NOBODY", 1),
    }
    for name, (value, count) in expected.items():
        assert len(gateway.get(REQUESTS, **{name: value})["requests"]) == count, name
    assert len(gateway.get(REQUESTS, status="404", outcome="declined")["requests"]) == 1
    assert gateway.get(REQUESTS, status="404", outcome="ok")["requests"] == []
    others = {
        "status": ("!2xx", 1),
        "provider": ("!kimi", 3),
        "tenant": (kimi["tenant"][:10], 1),
        "client": ("none", 0),
    }
    for name, (value, count) in others.items():
        assert len(gateway.get(REQUESTS, **{name: value})["requests"]) == count, name
    assert gateway.admin.get(REQUESTS, params={"outcome": "fine"}).status_code == 400


def test_pages(gateway: Managed) -> None:
    """Newest first, each once, even with new requests in between."""
    gateway.ask("list the files", turns=5)
    seen: list[str] = []
    cursor: dict[str, str] = {}
    for _ in range(3):
        page = gateway.get(REQUESTS, limit=2, **cursor)
        seen += [row["id"] for row in page["requests"]]
        cursor = {"cursor": page["cursor"]}
        gateway.ask("another")
    assert seen == [line["request"] for line in reversed(gateway.gateway.lines[:5])]
    assert page["cursor"] is None
    assert gateway.admin.get(REQUESTS, params={"cursor": "nonsense"}).json()["error"]["code"] == "bad_cursor"


def test_what_is_not_there(gateway: Managed) -> None:
    gateway.ask("list the files")
    for name in ("ffff", "%20", "x" * 90):
        assert gateway.admin.get(f"{REQUESTS}/{name}").json()["error"]["code"] == "unknown_request"
    (row,) = gateway.get(REQUESTS)["requests"]
    assert gateway.get(f"{REQUESTS}/{row['id'][:6]}")["id"] == row["id"]


def test_memory_is_bounded(gateway: Managed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest are dropped, by number and by size."""
    monkeypatch.setattr(recent, "MAX_REQUESTS", 3)
    gateway.ask("list the files", turns=5)
    assert len(gateway.get(REQUESTS)["requests"]) == 3
    monkeypatch.setattr(recent, "MAX_BYTES", 1)
    gateway.ask("once more")
    assert [row["id"] for row in gateway.get(REQUESTS)["requests"]] == [gateway.gateway.lines[-1]["request"]]


def test_bodies_only_if_they_are_switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the client sent and what was last sent to the provider, without keys; nothing without the token."""
    monkeypatch.setattr(recent, "MAX_BODIES", 2)
    with managed(Settings(debug=DebugSettings(keep_bodies=True))) as gateway:
        secret = "sk-a-key-of-the-caller-0123456789"
        answers = gateway.ask(f"my key is {secret}", key=secret, turns=3)
        first, second, third = (gateway.get(f"{REQUESTS}/{line['request']}") for line in gateway.gateway.lines)
        assert secret not in json.dumps([first, second, third])
        assert first["bodies"] is None
        thought = answers[0]["reasoning_content"]
        assert thought not in second["bodies"]["client"]
        assert thought in json.loads(second["bodies"]["upstream"])["messages"][1]["reasoning_content"]
        assert json.loads(third["bodies"]["client"])["messages"][0]["content"] == "my key is ***"
        refused = httpx.get(f"{gateway.url}{REQUESTS}/{third['id']}")
        assert (refused.status_code, thought in refused.text) == (401, False)


def test_they_are_hidden_without_the_token(gateway: Managed) -> None:
    """Neither a client, nor a caller with a provider's key."""
    gateway.ask("list the files", key="someone")
    for path in (REQUESTS, f"{REQUESTS}/{gateway.gateway.lines[0]['request']}", "/api/series", "/api/keys"):
        for headers in ({}, {"authorization": "Bearer someone"}, {"authorization": f"Bearer {TOKEN}x"}):
            assert httpx.get(gateway.url + path, headers=headers).status_code == 401


def test_requests_under_way_are_listed() -> None:
    """Active requests, so that people can see what hangs."""
    held: list[Json] = []

    async def answer(got: Got, out: Out) -> None:
        await out.stream()
        await out.chunk(b'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n')
        await out.until(lambda: bool(held))
        await out.chunk(b"data: [DONE]\n\n")
        await out.end()

    with upstream(answer) as up, managed(simulators={"deepseek": up.url}) as gateway:
        body = {"model": "m", "messages": [USER], "stream": True}
        with gateway.anyone.stream("POST", "/deepseek/v1/chat/completions", json=body) as response:
            pieces = response.iter_raw()
            next(pieces)
            held += gateway.get(REQUESTS, outcome="pending")["requests"]
            assert list(pieces)
        over = gateway.get(REQUESTS)["requests"]
    assert [(row["phase"], row["outcome"]) for row in held] == [("streaming", "pending")]
    assert [(row["id"], row["phase"]) for row in over] == [(held[0]["id"], "done")]


@pytest.mark.parametrize("shared_url", ["redis", "postgres"], indirect=True)
def test_replicas_on_one_store_know_each_others_requests(shared_url: str) -> None:
    """A request served by one is listed and explained by the other, once it has been written; without bodies."""
    settings = Settings(debug=DebugSettings(keep_bodies=True))
    with managed(settings, shared_url) as one, managed(settings, shared_url) as other:
        one.ask("list the files", turns=2)
        other.ask("and here")
        for gateway in (one, other):
            gateway.gateway.refresh()
        lists = [[row["id"] for row in gateway.get(REQUESTS)["requests"]] for gateway in (one, other)]
        assert len(lists[0]) == 3
        assert lists[0] == lists[1]
        view = other.get(f"{REQUESTS}/{one.gateway.lines[1]['request']}")
        assert (treatments(view), view["bodies"]) == ([("restored", "lineage")], None)
        assert one.get(f"{REQUESTS}/{view['id']}")["bodies"] is not None
