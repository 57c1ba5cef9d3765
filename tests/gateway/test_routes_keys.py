"""A caller's own key is sent to one provider only: the first of its route."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import httpx
import pytest
from msgspec.structs import replace

from tests.gateway.gateways import Running, running
from tests.gateway.teams import Team, answers
from tests.gateway.upstreams import Upstream, upstream
from thoughtline.destinations.catalogue import Provider
from thoughtline.gateway.client_keys import ClientKeys
from thoughtline.settings import RouteSettings, Settings

OWN = "sk-callers-own-key"
BODY = {"model": "team", "messages": [{"role": "user", "content": "hello"}]}

SHOWN: dict[str, tuple[dict[str, str], str]] = {
    "bearer": ({"authorization": f"Bearer {OWN}"}, ""),
    "x-api-key": ({"x-api-key": OWN}, ""),
    "x-goog-api-key": ({"x-goog-api-key": OWN}, ""),
    "api-key": ({"api-key": OWN}, ""),
    "query": ({}, f"?key={OWN}"),
    "escaped query": ({}, f"?k%65y={OWN}"),
    "two headers": ({"authorization": f"Bearer {OWN}", "x-portkey-key": OWN}, ""),
}
OTHERS: dict[str, dict[str, object]] = {
    "keyless": {},
    "unkeyed": {"auth": "none"},
    "header": {"headers": {"authorization": "Bearer inside"}},
    "keyed": {"api_keys": ("inside",)},
    "query": {"auth": "query", "api_keys": ("inside",)},
    "gemini": {"auth": "none", "formats": ("gemini_generate",)},
}


@contextlib.contextmanager
def route(*rows: Provider, takes_keys: bool = False, weights: tuple[int, ...] = ()) -> Iterator[tuple[Running, Team]]:
    """A route `team` to these providers, each behind its own socket."""
    found = Team()
    with contextlib.ExitStack() as stack:
        placed = {}
        for row in rows:
            up = found.ups[row.name] = stack.enter_context(upstream(found.answer_of(row.name)))
            placed[row.name] = Provider(
                row.name, up.url, row.formats, auth=row.auth, api_keys=row.api_keys, headers=row.headers
            )
        targets = tuple(f"{row.name}/m" for row in rows)
        settings = Settings(providers=placed, routes={"team": RouteSettings("team", targets, weights)})
        yield stack.enter_context(running({}, settings, takes_keys=takes_keys)), found


def provider(name: str, **more: object) -> Provider:
    return Provider(**{"name": name, "base_url": "", "formats": ("openai_chat",), **more})  # type: ignore[arg-type]  # by name


def ask(gateway: Running, headers: dict[str, str] | None = None, query: str = "", **more: object) -> httpx.Response:
    return httpx.post(f"{gateway.url}/v1/chat/completions{query}", json=BODY | more, headers=headers or {}, timeout=60)


def all_that_came(up: Upstream) -> str:
    return json.dumps([[got.target, got.headers, got.body.decode()] for got in up.got])


@pytest.mark.parametrize(("headers", "query"), SHOWN.values(), ids=SHOWN)
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_no_other_provider_sees_it(headers: dict[str, str], query: str, other: dict[str, object]) -> None:
    """In whatever place it was sent; a provider that can't be asked without it is skipped."""
    with route(provider("one"), provider("two", **other)) as (gateway, ups):
        ups.does["one"] = answers(503)
        response = ask(gateway, headers, query)
        assert OWN in all_that_came(ups.ups["one"]) or query
        assert OWN not in all_that_came(ups.ups["two"])
        assert ups.asked("two") == (0 if other == {} else 1)
        assert response.status_code == (503 if other == {} else response.status_code)


@pytest.mark.parametrize("query", [f"?key={OWN}", f"?alt=sse&k%65y={OWN}&x=1"])
def test_no_other_provider_sees_one_in_a_query(query: str) -> None:
    """Even one that would accept it there."""
    google: dict[str, object] = {"formats": ("gemini_generate",)}
    with route(provider("one", **google), provider("two", auth="none", **google)) as (gateway, ups):
        ups.does["one"] = ups.does["two"] = answers(503)
        httpx.post(f"{gateway.url}/v1beta/models/team:generateContent{query}", json={"contents": []}, timeout=60)
        assert OWN in all_that_came(ups.ups["one"])
        assert ups.asked("two") == 1
        assert OWN not in all_that_came(ups.ups["two"])


