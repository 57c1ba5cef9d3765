"""Whose reasoning comes back, over made-up conversations that interleave: wrong, not restored and restored turns.

    python -m bench.made_up [--turns 100000] [--kind WORDS] [--format FORMAT]

Every request of every conversation goes through a line; every model turn in it counts. The exit status is 1 if a turn
carried another conversation's thought. `equal` are thoughts of a conversation that is visibly the same, `misplaced`
those of another turn of the same conversation; the turn's own was never captured then.
`tests/replay/interleaved_conversations.py` says what is made up.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.replay.interleaved_conversations import KINDS, PLAYED, Counts, Kind, play
from tests.written_exchanges import Speaker
from thoughtline import Line


def run(turns: int, kinds: dict[str, Kind], speakers: tuple[Speaker, ...]) -> Counts:
    """Play every kind with every speaker until so many turns were sent in all, and print a row for each kind."""
    total = Counts()
    print(f"{'kind':<50} {'turns':>9} {'wrong':>7} {'equal':>7} {'misplaced':>9} {'not restored':>13} {'restored':>9}")
    with Line("memory://") as line:
        for name, kind in kinds.items():
            counts = played(kind, turns // len(kinds), speakers, line)
            total = total.plus(counts)
            print(row(name, counts), flush=True)
    print(row("all", total))
    return total


def played(kind: Kind, turns: int, speakers: tuple[Speaker, ...], line: Line) -> Counts:
    """Worlds of one kind, one for each speaker in turn, until there were enough turns."""
    counts, seed = Counts(), 0
    while counts.turns < turns or seed < len(speakers):
        counts = counts.plus(play(kind, speakers[seed % len(speakers)], seed=seed, line=line))
        seed += 1
    return counts


def row(name: str, counts: Counts) -> str:
    share = counts.restored / counts.turns if counts.turns else 0.0
    found = f"{counts.turns:>9} {counts.wrong:>7} {counts.equal:>7} {counts.misplaced:>9}"
    return f"{name:<50} {found} {counts.not_restored:>13} {counts.restored:>9} {share:>7.2%}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.made_up", description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=100_000, help="model turns in all, about (100000)")
    parser.add_argument("--kind", default="", help="only kinds with these words in their name")
    parser.add_argument("--format", default="", help="only this format", choices=[one.format for one in PLAYED])
    asked = parser.parse_args()
    kinds = {name: kind for name, kind in KINDS.items() if asked.kind in name}
    if not kinds:
        parser.error(f"no kind has {asked.kind!r} in its name; there are: {', '.join(KINDS)}")
    speakers = tuple(one for one in PLAYED if asked.format in ("", one.format))
    started = time.monotonic()
    found = run(asked.turns, kinds, speakers)
    print(f"{time.monotonic() - started:.0f} s")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
