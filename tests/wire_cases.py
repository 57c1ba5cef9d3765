"""The hand-made cases in `tests/wire/<format>/<case>/`.

A case is a body or a stream as a provider or client would send it, and `expected.json`: what it says, and what the
case is about. Files: `request.json`, `response.json`, and one of `stream.sse`, `stream.ndjson`, `stream.array`,
`stream.hex`. A case with both a response and a stream says the same thing twice. `unwritable` marks a stream that our
encoder refuses, or can only write in another order.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thoughtline import providers
from thoughtline.formats import FORMATS, Wire
from thoughtline.providers import Dialect

ROOT = Path(__file__).parent / "wire"
_STREAMS = ("stream.sse", "stream.ndjson", "stream.array", "stream.hex")
DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in vars(providers).values() if isinstance(dialect, Dialect)
}


@dataclass(frozen=True)
class WireCase:
    """One folder."""

    folder: Path

    @property
    def name(self) -> str:
        return f"{self.folder.parent.name}/{self.folder.name}"

    @property
    def format(self) -> Wire:
        return next(row for name, row in FORMATS.items() if name == self.folder.parent.name)

    @property
    def expected(self) -> dict[str, Any]:
        expected: dict[str, Any] = json.loads((self.folder / "expected.json").read_text())
        return expected

    @property
    def dialect(self) -> Dialect:
        name = self.expected.get("dialect")
        return self.format.dialect if name is None else DIALECTS[name]

    def bytes_of(self, name: str) -> bytes | None:
        path = self.folder / name
        return path.read_bytes() if path.exists() else None

    @property
    def stream(self) -> bytes | None:
        for name in _STREAMS:
            data = self.bytes_of(name)
            if data is not None:
                return bytes.fromhex(data.decode()) if name == "stream.hex" else data
        return None


CASES = [WireCase(path.parent) for path in sorted(ROOT.glob("*/*/expected.json"))]
REQUESTS = [case for case in CASES if case.bytes_of("request.json") is not None]
RESPONSES = [case for case in CASES if case.bytes_of("response.json") is not None]
STREAMS = [case for case in CASES if case.stream is not None]


def name_of(case: WireCase) -> str:
    return case.name
