"""Fuzzing of the codecs: does any input do anything else than be read and written back, or be refused by name?

    python -m bench.fuzz [--minutes 10] [--formats openai_chat …] [--corpus FOLDER] [--seed 1]
    python -m bench.fuzz --replay [--formats openai_chat …] [--corpus FOLDER]

So many minutes for each format. Seeds are the wire cases of the tests, the recordings that `THOUGHTLINE_RECORDINGS`
names, and the corpus of earlier runs. An input that reaches a new line of the format's code is kept in the corpus; it
may quote a recording, so keep the folder outside of the repository. An input that breaks a law goes into `failures/`
there. The laws are those of `tests/formats/test_hostile.py`: a body is written back byte for byte, or refused with an
error that names its place; a stream that is not broken says the same however it is cut.

An input decides itself where it is cut as a stream, so the same input gives the same result in every run. `--replay`
tries nothing new: it checks the corpus and the failures of earlier runs once, and names the files that still fail.

Exit status 1 if a law was broken.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from tests.formats.test_hostile import read_body, read_stream
from tests.recordings import ALL, LEFT_OUT
from tests.wire_cases import REQUESTS, RESPONSES, STREAMS
from thoughtline.formats import FORMATS, Wire
from thoughtline.values.errors import DecodeError
from thoughtline.values.events import Event

CODE = str(Path(sys.modules["thoughtline.formats"].__file__ or "").parent)
FOLDER = Path.home() / ".cache" / "thoughtline-fuzz"
MAX_BYTES = 64 * 2**10
MAX_SHOWN = 10
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 1e308, 2**63, "", " ", "\x00", "\ud800", "a" * 1000, [], {}, [[]], [None], {"": None},
    {"type": "text"}, {"type": "thinking", "thinking": None}, [{"type": "tool_use"}],
)  # fmt: skip  # values, no list of lines
TOKENS = (b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\\u0000", b"\\ud800", b"null", b"\xff", b"\n\n", b"data: ")


class Lines:
    """Which lines of the formats' code have run."""

    def __init__(self) -> None:
        self._seen: set[tuple[CodeType, int]] = set()
        self._news = 0

    def count_new(self, do: Callable[[], None]) -> int:
        """How many lines ran for the first time."""
        self._news = 0
        sys.settrace(self._enter)
        try:
            do()
        finally:
            sys.settrace(None)
        return self._news

    def _enter(self, frame: FrameType, event: str, value: object) -> Callable[..., Any] | None:
        return self._line if frame.f_code.co_filename.startswith(CODE) else None

    def _line(self, frame: FrameType, event: str, value: object) -> Callable[..., Any]:
        place = (frame.f_code, frame.f_lineno)
        if place not in self._seen:
            self._seen.add(place)
            self._news += 1
        return self._line


def seeds_of(row: Wire) -> list[bytes]:
    """Bodies and streams of this format."""
    cases = [case for case in (*REQUESTS, *RESPONSES, *STREAMS) if case.format.name == row.name]
    found = [data for case in cases for data in (case.bytes_of("request.json"), case.bytes_of("response.json"))]
    found += [case.stream for case in cases]
    for recording in ALL:
        if recording.entry["family"] in LEFT_OUT:
            continue
        for exchange in recording.exchanges:
            if exchange.format.name == row.name:
                found += [exchange.request, exchange.response, exchange.stream]
    return list(dict.fromkeys(data for data in found if data is not None and len(data) <= MAX_BYTES))


def mutated(data: bytes, other: bytes, chance: random.Random) -> bytes:
    """Another input, made of one or two."""
    if chance.random() < 0.5 and (edited := _edited(data, chance)) is not None:
        return edited
    for _ in range(chance.randrange(1, 4)):
        at, end = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
        end = min(end, at + 200)
        kind = chance.randrange(5)
        if kind == 0:
            data = data[:at] + data[end:]
        elif kind == 1:
            data = data[:end] + data[at:end] + data[end:]
        elif kind == 2:
            data = data[:at] + chance.choice(TOKENS) + data[at:]
        elif kind == 3:
            data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
        else:
            cut = chance.randrange(len(other) + 1)
            data = data[:at] + other[cut : cut + 500] + data[end:]
    return data[:MAX_BYTES]


