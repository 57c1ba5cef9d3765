"""Each rule of the auditor: a request with a finding, in the provider's own words, and one without."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thoughtline.engine.audit import audit, guess_format
from thoughtline.engine.capture import capture
from thoughtline.formats import FORMATS
from thoughtline.replay.findings import Finding
from thoughtline.replay.rules import RULES
from thoughtline.values.destination import Destination
from thoughtline.values.records import Record
from thoughtline.values.turns import FormatName, Provenance

SEAL = "EqQBCkgIBxABGAIiQL8sVQmT0F0w1x2y3z4A5B6C7D8E9F0="
CALL: dict[str, Any] = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
USE: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
RESULT: dict[str, Any] = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}],
}
THOUGHT: dict[str, Any] = {"type": "thinking", "thinking": "hm", "signature": SEAL}
HI: dict[str, Any] = {"role": "user", "content": "hi"}


def chat(*messages: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"tools": [{}], "messages": [HI, *messages], **rest}


def claude(*messages: dict[str, Any], model: str = "claude-opus-4-1") -> dict[str, Any]:
    thinking = {"type": "enabled", "budget_tokens": 2048}
    return {"model": model, "max_tokens": 4096, "thinking": thinking, "messages": [HI, *messages]}


def gemini(*parts: dict[str, Any]) -> dict[str, Any]:
    back = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {}}}]}
    return {"contents": [{"role": "user", "parts": [{"text": "hi"}]}, {"role": "model", "parts": list(parts)}, back]}


def responses(*items: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"model": "gpt-5.6", "input": [{"role": "user", "content": "hi"}, *items], **rest}


def found(body: dict[str, Any], provider: str, model: str = "", **rest: Any) -> list[Finding]:
    return audit(json.dumps(body).encode(), provider, model, **rest)


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, findings
    return findings[0]


def assistant(**members: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, **members}


@pytest.mark.parametrize(
    ("provider", "model", "sentence"),
    [
        ("deepseek", "deepseek-v4", "The `reasoning_content` in the thinking mode must be passed back to the API."),
        (
            "kimi",
            "kimi-k2.6",
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
        ),
        (
            "mimo",
            "mimo-v2.5",
            "Param Incorrect: The reasoning_content in the thinking mode must be passed back to the API.",
        ),
    ],
)
def test_missing_in_chat(provider: str, model: str, sentence: str) -> None:
    """A tool turn without its reasoning, in the words of the provider."""
    finding = only(found(chat(assistant(tool_calls=[CALL])), provider, model))
    assert (finding.rule, finding.place, finding.status, finding.answer) == ("missing", "/messages/1", 400, sentence)
    assert not found(chat(assistant(tool_calls=[CALL], reasoning_content="hm")), provider, model)


def test_missing_before_a_tool_loop() -> None:
    """Anthropic wants thinking first in the turn whose results come."""
    finding = only(found(claude({"role": "assistant", "content": [USE]}, RESULT), "anthropic"))
    assert finding.rule == "missing"
    assert finding.answer.startswith("messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found")
    assert not found(claude({"role": "assistant", "content": [THOUGHT, USE]}, RESULT), "anthropic")


def test_missing_signature_on_the_first_call() -> None:
    """Gemini wants it on the first call of a step, and counts from one."""
    finding = only(found(gemini({"functionCall": {"name": "look", "args": {}}}), "google", "gemini-3-pro"))
    assert (finding.rule, finding.place) == ("missing", "/contents/1/parts/0")
    assert "`default_api:look` , position 2" in finding.answer


def test_misplaced_signature() -> None:
    """A signature on the second call does not count for the first."""
    parts: list[dict[str, Any]] = [{"functionCall": {"name": name, "args": {}}} for name in ("look", "listen")]
    finding = only(found(gemini(parts[0], {**parts[1], "thoughtSignature": SEAL}), "google", "gemini-3-pro"))
    assert finding.rule == "misplaced"


def test_misplaced_at_the_end() -> None:
    """A turn can't end in thinking."""
    body = claude({"role": "assistant", "content": [{"type": "text", "text": "a"}, THOUGHT]}, HI)
    finding = only(found(body, "anthropic"))
    assert finding.answer == "messages.1: The final block in an assistant message cannot be `thinking`."


def test_an_end_that_is_taken() -> None:
    """From Claude 5 on a turn may end in thinking: it is found, and foretells no refusal."""
    body = claude(
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, THOUGHT]}, HI, model="claude-opus-5-5"
    )
    finding = only(found(body, "anthropic"))
    assert (finding.rule, finding.answer, finding.status) == ("misplaced", "", 0)


def test_an_end_that_is_paired() -> None:
    """Responses looks up what it has stored: reasoning without an id, or where nothing is stored, may stand last."""
    thought = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAB" + "x" * 40}
    words = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}
    kept = responses(words, {**thought, "id": "rs_1"}, HI)
    assert {finding.rule for finding in found(kept, "openai")} == {"misplaced"}
    assert not found(responses(words, {**thought, "id": "rs_1"}, HI, store=False), "openai")
    assert not found(responses(words, thought, HI), "openai")


