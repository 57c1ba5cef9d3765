"""Credentials for the gateway never reach a provider."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator

import httpx
import pytest

from tests.gateway.gateways import running
from tests.gateway.managed_gateways import TOKEN, Managed, managed
from tests.gateway.upstreams import Got, Out, Upstream, upstream
from thoughtline.destinations.catalogue import Provider
from thoughtline.gateway.client_keys import ClientKeys, make_secret
from thoughtline.settings import Settings

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
PATHS = [
    "bearer/v1/chat/completions",
    "bearer/v1/messages",
    "bearer/v1/files",
    "query/v1/chat/completions",
    "goog/v1beta/models/m:generateContent",
    "goog/v1/chat/completions",
    "keyed/v1/chat/completions",
    "keyed/v1/files",
    "unkeyed/v1/chat/completions",
    "unkeyed/v1/messages",
    "unkeyed/v1beta/models/m:generateContent",
    "hidden/v1/chat/completions",
    "hidden/v1/messages",
]


async def _answer(got: Got, out: Out) -> None:
    await out.whole(200, b'{"choices":[]}', ("x-thoughtline-replay", "forged=1"), ("set-cookie", "thoughtline_admin=1"))


@pytest.fixture(scope="module")
def provider() -> Iterator[Upstream]:
    with upstream(_answer) as up:
        yield up


def _settings(up: Upstream) -> Settings:
    rows = (
        Provider("bearer", up.url, ("openai_chat",)),
        Provider("query", up.url, ("openai_chat",), auth="query"),
        Provider("goog", up.url, ("gemini_generate",), auth="x-goog-api-key"),
        Provider("keyed", up.url, ("openai_chat",), api_keys=("inside",)),
        Provider("unkeyed", up.url, ("openai_chat", "gemini_generate"), auth="none"),
        Provider("hidden", up.url, ("openai_chat",), headers={"x-api-key": "inside"}),
    )
    return Settings(providers={row.name: row for row in rows})


@pytest.fixture(scope="module")
def gateway(provider: Upstream) -> Iterator[Managed]:
    with managed(_settings(provider), simulators={}) as one:
        yield one


@pytest.fixture(scope="module")
def closed(provider: Upstream) -> Iterator[Managed]:
    """A gateway with client keys."""
    with managed(_settings(provider), simulators={}, takes_keys=True) as one:
        yield one


@pytest.fixture(scope="module")
def client_key(closed: Managed) -> str:
    keys = closed.gateway.state.keys
    assert isinstance(keys, ClientKeys)
    return closed.gateway.wait_for(keys.add("ann")).secret


def basic(text: str) -> str:
    return b64encode(text.encode()).decode().rstrip("=")


def url_safe(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def escaped(text: str) -> str:
    """All of it percent-encoded."""
    return "".join(f"%{ord(letter):02x}" for letter in text)


def shown(secret: str) -> dict[str, tuple[dict[str, str], str]]:
    """The places where people put a secret."""
    return {
        "bearer": ({"authorization": f"Bearer {secret}"}, ""),
        "bare": ({"authorization": secret}, ""),
        "password": ({"authorization": f"Basic {basic(f'admin:{secret}')}"}, ""),
        "name": ({"authorization": f"basic  {basic(f'{secret}:')}"}, ""),
        "x-api-key": ({"x-api-key": secret}, ""),
        "x-goog-api-key": ({"x-goog-api-key": secret}, ""),
        "beside": ({"authorization": "Bearer sk-own", "x-api-key": secret}, ""),
        "odd": ({"x-my-token": f"token={secret};"}, ""),
        "cookie": ({"cookie": f"session={secret}; a=b"}, ""),
        "agent": ({"user-agent": f"me/1 {secret}"}, ""),
        "key": ({}, f"?key={secret}"),
        "escaped": ({}, f"?k%65y={secret.replace('n', '%6e').replace('t', '%74')}"),
        "parameter": ({}, f"?alt=sse&token={secret}"),
        "escaped twice": ({}, f"?token={escaped(escaped(secret))}"),
        "escaped cookie": ({"cookie": f"session={escaped(secret)}"}, ""),
        "escaped password": ({"authorization": f"Basic {basic(f'admin:{escaped(secret)}')}"}, ""),
        "url-safe password": ({"authorization": f"Basic {url_safe(f'???>>>:{secret}')}"}, ""),
        "tab": ({"authorization": f"Bearer\t{secret}"}, ""),
        "link": ({"referer": f"http://localhost/?key={secret}"}, ""),
    }


def assert_unseen(secret: str, got: list[Got]) -> None:
    """Neither as it is, nor in any of the ways in which it is shown."""
    came = json.dumps([(one.target, one.headers) for one in got])
    assert secret not in came
    for text in (escaped(secret), basic(f"admin:{secret}"), basic(f"admin:{escaped(secret)}")):
        assert text not in came
    assert url_safe(f"???>>>:{secret}") not in came
    assert escaped(escaped(secret)) not in came


def ask(gateway: Managed, path: str, headers: dict[str, str], query: str) -> httpx.Response:
    return httpx.post(f"{gateway.url}/{path}{query}", json=BODY, headers=headers)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("headers", "query"), shown(TOKEN).values(), ids=shown(TOKEN))
def test_the_admin_token(gateway: Managed, provider: Upstream, path: str, headers: dict[str, str], query: str) -> None:
    """In any place: it is removed, or the request is refused with an explanation."""
    before = len(provider.got)
    response = ask(gateway, path, headers, query)
    assert_unseen(TOKEN, provider.got[before:])
    if response.status_code != 200:
        assert (response.status_code, "admin token" in response.text) == (403, True)
        assert TOKEN not in response.text


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("place", [name for name in shown("") if "authorization" not in shown("")[name][0]])
def test_a_client_key(closed: Managed, provider: Upstream, client_key: str, path: str, place: str) -> None:
    """The same for the gateway's own keys, also besides the one that authenticated the caller."""
    headers, query = shown(client_key)[place]
    before = len(provider.got)
    response = ask(closed, path, {"authorization": f"Bearer {client_key}"} | headers, query)
    assert_unseen(client_key, provider.got[before:])
    assert response.status_code in (200, 401, 403)


