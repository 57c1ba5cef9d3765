"""Event loops, forks and the end of a process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from tests.line.chats import HEADERS, NEXT, PATH, THOUGHT, Answer, Told, request, restored, whole
from thoughtline import Line


async def ask(line: Line, url: str, body: bytes) -> None:
    async with line.async_http_client(httpx2, base_url=url, headers=HEADERS) as client:
        assert (await client.post(PATH, content=body)).status_code == 200


def test_several_loops_share_a_line(line: Line) -> None:
    """Each loop has its own client; what one stored, another finds."""
    server = Told(lambda body: Answer(whole()))
    asyncio.run(ask(line, server.url, request()))
    asyncio.run(ask(line, server.url, NEXT))
    assert restored(server.bodies[-1]) == [THOUGHT]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_goes_on_with_a_store_of_its_own(line: Line) -> None:
    """The child of a process that already used the store continues, and finds its parent's turns; so does the
    parent."""
    server = Told(lambda body: Answer(whole()))

    def post(body: bytes) -> None:
        with line.http_client(httpx2, base_url=server.url, headers=HEADERS) as client:
            client.post(PATH, content=body)

    post(request())
    child = os.fork()
    if child == 0:
        try:
            post(NEXT)
            line.close()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert restored(server.bodies[-1]) == [THOUGHT]
    post(NEXT)
    assert restored(server.bodies[-1]) == [THOUGHT]


def test_threads_and_loops_on_every_store(shared_url: str) -> None:
    """A slow store is used by many at once; tasks of another line find their turns."""
    openings = [f"Question {number}?".encode() for number in range(12)]

    def hear(opening: bytes) -> None:
        body = request().replace(b"How is the weather?", opening)
        exchange = first.begin_sync("POST", f"https://api.deepseek.com{PATH}", HEADERS, body)
        exchange.read(whole().replace(THOUGHT.encode(), opening))
        exchange.end()

    async def find(opening: bytes) -> list[str]:
        body = NEXT.replace(b"How is the weather?", opening)
        return restored((await second.begin("POST", f"https://api.deepseek.com{PATH}", HEADERS, body)).body)

    async def find_all() -> list[list[str]]:
        return await asyncio.gather(*map(find, openings))

    with Line(shared_url) as second, ThreadPoolExecutor(6) as pool:
        with Line(shared_url) as first:  # to its end everything is saved, however slow the machine
            list(pool.map(hear, openings))
        assert asyncio.run(find_all()) == [[opening.decode()] for opening in openings]


PROGRAM = """
import sys, os, httpx2, thoughtline
client = thoughtline.Line(sys.argv[1]).http_client(httpx2, base_url=sys.argv[2], headers={"authorization": "Bearer k"})
if sys.argv[3] == "fork" and os.fork():
    os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
answer = client.post("/v1/chat/completions", content=sys.stdin.buffer.read())
print(answer.headers["x-thoughtline-replay"])
"""


@pytest.mark.parametrize("way", ["plain", "fork"])
def test_a_program_that_just_ends(tmp_path: Path, way: str) -> None:
    """It closes nothing and prints nothing at exit, and the next one finds its turn."""
    server = Told(lambda body: Answer(whole()))
    url = f"sqlite:///{tmp_path / 'thoughts.db'}"
    told = []
    for body in (request(), NEXT):
        code = [sys.executable, "-c", PROGRAM, url, server.url, way]
        done = subprocess.run(code, input=body, capture_output=True, check=True, timeout=60)
        assert done.stderr == b""
        told.append(done.stdout.partition(b",")[0])
    assert told == [b"restored=0", b"restored=1"]


async def test_a_program_that_goes_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store with a relative address stays in the folder in which it was opened, also for later writes."""
    homes = [tmp_path / "first", tmp_path / "second"]
    for home in homes:
        home.mkdir()
    monkeypatch.chdir(homes[0])
    async with Line("sqlite:///thoughts.db") as line:
        monkeypatch.chdir(homes[1])
        exchange = await line.begin("POST", f"https://api.deepseek.com{PATH}", HEADERS, request())
        exchange.read(whole())
        await exchange.end()
    assert list(homes[1].iterdir()) == []
    monkeypatch.chdir(homes[0])
    async with Line("sqlite:///thoughts.db") as line:
        following = await line.begin("POST", f"https://api.deepseek.com{PATH}", HEADERS, NEXT)
    assert restored(following.body) == [THOUGHT]
