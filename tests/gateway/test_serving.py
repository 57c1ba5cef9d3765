"""`thoughtline serve` as a process: how it starts, reloads and stops."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.sim.served_simulators import served
from thoughtline.gateway.client_keys import make_secret
from thoughtline.gateway.listening import SPREADS

CHAT = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "hello"}]}
WAIT_SECONDS = 60


class Serving:
    """The running command. Its log is read as it is written."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._lines: list[str] = []
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()
        found = re.search(r"http://[\d.]+:(\d+)", self.wait_for(lambda line: "listening" in line))
        assert found is not None
        self.url = f"http://127.0.0.1:{found[1]}"

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._changed:
                self._lines.append(line.decode())
                self._changed.notify_all()

    def wait_for(self, is_it: Callable[[str], bool]) -> str:
        """Waits for the first line of the log that matches."""
        with self._changed:
            assert self._changed.wait_for(lambda: any(map(is_it, self._lines)), WAIT_SECONDS), self._lines
            return next(line for line in self._lines if is_it(line))

    def wait_for_all(self, workers: int) -> None:
        """Waits until each of them serves."""
        for number in range(1, workers + 1):
            # A default that binds the loop's variable has no type.
            self.wait_for(lambda line, own=f"{number} of {workers}": "worker serves" in line and own in line)  # type: ignore[misc]

    def lines(self) -> list[str]:
        """The lines so far."""
        with self._changed:
            return list(self._lines)

    def forget(self) -> None:
        """Drop the lines so far."""
        with self._changed:
            self._lines.clear()

    def say(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)


def command(tmp_path: Path, *more: str) -> list[str]:
    store = f"sqlite:///{tmp_path / 'kept.db'}"
    return [sys.executable, "-m", "thoughtline.cli", "serve", "--port", "0", "--store", store, *more]


def home(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}


@contextlib.contextmanager
def serving(tmp_path: Path, *more: str) -> Iterator[Serving]:
    process = subprocess.Popen(command(tmp_path, *more), stderr=subprocess.PIPE, env=home(tmp_path), cwd=tmp_path)
    try:
        one = Serving(process)
        _until_answering(one.url)
        yield one
    finally:
        process.terminate()  # so that it ends its workers too
        try:
            process.wait(WAIT_SECONDS)
        finally:
            process.kill()


def _until_answering(url: str) -> None:
    """The socket is open from the start; a client is answered once the gateway is ready."""
    assert httpx.get(f"{url}/healthz", timeout=WAIT_SECONDS).status_code == 200


def test_a_stop_lets_streams_finish_and_takes_no_new_ones(tmp_path: Path) -> None:
    """SIGTERM in the middle of a stream: it completes, no new client is admitted, and the turn is recorded."""
    upstream = served("deepseek").url
    with serving(tmp_path, "--upstream", upstream, "--provider", "deepseek") as gateway:
        headers = {"x-sim-delay": "50", "x-sim-chunk": "4", "authorization": "Bearer key"}
        body = {**CHAT, "stream": True}
        with httpx.stream(
            "POST", f"{gateway.url}/v1/chat/completions", json=body, headers=headers, timeout=60
        ) as answer:
            pieces = answer.iter_raw()
            heard = next(pieces)
            gateway.say(signal.SIGTERM)
            _until_closed(gateway.url)
            heard += b"".join(pieces)
        assert heard.rstrip().endswith(b"[DONE]")
        gateway.process.wait(WAIT_SECONDS)
        line = json.loads(gateway.wait_for(lambda line: '"generate"' in line))
    assert (line["captured"], line["store"]) == (1, "ok")


def _until_closed(url: str) -> None:
    host, port = url.removeprefix("http://").split(":")
    while True:
        try:
            socket.create_connection((host, int(port)), 1).close()
        except ConnectionRefusedError:
            return
        except ConnectionResetError:
            continue  # the listener was closed with this connection in its queue


@pytest.mark.parametrize("workers", ["1", "2"])
def test_settings_are_read_again(tmp_path: Path, workers: str) -> None:
    """SIGHUP: a provider added to the file is available, and a file with errors changes nothing."""
    file = tmp_path / "thoughtline.toml"
    file.write_text(f"[server]\nworkers = {workers}\n")
    with serving(tmp_path, "--config", str(file)) as gateway:
        url = f"{gateway.url}/acme/v1/chat/completions"
        assert httpx.post(url, json=CHAT, timeout=WAIT_SECONDS).status_code == 404
        file.write_text(f'[server]\nworkers = {workers}\n[providers.acme]\nbase_url = "{served("deepseek").url}"\n')
        gateway.say(signal.SIGHUP)
        gateway.wait_for(lambda line: "settings reloaded" in line)
        assert httpx.post(url, json=CHAT, timeout=WAIT_SECONDS).status_code == 200
        file.write_text("[servers]\n")
        gateway.say(signal.SIGHUP)
        assert f"{file}:1" in gateway.wait_for(lambda line: "not reloaded" in line)
        assert httpx.post(url, json=CHAT, timeout=WAIT_SECONDS).status_code == 200


