"""The history with many requests in it: `python -m bench.history [--requests 1000000] [--stores sqlite postgres]`.

A store's history is filled with requests of thirty days: ten people, twelve models, conversations of agents with up to
100 turns. Then a gateway on it is asked for every page that the dashboard shows, each three times; the slowest is told.
So is how large a request is on the disk, how long a clean-up to half of the size takes, and what is left.

    python -m bench.history --cost

CPU per request of two gateways, one with a history and one without, each a process with SQLite that is asked by turns:
the thread that writes and all else.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import uvicorn

from bench import remembering
from tests.gateway.upstreams import Got, Out, upstream
from tests.stores.servers import free_port
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.gateway.app import Gateway
from thoughtline.gateway.client_keys import NoKeys
from thoughtline.gateway.history_writer import entry_of
from thoughtline.gateway.journal import Journal, Line
from thoughtline.gateway.recent import AttemptNote, ContractNote, RefusalNote, Served
from thoughtline.gateway.serving import server_config
from thoughtline.gateway.state import State, make_state
from thoughtline.settings import Settings
from thoughtline.stores import StoreSettings, open_store
from thoughtline.stores.history import DAY, HistorySettings, history_at
from thoughtline.stores.packing import Packer
from thoughtline.values.outcome import NoteChain, TurnNote

BATCH = 2000
PER_ROUND = 400
TOKEN = "the-bench-s-own-token"
MODELS = [("deepseek", "deepseek-v4-pro"), ("kimi", "kimi-k2"), ("openai", "gpt-6"), ("anthropic", "claude-opus-5")]
MODELS += [("qwen", f"qwen-{size}") for size in ("max", "plus", "flash", "coder")]
MODELS += [("openrouter", f"z-ai/glm-{number}") for number in range(4)]
AGENTS = ["claude-cli/2.0", "codex_cli_rs/0.5", "OpenAI/Python 2.1", "opencode/1.0"]
CONTRACT = ContractNote("deepseek-v4", "presence", "all", "text", "reasoning_content", "api-docs.deepseek.com, 2026-11")
PAGES = {
    "newest requests": "/api/requests",
    "a page far back": "/api/requests?until={week}&limit=200",
    "one person's": "/api/requests?caller=person-7",
    "failures of a model": "/api/requests?model=gpt-6&status=4xx",
    "all but one provider": "/api/requests?provider=!openrouter&range=30d",
    "a session": "/api/requests?session=session-4242",
    "search: a session": "/api/requests?text=session-4242",
    "search: words of an error": "/api/requests?text=no-such-words",
    "one explained": "/api/requests/{id}",
    "chart of 15 minutes": "/api/series?range=15m",
    "chart of a day": "/api/series?range=24h",
    "chart of 90 days": "/api/series?range=90d",
    "numbers by model": "/api/numbers?by=model&range=30d",
    "numbers by day": "/api/numbers?by=day&range=30d",
    "people": "/api/people",
    "a person": "/api/people/tenant-7",
}


def made_up(number: int, at: float, chance: random.Random) -> Served:
    """A request of a conversation."""
    provider, model = chance.choice(MODELS)
    person, turns, is_refused = chance.randrange(10), chance.randrange(100), chance.random() < 0.03
    line = Line(
        at=at,
        request=f"{chance.getrandbits(64):016x}",
        tenant=f"tenant-{person}",
        method="POST",
        route="generate",
        provider=provider,
        format="openai_chat",
        model=model,
        status=400 if is_refused else 200,
        session=f"session-{number // 50}",
        restored=turns,
        input_tokens=20_000,
        cached_tokens=18_000,
        reasoning_tokens=300,
        own_ms=1.2,
        upstream_ms=4321.0,
        bytes_up=80_000,
        bytes_down=4_000,
    )
    notes = NoteChain(None, tuple(TurnNote(2 * turn, "restored", "lineage", f"{turn:032x}") for turn in range(turns)))
    words = f"The model is overloaded, incident {chance.getrandbits(40):x}"
    refusals = (RefusalNote(400, 0.2, words, "overloaded", None, words),) if is_refused else ()
    attempt = AttemptNote(
        provider,
        model,
        "openai_chat",
        f"https://api.{provider}.example/v1/chat/completions",
        is_translated=False,
        status=line.status,
        error="",
        started_seconds=0.001,
        upstream_seconds=4.3,
        bytes_up=80_000,
        sends=1,
        refusals=refusals,
        was_healed=False,
        contract=CONTRACT,
        corrections=(),
        notes=notes,
    )
    path, agent = f"/{provider}/v1/chat/completions", AGENTS[person % len(AGENTS)]
    seconds, tokens = 4.4, (20_000, 600, 300, 18_000)
    caller = f"person-{person}"
    return Served(
        line, True, at, seconds, 0.7, path, agent, f"key{person}", caller, "", tokens, (attempt,), worker="1-a"
    )


async def fill(url: str, requests: int) -> str:
    """The id of a request in the middle."""
    history = history_at(url, StoreSettings(), HistorySettings(90 * DAY, 2**40), time.time)
    await history.open()
    chance, packer, began, middle = random.Random(1), Packer(), time.time() - 30 * DAY, ""
    for start in range(0, requests, BATCH):
        ats = (began + 30 * DAY * number / requests for number in range(start, min(start + BATCH, requests)))
        entries = [entry_of(made_up(start + at, moment, chance), packer) for at, moment in enumerate(ats)]
        await history.write(entries)
        if start <= requests // 2 < start + BATCH:
            middle = entries[0].id
        if (start // BATCH) % 50 == 49:
            size = await history.size()
            each = size.bytes / size.entries
            print(f"  {size.entries:>9,} requests   {size.bytes / 2**20:>7.0f} MiB   {each:.0f} bytes each", flush=True)
    await history.close()
    return middle


async def ask_pages(url: str, middle: str) -> None:
    settings = Settings(providers=PROVIDERS, store_url=url, history=HistorySettings(90 * DAY, 2**40))

    async def opened() -> State:
        return make_state(settings, await open_store(url, settings.store), NoKeys(), Journal(), TOKEN)

    config = server_config(Gateway(opened))
    config.port = 0
    server = uvicorn.Server(config)
    serving = asyncio.ensure_future(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    week = time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(time.time() - 7 * DAY))
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
        for name, path in PAGES.items():
            took, spent = [], []
            for _ in range(3):
                began, cpu = time.perf_counter(), time.process_time()
                answer = await client.get(path.format(week=week, id=middle))
                took.append((time.perf_counter() - began) * 1000)
                spent.append((time.process_time() - cpu) * 1000)
                assert answer.status_code == 200, answer.text
            size = len(answer.content)
            print(f"  {name:28} {max(took):7.0f} ms   {max(spent):6.0f} ms of CPU   {size:>9,} bytes", flush=True)
    server.should_exit = True
    await serving


async def clean(url: str) -> None:
    """To half of its size."""
    history = history_at(url, StoreSettings(), HistorySettings(90 * DAY, 2**40), time.time)
    await history.open()
    before = await history.size()
    await history.close()
    history = history_at(url, StoreSettings(), HistorySettings(90 * DAY, before.bytes // 2), time.time)
    await history.open()
    began = time.perf_counter()
    gone = await history.clean()
    after = await history.size()
    took = time.perf_counter() - began
    print(
        f"  cleaned to {before.bytes // 2**21} MiB in {took:.0f} s: {gone:,} went, {after.bytes // 2**20} MiB are left"
    )
    await history.close()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def gateway(folder: Path, name: str, size: str, upstream_url: str) -> Iterator[tuple[int, str]]:
    """`thoughtline serve` with a history of this size; its process and address."""
    port = free_port()
    config = folder / f"{name}.toml"
    tables = {"store": f'url = "sqlite:///{folder}/{name}.db"', "history": f'max_size = "{size}"'}
    tables |= {"server": f"port = {port}", "providers.deepseek": f'base_url = "{upstream_url}"'}
    config.write_text("\n".join(f"[{table}]\n{line}" for table, line in tables.items()))
    command = [sys.executable, "-m", "thoughtline.cli", "serve", "--config", str(config), "--log", "json"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            until_ready(url)
            yield process.pid, url
        finally:
            process.terminate()


def until_ready(url: str) -> None:
    for _ in range(600):
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{url}/readyz").status_code == 200:
                return
        time.sleep(0.05)
    raise TimeoutError(url)


def cost(rounds: int, turns: int) -> None:
    """Two gateways, asked by turns; each as busy as the other."""

    async def answered(got: Got, out: Out) -> None:
        await out.whole(200, remembering.answer(got.body.count(b'"assistant"')))

    with tempfile.TemporaryDirectory() as folder, upstream(answered) as up, contextlib.ExitStack() as running:
        gateways = [
            running.enter_context(gateway(Path(folder), name, size, up.url))
            for name, size in (("on", "1GiB"), ("off", "0"))
        ]
        content = remembering.body(turns)
        costs: tuple[list[float], list[float]] = ([], [])
        with httpx.Client(headers={"authorization": "Bearer x", "content-type": "application/json"}) as client:

            def ask(url: str, body: bytes) -> None:
                answer = client.post(f"{url}/deepseek/v1/chat/completions", content=body)
                assert answer.status_code == 200, answer.text

            for _, url in gateways:
                for number in range(turns):
                    ask(url, remembering.body(number))
            for _ in range(rounds):
                for (pid, url), found in zip(gateways, costs, strict=True):
                    began = cpu_seconds(pid)
                    for _ in range(PER_ROUND):
                        ask(url, content)
                    time.sleep(1.0)  # until all of it is written
                    found.append((cpu_seconds(pid) - began) / PER_ROUND * 1e6)
        on, off = (statistics.median(found) for found in costs)
        pairs = statistics.median(one / other for one, other in zip(*costs, strict=True))
        print(f"{turns:>4} turns   on {on:7.0f} µs   off {off:7.0f} µs   {100 * (pairs - 1):+5.1f} %", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--stores", nargs="+", default=["sqlite", "postgres"])
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    if options.cost:
        for turns in (0, 10, 100):
            cost(options.rounds, turns)
        return
    for kind in options.stores:
        print(kind)
        with tempfile.TemporaryDirectory() as folder:
            if kind == "sqlite":
                await run(f"sqlite:///{Path(folder) / 'bench.db'}", options.requests)
            else:
                from tests.stores.servers import Postgres  # a server of its own, for this kind alone

                server = Postgres()
                try:
                    await run(server.url, options.requests)
                finally:
                    server.remove()


async def run(url: str, requests: int) -> None:
    middle = await fill(url, requests) if requests else ""
    await ask_pages(url, middle)
    await clean(url)


if __name__ == "__main__":
    asyncio.run(main())