@pytest.mark.parametrize(
    ("provider", "model", "field", "status"),
    [
        ("openai", "gpt-5", "reasoning_content", 400),
        ("groq", "qwen3", "reasoning_content", 400),
        ("mistral", "magistral", "reasoning_content", 422),
    ],
)
def test_forbidden_field(provider: str, model: str, field: str, status: int) -> None:
    """A refused field is named."""
    finding = only(found(chat(assistant(content="a", **{field: "hm"})), provider, model))
    assert (finding.rule, finding.place, finding.status) == ("forbidden", f"/messages/1/{field}", status)
    assert not found(chat(assistant(content="a")), provider, model)


def test_forbidden_content() -> None:
    """Nova refuses all reasoning in the history."""
    block = {"reasoningContent": {"reasoningText": {"text": "hm"}}}
    body = {"messages": [{"role": "assistant", "content": [block, {"text": "a"}]}], "inferenceConfig": {}}
    finding = only(found(body, "bedrock", "amazon.nova-pro-v1:0"))
    assert finding.answer.startswith("User messages cannot contain reasoning content.")


@pytest.mark.parametrize("signature", ["", "EqQB", "not a token at all!"])
def test_truncated_seal(signature: str) -> None:
    """Half a signature is refused."""
    block = {**THOUGHT, "signature": signature}
    finding = only(found(claude({"role": "assistant", "content": [block, USE]}, RESULT), "anthropic"))
    assert (finding.rule, finding.place) == ("truncated", "/messages/1/content/0")
    assert finding.answer == "messages.1.content.0: Invalid `signature` in `thinking` block"


def test_unpaired_ids() -> None:
    """A reasoning element by id, and its call without one."""
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SEAL}
    finding = only(found(responses(item, call), "openai"))
    assert finding.rule == "unpaired"
    assert finding.answer == "Item 'rs_1' of type 'reasoning' was provided without its required following item."
    assert not found(responses(item, {**call, "id": "fc_1"}), "openai")


def test_stale_id() -> None:
    """An id under which nothing was stored."""
    item = {"type": "reasoning", "id": "rs_1", "summary": []}
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}"}
    finding = only(found(responses(item, call, store=False), "openai"))
    assert (finding.rule, finding.status) == ("stale-id", 404)
    assert not found(responses(item, call), "openai")


def test_duplicated_block() -> None:
    """One signed block before each of two messages."""
    first = {"role": "assistant", "content": [THOUGHT, USE]}
    second = {"role": "assistant", "content": [THOUGHT, {**USE, "id": "toolu_2"}]}
    assert [finding.rule for finding in found(claude(first, second, RESULT), "anthropic")] == ["duplicated"]


