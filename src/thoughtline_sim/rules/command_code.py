"""Errors of Command Code's own API: wrong shape, no streaming, an old CLI.

The shape is what its validator named, path by path (hareeshkar/opencode-commandcode, `schema.generated.json` and
`parts.generated.json`, 2026-09-29); the messages about streaming and too many tokens are quoted by MAXeaglet's and
diegosouzapw's proxies (2026-10). Reasoning is accepted back and never required (CommandCodeAI/command-code#754).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.reading import Json, JsonObject, as_object, objects, string
from thoughtline_sim.refusals import command_code_error
from thoughtline_sim.values import Rejection

_CONFIG: dict[str, type] = {
    "workingDir": str,
    "date": str,
    "environment": str,
    "structure": list,
    "isGitRepo": bool,
    "currentBranch": str,
    "mainBranch": str,
    "gitStatus": str,
    "recentCommits": list,
}
_KINDS = {str: "string", list: "array", bool: "boolean", dict: "object", int: "number"}
_PARTS = (
    *("text", "image", "document", "search_result", "thinking", "redacted_thinking", "reasoning", "tool_use"),
    *("tool-call", "tool_result", "server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "tool-result"),
)
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_MODES = ("default", "standard", "auto-accept", "plan", "bypass")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_MAX_TOKENS = 200_000
_OLDEST = (1, 0)


def cli_is_recent(exchange: SimExchange) -> Iterator[Rejection]:
    """No version, or one that is too old: 403."""
    version = exchange.request.headers.get("x-command-code-version", "")
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if len(numbers) < 2 or numbers < _OLDEST:
        yield command_code_error("Please upgrade Command Code to continue.", 403, "upgrade_required")


def envelope_fits(exchange: SimExchange) -> Iterator[str]:
    """The envelope around the request."""
    body = as_object(msgspec.json.decode(exchange.request.body))
    config = body.get("config")
    yield from _expected(config, dict, "config")
    for name, kind in _CONFIG.items():
        yield from _expected(as_object(config).get(name), kind, f"config.{name}")
    yield from _expected(body.get("memory"), str, "memory")
    if "threadId" in body and not _UUID.fullmatch(string(body["threadId"])):
        yield 'Invalid UUID at "threadId"'
    yield from _one_of(body, "permissionMode", _MODES, "permissionMode")


def params_fit(exchange: SimExchange) -> Iterator[str]:
    """The request itself."""
    params = exchange.body
    if params.get("stream", True) is not True:
        yield "Proxy use detected. This endpoint only serves CLI."
    if not exchange.model:
        yield 'Invalid input: expected string, received undefined at "params.model"'
    tokens = params.get("max_tokens")
    if isinstance(tokens, int) and tokens > _MAX_TOKENS:
        yield f"Too big: expected number to be <={_MAX_TOKENS} at params.max_tokens"
    yield from _one_of(params, "reasoning_effort", _EFFORTS, "params.reasoning_effort")
    if "system" in params and not isinstance(params["system"], list):
        yield from _expected(params["system"], str, "params.system")
    for index, tool in enumerate(objects(params.get("tools"))):
        yield from _expected(tool.get("name"), str, f"params.tools[{index}].name")
        yield from _expected(tool.get("input_schema"), dict, f"params.tools[{index}].input_schema")


def messages_fit(exchange: SimExchange) -> Iterator[str]:
    """Roles, parts and the required members of each part; a result names a call before it."""
    called: set[str] = set()
    for index, message in enumerate(exchange.body["messages"]):
        place = f"params.messages[{index}]"
        yield from _one_of(as_object(message), "role", ("user", "assistant", "tool"), f"{place}.role", needed=True)
        content = as_object(message).get("content")
        if isinstance(content, str):
            continue
        yield from _expected(content, list, f"{place}.content")
        for at, part in enumerate(content if isinstance(content, list) else ()):
            yield from _part(as_object(part), f"{place}.content[{at}]", called)


def _part(part: JsonObject, place: str, called: set[str]) -> Iterator[str]:
    kind = part.get("type")
    if kind not in _PARTS:
        yield " or ".join(f'Invalid input: expected "{one}" at "{place}.type"' for one in _PARTS)
    if kind in ("text", "reasoning"):
        yield from _expected(part.get("text"), str, f"{place}.text")
    if kind in ("tool-call", "tool-result"):
        yield from _expected(part.get("toolCallId"), str, f"{place}.toolCallId")
        yield from _expected(part.get("toolName"), str, f"{place}.toolName")
    if kind == "tool-call":
        yield from _expected(part.get("input"), dict, f"{place}.input")
        called.add(string(part.get("toolCallId")))
    if kind == "tool-result":
        output = as_object(part.get("output"))
        yield from _expected(output.get("type"), str, f"{place}.output.type")
        if part.get("toolCallId") not in called:
            yield f"No tool call found for tool result {part.get('toolCallId')}."


def _expected(value: Json, kind: type, place: str) -> Iterator[str]:
    if not isinstance(value, kind):
        received = "undefined" if value is None else _KINDS.get(type(value), "number")
        yield f'Invalid input: expected {_KINDS[kind]}, received {received} at "{place}"'


def _one_of(body: JsonObject, name: str, words: tuple[str, ...], place: str, *, needed: bool = False) -> Iterator[str]:
    if (needed or body.get(name) is not None) and body.get(name) not in words:
        listed = "|".join(f'"{word}"' for word in words)
        yield f'Invalid option: expected one of {listed} at "{place}"'


RULES = (cli_is_recent, envelope_fits, params_fit, messages_fit)
