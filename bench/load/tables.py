"""The figures of a run, and the table that `bench/figures.md` shows."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple, Protocol

NGINX = "nginx"


class Size(NamedTuple):
    """How much of everything."""

    rounds: int
    requests: int
    streams: int
    chunks: int
    first_bytes: int
    open_streams: int


class Figures:
    """Every figure of every round, by what was measured and by contender."""

    def __init__(self) -> None:
        self.rounds: dict[str, dict[str, list[float]]] = {}

    def add(self, what: str, contender: str, value: float) -> None:
        self.rounds.setdefault(what, {}).setdefault(contender, []).append(value)

    def median(self, what: str, contender: str) -> float | None:
        values = self.rounds.get(what, {}).get(contender)
        return statistics.median(values) if values else None

    def ratio(self, what: str, contender: str, to: str) -> float | None:
        one, other = self.median(what, contender), self.median(what, to)
        return one / other if one is not None and other else None


class Aim(NamedTuple):
    """What a figure should be: at most so many times another's, or so much at most."""

    row: str
    most: float
    ours: str = "thoughtline"
    other: str = NGINX

    def value(self, figures: Figures) -> float | None:
        return figures.ratio(self.row, self.ours, self.other) if self.other else figures.median(self.row, self.ours)


_TRANSLATED = ("thoughtline, Messages to chat", "thoughtline, chat to Messages")
AIMS = (
    Aim("plain", 10),
    Aim("one", 7),
    Aim("turns", 12),
    Aim("session", 4),
    Aim("pauses", 4),
    Aim("marks", 3.5, "thoughtline, Messages"),
    Aim("chunk", 2),
    Aim("memory", 30, other=""),
    Aim("memory-tls", 60, "thoughtline, TLS", other=""),
    *(Aim(row, most, ours, "thoughtline") for row, most in (("plain", 1.3), ("chunk", 1.1)) for ours in _TRANSLATED),
)
LITELLM_AIM, TENSORZERO_AIM, FIRST_BYTE_AIM = 20.0, 2.0, 1.0
"""Times as much CPU as ours at least; ours as much as its at most; milliseconds after nginx at most."""


class TableRow(Protocol):
    @property
    def key(self) -> str: ...

    @property
    def unit(self) -> str: ...

    @property
    def name(self) -> str: ...


def table(figures: Figures, rows: Sequence[TableRow]) -> str:
    lines: list[str] = []
    for row in rows:
        lines.append(f"\n{f'{row.unit}: {row.name}':72} {'median':>9} {'lowest':>9} {'highest':>9} {'x nginx':>8}")
        for contender, values in figures.rounds.get(row.key, {}).items():
            line = f"  {contender:70} {statistics.median(values):9.2f} {min(values):9.2f} {max(values):9.2f}"
            ratio = figures.ratio(row.key, contender, NGINX)
            lines.append(line + (f" {ratio:8.2f}" if ratio is not None else ""))
    return "\n".join([*lines, "", *_aims(figures)])


def _aims(figures: Figures) -> list[str]:
    """What was measured of what is aimed at."""
    lines = []
    for aim in AIMS:
        value = aim.value(figures)
        if value is not None:
            to = f" to {aim.other}" if aim.other else " kB"
            lines.append(_aim(f"{aim.row}: {aim.ours}{to}, at most {aim.most:g}", value, value <= aim.most))
    litellm, tensorzero = (
        next((name for name in figures.rounds.get("plain", {}) if name.startswith(word)), "")
        for word in ("LiteLLM", "TensorZero")
    )
    times = figures.ratio("plain", "thoughtline", tensorzero)
    if times is not None:
        words = f"plain: thoughtline to TensorZero, at most {TENSORZERO_AIM:g}"
        lines.append(_aim(words, times, times <= TENSORZERO_AIM))
    times = figures.ratio("plain", litellm, "thoughtline")
    if times is not None:
        lines.append(_aim(f"plain: LiteLLM to thoughtline, at least {LITELLM_AIM:g}", times, times >= LITELLM_AIM))
    ours, nginx = (figures.median("first-byte-turns", name) for name in ("thoughtline", NGINX))
    if ours is not None and nginx is not None:
        late = ours - nginx
        lines.append(
            _aim(f"first-byte-turns: ms after nginx, at most {FIRST_BYTE_AIM:g}", late, late <= FIRST_BYTE_AIM)
        )
    return lines


def _aim(text: str, value: float, is_kept: bool) -> str:
    return f"aim: {text:75} {value:8.2f}  {'kept' if is_kept else 'missed'}"
