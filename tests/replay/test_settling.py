"""Settings that depend on a thinking mode follow when we change the mode."""

from __future__ import annotations

import json
from typing import Any

from thoughtline.formats import FORMATS
from thoughtline.providers import Contract
from thoughtline.providers.setting_rules import SettingRule
from thoughtline.replay.detection import resolve
from thoughtline.replay.settling import while_paused, while_thinking, with_settings
from thoughtline.values.destination import Destination

Body = dict[str, Any]


def of(provider: str, model: str) -> Contract:
    """The contract of a model at its maker."""
    return resolve(Destination(provider, "", model, "anthropic_messages" if provider == "anthropic" else "openai_chat"))


def settled(provider: str, model: str, body: Body, rules: tuple[SettingRule, ...]) -> Body:
    """A request as it is sent under these rules."""
    contract = of(provider, model)
    bodies = FORMATS[contract.format].bodies
    asked = bodies.decode_request(json.dumps({"model": model, "messages": [], **body}).encode(), contract.dialect)
    changed, findings = with_settings(asked, rules, contract)
    assert all(finding.rule == "setting" for finding in findings)
    sent: Body = json.loads(bodies.encode_request(changed, contract.dialect))
    return {name: sent[name] for name in sent if name not in ("model", "messages")}


def test_a_model_that_is_made_to_think_loses_what_excludes_it() -> None:
    """Sampling is removed, and a forced tool becomes a free choice."""
    rules = while_thinking(of("anthropic", "claude-opus-5-5"), "claude-opus-5-5")
    body = {"temperature": 0.2, "top_p": 0.5, "tool_choice": {"type": "any"}, "max_tokens": 9}
    assert settled("anthropic", "claude-opus-5-5", body, rules) == {"tool_choice": {"type": "auto"}, "max_tokens": 9}


def test_a_model_that_is_told_not_to_think_loses_what_needs_it() -> None:
    """Kimi fixes sampling by mode, DeepSeek refuses an effort, Claude an edit of thoughts."""
    kimi = while_paused(of("kimi", "kimi-k2.6"), "kimi-k2.6")
    assert settled("kimi", "kimi-k2.6", {"temperature": 1, "stop": "x"}, kimi) == {"stop": "x"}
    deepseek = while_paused(of("deepseek", "deepseek-v4-pro"), "deepseek-v4-pro")
    assert settled("deepseek", "deepseek-v4-pro", {"reasoning_effort": "high"}, deepseek) == {}
    claude = while_paused(of("anthropic", "claude-sonnet-4-5"), "claude-sonnet-4-5")
    edits = [{"type": "clear_thinking_20251015"}, {"type": "clear_tool_uses_20250919"}]
    body = {"context_management": {"edits": edits}}
    assert settled("anthropic", "claude-sonnet-4-5", body, claude) == {"context_management": {"edits": edits[1:]}}


def test_a_switch_that_is_taken_out_is_no_longer_read() -> None:
    """The plan reads the request as it is sent."""
    contract = of("deepseek", "deepseek-v4-pro")
    bodies = FORMATS["openai_chat"].bodies
    body = {"model": "m", "messages": [], "thinking": {"type": "disabled"}}
    asked = bodies.decode_request(json.dumps(body).encode(), contract.dialect)
    changed, _ = with_settings(asked, (SettingRule("thinking", "drop"),), contract)
    assert (contract.switch(asked), contract.switch(changed)) == ("off", "unsaid")
