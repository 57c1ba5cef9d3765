"""Passages that are known: with and without them, a request is translated to the same, whatever its client does."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tests.translation.kinds import SEALER
from tests.translation.lanes import MORE_UPSTREAMS, TENANT, UPSTREAMS, Upstream
from thoughtline.formats import FORMATS
from thoughtline.translation import TranslatedRequest, passages, translate_request
from thoughtline.translation.envelopes import Opened
from thoughtline.translation.passages import Direction, Made, Passages
from thoughtline.values.errors import ThoughtlineError
from thoughtline.values.identity import Identity
from thoughtline.values.items import DEEPSEEK_V1, ReasoningText
from thoughtline.values.turns import FormatName, Provenance, Transcript

Json = dict[str, Any]
EXAMPLES = int(os.environ.get("LAW_EXAMPLES", "60"))
"""Conversations of each client: more of them for a longer look."""

WHO = Identity(TENANT, "session")
PNG = "iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def envelope(number: int) -> str:
    made = Provenance(TENANT, "deepseek", "https://upstream.example", "", "m", "m", "openai_chat", "deepseek")
    return SEALER.seal(Opened(made, (ReasoningText(f"thought {number}", None, DEEPSEEK_V1),), ((0, 0),))) or ""


def call_id(at: Random, number: int) -> str:
    """Mostly one of its own; some come twice, some are known by digests or wrapped, some are none of ours."""
    strange = ["call_same", f"tlx3_Y2FsbF9{number}", f"tln_{number}", f"tlh_{number:032x}", f"a b:{number}", "x" * 90]
    return at.choice(strange) if at.random() < 0.06 else f"call_{number}_x7Kd"


def words(at: Random) -> str:
    return at.choice(["", "Reading it.", "Done.", "Ünïcode ✓", '{"role":"assistant"}', "x" * 300])


def messages_turn(at: Random, number: int) -> list[Json]:
    """A step of the model, and what is said to it, as a Messages client has them."""
    blocks: list[Json] = []
    if at.random() < 0.5:
        seal = at.choice(["", "c2lnbmF0dXJl", envelope(number)])
        blocks.append({"type": "thinking", "thinking": f"I think {number}", "signature": seal})
    if at.random() < 0.1:
        blocks.append({"type": "server_tool_use", "id": f"srv_{number}", "name": "web_search", "input": {}})
    if at.random() < 0.6:
        cited = {"citations": [{"type": "char_location", "cited_text": "a"}]} if at.random() < 0.1 else {}
        blocks.append({"type": "text", "text": words(at) or "So.", **cited})
    names = [call_id(at, 10 * number + one) for one in range(at.choice([0, 1, 1, 1, 2]))]
    nested = {"messages": [{"role": "assistant", "content": "nested"}]}
    for name in names:
        blocks.append({"type": "tool_use", "id": name, "name": "read", "input": at.choice([{"n": number}, nested, {}])})
    heard: list[Json] = []
    for name in at.sample(names, len(names)):
        odd = at.random()
        content: Any = f"result {number} " + words(at) * 3
        if odd < 0.1:
            source = {"type": "base64", "media_type": "image/png", "data": PNG}
            content = [{"type": "text", "text": "see"}, {"type": "image", "source": source}]
        answered = "call_same" if 0.1 < odd < 0.14 else "call_nobody" if 0.14 < odd < 0.17 else name
        heard += [{"type": "tool_result", "tool_use_id": answered, "content": content}] * (1 if odd < 0.95 else 2)
    heard += [{"type": "text", "text": words(at) or "go on"}] if at.random() < 0.3 or not heard else []
    if at.random() < 0.15:
        heard[-1] = {**heard[-1], "cache_control": {"type": "ephemeral"}}
    turns = [{"role": "assistant", "content": blocks}] if blocks or at.random() < 0.5 else []
    if at.random() < 0.05:
        turns.append({"role": "system", "content": "The date has changed."})
    return [*turns, {"role": "user", "content": heard}] if at.random() < 0.95 else turns


def chat_turn(at: Random, number: int) -> list[Json]:
    names = [call_id(at, 10 * number + one) for one in range(at.choice([0, 1, 1, 1, 2]))]
    arguments = at.choice(['{"n":1}', "{}", "no json", '{"role":"assistant","tool_calls":[]}'])
    calls = [{"id": one, "type": "function", "function": {"name": "read", "arguments": arguments}} for one in names]
    said: Json = {"role": "assistant", "content": words(at) or (None if calls else "Hm.")}
    said |= {"tool_calls": calls} if calls else {}
    said |= {"reasoning_content": f"I think {number}"} if at.random() < 0.4 else {}
    said |= {"annotations": [{"type": "url_citation", "url_citation": {}}]} if at.random() < 0.05 else {}
    turns = [said]
    for name in at.sample(names, len(names)):
        odd = at.random()
        answered = "call_same" if odd < 0.03 else "call_nobody" if odd < 0.05 else name
        result = {"role": "tool", "tool_call_id": answered, "content": f"result {number} " + words(at)}
        turns += [result] * (2 if odd > 0.95 else 1)
    if at.random() < 0.05:
        turns.append({"role": "system", "content": "The date has changed."})
    if at.random() < 0.3 or not names:
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
        parts = [{"type": "text", "text": "look"}, picture]
        turns.append({"role": "user", "content": parts if at.random() < 0.2 else words(at) or "go on"})
    return turns


def responses_turn(at: Random, number: int) -> list[Json]:
    turns: list[Json] = []
    if at.random() < 0.5:
        sealed = at.choice(["gAAAforeign", envelope(number)])
        turns.append({"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": sealed})
    if at.random() < 0.5:
        notes = [{"type": "url_citation", "url": "u"}] if at.random() < 0.1 else []
        part = {"type": "output_text", "text": words(at) or "So.", "annotations": notes}
        phase = {"phase": "commentary"} if at.random() < 0.1 else {}
        turns.append({"type": "message", "id": f"msg_{number}", "role": "assistant", "content": [part], **phase})
    names = [call_id(at, 10 * number + one) for one in range(at.choice([0, 1, 1, 1, 2]))]
    for name in names:
        if at.random() < 0.2:
            turns.append({"type": "custom_tool_call", "call_id": name, "name": "patch", "input": "*** begin"})
        else:
            turns.append({"type": "function_call", "call_id": name, "name": "read", "arguments": '{"n":1}'})
    if at.random() < 0.05:
        turns.append({"type": "agent_message", "content": [{"type": "text", "text": "from another"}]})
    for name in at.sample(names, len(names)):
        turns.append({"type": "function_call_output", "call_id": name, "output": f"result {number} " + words(at)})
    if at.random() < 0.3 or not names:
        turns.append({"type": "message", "role": "user", "content": words(at) or "go on"})
    return turns


def gemini_turn(at: Random, number: int) -> list[Json]:
    named = at.random() < 0.8
    names = [call_id(at, 10 * number + one) for one in range(at.choice([0, 1, 1, 2]))]
    own = [{"id": name} if named else {} for name in names]
    parts: list[Json] = [{"text": "Hm.", "thought": True}] if at.random() < 0.3 else []
    parts += [{"text": words(at) or "So."}] if at.random() < 0.6 or not names else []
    parts += [{"functionCall": {"name": "read", "args": {"n": number}, **one}} for one in own]
    heard: list[Json] = [{"functionResponse": {"name": "read", "response": {"o": number}, **one}} for one in own]
    heard += [{"text": words(at) or "go on"}] if at.random() < 0.3 or not heard else []
    return [{"role": "model", "parts": parts}, {"role": "user", "parts": heard}]


TURNS: dict[FormatName, Callable[[Random, int], list[Json]]] = {
    "anthropic_messages": messages_turn,
    "openai_chat": chat_turn,
    "openai_responses": responses_turn,
    "gemini_generate": gemini_turn,
}


def opening(client: FormatName, at: Random) -> list[Json]:
    if client == "gemini_generate":
        return [{"role": "user", "parts": [{"text": "Read it."}]}]
    begins = [{"role": "system", "content": "Be brief."}] if client == "openai_chat" and at.random() < 0.5 else []
    return [*begins, {"role": "user", "content": "Read all of it."}] if at.random() < 0.95 else begins


def body_of(client: FormatName, elements: list[Json], at: Random) -> bytes:
    """The request, with what may change beside its conversation."""
    wire, body = FORMATS[client], Json(model="m")
    deferred = {"defer_loading": True} if at.random() < 0.03 else {}
    match client:
        case "anthropic_messages":
            body |= {"max_tokens": 4096, "tools": [{"name": "read", "input_schema": SCHEMA, **deferred}]}
            body |= {"system": "Be brief."} if at.random() < 0.8 else {}
        case "openai_responses":
            body["tools"] = [{"type": "function", "name": "read", "parameters": SCHEMA}]
        case "openai_chat":
            body["tools"] = [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}]
        case _:
            body = {"tools": [{"functionDeclarations": [{"name": "read", "parametersJsonSchema": SCHEMA}]}]}
    if at.random() < 0.05:
        del body["tools"]
    listed = {wire.list_member: elements}
    body = {**listed, **body} if at.random() < 0.5 else {**body, **listed}
    return json.dumps(body, indent=at.choice([None, None, None, 1]), ensure_ascii=False).encode()


def edit(elements: list[Json], client: FormatName, at: Random) -> list[Json]:
    """What clients do to a history."""
    place = at.randrange(len(elements)) if elements else 0
    match at.choice(["drop", "repeat", "swap", "window", "insert", "cut", "rewrite"]):
        case "drop":
            return [*elements[:place], *elements[place + 1 :]]
        case "repeat":
            return [*elements[: place + 1], *elements[place:]]
        case "swap":
            return [*elements[:place], *elements[place : place + 2][::-1], *elements[place + 2 :]]
        case "window":
            return [*elements[:1], *elements[place + 1 :]]
        case "insert":
            return [*elements[:place], *opening(client, at)[-1:], *elements[place:]]
        case "cut":
            return elements[: place + 1]
        case _:
            changed = json.dumps(elements[place : place + 1]).replace("result", "note")
            return [*elements[:place], *json.loads(changed), *elements[place + 1 :]]


def made_of(known: Passages, body: bytes, direction: Direction, to: Upstream) -> Made:
    """The request, translated with what is known, as the engine does."""

    def translate(transcript: Transcript) -> TranslatedRequest:
        return translate_request(
            transcript, to.format, direction.contract, to.model, WHO, SEALER, asks_to_think=True, is_streaming=False
        )

    shortened = known.shortened(body, direction)
    made = shortened.translated(translate) or shortened.whole.translated(translate)
    assert made is not None
    known.keep(made)
    return made


def shown(made: Made) -> object:
    """All that anyone learns of a translated request."""
    records = made.records() if made.records is not None else ()
    asked = made.short.options, made.short.tools, made.is_streaming
    return made.written.body, made.written.read(), made.written.user, made.findings, made.call_ids, asked, records


def outcome(known: Passages, body: bytes, direction: Direction, to: Upstream) -> object:
    try:
        return shown(made_of(known, body, direction, to))
    except ThoughtlineError as problem:
        return str(problem)


@pytest.fixture(autouse=True)
def short_passages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Conversations of a few passages are known, and found by a few bytes."""
    monkeypatch.setattr(passages, "FEWEST", 1)
    monkeypatch.setattr(passages, "SAMPLE", 40)


