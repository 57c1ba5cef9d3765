"""`install`: every client of the process remembers, whichever code made it, and none after `uninstall`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import httpx2
import pytest

import thoughtline
from tests.line.chats import HEADERS, NEXT, PATH, THOUGHT, Answer, Told, request, restored, streamed, whole
from thoughtline import Line
from thoughtline.library.installing import _replace
from thoughtline.library.transports import check_library, wrapped_by

LIBRARIES = (httpx, httpx2)
every_library = pytest.mark.parametrize("library", LIBRARIES, ids=[one.__name__ for one in LIBRARIES])


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Nothing is installed before or after a test, and nothing of it stays behind."""
    before = [(kind, kind.send) for library in LIBRARIES for kind in (library.Client, library.AsyncClient)]
    yield
    thoughtline.uninstall()
    assert [(kind, kind.send) for kind, _ in before] == before
    assert not [hook for hook in sys.meta_path if type(hook).__module__.startswith("thoughtline")]


def server() -> Told:
    return Told(lambda body: streamed() if b'"stream": true' in body else Answer(whole()))


def ask(library: ModuleType, url: str, body: bytes, client: Any = None) -> bytes:
    client = client or library.Client()
    answer: bytes = client.post(f"{url}{PATH}", headers=HEADERS, content=body).content
    return answer


async def ask_async(library: ModuleType, url: str, body: bytes, client: Any = None) -> bytes:
    client = client or library.AsyncClient()
    pieces = []
    async with client.stream("POST", f"{url}{PATH}", headers=HEADERS, content=body) as answer:
        async for piece in answer.aiter_bytes():
            pieces.append(piece)
    return b"".join(pieces)


@every_library
def test_clients_made_before_and_after(library: Any, line: Line) -> None:
    """Sync and async, whole and streamed; a client in use remembers from its next request on."""
    told = server()
    before, used, before_async = library.Client(), library.Client(), library.AsyncClient()
    ask(library, told.url, request(), used)
    thoughtline.install(line)
    ask(library, told.url, request(), before)
    for client in (before, used, library.Client()):
        ask(library, told.url, NEXT, client)
        assert restored(told.bodies[-1]) == [THOUGHT]

    async def both() -> None:
        for client in (before_async, library.AsyncClient()):
            await ask_async(library, told.url, NEXT.replace(b'"model"', b'"stream": true, "model"'), client)
            assert restored(told.bodies[-1]) == [THOUGHT]

    asyncio.run(both())
    assert library.post(f"{told.url}{PATH}", headers=HEADERS, content=NEXT).status_code == 200  # makes its own client
    assert line.report.restored == 6


@every_library
def test_uninstall_leaves_nothing_behind(library: Any, line: Line) -> None:
    """A wrapped client sends its requests unchanged again, with its original transport."""
    told, client = server(), library.Client()
    transport = client._transport
    with thoughtline.install(line):
        ask(library, told.url, request(), client)
        assert wrapped_by(client) is not None
    assert client._transport is transport
    ask(library, told.url, NEXT, client)
    assert restored(told.bodies[-1]) == [""]


def test_hosts(line: Line) -> None:
    """Only the named ones, or all except those."""
    told = server()
    client = httpx2.Client()
    for installed, is_remembered in (
        ({"hosts": "deepseek.com"}, False),
        ({"hosts": ["deepseek.com", "127.0.0.1"]}, True),
        ({"without": "127.0.0.1"}, False),
        ({"hosts": "127.0.0.1", "without": "0.0.1"}, False),
        ({}, True),
    ):
        with thoughtline.install(line, **installed):
            ask(httpx2, told.url, request(), client)
        assert bool(line.exchanges) is is_remembered
        line._listeners.exchanges.clear()
    for wrong in ("https://api.deepseek.com", "localhost:80", ""):
        with pytest.raises(ValueError, match="a host is a name"):
            thoughtline.install(line, hosts=[wrong])


def test_a_second_install(line: Line, tmp_path: Path) -> None:
    """Adds to the first, and stays when the first ends; another line is an error that names both."""
    client, told = httpx2.Client(), server()
    outer = thoughtline.install(line, hosts="deepseek.com")
    with thoughtline.install(hosts="127.0.0.1") as inner:
        assert inner.line is line
        ask(httpx2, told.url, request(), client)
        assert line.report.saved == 1
        other = Line(f"sqlite:///{tmp_path / 'other.db'}")
        with pytest.raises(ValueError, match=r"thoughts\.db.*other\.db"):
            thoughtline.install(other)
    ask(httpx2, told.url, NEXT, client)
    assert restored(told.bodies[-1]) == [""]
    outer.uninstall()
    outer.uninstall()


