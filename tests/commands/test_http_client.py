"""Behind the proxy of a company: commands and gateways reach this machine without it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.gateway.gateways import running
from tests.gateway.sockets import USER, talking
from tests.gateway.test_bytes import say_hi
from tests.gateway.upstreams import upstream
from tests.sim.faces import HTTP
from tests.sim.served_simulators import served
from thoughtline.commands.http_client import NO_ANSWER, answer_to
from thoughtline.commands.run import answers

NAMES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


@contextlib.asynccontextmanager
async def behind_proxy(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[bytes]]:
    """An environment with a forward proxy that refuses; what it was asked for."""
    asked: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        for name in NAMES:
            monkeypatch.setenv(name, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        yield asked


async def test_addresses_of_this_machine_are_asked_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """However they are written; others go through it."""
    with upstream(say_hi) as up:
        port = up.url.rpartition(":")[2]
        async with behind_proxy(monkeypatch) as asked:
            for host in ("127.0.0.1", "localhost", "LOCALHOST"):
                url = f"http://{host}:{port}/"
                async with answer_to("GET", url) as response:
                    assert response.status == 200
            assert await answers(up.url)
            assert asked == []
            with contextlib.suppress(*NO_ANSWER):
                async with answer_to("GET", "http://far.example/") as response:
                    assert response.status == 403
            assert [line.split()[1] for line in asked] == [b"http://far.example/"]


async def test_providers_of_this_machine_are_asked_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over HTTP and over WebSocket: a proxy would see the key, and look for the server on its own machine."""
    async with behind_proxy(monkeypatch) as asked:

        def talk() -> None:
            with upstream(say_hi) as up, running({"deepseek": up.url, "openai": served("openai").url}) as gateway:
                body = {"model": "m", "messages": []}
                assert HTTP.post(f"{gateway.url}/deepseek/v1/chat/completions", json=body).status_code == 200
                with talking(f"{gateway.url}/openai/v1/responses") as socket:
                    assert socket.ask(input=[USER]).last["type"] == "response.completed"

        await asyncio.to_thread(talk)
        assert asked == []


async def test_the_demonstration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first command that people run."""
    async with behind_proxy(monkeypatch) as asked:
        environment = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
        command = [sys.executable, "-m", "thoughtline.cli", "demo"]
        run = await asyncio.to_thread(
            subprocess.run, command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
    assert (run.returncode, "Traceback" in run.stderr) == (0, False), run.stderr
    assert asked == []


async def test_the_doctor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A provider on this machine that answers is reported as one that does."""
    with upstream(say_hi) as up:
        settings = tmp_path / "thoughtline.toml"
        settings.write_text(f'[providers.local]\nbase_url = "{up.url}"\nformats = ["openai_chat"]\napi_key = "k"\n')
        async with behind_proxy(monkeypatch) as asked:
            environment = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
            command = [sys.executable, "-m", "thoughtline.cli", "doctor", "--config", str(settings), "--json"]
            run = await asyncio.to_thread(
                subprocess.run, command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
            )
        assert asked == []
        assert "local" in json.dumps(json.loads(run.stdout))
        assert up.got