def _edited(data: bytes, chance: random.Random) -> bytes | None:
    """JSON with another value in one place; None for what is no JSON."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    places: list[tuple[Any, Any]] = []
    stack = [value]
    while stack:
        one = stack.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        places += [(one, key) for key in keys]
        stack += [one[key] for key in keys]
    if not places:
        return None
    for _ in range(chance.randrange(1, 4)):
        (holder, key), (donor, other) = chance.choice(places), chance.choice(places)
        value_there = donor[other] if _has(donor, other) else None
        if _has(holder, key):
            holder[key] = chance.choice(ODD) if chance.random() < 0.7 else json.loads(json.dumps(value_there))
    return json.dumps(value, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")


def _has(holder: Any, key: Any) -> bool:
    return key in holder if isinstance(holder, dict) else key < len(holder)


def check(row: Wire, data: bytes) -> None:
    """Raises where a law is broken."""
    read_body(row, data)
    read_stream(row, data)
    cut = cut_of(data)
    whole, parts = said(row, [data]), said(row, [data[:cut], data[cut:]])
    assert None in (whole, parts) or whole == parts, "a stream says something else when it is cut"


def cut_of(data: bytes) -> int:
    """Where an input is cut in two: anywhere, and always at the same place."""
    return int.from_bytes(blake2b(data, digest_size=8).digest()) % (len(data) + 1)


def said(row: Wire, pieces: list[bytes]) -> list[Event] | None:
    """The events of a stream; None if it is broken: an error comes with the piece after it, or at the end."""
    decoder, events = row.stream_decoder(row.dialect), list[Event]()
    try:
        for piece in pieces:
            events += decoder.feed(piece)
        events += decoder.finish()
    except DecodeError:
        return None
    return events


class Fuzz:
    """One format, for a while."""

    def __init__(self, row: Wire, folder: Path, seed: int) -> None:
        self._row, self._lines, self._chance = row, Lines(), random.Random(seed)
        self._folder = folder / row.name
        (self._folder / "failures").mkdir(parents=True, exist_ok=True)
        kept = [path.read_bytes() for path in sorted(self._folder.iterdir()) if path.is_file()]
        self._corpus = [*seeds_of(row), *kept]
        self.seeds, self.tried, self.kept, self.longest = len(self._corpus), 0, 0, 0.0
        self.failures: Counter[str] = Counter()

    def run(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        for data in tuple(self._corpus):
            if time.monotonic() < ends:
                self._try(data)
        while time.monotonic() < ends:
            data = mutated(self._chance.choice(self._corpus), self._chance.choice(self._corpus), self._chance)
            if self._try(data):
                self._corpus.append(data)
                self._keep(self._folder, data)
                self.kept += 1

    def _try(self, data: bytes) -> bool:
        """Whether it has shown something new."""
        self.tried += 1
        began = time.monotonic()
        try:
            news = self._lines.count_new(lambda: check(self._row, data))
        except Exception as problem:
            self.failures[words_of(problem)] += 1
            self._keep(self._folder / "failures", data)
            return False
        self.longest = max(self.longest, time.monotonic() - began)
        return news > 0

    def _keep(self, folder: Path, data: bytes) -> None:
        (folder / blake2b(data, digest_size=16).hexdigest()).write_bytes(data)


def words_of(problem: Exception) -> str:
    return f"{type(problem).__name__}: {str(problem)[:80]!r}"


def replay(row: Wire, folder: Path) -> Counter[str]:
    """What is still wrong with the inputs that earlier runs have kept, each with its file."""
    files = sorted(path for path in (folder / row.name).rglob("*") if path.is_file())
    failures: Counter[str] = Counter()
    for path in files:
        try:
            check(row, path.read_bytes())
        except Exception as problem:
            failures[f"{row.name}: {words_of(problem)} in {path}"] += 1
    print(f"{row.name:<22}{len(files):>8,} replayed{failures.total():>8,} failures", flush=True)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz")
    parser.add_argument("--minutes", type=float, default=10.0, help="for each format")
    parser.add_argument("--formats", nargs="+", choices=tuple(FORMATS), default=tuple(FORMATS))
    parser.add_argument("--corpus", type=Path, default=FOLDER)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay", action="store_true", help="check what earlier runs have kept, and nothing else")
    options = parser.parse_args()
    failures: Counter[str] = Counter()
    if not options.replay:
        print(f"{'format':<22}{'seeds':>8}{'tried':>10}{'kept':>7}{'longest ms':>12}{'failures':>10}", flush=True)
    for name in options.formats:
        if options.replay:
            failures += replay(FORMATS[name], options.corpus)
            continue
        fuzz = Fuzz(FORMATS[name], options.corpus, options.seed)
        fuzz.run(options.minutes * 60)
        figures = (fuzz.seeds, fuzz.tried, fuzz.kept, fuzz.longest * 1000, fuzz.failures.total())
        print("{:<22}{:>8,}{:>10,}{:>7,}{:>12.0f}{:>10,}".format(name, *figures), flush=True)
        failures.update({f"{name}: {words}": count for words, count in fuzz.failures.items()})
    for words, count in failures.most_common(MAX_SHOWN):
        print(f"{count:>8,}  {words}")
    print("no law was broken" if not failures else f"BROKEN: see failures/ in {options.corpus}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
