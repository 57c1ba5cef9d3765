"""The command line. Each command is a few lines over a function that can be called without it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version


def parser() -> argparse.ArgumentParser:
    """The commands and their options; `docs/cli.md` is made from it."""
    root = argparse.ArgumentParser(
        prog="thoughtline",
        description="Remembers what a model thought and puts it back where the provider wants it.",
    )
    root.add_argument("--version", action="version", version=f"thoughtline {version('thoughtline')}")
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the console script."""
    root = parser()
    root.parse_args(arguments)
    root.print_help()
    return 0


if __name__ == "__main__":
    sys.exit(main())
