"""Stores as an older version left them, kept in `fixtures/`, and how each is taken from and given to an engine.

    python -m tests.stores.old_stores    writes them anew, with the code of this checkout: only for a new layout

Everything in them was said over HTTP and the command line, to a gateway whose clock stood at `NOW`: a conversation with
tools, its session, client keys, what a refusal taught, and settings that all replicas share. `said.json` has what the
gateway was asked next and what it sent up then.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import httpx
import redis

from tests.stores.places import own_database
from tests.stores.servers import Postgres, Valkey
from tools.bodies.servers import NOW, START, Upstream, environment, gateway
from tools.bodies.simulated import simulator_app

Json = dict[str, Any]

FIXTURES = Path(__file__).parent / "fixtures"
ENGINES = ("sqlite", "redis", "postgres")
FILES = {"sqlite": "store.db", "redis": "redis.json", "postgres": "postgres.sql"}
CONTENTS = FIXTURES / "said.json"

ADMIN = "an-admin-token-of-the-tests"
SETTINGS = f"""
[server]
admin_token = "{ADMIN}"
[providers.deepseek]
base_url = "http://deepseek.test"
api_key = "upstream-key"
[providers.glm]
base_url = "http://glm.test/v4"
formats = ["openai_chat"]
api_key = "upstream-key"
"""
SESSION = "session-of-the-fixture"
OPENING = """How is the weather?
script:
think: Paris first.
call: weather {"city": "Paris"}
---
no-think
call: weather {"city": "Rome"}
---
think: Now I know.
say: Both are sunny.
---
think: As before.
say: Still sunny.
"""
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]


class World(NamedTuple):
    """A gateway on a store, with a strict provider behind it."""

    url: str
    upstream: Upstream
    key: str

    def ask(self, provider: str, history: list[Json], *, key: str | None = None) -> httpx.Response:
        body = {"model": "deepseek-v4-pro", "messages": history, "tools": TOOLS}
        headers = {"authorization": f"Bearer {key or self.key}", "x-thoughtline-session": SESSION}
        return httpx.post(f"{self.url}/{provider}/v1/chat/completions", json=body, headers=headers, timeout=60)

    def admin(self, path: str, change: Json | None = None) -> Json:
        headers = {"authorization": f"Bearer {ADMIN}"}
        method = "GET" if change is None else "PATCH"
        response = httpx.request(method, f"{self.url}{path}", json=change, headers=headers, timeout=60)
        assert response.status_code == 200, response.text
        return dict(response.json())


@contextlib.contextmanager
def world(store: str, key: str = "") -> Iterator[World]:
    """DeepSeek, and a GLM that refuses like DeepSeek: the gateway does not expect that until it learns it."""
    upstream = Upstream()
    upstream.apps = dict.fromkeys(("deepseek", "glm"), simulator_app("deepseek", "tools", seed=7, now=lambda: NOW))
    with gateway(SETTINGS, store=store, proxy=upstream.url) as url:
        yield World(url, upstream, key)


def converse(here: World, provider: str, turns: int) -> list[Json]:
    """Play a client that forgets the model's reasoning; return the history that it sends next."""
    history: list[Json] = [{"role": "user", "content": OPENING}]
    for _ in range(turns):
        response = here.ask(provider, history)
        assert response.status_code == 200, response.text
        message = response.json()["choices"][0]["message"]
        calls = message.get("tool_calls") or []
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "21 degrees"} for call in calls]
        kept = {name: value for name, value in message.items() if name != "reasoning_content"}
        history += [kept, *(results or [{"role": "user", "content": "And now?"}])]
    return history


