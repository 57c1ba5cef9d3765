"""The figures of a run, and the table that `docs/performance.md` shows."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import NamedTuple

from bench.load.bodies import CONVERSATIONS

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

    def contenders(self) -> list[str]:
        """In the order in which they took their turns."""
        return max(([*found] for found in self.rounds.values()), key=len, default=[])


class Aim(NamedTuple):
    """What a figure should be, and what it is."""

    text: str
    is_kept: Callable[[float], bool]
    value: float | None


def table(figures: Figures, size: Size) -> str:
    lines = _rows(figures, "CPU µs per request", [(one.name, one.name) for one in CONVERSATIONS])
    lines += _rows(
        figures, f"CPU µs per chunk at {size.streams} streams", [("chunk", "chunk of 215 bytes, 5 ms apart")]
    )
    lines += _added(figures, "first byte later than direct, ms")
    lines += _rows(figures, f"kB per open stream, {size.open_streams} open", [("memory", "standing still")])
    return "\n".join([*lines, "", *_aims(figures)])


def _rows(figures: Figures, title: str, names: list[tuple[str, str]]) -> list[str]:
    lines = [f"\n{title:42} {'median':>9} {'lowest':>9} {'highest':>9} {'x nginx':>8}"]
    for what, shown in names:
        lines.append(f"  {shown}")
        for contender in figures.contenders():
            values = figures.rounds.get(what, {}).get(contender)
            if values:
                row = f"    {contender:38} {statistics.median(values):9.1f} {min(values):9.1f} {max(values):9.1f}"
                ratio = figures.ratio(what, contender, NGINX)
                lines.append(row + (f" {ratio:8.2f}" if ratio is not None else ""))
    return lines


def _added(figures: Figures, title: str) -> list[str]:
    lines = [f"\n{title:42} {'median':>9}"]
    for what in [name for name in figures.rounds if name.startswith("first byte")]:
        lines.append(f"  {what.partition(', ')[2]}")
        direct = figures.median(what, "direct") or 0.0
        for contender in figures.contenders():
            value = figures.median(what, contender)
            if value is not None and contender != "direct":
                lines.append(f"    {contender:38} {value - direct:9.2f}")
    return lines


def _aims(figures: Figures) -> list[str]:
    ours = "thoughtline"
    others = next((name for name in figures.contenders() if name.startswith("LiteLLM")), "")
    plain = CONVERSATIONS[0].name
    litellm, own = figures.median(plain, others), figures.median(plain, ours)
    aims = [
        Aim(f"at most 6 x nginx per request ({one.name})", lambda x: x <= 6, figures.ratio(one.name, ours, NGINX))
        for one in CONVERSATIONS[:3]
    ]
    aims += [
        Aim("at most 2.2 x nginx per chunk", lambda x: x <= 2.2, figures.ratio("chunk", ours, NGINX)),
        Aim(
            "at least 100 x less than LiteLLM per request",
            lambda x: x >= 100,
            litellm / own if litellm and own else None,
        ),
        Aim("at most 60 kB per open stream", lambda x: x <= 60, figures.median("memory", ours)),
    ]
    return [f"aim: {aim.text:60} {_verdict(aim)}" for aim in aims]


def _verdict(aim: Aim) -> str:
    if aim.value is None:
        return "not measured"
    return f"{aim.value:8.1f}  {'kept' if aim.is_kept(aim.value) else 'missed'}"