BAD = {
    "a key that anybody could spend": ('[providers.deepseek]\napi_key = "k"\n', "server.host"),
    "the same at an address of later": (
        '[server]\nhost = "127.0.0.1"\n[providers.deepseek]\napi_key = "k"\n',
        "server.host",
    ),
    "a store that can't be": ('[store]\nencryption_key = "short"\n', "store"),
}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_reload_is_checked_as_a_start_is(tmp_path: Path, workers: str) -> None:
    """A file that a start would refuse changes nothing; the listening address counts; the log says where the error
    is."""
    file = tmp_path / "thoughtline.toml"
    file.write_text("[server]\nhost = '0.0.0.0'\n")
    with serving(tmp_path, "--config", str(file), "--workers", workers) as gateway:
        for text, place in BAD.values():
            file.write_text(text if "[server]" in text else f"[server]\nhost = '0.0.0.0'\n{text}")
            gateway.say(signal.SIGHUP)
            assert place in gateway.wait_for(lambda line: "not reloaded" in line)
            gateway.forget()
        providers = httpx.get(f"{gateway.url}/api/settings", headers=admin(tmp_path)).json()["providers"]
        assert providers["deepseek"]["apiKeys"] == 0


def admin(tmp_path: Path) -> dict[str, str]:
    token = (tmp_path / "data" / "thoughtline" / "admin-token").read_text().strip()
    return {"authorization": f"Bearer {token}"}


def workers_of(gateway: Serving) -> set[int]:
    """The processes that serve. multiprocessing has one more, which tracks shared resources."""
    children = Path(f"/proc/{gateway.process.pid}/task/{gateway.process.pid}/children").read_text().split()
    return {int(one) for one in children if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()}


def test_workers_do_not_read_the_file(tmp_path: Path) -> None:
    """A worker that is killed is replaced by one with the same settings, whatever the file says now."""
    file = tmp_path / "thoughtline.toml"
    file.write_text("[server]\nworkers = 2\n")
    with serving(tmp_path, "--config", str(file)) as gateway:
        gateway.wait_for_all(2)
        gateway.forget()
        file.write_text("[nonsense")
        former = workers_of(gateway)
        for worker in former:
            os.kill(worker, signal.SIGKILL)
        gateway.wait_for_all(2)
        _until_answering(gateway.url)
        assert len(former) == len(workers_of(gateway)) == 2
        assert not workers_of(gateway) & former


def connections_of(worker: int) -> int:
    """The open sockets of a process."""
    folder = Path(f"/proc/{worker}/fd")
    return sum(os.readlink(one).startswith("socket:") for one in folder.iterdir())


@pytest.mark.skipif(not SPREADS, reason="the system does not spread connections")
def test_workers_share_the_connections(tmp_path: Path) -> None:
    """Many clients with open connections are spread over the workers; the first one to wake doesn't get all."""
    with serving(tmp_path, "--workers", "2") as gateway, contextlib.ExitStack() as clients:
        gateway.wait_for_all(2)
        before = {worker: connections_of(worker) for worker in workers_of(gateway)}
        for _ in range(40):
            client = clients.enter_context(httpx.Client())
            assert client.get(f"{gateway.url}/healthz", timeout=WAIT_SECONDS).status_code == 200
        shares = [connections_of(worker) - count for worker, count in before.items()]
        assert min(shares) > 4, shares


def test_a_worker_that_can_not_start_is_tried_again_while_others_serve(tmp_path: Path) -> None:
    """The store claims to be of a newer version for a while: one worker serves all the time, then two do."""
    with (
        serving(tmp_path, "--workers", "2") as gateway,
        contextlib.closing(sqlite3.connect(tmp_path / "kept.db", isolation_level=None)) as store,
    ):
        gateway.wait_for_all(2)
        one, other = workers_of(gateway)
        store.execute("INSERT INTO migrations (number, name) VALUES (9999, 'of later')")
        os.kill(one, signal.SIGKILL)
        gateway.wait_for(lambda line: "could not start" in line)
        for _ in range(20):  # no connection waits for the worker that is not there
            _until_answering(gateway.url)
        assert gateway.process.poll() is None
        gateway.forget()
        store.execute("DELETE FROM migrations WHERE number = 9999")
        os.kill(other, signal.SIGKILL)
        gateway.wait_for_all(2)


def test_client_keys_in_a_store_that_is_down(tmp_path: Path) -> None:
    """It is unknown whether there are any: the gateway starts, admits nobody, and reports that it is not ready."""
    file = tmp_path / "thoughtline.toml"
    file.write_text('[server]\nhost = "0.0.0.0"\n[providers.deepseek]\napi_key = "k"\n')
    with serving(tmp_path, "--config", str(file), "--store", "redis://127.0.0.1:9/0") as gateway:
        ready = httpx.get(f"{gateway.url}/readyz", timeout=WAIT_SECONDS)
        assert (ready.status_code, ready.json()["status"]) == (503, "not_ready")
        assert "not known" in ready.json()["detail"]
        url = f"{gateway.url}/deepseek/v1/chat/completions"
        statuses = [
            httpx.post(url, json=CHAT, headers={"authorization": f"Bearer {key}"}, timeout=WAIT_SECONDS).status_code
            for key in ("sk-anything", make_secret())
        ]
        assert statuses == [401, 503]


