"""A simulator's log of requests: whether each was rejected, why, and which earlier reasoning came back."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TextIO

from thoughtline.terminal import LogOptions, LogRow, counted, duration, row_text
from thoughtline_sim.reading import JsonObject

_SENTENCE_CHARS = 300
_MEMBERS = ("at", "method", "path", "model", "status", "is_streaming", "refusal")


class SimLog:
    """A line for each request, and one more when a stream begins; a summary at the end."""

    def __init__(self, options: LogOptions, out: TextIO | None = None) -> None:
        self._options = options
        self._out = out or sys.stderr
        self._requests = self._refused = 0

    def begun(self, entry: JsonObject) -> None:
        if self._options.format == "text" and self._options.level != "quiet":
            self._write(row_text(_row(entry, 0.0, "streaming", has_begun=True), self._options))

    def ended(self, entry: JsonObject, seconds: float) -> None:
        self._requests += 1
        self._refused += entry["status"] >= 400
        if self._options.level == "quiet" and entry["status"] < 400:
            return
        verdicts: Counter[str] = Counter(entry["verdicts"])
        if self._options.format == "json":
            members = {name: entry[name] for name in _MEMBERS}
            self._write(json.dumps({**members, "verdicts": verdicts, "seconds": round(seconds, 3)}))
            return
        came = [f"{number} {verdict}" for verdict, number in verdicts.items() if verdict != "none"]
        words = f"reasoning of turns: {', '.join(came)}" if came else ""
        refusal = (entry["refusal"] or "")[:_SENTENCE_CHARS]
        details = ""
        if self._options.level == "verbose":
            details = f"{counted(len(entry['messages']), 'message')} of conversation {entry['conversation'][:8]}"
        every = "; ".join(filter(None, (words, details, refusal)))
        self._write(row_text(_row(entry, seconds, every), self._options))

    def goodbye(self, seconds: float) -> None:
        if self._options.level == "quiet":
            return
        words = f"{counted(self._requests, 'request')}, refused {self._refused}, up {duration(seconds)}"
        is_text = self._options.format == "text"
        self._write(f"goodbye: {words}" if is_text else json.dumps({"event": "goodbye", "detail": words}))

    def _write(self, text: str) -> None:
        print(text, file=self._out, flush=True)


def _row(entry: JsonObject, seconds: float, words: str, *, has_begun: bool = False) -> LogRow:
    return LogRow(
        at=entry["at"],
        status=entry["status"],
        seconds=seconds,
        subject=entry["model"] or entry["method"],
        format=entry["path"],
        words=words,
        has_begun=has_begun,
    )
