"""Requests to Bedrock: signed by the client, signed here, or with a bearer key; InvokeModel and Converse."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from msgspec.structs import replace

from tests.clients.upstreams import Upstream, start
from tests.gateway.gateways import Running, moved, running
from tests.sim.faces import HTTP, WIRES
from tests.sim.served_simulators import listening
from thoughtline.destinations.credentials import credentials_of, signed_tenant
from thoughtline.gateway.signing import region_of
from thoughtline.settings import Settings
from thoughtline.stores import Filter
from thoughtline_sim.rules.bedrock import KEY_ID, SECRET

MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
OWN_KEY = f"{KEY_ID}:{SECRET}"
WEATHER = {"weather": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
BODY: dict[str, Any] = {
    "anthropic_version": "bedrock-2023-05-31",
    "anthropic_beta": ["interleaved-thinking-2025-05-14"],
    "max_tokens": 8000,
    "thinking": {"type": "enabled", "budget_tokens": 2048},
    "tools": WIRES["bedrock_invoke"].tools(WEATHER),
    "messages": [{"role": "user", "content": "weather?"}],
}


@pytest.fixture
def upstream() -> Upstream:
    return start("bedrock")


def gateway_with(upstream: Upstream, **how: Any) -> Any:
    provider = replace(moved("bedrock", upstream.url), **how)
    return running({}, Settings(providers={"bedrock": provider}, default_provider="bedrock"))


@pytest.fixture
def passing(upstream: Upstream) -> Iterator[Running]:
    """A gateway without credentials of its own."""
    with gateway_with(upstream) as gateway:
        yield gateway


@pytest.fixture
def signing(upstream: Upstream) -> Iterator[Running]:
    with gateway_with(upstream, auth="aws", api_keys=(OWN_KEY,)) as gateway:
        yield gateway


def signed(url: str, body: bytes, *, host: str, secret: str = SECRET) -> httpx.Request:
    """As an SDK signs for a host whose calls are redirected."""
    headers = {"content-type": "application/json", "accept-encoding": "gzip, deflate, zstd, exi", "host": host}
    request = AWSRequest("POST", url, data=body, headers=headers)
    SigV4Auth(Credentials(KEY_ID, secret), "bedrock", "us-east-1").add_auth(request)
    return httpx.Request("POST", url, content=body, headers=dict(request.headers.items()))


def without_thinking(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [block for block in answer["content"] if block["type"] != "thinking"]


def second(answer: dict[str, Any]) -> dict[str, Any]:
    """The next request of a client that keeps only visible parts."""
    wire = WIRES["bedrock_invoke"]
    said = {"role": "assistant", "content": without_thinking(answer)}
    return {**BODY, "messages": [*BODY["messages"], said, *wire.results(wire.calls(answer))]}


def path(method: str = "invoke") -> str:
    return f"/model/{MODEL.replace(':', '%3A')}/{method}"


def test_a_signed_request_is_sent_unchanged_and_captured(passing: Running, upstream: Upstream) -> None:
    """AWS accepts its signature: path, headers and body are the signed ones. Lost reasoning is not restored, since that
    would break the signature, and the answer says so."""
    host = urlsplit(upstream.url).netloc
    url = passing.url + path()
    first = HTTP.send(signed(url, json.dumps(BODY).encode(), host=host))
    assert first.status_code == 200, first.text
    assert "x-thoughtline-findings" not in first.headers

    again = HTTP.send(signed(url, json.dumps(second(first.json())).encode(), host=host))
    assert again.status_code == 400
    assert "thinking" in again.text
    assert again.headers["x-thoughtline-findings"] == "signed-request=1"
    assert again.headers["x-thoughtline-replay"].startswith("restored=0")
    assert len(upstream.watched.seen) == 2  # nor is it healed
    kept = passing.wait_for(passing.state.store.list_entries(Filter())).entries
    assert [entry.record.provenance.tenant[:2] for entry in kept] == ["s-"]


def test_a_signature_for_the_gateway_is_refused_with_a_reason(passing: Running) -> None:
    """A client that is configured for the gateway's address signs for it, which AWS does not accept."""
    url = f"{passing.url}/bedrock{path()}"
    answer = HTTP.send(signed(url, json.dumps(BODY).encode(), host=urlsplit(passing.url).netloc))
    assert answer.status_code == 403
    assert answer.headers["x-thoughtline-findings"] == "signed-elsewhere=1"


