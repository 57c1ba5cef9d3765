"""Client keys at a gateway that runs: who gets in, from the first key to after the last."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from tests.doctor.scripted import answering
from tests.gateway.world import Running, running
from tests.sim.serving import served
from thoughtline.catalogue import PROVIDERS
from thoughtline.gateway.client_keys import ClientKeys
from thoughtline.settings import Settings
from thoughtline.stores import open_store

BODY = {"model": "deepseek-chat", "messages": [{"role": "user", "content": "hi"}]}


def ask(gateway: Running, credential: str) -> int:
    url = f"{gateway.url}/deepseek/v1/chat/completions"
    headers = {"authorization": f"Bearer {credential}"} if credential else {}
    return httpx.post(url, json=BODY, headers=headers).status_code


@pytest.mark.parametrize("first", ["beforehand", "meanwhile"])
async def test_from_the_first_key_to_after_the_last(tmp_path: Path, first: str) -> None:
    """Keys that a command makes and revokes in the store open and close the door of a gateway that runs."""
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


async def test_a_providers_key_is_shown_as_the_face_wants_it() -> None:
    """Google's own face has a header for it, its OpenAI face takes a bearer token."""
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
