"""Corrections learned from errors: shared by all replicas, and bounded."""

from __future__ import annotations

import pytest

from thoughtline.engine import learned as learned_module
from thoughtline.engine.learned import CONTRACTS, SEALS, TTL_SECONDS, Lessons
from thoughtline.replay.refusals import Correction, Evidence
from thoughtline.stores import MemoryStore, StoreSettings
from thoughtline.values.records import Key


def correction(model: str, now: float) -> Correction:
    evidence = Evidence(400, "", "a digest")
    return Correction("here", "https://here.example", model, "forbids", "reasoning", evidence, now, now + TTL_SECONDS)


async def test_what_callers_teach_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up seals and models fill the limit and no more; when they have expired, there is room again."""
    monkeypatch.setattr(learned_module, "MAX_CORRECTIONS", 3)
    monkeypatch.setattr(learned_module, "MAX_SEALS", 3)
    now = 1000.0
    store = MemoryStore(StoreSettings(), lambda: now)
    learned = Lessons(store, lambda: now)
    for number in range(10):
        await learned.keep((correction(f"m{number}", now),), frozenset({Key(f"seal-{number}")}))
    assert [one.model for one in learned.corrections] == ["m0", "m1", "m2"]
    assert learned.refused == {"seal-0", "seal-1", "seal-2"}
    assert (len(await store.notes(CONTRACTS)), len(await store.notes(SEALS))) == (3, 3)
    now += TTL_SECONDS + 1
    await learned.refresh()
    await learned.keep((correction("new", now),), frozenset({Key("seal-new")}))
    assert [one.model for one in learned.corrections] == ["new"]
    assert learned.refused == {"seal-new"}
