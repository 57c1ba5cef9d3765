"""Client keys at a running gateway: who gets in, from the first key to after the last."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from msgspec.structs import replace

from tests.commands.doctor.scripted_servers import answering
from tests.gateway.gateways import Running, running
from tests.gateway.test_bytes import say_hi
from tests.gateway.upstreams import upstream
from tests.sim.served_simulators import served
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.gateway.client_keys import ClientKeys, KeyMark, make_secret
from thoughtline.settings import ServerSettings, Settings
from thoughtline.stores import open_store

BODY = {"model": "deepseek-chat", "messages": [{"role": "user", "content": "hi"}]}


def ask(gateway: Running, credential: str) -> int:
    url = f"{gateway.url}/deepseek/v1/chat/completions"
    headers = {"authorization": f"Bearer {credential}"} if credential else {}
    return httpx.post(url, json=BODY, headers=headers).status_code


@pytest.mark.parametrize("first", ["beforehand", "meanwhile"])
async def test_from_the_first_key_to_after_the_last(tmp_path: Path, first: str) -> None:
    """Keys made and revoked in the store by a command open and close a running gateway."""
    store_url = f"sqlite:///{tmp_path}/turns.db"
    url = served("deepseek").url
    row = replace(PROVIDERS["deepseek"], base_url=url, bases={}, api_keys=("sk-inside",))
    command = await open_store(store_url)
    keys = await ClientKeys.load(command)
    secret, key = await keys.add("ann") if first == "beforehand" else ("", None)
    with running({}, Settings(providers={"deepseek": row}), store_url, takes_keys=True) as gateway:
        if key is None:
            assert ask(gateway, "sk-anything") == 200
            secret, key = await keys.add("ann")
            gateway.wait_for(gateway.app.refresh())
        assert [ask(gateway, secret), ask(gateway, "sk-anything"), ask(gateway, "")] == [200, 401, 401]
        await keys.revoke(key.id)
        gateway.wait_for(gateway.app.refresh())
        assert [ask(gateway, secret), ask(gateway, "sk-anything")] == [401, 401]
    await command.close()


async def test_a_key_that_was_just_made_is_known_at_once(tmp_path: Path) -> None:
    """The store is asked for an unknown key: it is neither forwarded nor refused, although the gateway was not
    informed. One that is in no store is refused, and not forwarded."""
    store_url = f"sqlite:///{tmp_path}/turns.db"
    command = await open_store(store_url)
    keys = await ClientKeys.load(command)
    with upstream(say_hi) as up, running({"deepseek": up.url}, None, store_url, takes_keys=True) as gateway:
        assert [ask(gateway, "sk-anything"), ask(gateway, "tl-anything")] == [200, 401]
        secret, _ = await keys.add("ann")
        assert ask(gateway, secret) == 403  # it is let in, and the gateway has no key for this provider
        assert [ask(gateway, make_secret()), ask(gateway, "sk-anything")] == [401, 401]
        assert [got.header("authorization") for got in up.got] == ["Bearer sk-anything"]
    await command.close()


class Shut(NamedTuple):
    """A gateway that should know client keys but does not."""

    store: str
    settings: ServerSettings
    is_marked: bool
    statuses: list[int]
    is_ready: bool = False


SHUT = {
    "a store that is empty": Shut("turns.db", ServerSettings(), True, [503, 401, 401]),
    "a store that is down, and a mark": Shut("/dev/null/x.db", ServerSettings(), True, [503, 401, 401]),
    "a store that is down": Shut("/dev/null/x.db", ServerSettings(), False, [503, 503, 503]),
    "a store that is down, keys required": Shut(
        "/dev/null/x.db", ServerSettings(require_client_keys=True), False, [503, 401, 401]
    ),
    "a file that is damaged, and a mark": Shut("damaged.db", ServerSettings(), True, [503, 401, 401]),
    "a file that is damaged, and never a key": Shut(
        "damaged.db", ServerSettings(), False, [200, 200, 200], is_ready=True
    ),
    "keys required and none made": Shut(
        "turns.db", ServerSettings(require_client_keys=True), False, [401, 401, 401], is_ready=True
    ),
    "keys not required": Shut(
        "/dev/null/x.db", ServerSettings(require_client_keys=False), True, [200, 200, 200], is_ready=True
    ),
    "nobody ever made one": Shut("turns.db", ServerSettings(), False, [200, 200, 200], is_ready=True),
}


@pytest.mark.parametrize("case", SHUT.values(), ids=SHUT)
def test_a_lost_store_does_not_open_the_door(tmp_path: Path, case: Shut) -> None:
    """A possibly valid key has to wait, all others are refused; and the gateway reports that it is not ready."""
    row = replace(PROVIDERS["deepseek"], base_url=served("deepseek").url, bases={}, api_keys=("sk-inside",))
    settings = Settings(server=case.settings, providers={"deepseek": row})
    mark = KeyMark(tmp_path / "data")
    if case.is_marked:
        mark.set()
    store = case.store if case.store.startswith("/") else f"{tmp_path}/{case.store}"
    (tmp_path / "damaged.db").write_bytes(b"no database" * 1000)
    with running({}, settings, f"sqlite:///{store}", takes_keys=True, mark=mark) as gateway:
        assert [ask(gateway, one) for one in (make_secret(), "sk-anything", "")] == case.statuses
        ready = httpx.get(f"{gateway.url}/readyz")
        assert (ready.status_code == 200, ready.json()["status"] == "ready") == (case.is_ready, case.is_ready)


def test_our_key_is_not_sent_while_the_keys_are_unknown(tmp_path: Path) -> None:
    """Also for a provider without a gateway key, which would get the caller's."""
    upstream = served("deepseek").url
    with running({"deepseek": upstream}, store_url="sqlite:////dev/null/x.db", takes_keys=True) as gateway:
        assert [ask(gateway, make_secret()), ask(gateway, "sk-own")] == [503, 200]
        assert httpx.get(f"{gateway.url}/readyz").status_code == 200


