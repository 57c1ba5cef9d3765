"""The hosts that a gateway answers for, and the requests that count as local."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from tests.gateway.managed_gateways import TOKEN, Managed, managed
from tests.gateway.upstreams import Got, Out, upstream
from thoughtline.destinations.catalogue import Provider
from thoughtline.gateway.access import is_direct, is_website
from thoughtline.settings import ServerSettings, Settings

CHAT = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
PATHS = [
    ("POST", "/plain/v1/chat/completions"),
    ("GET", "/plain/files/1"),
    ("GET", "/v1/models"),
    ("GET", "/api/settings"),
    ("DELETE", "/api/contracts"),
    ("GET", "/metrics"),
    ("GET", "/"),
    ("GET", "/api/hello"),
    ("GET", "/login?token=x"),
    ("GET", "/api/cache/unknown"),
]


async def _answer(got: Got, out: Out) -> None:
    await out.whole(200, b'{"choices":[]}')


@pytest.fixture(scope="module")
def gateway() -> Iterator[Managed]:
    with upstream(_answer) as plain:
        settings = Settings(
            server=ServerSettings(hosts=("gateway.example", "2001:db8::1")),
            providers={"plain": Provider("plain", plain.url, ("openai_chat",))},
        )
        with managed(settings, simulators={}) as one:
            yield one


def raw(gateway: Managed, method: str, target: str, *headers: str, version: str = "1.1", body: bytes = b"") -> int:
    """The status of a hand-written request."""
    host, port = gateway.url.removeprefix("http://").split(":")
    head = "\r\n".join([f"{method} {target} HTTP/{version}", *headers, f"content-length: {len(body)}", "", ""])
    with socket.create_connection((host, int(port)), 30) as connection:
        connection.sendall(head.encode() + body)
        return int(connection.makefile("rb").readline().split()[1])


@pytest.mark.parametrize(("method", "path"), PATHS)
@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8642", "0.0.0.0"])
def test_no_other_name_is_answered_to(gateway: Managed, method: str, path: str, host: str) -> None:
    """A page whose name was pointed at this machine gets 421 everywhere, even with the admin's token."""
    assert raw(gateway, method, path, f"host: {host}", f"authorization: Bearer {TOKEN}", body=CHAT) == 421


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LocalHost:1",
        "localhost.",
        "127.0.0.1:8642",
        "[::1]",
        "[0:0:0:0:0:0:0:1]:99",
        "gateway.example",
        "Gateway.Example.:443",
        "[2001:DB8:0::1]",
    ],
)
def test_names_of_this_machine_and_of_the_settings_are(gateway: Managed, host: str) -> None:
    """In any case and spelling, with any port, which a proxy or a container may change."""
    assert raw(gateway, "GET", "/api/hello", f"host: {host}") == 200


@pytest.mark.parametrize(
    "host",
    ["127.0.0.2", "[::ffff:127.0.0.1]", "127.1", "2130706433", "sub.gateway.example", "localhost..", "[fe80::1]"],
)
def test_what_only_looks_like_it_is_not(gateway: Managed, host: str) -> None:
    """Browsers write these addresses in one way, and that one is known."""
    assert raw(gateway, "GET", "/api/hello", f"host: {host}") in (400, 421)


@pytest.mark.parametrize(("method", "path"), PATHS)
@pytest.mark.parametrize(
    "hosts",
    [
        (),
        ("host: localhost", "host: localhost"),
        ("host: localhost", "Host: evil.example"),
        ("host:",),
        ("host: localhost, evil.example",),
        ("host: me@localhost",),
        ("host: [::1",),
        ("host: localhost:80:80",),
    ],
    ids=["none", "twice", "two", "empty", "list", "user", "bracket", "ports"],
)
def test_a_request_names_one_host(gateway: Managed, method: str, path: str, hosts: tuple[str, ...]) -> None:
    """400: a server in front may have read the other one."""
    assert raw(gateway, method, path, *hosts, body=CHAT) == 400


def test_a_host_is_needed_in_old_http_too(gateway: Managed) -> None:
    """HTTP/1.0 did not require it, but every client sends it."""
    assert raw(gateway, "GET", "/api/hello", version="1.0") == 400
    assert raw(gateway, "GET", "/api/hello", "host: localhost", version="1.0") == 200


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("http://evil.example/api/hello", 421),
        ("http://localhost:8642/api/hello", 200),
        ("http://[::1]/api/hello", 200),
        ("http://me@localhost/api/hello", 400),
    ],
)
def test_a_target_that_names_a_host_means_it(gateway: Managed, target: str, status: int) -> None:
    """RFC 9112, 3.2.2: it takes precedence over the header."""
    assert raw(gateway, "GET", target, "host: localhost") == status


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_are_answered_by_any_name(gateway: Managed, path: str) -> None:
    """Orchestrators use unpredictable addresses, some in HTTP/1.0 without a host."""
    assert raw(gateway, "GET", path, "host: 10.1.2.3:8642") == 200
    assert raw(gateway, "GET", path, version="1.0") == 200
    assert raw(gateway, "GET", path) == 400
    assert raw(gateway, "GET", path, "host: a", "host: b") == 400