def test_workers_count_a_keys_requests_together(tmp_path: Path) -> None:
    """A key with a limit of five requests a minute gets five, however many processes answer."""
    add = [sys.executable, "-m", "thoughtline.cli", "keys", "add", "ann", "--requests-per-minute", "5"]
    store = f"sqlite:///{tmp_path / 'kept.db'}"
    made = subprocess.run([*add, "--store", store], capture_output=True, check=True, cwd=tmp_path, env=home(tmp_path))
    key = made.stdout.decode().strip()
    settings = tmp_path / "thoughtline.toml"
    settings.write_text(f'[providers.deepseek]\nbase_url = "{served("deepseek").url}"\napi_key = "k"\n')
    with serving(tmp_path, "--config", str(settings), "--workers", "3") as gateway:

        def ask(_: int) -> int:
            url, headers = f"{gateway.url}/deepseek/v1/chat/completions", {"authorization": f"Bearer {key}"}
            return httpx.post(url, json=CHAT, headers=headers, timeout=WAIT_SECONDS).status_code

        with ThreadPoolExecutor(12) as pool:
            statuses = list(pool.map(ask, range(60)))
    assert Counter(statuses) == {200: 5, 429: 55}


def test_workers_take_a_login_link_once_and_its_cookie_always(tmp_path: Path) -> None:
    """Whichever process answers, even if each has its own memory."""
    token = "an-admin-token-that-nobody-guesses"
    settings = tmp_path / "thoughtline.toml"
    settings.write_text(f'[server]\nadmin_token = "{token}"\nworkers = 3\n')
    with serving(tmp_path, "--config", str(settings), "--store", "memory://") as gateway:
        answers = [httpx.get(f"{gateway.url}/login?token={token}", timeout=WAIT_SECONDS) for _ in range(12)]
        assert Counter(answer.status_code for answer in answers) == {303: 1, 401: 11}
        [cookie] = [answer.cookies["thoughtline_admin"] for answer in answers if answer.status_code == 303]
        headers = {"cookie": f"thoughtline_admin={cookie}"}
        seen = {httpx.get(f"{gateway.url}/api/settings", headers=headers).status_code for _ in range(12)}
        assert seen == {200}


REFUSED = [
    (["--host", "0.0.0.0"], '[providers.deepseek]\napi_key = "k"\n', "client key"),
    (["--host", "0.0.0.0"], '[providers.deepseek]\nheaders = { authorization = "Bearer k" }\n', "client key"),
    ([], "[server]\nprot = 1\n", "port"),
    (["--store", "carrier-pigeon://x"], "", "no such store"),
]


@pytest.mark.parametrize(("more", "settings", "told"), REFUSED, ids=["exposed", "exposed header", "mistyped", "store"])
def test_settings_that_can_not_be_served_are_reported(
    tmp_path: Path, more: list[str], settings: str, told: str
) -> None:
    """It does not start, says why, and exits with a status other than 0."""
    file = tmp_path / "thoughtline.toml"
    file.write_text(settings)
    asked = [*command(tmp_path, "--config", str(file)), *more]
    done = subprocess.run(
        asked, capture_output=True, env=home(tmp_path), cwd=tmp_path, timeout=WAIT_SECONDS, check=False
    )
    assert done.returncode != 0
    assert told in done.stderr.decode().lower()


def test_a_port_in_use_is_reported(tmp_path: Path) -> None:
    """With a remedy."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        asked = [*command(tmp_path), "--port", str(taken.getsockname()[1])]
        done = subprocess.run(asked, capture_output=True, env=home(tmp_path), timeout=WAIT_SECONDS, check=False)
    assert done.returncode == 2
    assert "--port" in done.stderr.decode()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_simulator_behind_it(tmp_path: Path, workers: str) -> None:
    """`--sim` needs no key and no network, and the printed commands show a restored turn."""
    with serving(tmp_path, "--sim", "deepseek", "--workers", workers) as running:
        running.wait_for(lambda line: line.startswith("curl") and "Are you sure" in line)
        answers = [pasted(line) for line in running.lines() if line.startswith("curl")]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert [answer.headers["x-thoughtline-replay"].partition(",")[0] for answer in answers] == [
        "restored=0",
        "restored=1",
    ]


def test_a_simulator_that_there_is_not(tmp_path: Path) -> None:
    """The nearest name is suggested, and nothing starts."""
    result = subprocess.run(
        command(tmp_path, "--sim", "depseek"), capture_output=True, text=True, check=False, env=home(tmp_path)
    )
    assert (result.returncode, result.stderr) == (
        2,
        "thoughtline serve: no simulator depseek; did you mean deepseek?\n",
    )


def pasted(line: str) -> httpx.Response:
    """The request of a pasted curl command."""
    words = shlex.split(line)
    headers = dict(words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H")
    return httpx.post(words[2], content=words[words.index("-d") + 1], headers=headers)
