"""Which headers are forwarded, in each direction."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.destinations.credentials import credential_of
from thoughtline.gateway.headers import request_headers, response_headers, without_credentials

DEEPSEEK = PROVIDERS["deepseek"]

CREDENTIALS = [
    ({b"authorization": b"Bearer abc"}, "", "abc"),
    ({b"authorization": b"bearer abc"}, "", "abc"),
    ({b"authorization": b"Basic abc"}, "", "Basic abc"),
    ({b"x-api-key": b"abc"}, "", "abc"),
    ({b"x-goog-api-key": b"abc"}, "", "abc"),
    ({b"api-key": b"abc"}, "", "abc"),
    ({}, "alt=sse&key=abc", "abc"),
    ({b"authorization": b"Bearer one", b"x-api-key": b"other"}, "key=third", "one"),
    ({}, "monkey=abc", ""),
    ({}, "k%65y=a%62c", "abc"),
    ({}, "alt=sse", ""),
]

UP = [
    (b"host", b"gateway", False),
    (b"content-length", b"12", False),
    (b"content-encoding", b"zstd", False),
    (b"connection", b"keep-alive, x-hop", False),
    (b"x-hop", b"1", False),
    (b"te", b"trailers", False),
    (b"upgrade", b"h2c", False),
    (b"proxy-authorization", b"secret", False),
    (b"x-thoughtline-session", b"s", False),
    (b"x-forwarded-for", b"10.0.0.1", False),
    (b"anthropic-beta", b"a,b", True),
    (b"openai-beta", b"responses=v1", True),
    (b"user-agent", b"client/1", True),
    (b"content-type", b"application/json", True),
    (b"authorization", b"Bearer abc", True),
    (b"x-session-id", b"s", True),
]


@pytest.mark.parametrize(("headers", "query", "expected"), CREDENTIALS)
def test_credentials_wherever_they_stand(headers: dict[bytes, bytes], query: str, expected: str) -> None:
    """Four headers and a parameter, as the SDKs send them."""
    assert credential_of(headers, query) == expected


def test_what_goes_up() -> None:
    """The client's own headers, without those of its connection and without ours."""
    sent = dict(request_headers([(name, value) for name, value, _ in UP], DEEPSEEK, ""))
    sent.pop("accept-encoding")
    assert sent == {name.decode(): value.decode() for name, value, goes in UP if goes}


@pytest.mark.parametrize(
    ("auth", "expected"),
    [("bearer", ("authorization", "Bearer ours")), ("x-api-key", ("x-api-key", "ours")), ("query", None)],
)
def test_a_configured_key_replaces_the_callers(auth: str, expected: tuple[str, str] | None) -> None:
    """The caller's credential is not sent, in whichever header it came."""
    provider = replace(DEEPSEEK, auth=auth)
    theirs = [(b"authorization", b"Bearer theirs"), (b"x-api-key", b"theirs"), (b"x-goog-api-key", b"theirs")]
    sent = request_headers(theirs, provider, "ours")
    assert "theirs" not in str(sent)
    assert [pair for pair in sent if pair[0] != "accept-encoding"] == ([expected] if expected else [])


def test_headers_of_the_settings_win() -> None:
    """A provider's own headers replace the client's."""
    provider = replace(DEEPSEEK, headers={"User-Agent": "mine"})
    sent = request_headers([(b"user-agent", b"theirs")], provider, "")
    assert [value for name, value in sent if name.lower() == "user-agent"] == ["mine"]


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        (b"gzip, deflate, br, zstd", "gzip, deflate, br, zstd"),
        (b"gzip;q=0.5, compress", "gzip;q=0.5"),
        (b"*", "identity"),
    ],
)
def test_only_encodings_that_can_be_read_are_asked_for(asked: bytes, sent: str) -> None:
    """A response in an unsupported encoding could not be read."""
    assert dict(request_headers([(b"accept-encoding", asked)], DEEPSEEK, ""))["accept-encoding"] == sent


def test_what_comes_down() -> None:
    """Everything except the headers of the connection; repeated ones stay repeated."""
    got = response_headers(
        [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Transfer-Encoding", "chunked"), ("Content-Type", "text/plain")]
    )
    assert got == [(b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"), (b"content-type", b"text/plain")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Thoughtline-Replay", "restored=99"),
        ("x-thoughtline-anything", "x"),
        ("Set-Cookie", "thoughtline_admin=x; Path=/"),
        ("set-cookie", "  thoughtline_admin = x"),
        ("set-cookie", "=thoughtline_admin=x"),
        ("set-cookie", "thoughtline_admin"),
        ("set-cookie", "Thoughtline_Admin=x"),
        ("Alt-Svc", 'h3=":443"'),
        ("Clear-Site-Data", '"cookies"'),
        ("Strict-Transport-Security", "max-age=31536000; includeSubDomains"),
        ("Report-To", '{"endpoints": []}'),
    ],
)
def test_a_provider_does_not_speak_for_us(name: str, value: str) -> None:
    """Neither by a header of ours, nor by a cookie like ours, nor by a header that a browser would apply to our whole
    origin."""
    assert response_headers([(name, value), ("set-cookie", "theirs=1"), ("content-type", "text/plain")]) == [
        (b"set-cookie", b"theirs=1"),
        (b"content-type", b"text/plain"),
    ]


def test_a_key_of_ours_is_nobody_elses_business() -> None:
    """A gateway's client key is never sent."""
    headers = [(b"authorization", b"Bearer tl-1"), (b"x-api-key", b"tl-1"), (b"accept", b"*/*")]
    assert without_credentials(headers) == [(b"accept", b"*/*")]
    odd = [(b"x-odd", b"Key tl-1"), (b"accept", b"*/*")]
    assert without_credentials(odd, ["tl-1"]) == [(b"accept", b"*/*")]


def test_a_header_that_stands_once_is_sent_once() -> None:
    """Of several the last, by which the caller was identified; lists keep all their lines."""
    received = [
        (b"user-agent", b"a"),
        (b"authorization", b"Bearer one"),
        (b"user-agent", b"b"),
        (b"anthropic-beta", b"x"),
        (b"authorization", b"Bearer two"),
        (b"anthropic-beta", b"y"),
    ]
    up = request_headers(received, DEEPSEEK, "")
    assert [pair for pair in up if pair[0] != "accept-encoding"] == [
        ("user-agent", "b"),
        ("authorization", "Bearer two"),
        ("anthropic-beta", "x"),
        ("anthropic-beta", "y"),
    ]