def keys(store: str, *words: str) -> str:
    """What `thoughtline keys` prints."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", START.replace("NOW", repr(NOW)), "keys", *words, "--store", store]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment(folder))
    return done.stdout.strip()


def fill(store: str) -> Json:
    """Fill a new store, and return what a later version should find in it."""
    key = keys(store, "add", "ada")
    revoked = keys(store, "add", "bob")
    keys(store, "revoke", "bob")
    with world(store, key) as here:
        histories = {provider: converse(here, provider, 3) for provider in ("deepseek", "glm")}
        here.admin("/api/settings", {"continuity": {"enabled": True, "count": 7}, "tags": {"mode": "lift"}})
        here.upstream.taken()
    with world(store, key) as here:
        sent = {provider: _sent(here, provider, history) for provider, history in histories.items()}
    return {"key": key, "revoked": revoked, "histories": histories, "sent": sent}


def _sent(here: World, provider: str, history: list[Json]) -> Any:
    response = here.ask(provider, history)
    assert response.status_code == 200, response.text
    (sent,) = here.upstream.taken()
    return json.loads(sent.body)


@contextlib.contextmanager
def restored(engine: str, server: str, folder: Path) -> Iterator[str]:
    """Restore the old store to a database of its own, and return its address."""
    data = (FIXTURES / FILES[engine]).read_bytes()
    if engine == "sqlite":
        (folder / "store.db").write_bytes(data)
        yield f"sqlite:///{folder / 'store.db'}"
        return
    with own_database(server) as url:
        load_redis(url, data) if engine == "redis" else asyncio.run(_load_postgres(url, data))
        yield url


def dump_sqlite(url: str, file: Path) -> None:
    file.unlink(missing_ok=True)
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    connection.execute("VACUUM INTO ?", (str(file),))
    connection.close()


def dump_redis(url: str, file: Path) -> None:
    """Return every key as a command. Expiry by the server's clock is omitted: the fixture's time stands still."""
    client: Any = redis.Redis.from_url(url)
    commands = [_command(client, key) for key in sorted(client.keys()) if key != b"taken"]
    lines = [json.dumps([base64.b64encode(part).decode() for part in command]) for command in commands]
    file.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    client.close()


def _command(client: Any, key: bytes) -> list[bytes]:
    match client.type(key):
        case b"string":
            return [b"SET", key, client.get(key) or b""]
        case b"hash":
            return [b"HSET", key, *(part for pair in sorted(client.hgetall(key).items()) for part in pair)]
        case b"set":
            return [b"SADD", key, *sorted(client.smembers(key))]
        case b"zset":
            pairs = client.zrange(key, 0, -1, withscores=True)
            return [b"ZADD", key, *(part for member, score in pairs for part in (repr(score).encode(), member))]
        case kind:
            raise TypeError(f"a key of the kind {kind!r}")


def load_redis(url: str, data: bytes) -> None:
    client: Any = redis.Redis.from_url(url)
    for command in json.loads(data):
        client.execute_command(*(base64.b64decode(part) for part in command))
    client.close()


def dump_postgres(url: str, file: Path, programs: Path) -> None:
    command = [str(programs / "pg_dump"), "--inserts", "--no-owner", "--no-privileges", "--dbname", url]
    dump = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line for line in dump.splitlines() if line and not line.startswith(("--", "\\"))]
    file.write_text("\n".join(lines) + "\n")


async def _load_postgres(url: str, data: bytes) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(data.decode())
    await connection.close()


def main() -> None:
    FIXTURES.mkdir(exist_ok=True)
    valkey, postgres = Valkey(), Postgres()
    contents: Json = {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{folder}/store.db"
            contents["sqlite"] = fill(url)
            dump_sqlite(url, FIXTURES / FILES["sqlite"])
        with own_database(valkey.url) as url:
            contents["redis"] = fill(url)
            dump_redis(url, FIXTURES / FILES["redis"])
        with own_database(postgres.url) as url:
            contents["postgres"] = fill(url)
            dump_postgres(url, FIXTURES / FILES["postgres"], postgres.programs)
    finally:
        valkey.remove()
        postgres.remove()
    CONTENTS.write_text(json.dumps(contents, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
