"""What was learned from refusals, as an overlay."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass

from tests.facts.overlay_texts import table_with
from thoughtline.facts.learned import overlay_of
from thoughtline.facts.writing import document
from thoughtline.providers import BUILT_IN, use
from thoughtline.providers.setting_rules import SettingRule
from thoughtline.replay.detection import resolve
from thoughtline.replay.learning import corrected
from thoughtline.replay.refusals import Change, Correction, Evidence
from thoughtline.values.destination import Destination

NOW = 1_795_000_000.0
EVIDENCE = Evidence(400, "", "0123456789abcdef", False)
TARGET = Destination("kimi", "https://api.moonshot.ai/v1", "kimi-k2.6", "openai_chat")


@dataclass
class Lesson:
    """What a refusal taught about `TARGET`."""

    change: Change
    field: str = ""
    rule: SettingRule | None = None
    account: str = ""
    provider: str = TARGET.provider
    endpoint: str = TARGET.endpoint

    def correction(self) -> Correction:
        return Correction(
            self.provider,
            self.endpoint,
            TARGET.model,
            self.change,
            self.field,
            EVIDENCE,
            learned_at=NOW - 10,
            expires_at=NOW + 10,
            rule=self.rule,
            account=self.account,
        )


def test_an_overlay_says_what_was_learned() -> None:
    """Laid over the built-in table, it gives the contract that the lessons gave."""
    lessons = [
        Lesson("forbids", "reasoning_content"),
        Lesson("takes_setting", "temperature", SettingRule("temperature", "set", ("1",))),
    ]
    corrections = [one.correction() for one in lessons]
    wanted = corrected(resolve(TARGET), corrections, TARGET, NOW)
    sheets, left = overlay_of(corrections, NOW)
    assert not left
    text = document(sheets)
    assert tomllib.loads(text)["models"]
    use(table_with(text))
    try:
        found = resolve(TARGET)
        other = resolve(Destination("kimi", "", "kimi-k2.5", "openai_chat"))
    finally:
        use(BUILT_IN)
    assert (found.kind, found.settings, found.name) == (wanted.kind, wanted.settings, "kimi")
    assert other.kind == "presence"


def test_what_an_overlay_can_not_say_is_named() -> None:
    """What holds for one account, or for a provider that no row names; what has expired is left out."""
    corrections = [
        Lesson("insists", account="an account").correction(),
        Lesson("insists", provider="nobody", endpoint="").correction(),
    ]
    sheets, left = overlay_of(corrections, NOW)
    assert not any(sheets.values())
    assert [line.rpartition(": ")[2] for line in left] == [
        "it holds for one account alone",
        "no row names this provider; settings can give it a contract",
    ]
    assert overlay_of([Lesson("insists").correction()], NOW + 20) == ({kind: {} for kind in sheets}, [])