@pytest.mark.parametrize(("hosts", "status"), [((), 200), (("gateway.example",), 421)], ids=["unset", "set"])
def test_on_the_network_names_are_checked_where_they_are_listed(hosts: tuple[str, ...], status: int) -> None:
    """The name of a container is only known if it is configured."""
    server = ServerSettings(host="0.0.0.0", hosts=hosts)
    with managed(Settings(server=server), simulators={}) as one:
        assert raw(one, "GET", "/api/hello", "host: other.example") == status
        for name in ("gateway.example", "localhost:8642", "127.0.0.1"):
            assert raw(one, "GET", "/api/hello", f"host: {name}") == 200


@pytest.mark.parametrize(
    "name", ["authorization", "x-api-key", "x-goog-api-key", "api-key", "origin", "sec-fetch-site"]
)
@pytest.mark.parametrize(("method", "path"), PATHS)
def test_a_credential_is_shown_once(gateway: Managed, method: str, path: str, name: str) -> None:
    """The gateway might use one for the caller and the provider the other."""
    twice = (f"{name}: Bearer one", f"{name.title()}: Bearer two")
    assert raw(gateway, method, path, "host: localhost", *twice, body=CHAT) == 400


@pytest.mark.parametrize("query", ["key=a&key=b", "key=a&k%65y=b", "key=a&key=a"])
def test_a_key_in_the_query_stands_there_once(gateway: Managed, query: str) -> None:
    """In any spelling of its name."""
    assert raw(gateway, "POST", f"/plain/v1/chat/completions?{query}", "host: localhost", body=CHAT) == 400


def test_a_refusal_is_in_the_clients_words_and_in_the_log(gateway: Managed) -> None:
    """So that people find out why the gateway does not answer under their name for it."""
    response = gateway.anyone.post("/plain/v1/messages", content=CHAT, headers={"host": "my-machine"})
    assert response.json()["type"] == "error"
    assert "my-machine" in response.json()["error"]["message"]
    assert "hosts" in response.json()["error"]["message"]
    assert gateway.gateway.lines[-1]["code"] == "unknown_host"


SITES = [
    ({}, False),
    ({b"sec-fetch-site": b"none"}, False),
    ({b"sec-fetch-site": b"same-origin"}, False),
    ({b"sec-fetch-site": b"cross-site"}, True),
    ({b"sec-fetch-site": b"same-site"}, True),
    ({b"sec-fetch-site": b"Cross-Site"}, True),
    ({b"origin": b"http://localhost:3000", b"sec-fetch-site": b"same-site"}, True),
    ({b"origin": b"http://localhost:3000"}, False),
    ({b"origin": b"https://evil.example", b"sec-fetch-site": b"same-origin"}, True),
    ({b"origin": b"vscode-webview://1a2b", b"sec-fetch-site": b"cross-site"}, False),
    ({b"origin": b"null", b"sec-fetch-site": b"cross-site"}, True),
    ({b"origin": b"http://[bad"}, True),
]


@pytest.mark.parametrize(("headers", "expected"), SITES)
def test_web_pages_are_told_by_what_browsers_say(headers: dict[bytes, bytes], expected: bool) -> None:
    """`Sec-Fetch-Site` if there is no origin, as for a form or an image; editors have their own schemes."""
    assert is_website(headers) is expected


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_web_pages_get_no_figures_without_the_token(gateway: Managed, site: str) -> None:
    """Programs on this machine may read them, a page in a browser may not."""
    assert gateway.anyone.get("/metrics", headers={"sec-fetch-site": site}).status_code == 401
    assert gateway.admin.get("/metrics", headers={"sec-fetch-site": site}).status_code == 200


PROXIED = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "X-Forwarded-Server", "forwarded", "via"]
PROXIED += ["x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip", "x-envoy-external-address"]


@pytest.mark.parametrize("name", PROXIED)
def test_figures_behind_a_reverse_proxy_need_the_token(gateway: Managed, name: str) -> None:
    """A proxy on this machine forwards for others; settings can allow that."""
    headers = {name: "10.0.0.1"}
    assert gateway.anyone.get("/metrics", headers=headers).status_code == 401
    assert gateway.admin.get("/metrics", headers=headers).status_code == 200


def test_nginx_is_told_by_its_old_http(gateway: Managed) -> None:
    """It adds no header by default."""
    assert raw(gateway, "GET", "/metrics", "host: localhost", version="1.0") == 401
    assert raw(gateway, "GET", "/metrics", "host: localhost") == 200


def test_figures_may_be_open(gateway: Managed) -> None:
    """`open_metrics` is for a Prometheus that has no token."""
    state = gateway.gateway.state
    server = replace(state.settings.server, open_metrics=True)
    gateway.gateway.app.state = state._replace(settings=replace(state.settings, server=server))
    try:
        headers = {"x-forwarded-for": "10.0.0.1", "sec-fetch-site": "cross-site"}
        assert gateway.anyone.get("/metrics", headers=headers).status_code == 200
        assert gateway.anyone.get("/api/settings", headers=headers).status_code == 401
    finally:
        gateway.gateway.app.state = state


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("", False),
        ("10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("fe80::1%eth0", False),
        ("nonsense", False),
    ],
)
def test_whose_address_is_of_this_machine(peer: str, expected: bool) -> None:
    """Also if IPv4 comes in through an IPv6 socket."""
    assert is_direct({}, peer) is expected
