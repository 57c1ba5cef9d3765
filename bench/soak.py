"""Mixed load with faults, for as long as it is told: does memory stay flat, and is any error of our own making?

    python -m bench.soak [--minutes 30] [--clients 6] [--workers 1] [--ill-seconds 10] [--memory-size 64MiB]

A gateway as `thoughtline serve` runs it, on a Valkey of its own, before strict simulators. Clients that forget hold
conversations of three turns in chat, Messages, Responses and Gemini, whole and streamed. At one request in ten the
client leaves in the middle of the answer, at another the upstream breaks off. Every ten seconds something happens to
the store: it is killed for ten seconds, or it hangs for ten; with `--ill-seconds 0` it stays well.

A 5xx is of our own making unless it tells of the upstream. A turn is unrestored if the gateway that heard it did not
put it back. Memory is flat if the last third of the run holds no more than 1.1 times what the second third held.
Exit status 1 if any of it is not so.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import httpx

from bench.load.usage import resident_bytes
from tests.gateway.forgetful_clients import Forgetful
from tests.sim.faces import CASES, Case
from tests.sim.served_simulators import served
from tests.stores.servers import Valkey

FACES = ("deepseek-openai_chat", "anthropic-classic", "openai-openai_responses", "gemini-gemini_generate")
OPENING = """How is the weather? {mark}
script:
think: First.
call: weather {{"city": "Paris"}}
---
think: Second.
call: weather {{"city": "Rome"}}
---
think: Third.
say: Both are sunny.
"""
WELL_SECONDS = 10.0
SAMPLE_SECONDS = 5.0
MAX_GROWTH = 1.1
OF_THE_UPSTREAM = ("upstream_", "answer_too_large")


class Soak:
    """What happened so far."""

    def __init__(self, seconds: float) -> None:
        self.ends = time.monotonic() + seconds
        self.counts: Counter[str] = Counter()
        self.problems: Counter[str] = Counter()
        self.samples: list[int] = []
        self.most_waiting = 0
        self._lock = threading.Lock()

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.ends

    def count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def blame(self, what: str) -> None:
        with self._lock:
            self.problems[what] += 1


class Gateway:
    """`thoughtline serve`, and what it says in its log."""

    def __init__(self, folder: Path, store: str, soak: Soak, *, cases: list[Case], options: argparse.Namespace) -> None:
        file = folder / "thoughtline.toml"
        rows = [
            f'[providers.{case.simulator}]\nbase_url = "{served(case.simulator, case.profile).url}"' for case in cases
        ]
        rows += [f'[store]\nmemory_size = "{options.memory_size}"']
        file.write_text("\n".join(dict.fromkeys(rows)) + "\n")
        command = [sys.executable, "-m", "thoughtline.cli", "serve", "--port", "0", "--config", str(file)]
        environment = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}
        self._soak = soak
        self.process = subprocess.Popen(
            [*command, "--store", store, "--workers", str(options.workers)],
            stderr=subprocess.PIPE,
            env=environment,
            text=True,
        )
        self.url = self._address()
        threading.Thread(target=self._read, daemon=True).start()
        httpx.get(f"{self.url}/healthz", timeout=60).raise_for_status()

    def _address(self) -> str:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            found = re.search(r"http://[\d.]+:\d+", line)
            if "listening" in line and found:
                return found[0]
        raise SystemExit("the gateway did not start")

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            try:
                told = json.loads(line)
            except ValueError:
                continue
            if "status" in told:
                self._judge(told)

    def _judge(self, line: dict[str, object]) -> None:
        self._soak.count(f"store {line['store']}")
        self._soak.count("late saves" if line["late"] else "saves in time")
        status, code = int(str(line["status"])), str(line["code"])
        if status >= 500 and not code.startswith(OF_THE_UPSTREAM):
            self._soak.blame(f"{status} {code or 'of the upstream, without a code'}")
        elif status >= 500:
            self._soak.count(f"{status} {code}")

    def waiting(self) -> int:
        """Turns that the store has not taken yet, as they were told last."""
        found = re.search(r"^thoughtline_store_waiting (\S+)", httpx.get(f"{self.url}/metrics", timeout=60).text, re.M)
        return int(float(found[1])) if found else 0

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)


def converse(soak: Soak, url: str, cases: list[Case], seed: int) -> None:
    """One client: a conversation after the other."""
    chance, number = random.Random(seed), 0
    with httpx.Client(timeout=60) as client:
        while not soak.is_over:
            number += 1
            case = chance.choice(cases)
            mark = f"client {seed}, conversation {number}"
            dialogue = Forgetful(f"{url}/{case.simulator}", case, OPENING.format(mark=mark), key=f"key-{seed}")
            try:
                _hold(soak, client, dialogue, chance)
            except (httpx.HTTPError, AssertionError) as problem:
                soak.blame(f"{type(problem).__name__} at the client")


def _hold(soak: Soak, client: httpx.Client, dialogue: Forgetful, chance: random.Random) -> None:
    for turn in range(3):
        is_streaming, fate = chance.random() < 0.7, chance.random()
        dialogue.headers = {"x-sim-chunk": "4", **({"x-sim-cut": "3"} if fate < 0.1 else {})}
        response = client.send(dialogue.request(is_streaming=is_streaming), stream=True)
        soak.count(f"answers {response.status_code}")
        if 0.1 <= fate < 0.2:
            next(response.iter_raw(), b"")
            response.close()
            soak.count("clients that left")
            return
        try:
            content = response.read()
        except httpx.RemoteProtocolError:
            soak.count("answers that broke off")
            return
        if response.status_code != 200 or fate < 0.1:
            return
        told = response.headers["x-thoughtline-replay"]
        soak.count("turns to restore" if turn else "conversations")
        if not told.startswith(f"restored={turn},"):
            soak.blame(f"{dialogue.case.id}, turn {turn}, unrestored: {told}")
        dialogue.go_on(dialogue.hear(content, is_streaming=is_streaming))


def trouble(soak: Soak, store: Valkey, ill_seconds: float) -> None:
    """What happens to the store: killed and started again, or stopped in the middle of everything."""
    is_hanging = False
    while not soak.is_over:
        time.sleep(WELL_SECONDS)
        if is_hanging:
            store.pause()
            time.sleep(ill_seconds)
            store.resume()
        else:
            store.stop()
            time.sleep(ill_seconds)
            store.start()
        soak.count("times the store hung" if is_hanging else "times the store was killed")
        is_hanging = not is_hanging


def watch(soak: Soak, gateway: Gateway) -> None:
    while not soak.is_over:
        time.sleep(SAMPLE_SECONDS)
        soak.samples.append(resident_bytes(gateway.process.pid))
        soak.most_waiting = max(soak.most_waiting, gateway.waiting())
        if gateway.process.poll() is not None:
            soak.blame("the gateway ended")
            soak.ends = time.monotonic()


def report(soak: Soak, minutes: float) -> int:
    for name, count in sorted((soak.counts + soak.problems).items()):
        print(f"{name:<60}{count:>12,}")
    print(f"{'turns that waited for the store, at most':<60}{soak.most_waiting:>12,}")
    mebibytes = [size / 2**20 for size in soak.samples]
    third = len(mebibytes) // 3 or 1
    middle, last = statistics.mean(mebibytes[third : 2 * third] or mebibytes), statistics.mean(mebibytes[-third:])
    tenths = [
        statistics.mean(mebibytes[at : at + max(1, len(mebibytes) // 10)])
        for at in range(0, len(mebibytes), max(1, len(mebibytes) // 10))
    ]
    print("MiB held, each tenth of the run:", " ".join(f"{size:.0f}" for size in tenths))
    growth = last / middle
    print(f"the last third to the second: {growth:.3f}; {minutes:g} minutes")
    print("not of the upstream's making, or unrestored:", dict(soak.problems) or "none")
    is_held = not soak.problems and growth <= MAX_GROWTH
    print("held: memory is flat, no error of our own, every turn restored" if is_held else "NOT HELD")
    return 0 if is_held else 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.soak")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--ill-seconds", type=float, default=10.0)
    parser.add_argument("--memory-size", default="64MiB")
    options = parser.parse_args()
    cases = [next(case for case in CASES if case.id.startswith(face)) for face in FACES]
    store = Valkey()
    with tempfile.TemporaryDirectory(prefix="thoughtline-soak-") as folder:
        soak = Soak(options.minutes * 60)
        gateway = Gateway(Path(folder), store.url, soak, cases=cases, options=options)
        threads = [
            threading.Thread(target=converse, args=(soak, gateway.url, cases, seed)) for seed in range(options.clients)
        ]
        if options.ill_seconds:
            threads += [threading.Thread(target=trouble, args=(soak, store, options.ill_seconds))]
        threads += [threading.Thread(target=watch, args=(soak, gateway))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if gateway.stop() not in (0, -signal.SIGTERM):
            soak.blame("the gateway did not end well")
    store.remove()
    return report(soak, options.minutes)


if __name__ == "__main__":
    sys.exit(main())
