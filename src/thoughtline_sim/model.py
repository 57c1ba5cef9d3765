"""The small agent model: plays its script; without one it calls the first tool offered and then answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from thoughtline_sim.ledger import runs_of
from thoughtline_sim.pieces import CallTool, Piece, Say, ScriptedTurn, Think
from thoughtline_sim.reading import Json, JsonObject, as_object, objects, string
from thoughtline_sim.script import read_script
from thoughtline_sim.values import InputMessage, Tool, last_person

_SAMPLES: dict[str, Json] = {"string": "Paris", "number": 2.5, "integer": 2, "boolean": True, "array": [], "null": None}
_MAX_SEARCHED = 1_000_000
_OVER = ScriptedTurn((Think("Nothing is left to do."), Say("The script is over.")))


class OfferedTools(msgspec.Struct, frozen=True):
    """The tools of a request. `forced` names the one that must be called; `tool_choice: none` forbids all."""

    tools: tuple[Tool, ...] = ()
    forced: str | None = None
    may_call: bool = True


def offered(tools: Iterable[tuple[Json, Json]], forced: Json = None, *, may_call: bool = True) -> OfferedTools:
    """Tools by name and schema, from a request: those without a name are left out."""
    named = tuple(Tool(string(name), as_object(schema)) for name, schema in tools if string(name))
    return OfferedTools(named, string(forced) or None, may_call)


def play(
    history: tuple[InputMessage, ...], offer: OfferedTools, header_script: str = "", body: JsonObject | None = None
) -> ScriptedTurn:
    """The next turn of this conversation."""
    first = next((message.text for message in history if message.role == "user"), "")
    script = read_script(header_script) or read_script(first)
    if script is None:
        return _agent(history, offer)
    turn = len(runs_of(history))
    step = script[turn] if turn < len(script) else _OVER
    if not any(isinstance(piece, Say) and piece.recalls for piece in step.pieces):
        return step
    private = _private(history, body or {})
    return msgspec.structs.replace(step, pieces=tuple(_recalled(piece, private) for piece in step.pieces))


def _recalled(piece: Piece, private: str) -> Piece:
    """The text that the model recalls from its private input; an invalid pattern finds nothing."""
    if not isinstance(piece, Say) or not piece.recalls:
        return piece
    try:
        found = re.search(piece.recalls, private[:_MAX_SEARCHED])
    except re.error:
        found = None
    return Say(found[0] if found else "I don't know.")


def _private(history: tuple[InputMessage, ...], body: JsonObject) -> str:
    """What a request tells the model outside of the visible conversation."""
    members = (body.get(name) for name in ("system", "instructions", "systemInstruction", "system_instruction"))
    texts = [text for member in members for text in _strings(member)]
    for message in history:
        texts += [message.text] if message.role == "system" else message.thoughts
    return "\n".join(texts)


def _strings(value: Json) -> Iterator[str]:
    """The texts of a system prompt in any form."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings(value.get("parts") or value.get("text"))
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)


def _agent(history: tuple[InputMessage, ...], offer: OfferedTools) -> ScriptedTurn:
    since = history[last_person(history) + 1 :]
    has_results = any(message.results for message in since)
    tool = next((tool for tool in offer.tools if offer.forced in (None, tool.name)), None)
    if tool is None or has_results or not offer.may_call:
        return ScriptedTurn((Think("I have what I need to answer."), Say("Here is the answer you asked for.")))
    arguments = msgspec.json.encode(sample(tool.schema)).decode()
    return ScriptedTurn((Think(f"I should call {tool.name} before I answer."), CallTool(tool.name, arguments)))


def sample(schema: JsonObject, depth: int = 0) -> JsonObject:
    """Arguments that roughly fit a tool's schema: every required property gets a value of its type."""
    required = schema.get("required")
    properties = as_object(schema.get("properties"))
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    return {name: _value(as_object(properties.get(name)), depth) for name in names}


def _value(schema: JsonObject, depth: int) -> Json:
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return choices[0]
    options = objects(schema.get("anyOf"))
    if options and depth < 8:
        return _value(options[0], depth + 1)
    kind = string(schema.get("type")).lower()
    if kind == "object" and depth < 8:
        return sample(schema, depth + 1)
    return _SAMPLES.get(kind, "Paris")
