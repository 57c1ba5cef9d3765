"""python -m tools.bodies OUT.json                              a digest of every body, in each of two checkouts
python -m tools.bodies --compare A.json B.json               the names whose bytes differ
python -m tools.bodies OUT.json --only TEXT --dump FOLDER    also the bytes, of the names with TEXT in them
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tools.bodies.book import Book
from tools.bodies.recorded import recorded
from tools.bodies.simulated import simulated


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bodies")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--compare", action="store_true", help="two files: list the names whose bytes differ")
    parser.add_argument("--only", default="", metavar="TEXT", help="only dialogues and recordings with this name")
    parser.add_argument("--dump", type=Path, metavar="FOLDER", help="keep the bytes there")
    chosen = parser.parse_args()
    if chosen.compare:
        return compare(*(_read(file, chosen.only) for file in chosen.files))
    book = Book(chosen.dump, chosen.only)
    simulated(book)
    recorded(book)
    chosen.files[0].write_text(json.dumps(book.digests, indent=0, sort_keys=True, ensure_ascii=False) + "\n")
    print(f"{len(book.digests)} digests; answers by status: {dict(sorted(book.statuses.items()))}")
    return 0


def _read(file: Path, only: str) -> dict[str, str]:
    return {name: digest for name, digest in json.loads(file.read_text()).items() if only in name}


def compare(before: dict[str, str], after: dict[str, str]) -> int:
    """How many names differ; each is printed."""
    differing = [name for name in sorted(before | after) if before.get(name) != after.get(name)]
    for name in differing:
        how = "differs" if name in before and name in after else "is gone" if name in before else "is new"
        print(f"{how:8} {name}")
    print(f"{len(differing)} of {len(before | after)} names differ")
    return 1 if differing else 0


if __name__ == "__main__":
    raise SystemExit(main())
