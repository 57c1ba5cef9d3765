"""The history with many requests in it: `python -m bench.history [--requests 1000000] [--stores sqlite postgres]`.

A store's history is filled with requests of thirty days: ten people, twelve models, conversations of agents with up to
100 turns. Then a gateway on it is asked for every page that the dashboard shows, each three times; the slowest is told. How
large a request is on the disk is told, how long a clean-up to half of the size takes, and what is left.

    python -m bench.history --cost

CPU per request with the history and without, taking turns in one process, on SQLite, with an upstream that answers at
once; and how much of it the thread that writes takes.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import resource
import statistics
import tempfile
import time
from pathlib import Path

import httpx
import uvicorn

from bench import remembering
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.gateway.app import Gateway
from thoughtline.gateway.client_keys import NoKeys
from thoughtline.gateway.history import entry_of
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
    return Served(line, True, at, seconds, 0.7, path, agent, f"key{person}", caller, "", tokens, (attempt,), "1-a")


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
            print(
                f"  {size.entries:>9,} requests   {size.bytes / 2**20:>7.0f} MiB   {size.bytes / size.entries:.0f} bytes each"
            )
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
            took = []
            for _ in range(3):
                began = time.perf_counter()
                answer = await client.get(path.format(week=week, id=middle))
                took.append((time.perf_counter() - began) * 1000)
                assert answer.status_code == 200, answer.text
            print(f"  {name:28} {max(took):7.0f} ms   {len(answer.content):>9,} bytes", flush=True)
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


async def cost(requests: int, turns: int) -> None:
    """Both gateways in one process, a few requests of each by turns."""
    apps: list[Gateway] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, size in (("on", 2**30), ("off", 0)):
            url = f"sqlite:///{folder}/{name}.db"

            async def opened(url: str = url, size: int = size) -> State:
                settings = Settings(providers=PROVIDERS, store_url=url, history=HistorySettings(max_bytes=size))
                return make_state(settings, await open_store(url, settings.store), NoKeys(), Journal())

            app, upstreams = Gateway(opened), remembering.AtOnce()
            await app.start()
            app.state = app.state._replace(upstreams=upstreams)  # type: ignore[arg-type] # all that is asked of it
            for number in range(turns):
                upstreams.pieces = [remembering.answer(number)]
                await remembering.ask(app, remembering.body(number))
            upstreams.pieces = [remembering.answer(turns)]
            apps.append(app)
        content, spent = remembering.body(turns), ([], [])  # type: tuple[list[float], list[float]]
        gc.disable()
        for _ in range(requests // 100):
            for app, costs in zip(apps, spent, strict=True):
                began = time.process_time()
                for _ in range(100):
                    await remembering.ask(app, content)
                await app.state.history.flush()
                costs.append((time.process_time() - began) / 100 * 1e6)
            gc.collect()
        on, off = (statistics.median(costs) for costs in spent)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{turns:>4} turns   on {on:7.1f} µs   off {off:7.1f} µs   {100 * (on / off - 1):+5.1f} %   {memory} MiB")
        for app in apps:
            await app.stop()


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--stores", nargs="+", default=["sqlite", "postgres"])
    parser.add_argument("--cost", action="store_true")
    options = parser.parse_args()
    if options.cost:
        for turns in (0, 10, 100):
            await cost(min(options.requests, 4000), turns)
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
    middle = await fill(url, requests)
    await ask_pages(url, middle)
    await clean(url)


if __name__ == "__main__":
    asyncio.run(main())
