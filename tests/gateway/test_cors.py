"""Which pages of other sites may read what the gateway answers."""

from __future__ import annotations

import httpx
import pytest

from tests.gateway.gateways import Running, running
from tests.gateway.managed_gateways import TOKEN
from tests.gateway.upstreams import Answer, Got, Out, upstream
from thoughtline.gateway.cors import MAX_AGE_SECONDS
from thoughtline.settings import ServerSettings, Settings

APP, OTHER = "https://app.example", "https://other.example"
LISTED = Settings(server=ServerSettings(cors=(APP, "app://notes"), admin_token=TOKEN))
BODY = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "hello"}]}
CHAT = "/deepseek/v1/chat/completions"
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,x-stainless-os"}


async def well(got: Got, out: Out) -> None:
    """Answer like a provider that allows every page."""
    await out.whole(200, b'{"choices":[]}', ("access-control-allow-origin", "*"), ("vary", "accept-encoding"))


def ask(gateway: Running, origin: str | None, path: str = CHAT) -> httpx.Response:
    headers = {"authorization": "Bearer a-key", **({"origin": origin} if origin else {})}
    return httpx.post(gateway.url + path, json=BODY, headers=headers)


def preflight(gateway: Running, origin: str, path: str = CHAT) -> httpx.Response:
    return httpx.options(gateway.url + path, headers={"origin": origin, **PREFLIGHT})


def told(response: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name.startswith("access-control-")}


@pytest.mark.parametrize("origin", [APP, "app://notes"])
def test_a_listed_page_may_ask_and_read(origin: str) -> None:
    """A preflight is answered without a key, and no provider is asked; the answer can be read, with all its headers."""
    with upstream(well) as up, running({"deepseek": up.url}, LISTED) as gateway:
        before = preflight(gateway, origin)
        assert (before.status_code, before.content, len(up.got)) == (204, b"", 0)
        assert told(before) == {
            "access-control-allow-origin": origin,
            "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
            "access-control-allow-headers": PREFLIGHT["access-control-request-headers"],
            "access-control-max-age": str(MAX_AGE_SECONDS),
        }
        assert "origin" in before.headers["vary"].lower()
        answer = ask(gateway, origin)
        assert answer.status_code == 200
        assert told(answer) == {"access-control-allow-origin": origin, "access-control-expose-headers": "*"}
        assert [one.lower() for one in answer.headers.get_list("vary")] == ["accept-encoding", "origin"]


NOT_LISTED = [OTHER, "http://app.example", f"{APP}:8443", f"{APP}.evil.example", "null", "https://APP.example", "*", ""]


@pytest.mark.parametrize("origin", NOT_LISTED)
def test_any_other_page_may_not(origin: str) -> None:
    """By its whole origin, byte by byte; what a provider allows is not allowed here."""
    with upstream(well) as up, running({"deepseek": up.url}, LISTED) as gateway:
        before = preflight(gateway, origin)
        assert (before.status_code, told(before), len(up.got)) == (403, {}, 0)
        assert before.json()["error"]["code"] == "unknown_origin"
        answer = ask(gateway, origin)
        assert (told(answer), "Origin" in answer.headers.get_list("vary")) == ({}, True)


def test_off_unless_something_is_listed() -> None:
    """No page may read, whatever the provider allows; other answers are unchanged."""
    with upstream(well) as up, running({"deepseek": up.url}) as gateway:
        assert preflight(gateway, APP).status_code == 403
        for origin in (APP, None):
            answer = ask(gateway, origin)
            assert (answer.status_code, told(answer), answer.headers["vary"]) == (200, {}, "accept-encoding")


def test_errors_can_be_read_too() -> None:
    """Otherwise a page could only report that something failed."""
    with running({}, LISTED) as gateway:
        answer = ask(gateway, APP, "/nobody/v1/chat/completions")
        assert answer.status_code >= 400
        assert answer.headers["access-control-allow-origin"] == APP


@pytest.mark.parametrize("path", ["/api/requests", "/api/events", "/metrics", "/healthz", "/"])
def test_management_is_no_pages_business(path: str) -> None:
    """Whatever is listed."""
    headers = {"origin": APP, "authorization": f"Bearer {TOKEN}"}
    with running({}, LISTED) as gateway:
        before = preflight(gateway, APP, path)
        with httpx.stream("GET", gateway.url + path, headers=headers) as answer:
            assert (told(before), told(answer)) == ({}, {})


def test_a_view_of_the_dashboard_is_no_pages_business() -> None:
    """Views have names that could be a provider's: a browser gets a page that no other page can read."""
    with running({}, LISTED) as gateway:
        answer = httpx.get(f"{gateway.url}/live", headers={"origin": APP, "accept": "text/html"})
        assert (answer.headers["content-type"].partition(";")[0], told(answer)) == ("text/html", {})


def test_an_options_request_that_is_no_preflight_is_passed_on() -> None:
    """Like any other request."""
    with upstream(well) as up, running({"deepseek": up.url}, LISTED) as gateway:
        assert httpx.options(f"{gateway.url}/deepseek/v1/files", headers={"origin": APP}).status_code == 200
        assert [got.method for got in up.got] == ["OPTIONS"]


def test_a_stream_can_be_read() -> None:
    """Piece by piece, like any other."""

    async def streamed(got: Got, out: Out) -> None:
        await out.stream()
        for number in range(3):
            await out.chunk(b'data: {"choices":[{"delta":{"content":"%d"}}]}\n\n' % number)
        await out.chunk(b"data: [DONE]\n\n")
        await out.end()

    answer: Answer = streamed
    with upstream(answer) as up, running({"deepseek": up.url}, LISTED) as gateway:
        headers = {"origin": APP, "authorization": "Bearer a-key"}
        response = httpx.post(gateway.url + CHAT, json={**BODY, "stream": True}, headers=headers)
        assert response.headers["access-control-allow-origin"] == APP
        assert response.text.count("data: ") == 4


def test_names_that_are_none_are_not_allowed() -> None:
    """The requested names are returned only if they can be a list of headers."""
    with running({}, LISTED) as gateway:
        headers = {"origin": APP, "access-control-request-method": "POST", "access-control-request-headers": "a;b"}
        before = httpx.options(gateway.url + CHAT, headers=headers)
        assert before.status_code == 204
        assert "access-control-allow-headers" not in before.headers
