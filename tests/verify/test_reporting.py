"""What a verification saw, for people and programs."""

from __future__ import annotations

import json
import tomllib

from tests.facts.overlay_texts import table_with
from tests.verify.asked_simulators import verified
from tests.verify.mutants import MUTANTS
from thoughtline.facts.writing import document
from thoughtline.providers import BUILT_IN, use
from thoughtline.replay.detection import resolve
from thoughtline.replay.refusals import classify
from thoughtline.values.destination import Destination
from thoughtline.verify.checks import ProviderRefusal, Result
from thoughtline.verify.reporting import Verified, overlay_of, plain, report, words_of

DAY = "2026-11-19"
BY_NAME = {one.name: one for one in MUTANTS}
TARGET = Destination("kimi", "", "kimi-k2.6", "openai_chat")


async def seen(name: str) -> Verified:
    mutant = BY_NAME[name]
    return (await verified(mutant.simulator, mutant.provider, mutant.model, mutant.format))[0]


async def test_an_overlay_says_what_was_seen() -> None:
    """With it, the same simulator is believed: a second verification finds nothing."""
    for name in ("kimi demands nothing", "glm demands all", "deepseek thinks if asked", "kimi takes no empty text"):
        mutant, first = BY_NAME[name], await seen(name)
        text = document(overlay_of([first], DAY))
        assert tomllib.loads(text)
        use(table_with(text))
        try:
            again = await seen(name)
        finally:
            use(BUILT_IN)
        assert len(again.differences) < len(first.differences)
        assert mutant.finds[0] not in {one.fact for one in again.differences}
    assert resolve(TARGET).source.link != "verified"


async def test_an_unknown_refusal_is_known_with_the_overlay() -> None:
    """In the provider's words."""
    first = await seen("kimi has other words")
    refused = next(one.refused for one in first.results if one.refused is not None and not one.refused.is_known)
    assert classify(refused.status, refused.words) is None
    use(table_with(document(overlay_of([first], DAY))))
    try:
        found = classify(refused.status, refused.words)
    finally:
        use(BUILT_IN)
    assert found is not None
    assert (found.rule, found.remedy) == ("missing", "restore")


async def test_where_everything_agrees_there_is_no_overlay() -> None:
    """And the report says so."""
    mutant = BY_NAME["kimi demands nothing"]
    unchanged = Verified(TARGET, "kimi", (Result("a fact", "yes", "yes", "agrees"),))
    assert not any(overlay_of([unchanged], DAY).values())
    assert report([unchanged], 3, 1234) == "thoughtline verify: 0 differences in 3 requests, 1,234 tokens"
    assert mutant.provider == "kimi"


def test_no_secret_reaches_a_report() -> None:
    """Neither a key nor a seal that a provider quotes."""
    words = b'{"error":{"message":"bad key sk-abcdef0123456789 and signature EqQBCkYIARgCIkDx9Zq0Jm1v8Kp2Lw3Xy"}}'
    refused = ProviderRefusal(400, words, is_known=False)
    one = Verified(TARGET, "kimi", (Result("a fact", "accepted", "refused", "differs", refused),))
    for text in (words_of(refused), report([one], 1, 1), json.dumps(plain([one]))):
        assert "sk-abcdef" not in text
        assert "EqQBCkYIARgC" not in text
    assert plain([one])[0]["facts"][0]["status"] == 400