def test_a_client_key_in_a_query_is_taken_out(closed: Managed, provider: Upstream, client_key: str) -> None:
    """As Google's clients send it; the rest of the query is sent."""
    path = "unkeyed/v1beta/models/m:streamGenerateContent"
    response = ask(closed, path, {}, f"?alt=sse&key={client_key}&x=1")
    assert response.status_code == 200
    assert provider.got[-1].target.endswith("?alt=sse&x=1")


@pytest.mark.parametrize("path", ["unkeyed/v1/chat/completions", "unkeyed/v1/files"])
@pytest.mark.parametrize("is_mistyped", [False, True], ids=["good", "mistyped"])
@pytest.mark.parametrize("place", shown(""))
def test_an_unknown_client_key(gateway: Managed, provider: Upstream, path: str, place: str, is_mistyped: bool) -> None:
    """In any place, even where no keys are needed: it may be new, or belong to another gateway. One with a letter
    changed gives away most of it."""
    secret = make_secret()
    if is_mistyped:
        secret = secret[:-1] + ("A" if secret[-1] != "A" else "B")
    headers, query = shown(secret)[place]
    before = len(provider.got)
    response = ask(gateway, path, headers, query)
    assert_unseen(secret, provider.got[before:])
    if response.status_code != 200:
        assert response.status_code in (401, 403)
        assert secret not in response.text


def test_a_gateway_behind_this_one_gets_its_own_key() -> None:
    """As the key of a provider in settings, or in its own header."""
    secret = make_secret()
    with upstream(_answer) as up:
        rows = {
            "key": Provider("key", up.url, ("openai_chat",), api_keys=(secret,)),
            "header": Provider("header", up.url, ("openai_chat",), headers={"authorization": f"Bearer {secret}"}),
        }
        with running({}, Settings(providers=rows)) as gateway:
            for name in rows:
                url = f"{gateway.url}/{name}/v1/chat/completions"
                assert httpx.post(url, json=BODY).status_code == 200
                assert up.got[-1].header("authorization") == f"Bearer {secret}"


def test_what_a_provider_says_in_our_name_does_not_come_down(gateway: Managed) -> None:
    """Neither reports about the gateway's work nor about the admin."""
    response = ask(gateway, PATHS[0], {}, "")
    assert "forged" not in str(response.headers)
    assert "set-cookie" not in response.headers
    assert response.headers["x-thoughtline-replay"].startswith("restored=0")
