"""Who may use the admin API, and what everyone else gets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.gateway.managed_gateways import CACHE, TOKEN, Managed, managed
from thoughtline.gateway.client_keys import ClientKeys
from thoughtline.gateway.guard import PAUSE_SECONDS, Guard
from thoughtline.gateway.headers import ADMIN_COOKIE as COOKIE

ADDRESSES = [
    ("GET", CACHE),
    ("DELETE", CACHE),
    ("GET", "/api/sessions"),
    ("GET", "/api/sessions/x"),
    ("GET", "/api/settings"),
    ("PATCH", "/api/settings"),
    ("GET", "/api/contracts"),
    ("DELETE", "/api/contracts"),
    ("POST", "/api/audit"),
    ("GET", "/api/events"),
    ("GET", "/api/openapi.json"),
    ("GET", "/api/cache/nothing"),
]


@pytest.fixture(scope="module")
def gateway() -> Iterator[Managed]:
    with managed(takes_keys=True) as one:
        yield one


@pytest.fixture(scope="module")
def client_key(gateway: Managed) -> str:
    running = gateway.gateway
    keys = running.state.keys
    assert isinstance(keys, ClientKeys)
    return asyncio.run_coroutine_threadsafe(keys.add("a client"), running.loop).result(10).secret


@pytest.mark.parametrize(("method", "path"), ADDRESSES)
@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": "Bearer wrong"}, {"cookie": f"{COOKIE}=1.2"}, {"authorization": f"Basic {TOKEN}"}],
    ids=["none", "wrong", "cookie", "scheme"],
)
def test_without_the_token_nothing_is_revealed(
    gateway: Managed, method: str, path: str, headers: dict[str, str]
) -> None:
    """Missing, wrong or malformed: the same 401, at every address and below every prefix of ours."""
    response = httpx.request(method, gateway.url + path, headers=headers)
    assert response.status_code == 401
    assert response.json() == {"error": {"code": "unauthorized", "message": "Unauthorized.", "remedy": ""}}
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(("method", "path"), ADDRESSES)
@pytest.mark.parametrize("header", ["authorization", "x-api-key"])
def test_a_client_key_can_not_manage(gateway: Managed, client_key: str, method: str, path: str, header: str) -> None:
    """A key that is valid for requests gets an error that says it is not for this."""
    value = f"Bearer {client_key}" if header == "authorization" else client_key
    response = httpx.request(method, gateway.url + path, headers={header: value})
    assert (response.status_code, response.json()["error"]["code"]) == (403, "not_admin")


@pytest.mark.parametrize("token", [None, ""])
def test_without_a_token_of_its_own_the_gateway_has_no_admin(token: str | None) -> None:
    """Without a configured token, no caller gets in, not even without one."""
    with managed(token=token) as gateway:
        for told in ("Bearer None", "Bearer", "None", TOKEN):
            assert httpx.get(gateway.url + CACHE, headers={"authorization": told}).status_code == 401
        assert httpx.get(gateway.url + "/login", params={"token": ""}).status_code == 401


@pytest.mark.parametrize("way", ["code", "token", "form"])
def test_a_browser_becomes_the_admins(gateway: Managed, way: str) -> None:
    """By the banner's link, the token in a link, or the form: a cookie that scripts can't read and sites can't use."""
    link = gateway.link()
    with httpx.Client(base_url=gateway.url) as browser:
        if way == "form":
            response = browser.post("/login", data={"token": TOKEN}, headers={"sec-fetch-site": "same-origin"})
        else:
            response = browser.get(link if way == "code" else f"/login?token={TOKEN}")
        assert (response.status_code, response.headers["location"]) == (303, "/")
        cookie = response.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
        assert TOKEN not in cookie
        assert browser.get(CACHE).status_code == 200


@pytest.mark.parametrize("way", ["code", "token"])
def test_a_login_link_is_good_once(gateway: Managed, way: str) -> None:
    """A link in a browser's history or a proxy's log is useless. A preview does not use it up."""
    link = gateway.link()
    link = link if way == "code" else f"/login?token={TOKEN}"
    assert "set-cookie" not in gateway.anyone.head(link).headers
    first, second = gateway.anyone.get(link), gateway.anyone.get(link)
    gateway.anyone.cookies.clear()
    assert first.status_code == 303
    assert (second.status_code, second.json()["error"]["code"]) == (401, "link_used")
    assert "set-cookie" not in second.headers