@pytest.mark.parametrize("is_signed", [True, False])
def test_with_credentials_of_its_own_the_gateway_signs_and_restores(
    signing: Running, upstream: Upstream, is_signed: bool
) -> None:
    """Whether or not the client signed, with any key: its signature and related headers are not sent."""
    url = f"{signing.url}/bedrock{path()}"
    host = urlsplit(signing.url).netloc

    def ask(body: dict[str, Any]) -> httpx.Response:
        raw = json.dumps(body).encode()
        request = signed(url, raw, host=host, secret="somebody-else's") if is_signed else None
        return HTTP.send(request or httpx.Request("POST", url, content=raw))

    first = ask(BODY)
    assert first.status_code == 200, first.text
    again = ask(second(first.json()))
    assert again.status_code == 200, again.text
    assert again.headers["x-thoughtline-replay"].startswith("restored=1")
    assert upstream.verdicts() == [[], ["whole"]]
    log = json.dumps(signing.log)
    assert SECRET not in log
    assert KEY_ID not in log


def test_converse_is_signed_too(signing: Running) -> None:
    body = {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}
    answer = HTTP.post(f"{signing.url}/bedrock{path('converse')}", json=body)
    assert answer.status_code == 200, answer.text


def test_chat_is_translated_and_signed(signing: Running) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
    answer = HTTP.post(f"{signing.url}/bedrock/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("key", ["chain", "profile:work"])
def test_credentials_are_found_where_aws_looks(
    upstream: Upstream, key: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In the environment, or in a profile; and they appear in no log, including botocore's."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    with gateway_with(upstream, auth="aws", api_keys=(key,)) as gateway:
        url = f"{gateway.url}/bedrock{path()}"
        without = HTTP.post(url, json=BODY)
        assert (without.status_code, without.json()["reason"]) == (502, "not_signed")
        if key == "chain":
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        else:
            lines = f"[work]\naws_access_key_id = {KEY_ID}\naws_secret_access_key = {SECRET}\n"
            (tmp_path / "credentials").write_text(lines)
        with caplog.at_level("DEBUG"):
            answer = HTTP.post(url, json=BODY)
        assert answer.status_code == 200, answer.text
    assert SECRET not in caplog.text
    assert "Signature:" not in caplog.text


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("bedrock-runtime.eu-central-1.amazonaws.com", "eu-central-1"),
        ("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("vpce-0a1.bedrock-runtime.us-west-2.vpce.amazonaws.com", "us-west-2"),
        ("127.0.0.1:8080", "us-east-1"),
    ],
)
def test_the_region_is_that_of_the_host(host: str, region: str) -> None:
    assert region_of(f"https://{host}/model/m/invoke") == region


def test_a_claimed_key_id_gives_no_access_to_another_memory(signing: Running) -> None:
    """An access key's id is no secret: sent as another kind of credential it names another tenant."""
    url = f"{signing.url}/bedrock{path()}"
    raw = json.dumps(BODY).encode()
    first = HTTP.send(signed(url, raw, host=urlsplit(signing.url).netloc))
    later = json.dumps(second(first.json())).encode()
    for headers in ({"authorization": f"Bearer {KEY_ID}"}, {"x-api-key": KEY_ID}, {}):
        answer = HTTP.post(url, content=later, headers=headers)
        assert answer.headers["x-thoughtline-replay"].startswith("restored=0"), headers


def test_a_signer_is_known_by_key_and_address() -> None:
    """The same key id from another address is another signer; each signature is different."""
    first, second = (
        {b"authorization": f"AWS4-HMAC-SHA256 Credential={KEY_ID}/2026/r/bedrock/aws4_request, Signature={n}".encode()}
        for n in "ab"
    )
    assert credentials_of(first, "") == credentials_of(second, "") == [KEY_ID]
    assert signed_tenant([KEY_ID], "127.0.0.1") == signed_tenant([KEY_ID], "::1")
    names = {signed_tenant([KEY_ID], "192.0.2.1"), signed_tenant([KEY_ID], "192.0.2.2"), signed_tenant([KEY_ID], "::1")}
    assert len(names) == 3
    assert signed_tenant([KEY_ID, "token"], "::1") not in names


def noted(upstream: Upstream, seen: list[dict[bytes, bytes]]) -> str:
    """The address of a simulator whose request headers are kept."""

    async def note(scope: Any, receive: Any, send: Any) -> None:
        seen.append(dict(scope.get("headers", ())))
        await upstream.watched(scope, receive, send)

    return listening(note)


def test_a_signed_request_to_any_other_address_keeps_its_signature(upstream: Upstream) -> None:
    seen: list[dict[bytes, bytes]] = []
    with running({}, Settings(providers={"bedrock": moved("bedrock", noted(upstream, seen))})) as gateway:
        request = signed(f"{gateway.url}/bedrock{path('count-tokens')}", b"{}", host="127.0.0.1")
        HTTP.send(request)
    assert seen[-1][b"authorization"].decode() == request.headers["authorization"]
    assert seen[-1][b"accept-encoding"] == b"gzip, deflate, zstd, exi"


def test_a_signed_body_that_is_packed_stays_packed(upstream: Upstream) -> None:
    """Its signature covers these bytes."""
    got, seen = bytearray(), list[dict[bytes, bytes]]()

    async def note(scope: Any, receive: Any, send: Any) -> None:
        async def kept() -> Any:
            message = await receive()
            got.extend(message.get("body", b""))
            return message

        seen.append(dict(scope.get("headers", ())))
        await upstream.watched(scope, kept, send)

    packed = gzip.compress(json.dumps(BODY).encode())
    with running({}, Settings(providers={"bedrock": moved("bedrock", listening(note))})) as gateway:
        request = signed(f"{gateway.url}/bedrock{path()}", packed, host="127.0.0.1")
        request.headers["content-encoding"] = "gzip"
        HTTP.send(request)
    assert bytes(got) == packed
    assert seen[-1][b"content-encoding"] == b"gzip"


def test_a_signature_is_no_other_providers_business() -> None:
    """Nor is a session token of AWS."""
    seen: list[dict[bytes, bytes]] = []
    providers = {"deepseek": moved("deepseek", noted(start("deepseek"), seen))}
    with running({}, Settings(providers=providers)) as gateway:
        url = f"{gateway.url}/deepseek{path()}"
        request = signed(url, json.dumps({**BODY, "thinking": {"type": "disabled"}}).encode(), host="127.0.0.1")
        request.headers["x-amz-security-token"] = "a-token"
        HTTP.send(request)
    assert seen
    assert not {b"authorization", b"x-amz-security-token"} & set(seen[-1])


def test_bodies_of_other_makers_pass_unread(passing: Running, upstream: Upstream) -> None:
    """InvokeModel wraps each maker's own format; a body without `anthropic_version` is sent byte for byte."""
    body = b'{"messages": [{"role":"user","content":[{"text":"hi"}]}],  "inferenceConfig": {}}'
    answer = HTTP.post(f"{passing.url}/bedrock/model/amazon.nova-pro-v1:0/invoke", content=body)
    assert answer.status_code == 400
    assert "anthropic_version" in answer.json()["message"]
    assert "x-thoughtline-findings" not in answer.headers
