"""A picture of contenders side by side: one bar each, as long as the logarithm of what it costs beside nginx."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from bench.load.tables import NGINX, Figures, TableRow

WIDTH, LEFT, BAR, GAP, HEAD = 760, 250, 20, 6, 44
OWN, OTHER = "#2f6fdb", "#9aa4b2"


def picture(figures: Figures, rows: Sequence[TableRow], contenders: Sequence[str]) -> str:
    """An SVG with a panel for each row that was measured."""
    panels: list[str] = []
    top = 0
    for row in rows:
        ratios = [(name, ratio) for name in contenders if (ratio := figures.ratio(row.key, name, NGINX)) is not None]
        if ratios:
            panels.append(f'<text x="8" y="{top + 28}" font-weight="bold">{escape(f"{row.unit}: {row.name}")}</text>')
            panels += _bars(ratios, top + HEAD)
            top += HEAD + len(ratios) * (BAR + GAP)
    size = f'width="{WIDTH}" height="{top + 20}" viewBox="0 0 {WIDTH} {top + 20}"'
    style = 'font-family="sans-serif" font-size="13" fill="#333"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n<rect width="100%" height="100%" fill="#fff"/>\n'
        + ("\n".join(panels) + "\n</svg>\n")
    )


def _bars(ratios: Sequence[tuple[str, float]], top: int) -> list[str]:
    most = max(math.log2(1 + ratio) for _, ratio in ratios)
    lines = []
    for at, (name, ratio) in enumerate(sorted(ratios, key=lambda one: one[1])):
        y = top + at * (BAR + GAP)
        width = math.log2(1 + ratio) / most * (WIDTH - LEFT - 90)
        colour = OWN if name.startswith("thoughtline") else OTHER
        lines.append(f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(name)}</text>')
        lines.append(f'<rect x="{LEFT}" y="{y}" width="{width:.0f}" height="{BAR}" rx="3" fill="{colour}"/>')
        lines.append(f'<text x="{LEFT + width + 6:.0f}" y="{y + 15}">{ratio:.1f} x nginx</text>')
    return lines