def test_the_code_of_a_link_is_no_admin_token(gateway: Managed) -> None:
    """It sets a cookie and gives no other access."""
    code = gateway.link().partition("=")[2]
    assert gateway.anyone.get(CACHE, headers={"authorization": f"Bearer {code}"}).status_code == 401
    assert gateway.anyone.post("/login", data={"token": code}).status_code == 401


def test_workers_use_a_link_once_together(tmp_path: Path) -> None:
    """Whichever worker gets it."""
    workers = [Guard("code", tmp_path) for _ in range(3)]
    assert [worker.use_link("code") for worker in workers] == [True, False, False]
    assert [worker.use_link("other") for worker in workers] == [True, False, False]


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_web_page_can_not_log_in(gateway: Managed, site: str) -> None:
    """It could use up a link, or make a visitor's browser guess."""
    headers = {"sec-fetch-site": site}
    link = gateway.link()
    assert gateway.anyone.get(link, headers=headers).status_code == 403
    assert gateway.anyone.post("/login", data={"token": TOKEN}, headers=headers).status_code == 403
    assert gateway.anyone.get(link).status_code == 303
    gateway.anyone.cookies.clear()


def test_a_cookie_is_of_one_gateway(gateway: Managed, tmp_path: Path) -> None:
    """Another one with the same token does not accept it, nor the same one by another name; one on its store does."""
    store_url = f"sqlite:///{tmp_path}/kept.db"
    with managed(store_url=store_url) as first, managed(store_url=store_url) as replica:
        response = first.anyone.post("/login", data={"token": TOKEN}, headers={"host": "localhost:1"})
        cookie = response.cookies[COOKIE]

        def taken(by: Managed, host: str) -> int:
            return httpx.get(by.url + CACHE, headers={"host": host, "cookie": f"{COOKIE}={cookie}"}).status_code

        assert taken(first, "localhost:1") == 200
        assert taken(first, "LOCALHOST:1") == 200
        assert taken(first, "localhost:2") == 401
        assert taken(first, "127.0.0.1:1") == 401
        assert taken(gateway, "localhost:1") == 401
        first.gateway.wait_for(first.gateway.app.refresh())
        replica.gateway.wait_for(replica.gateway.app.refresh())
        cookie = first.anyone.post("/login", data={"token": TOKEN}, headers={"host": "localhost:1"}).cookies[COOKIE]
        assert taken(replica, "localhost:1") == 200


def test_wrong_tokens_are_slowed(gateway: Managed) -> None:
    """Ten are answered at once, each further one after a pause; the right one is not delayed."""
    gateway.link()
    before = len(gateway.pauses.taken)
    for number in range(13):
        gateway.anyone.get(CACHE, headers={"authorization": f"Bearer wrong-{number}"})
    assert gateway.pauses.taken[before:] == [PAUSE_SECONDS] * 3
    gateway.anyone.get("/login?token=wrong")
    gateway.anyone.post("/login", data={"token": "wrong"})
    gateway.anyone.get("/metrics", headers={"via": "1.1 front", "x-api-key": "wrong"})
    assert len(gateway.pauses.taken[before:]) == 6
    for response in (gateway.admin.get(CACHE), gateway.anyone.get(CACHE), gateway.anyone.get("/healthz")):
        assert response.status_code in (200, 401)
    assert len(gateway.pauses.taken[before:]) == 6


@pytest.mark.parametrize("token", ["wrong", "", TOKEN + "x"])
def test_a_wrong_login_link_sets_nothing(gateway: Managed, token: str) -> None:
    """It sets no cookie."""
    response = httpx.get(gateway.url + "/login", params={"token": token})
    assert response.status_code == 401
    assert "set-cookie" not in response.headers


