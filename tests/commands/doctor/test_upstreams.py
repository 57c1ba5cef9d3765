"""Upstreams under the doctor's eye: each way of not being there, or not taking a key, has its own words."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.commands.doctor.scripted_servers import answering, closed_port, hanging_up, self_signed
from tests.sim.served_simulators import served
from thoughtline.commands.doctor import Check
from thoughtline.commands.doctor.upstreams import look_at_clock, look_at_upstreams
from thoughtline.destinations.catalogue import PROVIDERS, Provider
from thoughtline.providers import AuthStyle
from thoughtline.settings import Settings
from thoughtline.values.turns import FormatName

KEY = "sk-never-shown"


def settings_of(*providers: Provider) -> Settings:
    known = {provider.name: provider for provider in providers}
    return Settings(providers=PROVIDERS | known, configured=frozenset(known))


def at(
    url: str, *keys: str, auth: AuthStyle = "bearer", formats: tuple[FormatName, ...] = ("openai_chat",)
) -> Provider:
    return Provider("here", url, formats, api_keys=keys, auth=auth)


async def looked(*providers: Provider) -> list[Check]:
    return [check for seen in await look_at_upstreams(settings_of(*providers)) for check in seen.checks]


async def test_a_simulator_is_well() -> None:
    """A provider that answers, with a key and without; only those that settings speak of are asked."""
    url = served("deepseek").url
    [with_key, without] = await looked(at(url, KEY), Provider("there", url, ("openai_chat",)))
    assert (with_key.state, without.state) == ("ok", "ok")
    assert "accepts the key" in with_key.message
    assert "key" not in without.message
    assert await looked() == []


async def test_a_default_provider_is_looked_at() -> None:
    """Even one that nothing else is said of."""
    row = at(served("deepseek").url)
    settings = Settings(providers={"here": row}, default_provider="here")
    [seen] = await look_at_upstreams(settings)
    assert seen.checks[0].state == "ok"


STATUSES = [
    (200, (KEY,), "ok", "accepts the key"),
    (401, (KEY,), "fail", "here answered 401: the key was rejected."),
    (403, (KEY,), "fail", "here answered 403: this key may not do that."),
    (401, (), "ok", "the caller's own will be sent"),
    (404, (KEY,), "ok", "no list of models (404), so no key was tried"),
    (302, (KEY,), "warn", "it redirects (302)"),
    (429, (KEY,), "warn", "here answered 429: too many requests"),
    (503, (KEY,), "warn", "here answered 503: it is overloaded or down"),
]


@pytest.mark.parametrize(("status", "keys", "state", "message"), STATUSES)
async def test_what_a_status_says(status: int, keys: tuple[str, ...], state: str, message: str) -> None:
    """A refused key is not an unreachable server, and neither is a server with trouble of its own."""
    async with answering(status) as server:
        [check] = await looked(at(f"http://127.0.0.1:{server.port}/v1", *keys))
    assert check.state == state
    assert message in check.message
    assert bool(check.remedy) is (state != "ok")
    assert KEY not in f"{check}"
    assert server.heads[0].startswith("GET /v1/models HTTP/1.1")


@pytest.mark.parametrize(
    ("auth", "formats", "expected"),
    [
        ("bearer", ("openai_chat",), f"authorization: Bearer {KEY}"),
        ("x-api-key", ("anthropic_messages",), f"x-api-key: {KEY}"),
        ("x-api-key", ("anthropic_messages",), "anthropic-version: 2023-06-01"),
        ("api-key", ("openai_responses",), f"api-key: {KEY}"),
        ("query", ("openai_chat",), f"/models?key={KEY} HTTP"),
    ],
)
async def test_a_key_is_shown_as_the_provider_wants_it(
    auth: AuthStyle, formats: tuple[FormatName, ...], expected: str
) -> None:
    """As the gateway would show it."""
    async with answering(200) as server:
        await looked(at(f"http://127.0.0.1:{server.port}", KEY, auth=auth, formats=formats))
    assert expected in server.heads[0]


async def test_every_key_is_tried() -> None:
    """Of several keys each has its own line."""
    async with answering(401) as server:
        checks = await looked(at(f"http://127.0.0.1:{server.port}", KEY, "sk-second"))
    assert [check.name for check in checks] == ["upstream here, key 1", "upstream here, key 2"]
    assert "sk-second" in server.heads[1]


async def test_a_closed_port() -> None:
    """Nothing listens there."""
    port = closed_port()
    [check] = await looked(at(f"http://127.0.0.1:{port}", KEY))
    assert check.state == "fail"
    assert check.message == f"here (127.0.0.1:{port}) can't be reached: nothing listens there (connection refused)."


async def test_an_unknown_name() -> None:
    """Names under .invalid lead nowhere (RFC 6761)."""
    [check] = await looked(at("https://thoughtline.invalid/v1", KEY))
    assert check.state == "fail"
    assert check.message == "here (thoughtline.invalid) can't be reached: its host name is unknown (DNS)."


async def test_a_host_without_tls() -> None:
    """An https address of a server that speaks plain HTTP."""
    address = served("deepseek").url.removeprefix("http://")
    [check] = await looked(at(f"https://{address}", KEY))
    assert check.state == "fail"
    assert check.message == f"here ({address}) can't be reached: it does not speak TLS."
    assert "http://" in check.remedy


async def test_an_untrusted_certificate(tmp_path: Path) -> None:
    """It is said to be that, not a broken connection."""
    async with answering(200, context=self_signed(tmp_path)) as server:
        [check] = await looked(at(f"https://127.0.0.1:{server.port}", KEY))
    assert check.state == "fail"
    assert "its certificate is" in check.message


async def test_a_server_that_speaks_something_else() -> None:
    """It takes the connection, and that is all."""
    async with hanging_up() as port:
        [check] = await looked(at(f"http://127.0.0.1:{port}", KEY))
    assert check.state == "fail"
    assert check.message == "here closed the connection before it answered."


async def test_an_address_that_is_still_to_be_set() -> None:
    """Azure's is the customer's own."""
    [check] = await looked(PROVIDERS["azure"])
    assert (check.state, "set base_url in [providers.azure]" in check.message) == ("fail", True)


async def test_keys_over_an_open_line() -> None:
    """Plain HTTP beyond this machine is reported, whether it answers or not."""
    checks = await looked(at("http://thoughtline.invalid/v1", KEY))
    assert [check.state for check in checks] == ["warn", "fail"]
    assert "unencrypted" in checks[0].message


@pytest.mark.parametrize(
    ("ahead", "state", "message"),
    [(0, "ok", "agrees"), (3600, "warn", "behind"), (-3600, "warn", "ahead of"), (None, "skipped", "no provider sent")],
)
async def test_the_clock(ahead: float | None, state: str, message: str) -> None:
    """Our clock against the upstreams'; an hour's difference is reported, with its direction."""
    async with answering(200, now=None if ahead is None else time.time() + ahead) as server:
        check = look_at_clock(await look_at_upstreams(settings_of(at(f"http://127.0.0.1:{server.port}"))))
    assert (check.state, message in check.message) == (state, True)