def test_skipped_targets_are_reported() -> None:
    """The client gets the first provider's own error, with a header; the log names the target."""
    with route(provider("one"), provider("two"), provider("three")) as (gateway, ups):
        ups.does["one"] = answers(529, b'{"error":"of one"}')
        response = ask(gateway, SHOWN["bearer"][0])
        assert (response.status_code, response.content) == (529, b'{"error":"of one"}')
        assert response.headers["x-thoughtline-findings"] == "target-skipped=2"
        assert gateway.lines[-1]["findings"] == [["target-skipped", "two/m"], ["target-skipped", "three/m"]]
        assert (ups.asked("two"), ups.asked("three")) == (0, 0)


def test_the_next_one_with_a_key_is_asked() -> None:
    """Those in between are skipped, and that is reported too."""
    with route(provider("one"), provider("two"), provider("three", api_keys=("inside",))) as (gateway, ups):
        ups.does["one"] = answers(503)
        response = ask(gateway, SHOWN["bearer"][0])
        assert response.headers["x-thoughtline-target"] == "three/m"
        assert response.headers["x-thoughtline-findings"] == "target-skipped=1"
        assert ups.asked("two") == 0


def test_nothing_is_reported_while_nothing_fails() -> None:
    """A route that answers is not affected."""
    with route(provider("one"), provider("two")) as (gateway, _):
        assert "x-thoughtline-findings" not in ask(gateway, SHOWN["bearer"][0]).headers


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_whichever_target_is_drawn_first(streams: bool) -> None:
    """Weights, breakers and sticky conversations don't send the key to another provider."""
    with route(provider("one"), provider("two"), weights=(1, 50)) as (gateway, ups):
        for number in range(12):
            message = {"role": "user", "content": f"{number}"}
            ask(gateway, SHOWN["bearer"][0], messages=[message], stream=streams)
        assert (ups.asked("one"), ups.asked("two")) == (12, 0)


def test_a_first_target_with_our_key_gives_the_callers_to_no_other() -> None:
    """The caller's credential is a key for the first target, or a placeholder."""
    with route(provider("one", api_keys=("inside",)), provider("two")) as (gateway, ups):
        ups.does["one"] = answers(503)
        assert ask(gateway, SHOWN["bearer"][0]).status_code == 503
        assert ups.asked("two") == 0


def test_other_models_of_the_same_provider_are_asked_with_it() -> None:
    """It is one key, of one provider."""
    with route(provider("one")) as (gateway, ups):
        state = gateway.state
        routes = {"team": RouteSettings("team", ("one/m", "one/n"))}
        gateway.app.state = state._replace(settings=replace(state.settings, routes=routes))
        ups.does["one"] = answers(503)
        ask(gateway, SHOWN["bearer"][0])
        assert [got.header("authorization") for got in ups.ups["one"].got] == [f"Bearer {OWN}"] * 2


def test_a_caller_without_a_key_has_none_to_lose() -> None:
    """Servers without keys may follow each other."""
    with route(provider("one"), provider("two")) as (gateway, ups):
        ups.does["one"] = answers(503)
        assert ask(gateway).headers["x-thoughtline-target"] == "two/m"


def test_a_client_key_is_never_sent() -> None:
    """With keys of the gateway's own, targets without one are skipped from the start."""
    rows = (provider("one"), provider("two", headers={"x-api-key": "inside"}), provider("three", auth="none"))
    with route(*rows, takes_keys=True) as (gateway, ups):
        keys = gateway.state.keys
        assert isinstance(keys, ClientKeys)
        secret = gateway.wait_for(keys.add("ann")).secret
        ups.does["two"] = answers(503)
        response = ask(gateway, {"authorization": f"Bearer {secret}", "x-odd": secret}, f"?key={secret}")
        assert response.headers["x-thoughtline-target"] == "three/m"
        assert response.headers["x-thoughtline-findings"] == "target-skipped=1"
        assert [ups.asked(name) for name in ("one", "two", "three")] == [0, 1, 1]
        assert not [up for up in ups.ups.values() if secret in all_that_came(up)]
