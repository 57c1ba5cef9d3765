"""Dialogues of ten turns between every client's format and every upstream's, against the strict simulators."""

from __future__ import annotations

import pytest

from tests.translation.lanes import EVERY_CLIENT, MORE_UPSTREAMS, UPSTREAMS, Lane, Upstream
from tests.translation.pairs import HARDEST, PAGE, Dialogue, hold, row
from thoughtline.values.turns import FormatName

pairs = pytest.mark.parametrize(
    ("upstream", "client"),
    [(upstream, client) for upstream in UPSTREAMS for client in EVERY_CLIENT],
    ids=lambda value: value if isinstance(value, str) else value.id,
)
others = pytest.mark.parametrize(
    ("upstream", "client"),
    [(upstream, client) for upstream in MORE_UPSTREAMS for client in EVERY_CLIENT if client != upstream.format],
    ids=lambda value: value if isinstance(value, str) else f"{value.id}-{value.model}",
)
SHORT = 6
"""Turns in which every kind of step of a script has come, and one has come again."""

SLOTS: tuple[FormatName, ...] = ("anthropic_messages", "openai_responses", "gemini_generate")


@pairs
def test_no_pair_is_refused_or_loses_reasoning(upstream: Upstream, client: FormatName) -> None:
    """Sixteen dialogues: no 4xx, every turn's reasoning back whole at the simulator; the docs tell the same."""
    line = row(upstream, client)
    assert line.endswith("| 0 |")
    assert line in PAGE.read_text()


@others
def test_other_families(upstream: Upstream, client: FormatName) -> None:
    """The other dialects and contracts, in the hardest dialogues: no 4xx, and no reasoning altered or missing."""
    for dialogue in HARDEST:
        lane = Lane(upstream, client)
        hold(lane, dialogue, SHORT)
        # Where a field must be there, a turn that had no reasoning gets an empty one: `invented`.
        allowed = {"whole", "none"} | ({"invented"} if upstream.contract.kind == "presence" else set())
        assert set(lane.verdicts) <= allowed, dialogue.id


@pytest.mark.parametrize("client", SLOTS)
@pytest.mark.parametrize("upstream", [*UPSTREAMS, *MORE_UPSTREAMS], ids=lambda one: f"{one.id}-{one.model}")
@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "stream"])
def test_an_empty_store_is_enough_for_a_client_that_keeps_its_envelopes(
    upstream: Upstream, client: FormatName, is_streaming: bool
) -> None:
    """Nothing is stored between two turns, as on a replica that never saw them: what the client carries restores all
    that is demanded."""
    if upstream.format == client:
        return
    for script in ("parallel tools", "interleaved thinking"):
        lane = Lane(upstream, client, keeps=False)
        hold(lane, Dialogue(script, is_streaming, strips=False), SHORT)
        # Gemini's signature on text comes after the text was sent, and is not required back.
        optional = {"missing"} if upstream.provider in ("gemini", "code-assist") else set()
        presence = {"invented"} if upstream.contract.kind == "presence" else set()
        assert set(lane.verdicts) <= {"whole", "none"} | optional | presence


@pytest.mark.parametrize("client", ["openai_chat", "ollama_chat"])
def test_without_slot_and_without_store_the_ladder_is_climbed(client: FormatName) -> None:
    """A client that has no slot, before a replica that saw nothing: what it kept as words goes to a model that takes
    words."""
    deepseek, ollama = UPSTREAMS[0], UPSTREAMS[4]
    lane = Lane(deepseek if client == "ollama_chat" else ollama, client, keeps=False)
    hold(lane, Dialogue("tools", False, strips=False))
    assert set(lane.verdicts) == {"whole"}
