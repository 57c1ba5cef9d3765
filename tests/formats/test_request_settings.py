"""Settings of a request are found at their positions, and changed by rules, without changing another byte."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thoughtline.formats.json_text import set_members
from thoughtline.formats.request_settings import Situation, changed, settings_in, unforced
from thoughtline.providers.setting_rules import SettingRule

Body = dict[str, Any]
THINKING = Situation(thinks=True, says_off=False, streams=False)


def kept(body: Body, *rules: SettingRule, situation: Situation = THINKING) -> Body:
    raw = json.dumps(body).encode()
    edits, done = changed(raw, rules, situation)
    assert bool(edits) == bool(done)
    after: Body = json.loads(set_members(raw, edits))
    return after


def test_settings_are_listed_by_their_paths() -> None:
    """Members inside members, and elements by their type; the conversation and the tools are none."""
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "x", "temperature": 1}],
        "tools": [{"name": "effort"}],
        "generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}, "maxOutputTokens": 5},
        "context_management": {"edits": [{"type": "clear"}]},
    }
    assert [one.name for one in settings_in(json.dumps(body).encode())] == [
        "generationConfig.thinkingConfig",
        "generationConfig.thinkingConfig.thinkingLevel",
        "context_management",
        "context_management.edits",
        "context_management.edits.[clear]",
    ]


EDITS = {"edits": [{"type": "a"}, {"type": "b"}]}


@pytest.mark.parametrize(
    ("rule", "body", "expected"),
    [
        (SettingRule("a.b", "drop"), {"a": {"b": 1}}, {}),
        (SettingRule("a.b", "drop"), {"a": {"b": 1, "c": 2}}, {"a": {"c": 2}}),
        (SettingRule("a", "set", ("true",)), {"a": "x"}, {"a": True}),
        (SettingRule("a", "one_of", ('"low"', '"high"')), {"a": "max"}, {"a": "high"}),
        (SettingRule("a", "one_of", ('"low"', '"high"')), {"a": "low"}, {"a": "low"}),
        (SettingRule("a", "between", ("128", "")), {"a": 5}, {"a": 128}),
        (SettingRule("a", "between", ("", "10")), {"a": 50}, {"a": 10}),
        (
            SettingRule("a.b", "below", ("max_tokens",)),
            {"a": {"b": 9}, "max_tokens": 9},
            {"a": {"b": 8}, "max_tokens": 9},
        ),
        (SettingRule("a", "move", ("b.c",)), {"a": 1, "b": {"d": 2}}, {"b": {"d": 2, "c": 1}}),
        (SettingRule("c.edits", "drop_kind", ("a",)), {"c": EDITS}, {"c": {"edits": EDITS["edits"][1:]}}),
        (SettingRule("c.edits", "put_first", ("b",)), {"c": EDITS}, {"c": {"edits": EDITS["edits"][::-1]}}),
        (SettingRule("tool_choice", "unforce"), {"tool_choice": "required"}, {"tool_choice": "auto"}),
    ],
)
def test_a_rule_changes_its_setting(rule: SettingRule, body: Body, expected: Body) -> None:
    """And nothing where the setting is as it must be."""
    assert kept(body, rule) == expected
    assert kept(expected, rule) == expected


@pytest.mark.parametrize(
    ("when", "situation", "holds"),
    [
        ("thinking", THINKING, True),
        ("thinking", Situation(thinks=False, says_off=False, streams=False), False),
        ("unsaid", Situation(thinks=False, says_off=False, streams=False), True),
        ("unsaid", Situation(thinks=False, says_off=True, streams=False), False),
        ("whole", Situation(thinks=True, says_off=False, streams=True), False),
        ("has b.c", THINKING, True),
        ("has b.d", THINKING, False),
        ('b.c="x"', THINKING, True),
        ('b.c="y"', THINKING, False),
    ],
)
def test_a_rule_holds_in_some_requests(when: str, situation: Situation, *, holds: bool) -> None:
    """By how a request thinks and streams, and by its other settings."""
    body = {"a": 1, "b": {"c": "x"}}
    assert ("a" not in kept(body, SettingRule("a", "drop", when=when), situation=situation)) is holds


@pytest.mark.parametrize(
    ("choice", "free", "any_tool"),
    [
        ("required", "auto", None),
        ("auto", None, None),
        ({"type": "function", "function": {"name": "f"}}, "auto", "required"),
        (
            {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
            *({"type": kind, "disable_parallel_tool_use": True} for kind in ("auto", "any")),
        ),
        ({"type": "any"}, {"type": "auto"}, None),
        ({"mode": "ANY", "allowedFunctionNames": ["f"]}, {"mode": "AUTO"}, None),
        ({"any": {}}, {"auto": {}}, None),
    ],
)
def test_a_choice_of_tools_is_freed_in_its_own_words(choice: Any, free: Any, any_tool: Any) -> None:
    """To none, or to any of them where one was forced."""
    assert unforced(choice) == free
    assert unforced(choice, to_any=True) == any_tool
