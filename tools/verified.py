"""What maintainers have verified with keys of their own: asks every provider that has one, and keeps what came of it.

python -m tools.verified    ask, and write tools/verified.toml; `make docs` makes docs/verified.md of it

Never in CI: a provider without a key in the environment is skipped.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from thoughtline.clients import example_models
from thoughtline.commands.doctor.live import LiveKey
from thoughtline.destinations.catalogue import PROVIDERS, Provider
from thoughtline.formats import FORMATS
from thoughtline.providers import host_named
from thoughtline.replay.detection import resolve
from thoughtline.toml.writing import write_table
from thoughtline.values.destination import Destination
from thoughtline.values.errors import ThoughtlineError
from thoughtline.verify.asking import Asker
from thoughtline.verify.checks import Subject, Verification

FILE = Path(__file__).parent / "verified.toml"
BUDGET = 8_000
"""Tokens for one provider."""


def kept() -> dict[str, Any]:
    """What was seen last, by provider, model and format."""
    return tomllib.loads(FILE.read_text()) if FILE.exists() else {}


async def ask(provider: Provider, key: str) -> dict[str, Any]:
    """A verification of the usual model, in each format that can be."""
    row, model = host_named(provider.name), example_models()[provider.name]
    assert row is not None
    asker, found = Asker(provider, key, BUDGET), {}
    try:
        for api in provider.formats:
            if {"untranslated", "signed_requests"} & FORMATS[api].quirks:
                continue
            target = Destination(provider.name, provider.bases.get(api, provider.base_url), model, api)
            results = await Verification(Subject(row, target, resolve(target)), asker).run()
            found[f"{provider.name}/{model}/{api}"] = {
                "day": datetime.now(UTC).date().isoformat(),
                "agrees": sum(one.verdict == "agrees" for one in results),
                "differs": [one.fact for one in results if one.verdict == "differs"],
                "unknown": [one.fact for one in results if one.verdict == "unknown"],
            }
    finally:
        asker.close()
    return found


def main() -> int:
    """Exit status 1 if anything differs from what is believed."""
    seen, asked = kept(), 0
    for provider in PROVIDERS.values():
        key = LiveKey(provider, os.environ)
        if not key.value or provider.name not in example_models() or provider.is_located:
            continue
        asked += 1
        print(f"asking {provider.name} ...", file=sys.stderr)
        try:
            seen |= asyncio.run(ask(provider, key.value))
        except ThoughtlineError as error:
            print(f"{provider.name}: {error}", file=sys.stderr)
    FILE.write_text("".join(write_table((name,), entry) + "\n" for name, entry in sorted(seen.items())))
    print(f"{asked} providers had a key in the environment; run `make docs`", file=sys.stderr)
    return 1 if any(entry["differs"] for entry in seen.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
