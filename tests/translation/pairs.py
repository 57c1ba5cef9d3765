"""All pairs of client and upstream in dialogues of ten turns, and the table of them in the docs.

python -m tests.translation.pairs      write the table at the end of docs/translation.md
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tests.translation.lanes import EVERY_CLIENT, UPSTREAMS, Client, Lane, Upstream
from thoughtline.values.turns import FormatName

TURNS = 10
PAGE = Path(__file__).parents[2] / "docs" / "translation.md"


def _tools(turn: int) -> str:
    return f'think: look it up {turn}\ncall: weather {{"city": "P{turn}"}}' if turn % 2 == 0 else _plain(turn)


def _parallel(turn: int) -> str:
    calls = f'call: weather {{"city": "A{turn}"}}\ncall: weather {{"city": "B{turn}"}}'
    return _plain(turn) if turn % 3 == 2 else f"think: two at once {turn}\n{calls}"


def _plain(turn: int) -> str:
    return f"think: thought {turn}, “quoted”\nsay: Words {turn}."


def _interleaved(turn: int) -> str:
    if turn % 2:
        return _plain(turn) if turn % 4 == 1 else f"no-think\nsay: Quick {turn}."
    first = f'think: first {turn}\nsay: Let me see {turn}.\ncall: weather {{"city": "C{turn}"}}'
    return f'{first}\nthink: second {turn}\ncall: weather {{"city": "D{turn}"}}'


SCRIPTS = {"tools": _tools, "parallel tools": _parallel, "plain": _plain, "interleaved thinking": _interleaved}


class Dialogue(NamedTuple):
    """One of the sixteen of a pair."""

    script: str
    is_streaming: bool
    strips: bool

    @property
    def id(self) -> str:
        mode = "stream" if self.is_streaming else "whole"
        return f"{self.script}, {mode}, {'strips' if self.strips else 'keeps'}"


DIALOGUES = [
    Dialogue(script, is_streaming, strips)
    for script in SCRIPTS
    for is_streaming in (False, True)
    for strips in (False, True)
]

HARDEST = [one for one in DIALOGUES if one.script in ("parallel tools", "interleaved thinking")]


def hold(lane: Lane, dialogue: Dialogue, turns: int = TURNS) -> Client:
    """A dialogue of so many turns, none of them refused."""
    write = SCRIPTS[dialogue.script]
    script = "\n---\n".join(write(turn) for turn in range(turns))
    client = Client(lane, f"{dialogue.id}\nscript:\n{script}", dialogue.strips)
    for turn in range(turns):
        client.ask(dialogue.is_streaming)
        if turn < turns - 1:
            client.go_on()
    return client


def verdicts(upstream: Upstream, client: FormatName) -> Counter[str]:
    """What the simulator says of the reasoning of every turn of all sixteen dialogues of a pair."""
    counts: Counter[str] = Counter()
    for dialogue in DIALOGUES:
        lane = Lane(upstream, client)
        hold(lane, dialogue)
        counts.update(lane.verdicts)
    return counts


def row(upstream: Upstream, client: FormatName) -> str:
    """A line of the table: raises if a turn of a dialogue was refused."""
    counts = verdicts(upstream, client)
    lost = sum(count for verdict, count in counts.items() if verdict not in ("whole", "none"))
    demands = upstream.contract.kind
    cells = (f"`{client}`", f"`{upstream.format}`", upstream.simulator, demands, str(len(DIALOGUES)), "0")
    return f"| {' | '.join(cells)} | {counts['whole']} | {lost} |"


MARK = "<!-- made by `python -m tests.translation.pairs`, checked by the tests -->\n"
HEAD = """\
Each pair holds sixteen dialogues of ten turns with a strict simulator: tools, parallel tools, plain, interleaved
thinking; whole and streamed; with a client that keeps all reasoning and with one that strips it. `refused` counts 4xx
answers; `whole` counts earlier turns whose reasoning came back to the simulator byte for byte, `not whole` the others.

| client | upstream | simulator | demands | dialogues | refused | whole | not whole |
|---|---|---|---|---|---|---|---|
"""


def page() -> str:
    rows = [row(upstream, client) for upstream in UPSTREAMS for client in EVERY_CLIENT]
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text().partition(MARK)[0] + MARK + page())
