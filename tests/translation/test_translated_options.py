"""The translated options of a request: computed once, and never mixed up with another's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.replay.detection import resolve
from thoughtline.translation.requests import options_of
from thoughtline.translation.translated_options import TargetModel, TranslatedOptions
from thoughtline.values.destination import Destination
from thoughtline.values.options import FunctionTool
from thoughtline.values.turns import FormatName

CLAUDE = resolve(Destination("anthropic", "https://upstream.example", "claude-sonnet-4-5", "anthropic_messages"))
TARGET = TargetModel("anthropic_messages", CLAUDE, "claude-sonnet-4-5", is_streaming=False, missing_tools="leave_out")
TOOL = {"type": "function", "name": "look", "parameters": {"type": "object"}}


def translated(format: FormatName = "openai_chat", target: TargetModel = TARGET, **members: Any) -> TranslatedOptions:
    return options_of(json.dumps(members).encode(), FORMATS[format], target)


def test_a_conversation_that_grows_asks_for_the_same() -> None:
    """What was made of the first request is what the next one gets."""
    first = translated(model="m", messages=[{"role": "user", "content": "a"}], temperature=0.5)
    assert translated(model="m", messages=[{"role": "user", "content": "b"}], temperature=0.5) is first


@pytest.mark.parametrize("change", [{"temperature": 0.6}, {"stop": "x"}, {"max_tokens": 9}, {"model": "n"}])
def test_another_member_asks_for_something_else(change: dict[str, Any]) -> None:
    """Each body has what its own members say."""
    members: dict[str, Any] = {"model": "m", "messages": [], "temperature": 0.5}
    first, other = translated(**members), translated(**(members | change))
    assert other is not first
    assert other.read != first.read


def test_another_target_is_asked_otherwise() -> None:
    """Model, contract and streaming are part of the cache key."""
    plain = translated(messages=[], model="m")
    assert json.loads(
        translated(target=TARGET._replace(model="claude-opus-4-8"), messages=[], model="m").body
    ) != json.loads(plain.body)
    assert translated(target=TARGET._replace(is_streaming=True), messages=[], model="m").options.is_streaming


def test_tools_that_stand_in_a_conversation_are_its_own() -> None:
    """Codex offers tools by items of `input`: they are not those of a conversation with other items."""
    plain = translated("openai_responses", model="m", input=[{"role": "user", "content": "a"}])
    later = {"type": "additional_tools", "tools": [TOOL]}
    offered = translated("openai_responses", model="m", input=[{"role": "user", "content": "a"}, later])
    assert plain.offered.options.tools == ()
    assert [tool.name for tool in offered.offered.options.tools if isinstance(tool, FunctionTool)] == ["look"]


def test_long_ones_are_not_kept() -> None:
    """The cache stays small."""
    members: dict[str, Any] = {"model": "m", "messages": [], "user": "u", "metadata": {"long": "x" * 200_000}}
    assert translated(**members) is not translated(**members)


# --- asked to think ---------------------------------------------------------------------------------------------------

Json = dict[str, Any]
ADAPTIVE = resolve(Destination("anthropic", "https://upstream.example", "claude-opus-4-8", "anthropic_messages"))
NEWEST = resolve(Destination("anthropic", "https://upstream.example", "claude-opus-5-5", "anthropic_messages"))
ROUTER = resolve(Destination("openrouter", "https://openrouter.ai", "anthropic/claude-sonnet-4.5", "openai_chat"))
ASKING = TARGET._replace(may_ask_to_think=True)
TARGETS: dict[str, TargetModel] = {
    "classic": ASKING,
    "adaptive": ASKING._replace(contract=ADAPTIVE, model="claude-opus-4-8"),
    "newest": ASKING._replace(contract=NEWEST, model="claude-opus-5-5"),
    "never thinks": ASKING._replace(model="claude-3-5-haiku-latest"),
    "openrouter": ASKING._replace(to="openai_chat", contract=ROUTER, model="anthropic/claude-sonnet-4.5"),
    "openrouter, another model": ASKING._replace(to="openai_chat", contract=ROUTER, model="qwen/qwen3-max"),
}
CALLED = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
GEMINI_CLI = {"generationConfig": {"temperature": 1, "topP": 0.95, "topK": 64}}


def thinking_in(made: TranslatedOptions) -> Json:
    body = json.loads(made.body)
    return {name: body[name] for name in ("thinking", "reasoning", "reasoning_effort") if name in body}


@pytest.mark.parametrize(
    ("target", "members", "expected"),
    [
        ("classic", {}, {"thinking": {"type": "enabled", "budget_tokens": 8_192}}),
        ("classic", {"max_tokens": 6_000}, {"thinking": {"type": "enabled", "budget_tokens": 3_000}}),
        ("classic", {"max_tokens": 4_000}, {}),
        ("classic", {"temperature": 1, "top_p": 1}, {"thinking": {"type": "enabled", "budget_tokens": 8_192}}),
        ("classic", {"temperature": 0}, {}),
        ("classic", {"top_p": 0.5}, {}),
        ("classic", {"tools": [CALLED]}, {"thinking": {"type": "enabled", "budget_tokens": 8_192}}),
        ("classic", {"tools": [CALLED], "tool_choice": "required"}, {}),
        ("classic", {"reasoning_effort": "none"}, {}),
        ("classic", {"reasoning_effort": "low"}, {"thinking": {"type": "enabled", "budget_tokens": 2_048}}),
        ("adaptive", {}, {"thinking": {"type": "adaptive"}}),
        ("newest", {}, {}),
        ("never thinks", {}, {}),
        ("openrouter", {}, {"reasoning": {"enabled": True}}),
        ("openrouter", {"max_tokens": 1_000}, {}),
        ("openrouter", {"temperature": 0}, {}),
        ("openrouter, another model", {}, {}),
    ],
)
def test_a_model_is_asked_to_think_unless_something_speaks_against_it(
    target: str, members: Json, expected: Json
) -> None:
    """For a client that leaves it to its provider, in the mode that the model has; what a client says stays."""
    client: FormatName = "gemini_generate" if target.startswith("openrouter") else "openai_chat"
    if client == "gemini_generate":
        names = {"max_tokens": "maxOutputTokens", "temperature": "temperature"}
        members = {"generationConfig": {names[name]: value for name, value in members.items()}}
    made = translated(client, TARGETS[target], model="m", **members)
    assert thinking_in(made) == expected
    is_ours = bool(expected) and "reasoning_effort" not in members
    assert [finding.rule for finding in made.findings] == (["asked-to-think"] if is_ours else [])


@pytest.mark.parametrize("target", ["classic", "adaptive", "openrouter"])
def test_what_gemini_does_unasked_does_not_speak_against_thinking(target: str) -> None:
    """Gemini CLI sends the defaults of Gemini's models. Claude refuses them while it thinks: they are left out."""
    made = translated("gemini_generate", TARGETS[target], **GEMINI_CLI)
    assert thinking_in(made)
    assert not {"temperature", "top_p", "top_k"} & json.loads(made.body).keys()
    assert [finding.rule for finding in made.findings] == ["asked-to-think"]