def test_a_cookie_ends(gateway: Managed) -> None:
    """A cookie contains its expiry, and changing that makes it invalid."""
    with httpx.Client(base_url=gateway.url) as browser:
        cookie = browser.post("/login", data={"token": TOKEN}).cookies[COOKIE]
    ends, _, code = cookie.partition(".")
    later = httpx.get(gateway.url + CACHE, cookies={COOKIE: f"{int(ends) + 1}.{code}"})
    assert later.status_code == 401
    state = gateway.gateway.state
    gateway.gateway.app.state = state._replace(clock=lambda: float(ends))
    ended = httpx.get(gateway.url + CACHE, cookies={COOKIE: cookie})
    gateway.gateway.app.state = state
    assert ended.status_code == 401
    assert httpx.get(gateway.url + CACHE, cookies={COOKIE: cookie}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status", "is_page"),
    [
        ({"sec-fetch-site": "same-origin"}, 200, False),
        ({"origin": "self"}, 200, False),
        ({}, 403, False),
        ({"sec-fetch-site": "cross-site"}, 403, True),
        ({"sec-fetch-site": "same-site", "origin": "self"}, 403, True),
        ({"origin": "https://evil.example"}, 403, True),
        ({"origin": "null"}, 403, True),
        ({"origin": "http://[bad"}, 403, True),
    ],
)
def test_what_is_asked_by_cookie_comes_from_our_own_pages(
    gateway: Managed, headers: dict[str, str], status: int, is_page: bool
) -> None:
    """Another site can make a browser send a request with its cookie: that is refused, a change even without an
    origin."""
    headers = {name: gateway.url if value == "self" else value for name, value in headers.items()}
    with httpx.Client(base_url=gateway.url) as browser:
        browser.post("/login", data={"token": TOKEN})
        changed = browser.delete("/api/contracts", headers=headers)
        assert changed.status_code == status
        assert browser.get("/api/contracts", headers=headers).status_code == (403 if is_page else 200)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", CACHE, "DELETE, GET, HEAD"),
        ("PUT", "/api/settings", "GET, PATCH, HEAD"),
        ("GET", "/api/audit", "POST"),
        ("HEAD", "/api/events", "GET"),
        ("DELETE", "/healthz", "GET, HEAD"),
        ("POST", "/", "GET, HEAD"),
    ],
)
def test_a_wrong_method_names_the_right_ones(gateway: Managed, method: str, path: str, allowed: str) -> None:
    """405, with what is allowed."""
    response = gateway.admin.request(method, path)
    assert (response.status_code, response.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize("path", ["/api/cache/other", "/api/sessions/a/b", "/api/settings/x", "/api/sessions/"])
def test_nothing_is_at_other_addresses(gateway: Managed, path: str) -> None:
    """A path under our prefixes never goes to a provider."""
    response = gateway.admin.get(path)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "unknown_path")


@pytest.mark.parametrize(
    ("path", "code", "remedy"),
    [
        (f"{CACHE}?providr=x", "unknown_parameter", "Did you mean provider?"),
        (f"{CACHE}?toolcallid=x", "unknown_parameter", "Did you mean toolCallId?"),
        (f"{CACHE}?limit=many", "bad_parameter", ""),
        (f"{CACHE}?limit=1.5", "bad_parameter", ""),
        (f"{CACHE}?cursor=never-given", "bad_cursor", "Begin without one."),
        (f"{CACHE}?provider=a&provider=b", "repeated_parameter", "Give it once."),
        (f"{CACHE}?provider=%00", "bad_parameter", ""),
        (f"{CACHE}?provider=%ff", "bad_parameter", "Percent-encode it as UTF-8."),
        ("/api/settings?verbose=1", "unknown_parameter", "Known: none"),
        ("/login", "missing_parameter", "Add ?token=…"),
    ],
)
def test_what_is_wrong_with_a_query_is_named(gateway: Managed, path: str, code: str, remedy: str) -> None:
    """400 with a stable code, and the nearest name if there is one."""
    response = gateway.admin.get(path)
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["code"], error["remedy"]) == (code, remedy)


def test_a_mistyped_filter_forgets_nothing(gateway: Managed) -> None:
    """`DELETE ?providers=x` must not delete everything."""
    assert gateway.admin.delete(f"{CACHE}?providers=deepseek").status_code == 400


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/api/hello"])
def test_probes_are_open(gateway: Managed, path: str) -> None:
    """Health checks need no token; HEAD returns the same without a body."""
    assert gateway.anyone.get(path).status_code == 200
    head = gateway.anyone.head(path)
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize("path", [CACHE, "/api/settings", "/", "/metrics"])
def test_answers_are_not_kept(gateway: Managed, path: str) -> None:
    """No proxy or browser caches reasoning, or guesses its type."""
    headers = gateway.admin.get(path).headers
    assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")


def test_a_body_has_bounds_and_a_kind(gateway: Managed) -> None:
    """Too large is 413, another type 415, invalid JSON 400."""
    large = gateway.admin.patch("/api/settings", content=b" " * 70_000, headers={"content-type": "application/json"})
    kind = gateway.admin.patch("/api/settings", content=b"a=b", headers={"content-type": "text/plain"})
    broken = gateway.admin.patch("/api/settings", content=b"{", headers={"content-type": "application/json"})
    assert [one.status_code for one in (large, kind, broken)] == [413, 415, 400]