EVERY = (*UPSTREAMS, *MORE_UPSTREAMS)


@pytest.mark.parametrize("client", sorted(TURNS))
def test_with_and_without_it_a_request_is_translated_to_the_same(client: FormatName) -> None:
    """Body, findings, ids, options and the contents of envelopes."""
    joined = 0
    for seed in range(EXAMPLES):
        at = Random(f"{client} {seed}")
        to = at.choice([one for one in EVERY if one.format != client])
        known, none = Passages(2**20), Passages(0)
        elements = opening(client, at)
        for number in range(14):
            elements += TURNS[client](at, number)
            asked = edit(elements, client, at) if at.random() < 0.2 else elements
            elements = asked if at.random() < 0.5 else elements
            to = at.choice(EVERY) if at.random() < 0.02 else to
            if to.format == client:
                continue
            direction = Direction(TENANT, client, to.format, to.contract, to.model)
            body = body_of(client, asked, at)
            joined += bool(known.shortened(body, direction).runs)
            assert outcome(known, body, direction, to) == outcome(none, body, direction, to), (
                client,
                to.id,
                seed,
                number,
            )
    assert joined > EXAMPLES


# --- what is kept -----------------------------------------------------------------------------------------------------

TO = UPSTREAMS[0]
DIRECTION = Direction(TENANT, "anthropic_messages", TO.format, TO.contract, TO.model)