@pytest.mark.parametrize("config", [{"thinkingBudget": 0}, {"thinkingLevel": "low"}, {"thinkingBudget": 5_000}])
def test_a_client_that_says_anything_about_thinking_is_believed(config: Json) -> None:
    """The same request as without the setting."""
    members = {"generationConfig": {"thinkingConfig": config}}
    asked, plain = (translated("gemini_generate", each, **members) for each in (ASKING, TARGET))
    assert (asked.body, asked.findings) == (plain.body, plain.findings)


def test_a_client_of_claudes_own_format_is_believed_when_it_says_nothing() -> None:
    """At Anthropic, saying nothing means no thinking: on Bedrock it means the same."""
    converse = resolve(Destination("bedrock", "https://upstream.example", "claude-sonnet-4-5", "bedrock_converse"))
    target = ASKING._replace(to="bedrock_converse", contract=converse)
    assert b"thinking" not in translated("anthropic_messages", target, model="m", max_tokens=32_000).body
    assert b"thinking" in translated("openai_chat", target, model="m").body


def test_a_rejected_mode_is_not_requested() -> None:
    """What a refusal taught holds here too."""
    learned = ASKING._replace(contract=replace(CLAUDE, refused_modes=("enabled",)))
    assert thinking_in(translated(target=learned, model="m")) == {}
