"""`thoughtline serve` as a process: how it starts, reloads and stops."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.sim.serving import served

CHAT = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "hello"}]}
WAIT_SECONDS = 60


class Serving:
    """The command, running. Its log is read as it comes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._lines: list[str] = []
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()
        found = re.search(r"http://127\.0\.0\.1:\d+", self.wait_for(lambda line: "listening" in line))
        assert found is not None
        self.url = found[0]

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._changed:
                self._lines.append(line.decode())
                self._changed.notify_all()

    def wait_for(self, is_it: Callable[[str], bool]) -> str:
        """The first line of the log that is it, when it comes."""
        with self._changed:
            assert self._changed.wait_for(lambda: any(map(is_it, self._lines)), WAIT_SECONDS), self._lines
            return next(line for line in self._lines if is_it(line))

    def say(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)


def command(tmp_path: Path, *more: str) -> list[str]:
    store = f"sqlite:///{tmp_path / 'kept.db'}"
    return [sys.executable, "-m", "thoughtline.cli", "serve", "--port", "0", "--store", store, *more]


@contextlib.contextmanager
def serving(tmp_path: Path, *more: str) -> Iterator[Serving]:
    home = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    process = subprocess.Popen(command(tmp_path, *more), stderr=subprocess.PIPE, env=home, cwd=tmp_path)
    try:
        one = Serving(process)
        _until_ready(one.url)
        yield one
    finally:
        process.terminate()  # so that it ends its workers too
        try:
            process.wait(WAIT_SECONDS)
        finally:
            process.kill()


def _until_ready(url: str) -> None:
    """The socket is there from the start; whoever asks is answered when the gateway is."""
    assert httpx.get(f"{url}/readyz", timeout=WAIT_SECONDS).status_code == 200


def test_a_stop_lets_streams_finish_and_takes_no_new_ones(tmp_path: Path) -> None:
    """SIGTERM in the middle of a stream: it comes to its end, nobody else gets in, and the turn is remembered."""
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
    """SIGHUP: a provider that was added to the file is there, and a file with mistakes changes nothing."""
    file = tmp_path / "thoughtline.toml"
    file.write_text(f"[server]\nworkers = {workers}\n")
    with serving(tmp_path, "--config", str(file)) as gateway:
        url = f"{gateway.url}/acme/v1/chat/completions"
        assert httpx.post(url, json=CHAT, timeout=WAIT_SECONDS).status_code == 404
        file.write_text(f'[server]\nworkers = {workers}\n[providers.acme]\nbase_url = "{served("deepseek").url}"\n')
        gateway.say(signal.SIGHUP)
        if workers == "1":
            gateway.wait_for(lambda line: "settings reloaded" in line)
        while httpx.post(url, json=CHAT, timeout=WAIT_SECONDS).status_code == 404:
            pass  # workers are replaced one by one; the test's own limit ends this
        if workers == "1":
            file.write_text("[servers]\n")
            gateway.say(signal.SIGHUP)
            assert "server" in gateway.wait_for(lambda line: "not reloaded" in line)
            assert httpx.post(url, json=CHAT, timeout=WAIT_SECONDS).status_code == 200


def test_workers_count_a_keys_requests_together(tmp_path: Path) -> None:
    """A key that may ask five times a minute may ask five times, however many processes answer."""
    add = [sys.executable, "-m", "thoughtline.cli", "keys", "add", "ann", "--requests-per-minute", "5"]
    store = f"sqlite:///{tmp_path / 'kept.db'}"
    key = (
        subprocess.run([*add, "--store", store], capture_output=True, check=True, cwd=tmp_path).stdout.decode().strip()
    )
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
    """Whichever process answers, also where each has a memory of its own."""
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
def test_what_can_not_be_served_is_said(tmp_path: Path, more: list[str], settings: str, told: str) -> None:
    """It does not start, says why, and its status is not 0."""
    file = tmp_path / "thoughtline.toml"
    file.write_text(settings)
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    asked = [*command(tmp_path, "--config", str(file)), *more]
    done = subprocess.run(asked, capture_output=True, env=environment, cwd=tmp_path, timeout=WAIT_SECONDS, check=False)
    assert done.returncode != 0
    assert told in done.stderr.decode().lower()


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    """With what to do about it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        asked = [*command(tmp_path), "--port", str(taken.getsockname()[1])]
        home = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
        done = subprocess.run(asked, capture_output=True, env=home, timeout=WAIT_SECONDS, check=False)
    assert done.returncode == 2
    assert "--port" in done.stderr.decode()
