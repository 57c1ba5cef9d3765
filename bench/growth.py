"""What a request costs when the conversation is ten times as long: `python -m bench.growth [--only WORD ...]`.

Every client's format with every provider, and every kind of history, through a whole gateway in process with a made-up
provider. Processor time of all threads, the best of five; ten times the messages may cost twelve times as much. The
exit status is 1 where they cost more. `tests/gateway/test_growth.py` counts calls instead, for some of the cells.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.gateway.long_conversations import Asker, Cell, cells, with_cell

FEW, MANY = 100, 1000
MOST = 12.0
_ROUNDS = 5


async def _best_seconds(asker: Asker) -> tuple[float, str]:
    """Of one request, and what was done for it."""
    done = await asker.ask()
    best = float("inf")
    for _ in range(_ROUNDS):
        before = time.process_time()
        await asker.ask()
        best = min(best, time.process_time() - before)
    return best, done


def ratio(cell: Cell) -> float:
    """How many times as much; printed."""
    few, _ = with_cell(cell, FEW, _best_seconds)
    many, done = with_cell(cell, MANY, _best_seconds)
    grown = many / few
    mark = "  !" if grown > MOST else ""
    print(
        f"{cell.id:<48} {few * 1e3:>8.2f} {many * 1e3:>8.2f} {grown:>6.1f}{mark:<4} {done.partition(',')[0]}",
        flush=True,
    )
    return grown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="only cells whose names contain all of these")
    asked = parser.parse_args()
    chosen = [cell for cell in cells() if all(word in cell.id for word in asked.only)]
    print(f"{'client, provider, history':<48} {f'{FEW}, ms':>8} {f'{MANY}, ms':>8} {'ratio':>6}")
    grown = [ratio(cell) for cell in chosen]
    above = sum(one > MOST for one in grown)
    print(f"{len(grown)} cells, {above} above {MOST:.0f}, at most {max(grown, default=0):.1f}")
    sys.exit(1 if above else 0)


if __name__ == "__main__":
    main()