def grown(turns: int, text: str = "") -> bytes:
    """A conversation of so many turns, each with a call and its result."""
    said: list[Json] = [{"role": "user", "content": f"Read all of it. {text}"}]
    for number in range(turns):
        call = {"type": "tool_use", "id": f"call_{text}{number}", "name": "read", "input": {"n": number}}
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"{number} " * 100}
        said += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return json.dumps({"model": "m", "max_tokens": 9, "messages": said}).encode()


def test_only_what_is_new_is_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last passage may still grow, so it is new once more in the next request."""
    monkeypatch.setattr(passages, "SAMPLE", 160)
    known = Passages(2**20)
    made_of(known, grown(20), DIRECTION, TO)
    shortened = known.shortened(grown(21), DIRECTION)
    assert [len(run.passages) for run in shortened.runs] == [19]
    assert made_of(known, grown(21), DIRECTION, TO).written.is_joined


def test_passages_are_bounded_and_the_least_recently_used_go_first() -> None:
    known = Passages(30_000)
    for text in ("one", "two", "three"):
        made_of(known, grown(20, text), DIRECTION, TO)
        assert 0 < known.size <= 30_000
    assert known.shortened(grown(20, "three"), DIRECTION).runs
    assert not known.shortened(grown(20, "one"), DIRECTION).runs


def test_another_tenant_or_model_knows_none() -> None:
    known = Passages(2**20)
    made_of(known, grown(20), DIRECTION, TO)
    assert not known.shortened(grown(20), DIRECTION._replace(tenant="other")).runs
    assert not known.shortened(grown(20), DIRECTION._replace(model="other")).runs
    known.clear()
    assert known.size == 0
    assert not known.shortened(grown(20), DIRECTION).runs


def test_zero_bytes_keep_nothing() -> None:
    known = Passages(0)
    made_of(known, grown(20), DIRECTION, TO)
    assert known.size == 0