def test_sentinel() -> None:
    """Accepted, but reported."""
    part = {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"}
    finding = only(found(gemini(part), "google", "gemini-3-pro"))
    assert (finding.rule, finding.status) == ("sentinel", 0)


# --- with the record of the turn ------------------------------------------------------------------------------------

INTERLEAVED: list[dict[str, Any]] = [
    THOUGHT,
    USE,
    {**THOUGHT, "thinking": "again", "signature": "Q" + SEAL},
    {**USE, "id": "toolu_2", "name": "n"},
]


def record_of(body: dict[str, Any], content: list[dict[str, Any]], model: str = "claude-opus-4-1") -> list[Record]:
    row = FORMATS["anthropic_messages"]
    request = row.bodies.decode_request(json.dumps({**body, "messages": [HI]}).encode(), row.dialect)
    answer = {"id": "msg", "model": model, "content": content, "stop_reason": "tool_use"}
    reply = row.bodies.decode_response(json.dumps(answer).encode(), row.dialect)
    where = Provenance("", "anthropic", "", "", model, model, "anthropic_messages", "anthropic")
    return list(capture(request, reply, where, 1.0))


def test_reordered_blocks() -> None:
    """All there, in another order."""
    shuffled = [INTERLEAVED[0], INTERLEAVED[2], INTERLEAVED[1], INTERLEAVED[3]]
    body = claude({"role": "assistant", "content": shuffled}, RESULT)
    rules = [finding.rule for finding in found(body, "anthropic", records=record_of(body, INTERLEAVED))]
    assert rules == ["reordered"]


def test_altered_text() -> None:
    """Trimmed thinking under its old signature."""
    body = claude({"role": "assistant", "content": [THOUGHT, USE]}, RESULT)
    made = [{**THOUGHT, "thinking": "hm \n"}, USE]
    finding = only(found(body, "anthropic", records=record_of(body, made)))
    assert finding.rule == "altered"
    assert "cannot be modified" in finding.answer


def test_foreign_seal() -> None:
    """The same block for another account. Another model of its maker drops what it can't read."""
    body = claude({"role": "assistant", "content": [THOUGHT, USE]}, RESULT, model="claude-sonnet-4-5")
    records = record_of(body, [THOUGHT, USE])
    issuer = Destination("anthropic", "", "claude-sonnet-4-5", "anthropic_messages")
    other = Destination("anthropic", "", "claude-sonnet-4-5", "anthropic_messages", "another account")
    assert found(body, "anthropic", records=records, issuer=issuer) == []
    finding = only(found(body, "anthropic", records=records, issuer=other))
    assert finding.rule == "foreign"


def test_bound_prefix_changed() -> None:
    """A system prompt that was edited after the block was made."""
    model = "claude-fable-5-2"
    body = claude({"role": "assistant", "content": [THOUGHT, USE]}, RESULT, model=model)
    records = record_of(body, [THOUGHT, USE], model)
    assert not found(body, "anthropic", records=records)
    finding = only(found({**body, "system": "Be brief."}, "anthropic", records=records))
    assert finding.rule == "bound-prefix-changed"
    assert "bound to a different conversation" in finding.answer


@pytest.mark.parametrize(("behaviour", "status"), [("error", 400), ("drop_block", None), (None, 0)])
def test_bound_prefix_changed_where_accounts_differ(behaviour: str | None, status: int | None) -> None:
    """Older accounts read such a block, so no refusal is predicted, unless the request asks for one; a request that
    asks to drop it has no problem."""
    body = claude({"role": "assistant", "content": [THOUGHT, USE]}, RESULT, model="claude-sonnet-5-5")
    records = record_of(body, [THOUGHT, USE], "claude-sonnet-5-5")
    body |= {"system": "Be brief.", "thinking": {"type": "adaptive"}}
    if behaviour is not None:
        body["thinking"] = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": behaviour}}
    findings = found(body, "anthropic", records=records)
    assert [one.status for one in findings] == ([] if status is None else [status])


def test_every_rule_explains_itself() -> None:
    """What it checks, why, an example, the source: the user page is generated from that."""
    for rule in RULES:
        text = rule.check.__doc__ or ""
        assert all(part in text for part in ("Why: ", "Example: ", "Source: "))
    assert len({rule.code for rule in RULES}) == len(RULES)


@pytest.mark.parametrize(
    ("body", "provider", "expected"),
    [
        ({"contents": []}, "", "gemini_generate"),
        ({"contents": [], "generation_config": {}}, "", "gemini_generate"),
        ({"model": "m", "request": {"contents": []}}, "", "gemini_code_assist"),
        ({"input": "hi"}, "", "openai_responses"),
        ({"input": "hi", "generation_config": {}}, "", "gemini_interactions"),
        ({"input": [{"type": "user_input"}]}, "", "gemini_interactions"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}, "", "anthropic_messages"),
        ({"messages": []}, "anthropic", "anthropic_messages"),
        ({"messages": [], "inferenceConfig": {}}, "", "bedrock_converse"),
        ({"messages": []}, "claude", "anthropic_messages"),
        ({"messages": [], "options": {}}, "ollama", "ollama_chat"),
        ({"messages": []}, "ollama", "openai_chat"),
        ({"messages": []}, "", "openai_chat"),
    ],
)
def test_format_by_the_body(body: dict[str, Any], provider: str, expected: FormatName) -> None:
    """Members that only one format has identify it."""
    assert guess_format(json.dumps(body).encode(), provider) == expected


SETTINGS: list[tuple[dict[str, Any], str, str, str]] = [
    (chat(tool_choice="required"), "deepseek", "deepseek-v4-pro", "/tool_choice"),
    (chat(reasoning_effort="high"), "xai", "grok-code-fast-1", "/reasoning_effort"),
    (responses(reasoning={"effort": "minimal"}), "openai", "o4-mini", "/reasoning/effort"),
    (chat(reasoning_effort="low"), "openai", "gpt-5.4-mini", "/tools"),
]
TAKEN: list[tuple[dict[str, Any], str, str]] = [
    (chat(tool_choice="auto"), "deepseek", "deepseek-v4-pro"),
    (chat(tool_choice="required", thinking={"type": "disabled"}), "deepseek", "deepseek-v4-pro"),
    (chat(reasoning_effort="high"), "openrouter", "x-ai/grok-code-fast-1"),
    (responses(reasoning={"effort": "max"}), "openai", "gpt-5.6"),
    (chat(reasoning_effort="none"), "openai", "gpt-5.6"),
]


@pytest.mark.parametrize(("body", "provider", "model", "place"), SETTINGS)
def test_a_setting_that_is_refused(body: dict[str, Any], provider: str, model: str, place: str) -> None:
    """As recorded: a forced tool, an effort, a word for it, and tools at the wrong endpoint."""
    finding = only([one for one in found(body, provider, model) if one.rule in ("setting", "door")])
    assert (finding.place, finding.status) == (place, 400)


@pytest.mark.parametrize(("body", "provider", "model"), TAKEN)
def test_a_setting_that_is_taken(body: dict[str, Any], provider: str, model: str) -> None:
    assert [one for one in found(body, provider, model) if one.rule in ("setting", "door")] == []
