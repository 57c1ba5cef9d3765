"""opencode clears old results of a long session; the reasoning before them stays. `make test-clients` runs this.

With `compaction.prune` on, it looks at the end of each run at what stands before the last two prompts. Of the results
there it keeps the newest 40,000 tokens, four characters each, and clears the older ones if they are more than 20,000.
`opencode run` by itself ends before that, so here it is attached to a server. Seen of opencode 1.18.33 on 2026-11-16.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tests.clients.agents import OPENCODE
from tests.clients.programs import Place, Program, Task, run, serving
from tests.clients.upstreams import Upstream, reach, start

pytestmark = pytest.mark.programs

CLEARED = "[Old tool result content cleared]"
FILES = 7
LINE = "word " * 200
LINES = 45
"""Of each file, which `read` gives whole: it cuts what is longer than 50 KB."""

ROWS = (
    ("deepseek", "deepseek-v4-pro"),
    ("kimi", "kimi-k2.6"),
    ("gemini", "gemini-3-pro-preview"),  # translated: the signatures come from the store alone
)


def _pruning(place: Place, task: Task) -> dict[str, str]:
    environment = OPENCODE.settings(place, task)
    config = place.work / "opencode.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"compaction": {"prune": True}}))
    return environment


PRUNING: Program = OPENCODE._replace(name="opencode-pruning", settings=_pruning)


def _script(work: Path) -> str:
    """Files are read in a first run, two at once at its end, and three runs follow."""
    reads = [f"call: read {json.dumps({'filePath': str(work / f'{number}.txt')})}" for number in range(FILES)]
    looks = [f"think: Now file {number}.|{read}" for number, read in enumerate(reads[:-1])]
    steps = [*looks[:-1], f"{looks[-1]}|{reads[-1]}", "think: That is all.|say: All read."]
    return "|---|".join([*steps, *(f"think: Thought {word}.|say: Answer {word}." for word in ("two", "three", "four"))])


def _write_files(work: Path) -> None:
    for number in range(FILES):
        (work / f"{number}.txt").write_text(f"{LINE}\n" * LINES)


def _cleared(upstream: Upstream) -> list[int]:
    """How many results were cleared, request by request."""
    log = upstream.watched.app.simulation.log
    return [sum(message["text"] == CLEARED for message in entry["messages"]) for entry in log]


def _free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])


@pytest.mark.parametrize(("simulator", "model"), ROWS, ids=[row[0] for row in ROWS])
def test_a_long_session(simulator: str, model: str, place: Place) -> None:
    """Old results go, and in the run after that the reasoning of every turn is still whole."""
    _write_files(place.work)
    upstream = start(simulator, script=_script(place.work))
    task = Task(reach(upstream), model)

    arguments = ["serve", "--hostname", "127.0.0.1", "--port", _free_port()]
    with serving(PRUNING, arguments, place, task) as url:
        for words in ("Read the files.", "Now two.", "Now three.", "Now four."):
            resume = [] if words == "Read the files." else ["--continue"]
            outcome = run(PRUNING, ["run", "--attach", url, *resume, words], place, task)
            assert outcome.status == 0, outcome.remarks

    assert upstream.refusals() == []
    assert upstream.verdicts() == [["whole"] * before for before in range(FILES + 3)]
    assert _cleared(upstream)[-2:] == [0, 4]
    assert place.trap.strangers(PRUNING) == []