def test_a_client_with_a_line_of_its_own(line: Line, tmp_path: Path) -> None:
    """It keeps that, whichever came first, also after `uninstall`."""
    told = server()
    with Line(f"sqlite:///{tmp_path / 'own.db'}") as own:
        first, second = own.remember(httpx2.Client()), httpx2.Client()
        with thoughtline.install(line):
            ask(httpx2, told.url, request(), first)
            ask(httpx2, told.url, request(), second)
            own.remember(second)
            ask(httpx2, told.url, NEXT, second)
        assert (own.report.requests, line.report.requests) == (2, 1)
        assert Line.of(first) is Line.of(second) is own
        with pytest.raises(ValueError, match=r"remembers in Line\('sqlite.*own\.db'\), not in Line\('sqlite.*thoughts"):
            line.remember(first)
    assert line.remember(first) is first  # a line that was closed lets its clients go


def test_threads_that_begin_at_once(line: Line) -> None:
    """One client is wrapped once, however many threads send its first request."""
    told, client = server(), httpx2.Client()
    thoughtline.install(line)
    with ThreadPoolExecutor(8) as pool:
        bodies = [request().replace(b"How is", b"Number %d: how is" % number) for number in range(8)]
        list(pool.map(lambda body: ask(httpx2, told.url, body, client), bodies))
    assert line.report.requests == 8
    found = wrapped_by(client)
    assert found is not None
    assert wrapped_by(type("Inner", (), {"_transport": found.inner})) is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork(line: Line) -> None:
    """The child continues, with new clients and inherited ones."""
    told, client = server(), httpx2.Client()
    thoughtline.install(line)
    ask(httpx2, told.url, request(), client)
    client.close()
    child = os.fork()
    if child == 0:
        try:
            ask(httpx2, told.url, NEXT)
            line.close()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert restored(told.bodies[-1]) == [THOUGHT]


def test_another_that_replaces_send_after_us(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours stays in its chain and does nothing, and a later install works."""
    told, calls = server(), []
    thoughtline.install(line)
    ours = httpx2.Client.send

    def theirs(self: Any, *given: Any, **options: Any) -> Any:
        calls.append(self)
        return ours(self, *given, **options)

    monkeypatch.setattr(httpx2.Client, "send", theirs)
    thoughtline.uninstall()
    ask(httpx2, told.url, request())
    assert (len(calls), line.report.requests) == (1, 0)
    with thoughtline.install(line):
        ask(httpx2, told.url, request())
        assert (len(calls), line.report.requests) == (2, 1)
    monkeypatch.undo()
    with thoughtline.install(line):  # so that `send` is put back as it was found
        pass


def test_a_release_that_keeps_its_transports_elsewhere(line: Line, caplog: pytest.LogCaptureFixture) -> None:
    """It is reported at once, and nothing is wrapped or broken."""

    class Client:
        def __init__(self, **_: Any) -> None: ...
        def send(self) -> str:
            return "sent"

    newer = ModuleType("httpx2")
    vars(newer).update(Client=Client, AsyncClient=Client, BaseTransport=object, __version__="9.0")
    with pytest.raises(RuntimeError, match=r"httpx2 9\.0 is newer than this version of thoughtline"):
        check_library(newer)
    _replace(newer)
    assert "httpx2 9.0 is newer" in caplog.text
    assert Client().send() == "sent"


def test_the_libraries_of_this_environment_are_known() -> None:
    """`_transport` and `_mounts` are where we look for them: private names, so each environment checks them."""
    for library in LIBRARIES:
        check_library(library)


LATER = """
import sys, thoughtline
thoughtline.install(thoughtline.Line(sys.argv[1]))
assert not {"httpx", "httpx2"} & {*sys.modules}
import httpx2
assert type(httpx2.__loader__).__name__ == type(httpx2.__spec__.loader).__name__ == "SourceFileLoader"
answer = httpx2.post(sys.argv[2], headers={"authorization": "Bearer k"}, content=sys.stdin.buffer.read())
print(answer.headers["x-thoughtline-replay"])
"""


def test_a_library_that_is_imported_later(tmp_path: Path) -> None:
    """Installing imports nothing; the module that the program imports is the usual one."""
    told = server()
    arguments = [f"sqlite:///{tmp_path / 'thoughts.db'}", f"{told.url}{PATH}"]
    done = subprocess.run(
        [sys.executable, "-c", LATER, *arguments], input=request(), capture_output=True, check=True, timeout=60
    )
    assert done.stdout.startswith(b"restored=0")
    assert done.stderr == b""


def test_what_has_no_client_is_told_of_install(line: Line) -> None:
    """`remember` names what helps."""
    with pytest.raises(TypeError, match=r"thoughtline\.install\(\)"):
        thoughtline.remember(object(), line)
