"""Codex, the real program, as it has its conversations compacted by a provider that it takes for OpenAI's."""

from __future__ import annotations

import pytest

from tests.clients.agents import CODEX, CODEX_CONFIG
from tests.clients.programs import KEY, Place, Task, run
from tests.clients.upstreams import reach, start

pytestmark = pytest.mark.programs

CONFIG = "model_auto_compact_token_limit = 11500\n" + CODEX_CONFIG.replace('name = "here"', 'name = "OpenAI"')
LONG_ONCE = "if test -e note.txt; then cat note.txt; else seq 9000; echo kept > note.txt; fi"
SCRIPT = "|".join(
    (
        "think: First I look.",
        f'call: exec_command {{"cmd": "{LONG_ONCE}"}}',
        "---",
        "think: It is there.",
        "say: The note says kept.",
        "---",
        "think: Nothing is left to do.",
        "say: It still does.",
    )
)


def compacting(place: Place, task: Task) -> dict[str, str]:
    """Settings by which Codex asks its provider to compact, and soon."""
    folder = place.home / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(CONFIG.format(task=task))
    return {"HERE_KEY": KEY}


@pytest.mark.parametrize(
    ("simulator", "profile", "model"),
    [
        ("deepseek", None, "deepseek-v4-pro"),
        ("anthropic", "bound", "claude-opus-5-5"),
        ("gemini", None, "gemini-3-pro-preview"),
    ],
)
def test_codex_goes_on_from_a_compaction(simulator: str, profile: str | None, model: str, place: Place) -> None:
    """In mid-turn the conversation has become too long. The model sums it up, Codex goes on from that, also in a second
    process; nothing is refused, and what it leaves out is not sent again."""
    upstream = start(simulator, profile, SCRIPT)
    task, program = Task(reach(upstream), model), CODEX._replace(settings=compacting)

    first = run(program, program.begin("Look at it."), place, task)
    assert (first.status, first.answer) == (0, "The note says kept."), first.remarks
    bodies = [body.decode() for body in upstream.watched.bodies]
    asked = [at for at, body in enumerate(bodies) if "Sum up this conversation" in body]
    assert asked == [1], [len(body) for body in bodies]
    assert "8999" in bodies[1]
    for body in bodies[2:]:
        assert "This is its summary; go on from it.)\\n\\nThe note says kept." in body
        assert "8999" not in body

    assert CODEX.resume is not None
    second = run(program, CODEX.resume("And now?"), place, task)
    assert (second.status, second.answer) == (0, "It still does."), second.remarks
    assert "This is its summary" in upstream.watched.bodies[-1].decode()
    assert upstream.refusals() == []