async def test_a_gateway_whose_keys_were_all_taken_off_the_record_is_open(tmp_path: Path) -> None:
    """`thoughtline keys clear`: a running gateway learns of it at its next look, and a later key closes it again."""
    store_url = f"sqlite:///{tmp_path}/turns.db"
    row = replace(PROVIDERS["deepseek"], base_url=served("deepseek").url, bases={}, api_keys=("sk-inside",))
    command = await open_store(store_url)
    keys = await ClientKeys.load(command)
    secret, _ = await keys.add("ann")
    mark = KeyMark(tmp_path / "data")
    with running({}, Settings(providers={"deepseek": row}), store_url, takes_keys=True, mark=mark) as gateway:
        assert [ask(gateway, secret), ask(gateway, "sk-anything"), mark.is_set] == [200, 401, True]
        await keys.open_door()
        gateway.wait_for(gateway.app.refresh())
        assert [ask(gateway, "sk-anything"), mark.is_set] == [200, False]
        await keys.add("bob")
        gateway.wait_for(gateway.app.refresh())
        assert [ask(gateway, "sk-anything"), mark.is_set] == [401, True]
    await command.close()


async def test_a_providers_key_is_shown_as_the_face_wants_it() -> None:
    """Google's own API has a header for it, its OpenAI API expects a bearer token."""
    async with answering(200) as google:
        row = replace(PROVIDERS["gemini"], base_url=f"http://127.0.0.1:{google.port}", bases={}, api_keys=("inside",))
        with running({}, Settings(providers={"gemini": row})) as gateway:
            chat = f"{gateway.url}/gemini/v1/chat/completions"
            own = f"{gateway.url}/gemini/v1beta/models/gemini-3-pro:generateContent"
            await asyncio.to_thread(httpx.post, chat, json=BODY | {"model": "gemini-3-pro"})
            await asyncio.to_thread(httpx.post, own, json={"contents": []})
    assert "authorization: Bearer inside" in google.heads[0]
    assert "x-goog-api-key: inside" in google.heads[1]
    assert "authorization" not in google.heads[1]


@pytest.mark.parametrize(
    ("shown", "header"),
    [
        ("sk-ant-api03-mine", "x-api-key: sk-ant-api03-mine"),
        ("sk-ant-oat01-mine", "authorization: Bearer sk-ant-oat01-mine"),
        ("anything", "authorization: Bearer anything"),
    ],
)
async def test_a_callers_key_that_comes_as_a_token_is_shown_as_a_key(shown: str, header: str) -> None:
    """Claude Code sends `ANTHROPIC_AUTH_TOKEN` as a bearer token; Anthropic reads keys in another header. A login token
    is unchanged."""
    async with answering(200) as claude:
        row = replace(PROVIDERS["anthropic"], base_url=f"http://127.0.0.1:{claude.port}", bases={})
        with running({}, Settings(providers={"anthropic": row})) as gateway:
            url, sent = f"{gateway.url}/anthropic/v1/messages", {"authorization": f"Bearer {shown}"}
            await asyncio.to_thread(httpx.post, url, json=BODY | {"max_tokens": 9}, headers=sent)
    lines = claude.heads[0].splitlines()
    assert [line for line in lines if shown in line] == [header]
