"""Every kind of item, tool and member of a client that another format may lack, and the table of them in the docs.

python -m tests.translation.kinds      write the tables into docs/translation.md
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.translation.lanes import KEY, TENANT, UPSTREAMS
from thoughtline.formats import FORMATS
from thoughtline.replay.detection import resolve
from thoughtline.replay.findings import Finding
from thoughtline.translation import Sealer, translate_request
from thoughtline.translation.compactions import read_compactions
from thoughtline.translation.envelopes import Opened
from thoughtline.translation.own_format import adapt
from thoughtline.values.destination import Destination
from thoughtline.values.items import Text
from thoughtline.values.options import FUNCTIONS_ONLY
from thoughtline.values.turns import FormatName, Provenance

Json = dict[str, Any]
PAGE = Path(__file__).parents[2] / "docs" / "translation.md"
SEALER = Sealer(KEY, TENANT)
SCHEMA = {"type": "object", "properties": {}}
DEEPSEEK = Destination("deepseek", "https://api.deepseek.com", "deepseek-v4-pro", "openai_responses")
OTHERS: dict[FormatName, tuple[str, ...]] = {
    client: (
        *dict.fromkeys(one.format for one in UPSTREAMS if one.format != client),
        *(("DeepSeek's Responses",) if "resp" in client else ()),
    )
    for client in ("openai_responses", "anthropic_messages")
}


class Kind(NamedTuple):
    """A part of a client's request. It contains `MARK` if its arrival can be checked that way. `items` are in the
    conversation, `tools` among the tools, `members` next to them. `words` show the arrival of one without a mark.
    """

    name: str
    items: tuple[Json, ...] = ()
    tools: tuple[Json, ...] = ()
    members: Mapping[str, Any] = MappingProxyType({})
    is_users: bool = False
    words: tuple[str, ...] = ("MARK",)


def own_compaction(mark: str) -> str:
    made = Provenance(TENANT, "kimi", "https://h", "", "m", "m", "openai_chat", "kimi")
    return SEALER.seal(Opened(made, (Text(f"They spoke of {mark}."),))) or ""


def _pair(kind: str, **call: Any) -> tuple[Json, Json]:
    return {"type": kind, "call_id": "cMARK", **call}, {"type": f"{kind}_output", "call_id": "cMARK", "output": "MARK"}


def _words(kind: str = "output_text") -> list[Json]:
    return [{"type": kind, "text": "MARK"}]


RESPONSES = (
    Kind(
        "`message` with a `phase`",
        ({"type": "message", "role": "assistant", "phase": "commentary", "content": _words()},),
    ),
    Kind("`function_call` in a `namespace`", _pair("function_call", name="look", namespace="agents", arguments="{}")),
    Kind("`custom_tool_call`", _pair("custom_tool_call", name="patch", input="*** MARK")),
    Kind(
        "`web_search_call`",
        (
            {
                "type": "web_search_call",
                "id": "ws_MARK",
                "status": "completed",
                "action": {"type": "search", "query": "MARK"},
            },
        ),
    ),
    Kind(
        "`local_shell_call`",
        _pair("local_shell_call", status="completed", action={"type": "exec", "command": ["MARK"]}),
    ),
    Kind("`shell_call`", _pair("shell_call", status="completed", action={"commands": ["MARK"]})),
    Kind(
        "`apply_patch_call`",
        _pair("apply_patch_call", status="completed", operation={"type": "delete_file", "path": "MARK"}),
    ),
    Kind(
        "`image_generation_call`",
        ({"type": "image_generation_call", "id": "ig_MARK", "status": "completed", "result": "MARK"},),
    ),
    Kind(
        "`mcp_call`",
        (
            {
                "type": "mcp_call",
                "id": "m_MARK",
                "name": "x",
                "server_label": "MARK",
                "arguments": "{}",
                "output": "MARK",
            },
        ),
    ),
    Kind(
        "`agent_message`",
        ({"type": "agent_message", "author": "a", "recipient": "b", "content": _words("input_text")},),
    ),
    Kind(
        "`agent_message`, sealed",
        (
            {
                "type": "agent_message",
                "author": "a",
                "recipient": "b",
                "content": [{"type": "encrypted_content", "encrypted_content": "MARK"}],
            },
        ),
    ),
    Kind("our own `compaction`", ({"type": "compaction", "encrypted_content": "OWN:MARK"},)),
    Kind("another maker's `compaction`", ({"type": "compaction", "id": "cmp_MARK", "encrypted_content": "MARK"},)),
    Kind("`context_compaction`", ({"type": "context_compaction", "encrypted_content": "MARK"},)),
    Kind(
        "`additional_tools`",
        (
            {
                "type": "additional_tools",
                "role": "developer",
                "tools": [{"type": "function", "name": "fMARK", "parameters": SCHEMA}],
            },
        ),
    ),
    Kind(
        "`tool_search_output`",
        (
            {"type": "tool_search_call", "call_id": "cMARK", "execution": "client", "arguments": {}},
            {
                "type": "tool_search_output",
                "call_id": "cMARK",
                "status": "completed",
                "execution": "client",
                "tools": [{"type": "function", "name": "fMARK", "parameters": SCHEMA}],
            },
        ),
    ),
    Kind("an unknown kind", ({"type": "brand_new", "text": "MARK"},)),
    Kind("tool `function`", tools=({"type": "function", "name": "fMARK", "parameters": SCHEMA},)),
    Kind(
        "tool `namespace`",
        tools=(
            {"type": "namespace", "name": "nMARK", "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}]},
        ),
    ),
    Kind(
        "tool `custom` with a grammar",
        tools=(
            {
                "type": "custom",
                "name": "patch",
                "format": {"type": "grammar", "syntax": "lark", "definition": "start: MARK"},
            },
        ),
    ),
    Kind(
        "tool `web_search`, cached",
        tools=({"type": "web_search", "external_web_access": False},),
        words=("web_search",),
    ),
    Kind(
        "tool `tool_search`",
        tools=({"type": "tool_search", "execution": "client", "description": "MARK", "parameters": SCHEMA},),
    ),
    Kind("tool `image_generation`", tools=({"type": "image_generation"},), words=("image_generation",)),
    Kind("tool `local_shell`", tools=({"type": "local_shell"},), words=("local_shell",)),
    Kind(
        "`context_management`",
        members={"context_management": [{"type": "compaction", "compact_threshold": 1000}]},
        words=("compact_threshold",),
    ),
    Kind("`reasoning.context`", members={"reasoning": {"context": "current_turn"}}, words=("current_turn",)),
)

MESSAGES = (
    Kind("`compaction`", ({"type": "compaction", "content": "MARK", "encrypted_content": "sealed"},)),
    Kind(
        "`server_tool_use`",
        ({"type": "server_tool_use", "id": "srvtoolu_MARK", "name": "web_search", "input": {"query": "MARK"}},),
    ),
    Kind(
        "`web_search_tool_result`",
        (
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srvtoolu_MARK",
                "content": [{"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "MARK"}],
            },
        ),
    ),
    Kind(
        "`code_execution_tool_result`",
        (
            {
                "type": "code_execution_tool_result",
                "tool_use_id": "srvtoolu_MARK",
                "content": {
                    "type": "encrypted_code_execution_result",
                    "encrypted_stdout": "MARK",
                    "stderr": "",
                    "return_code": 0,
                    "content": [],
                },
            },
        ),
    ),
    Kind(
        "`advisor_tool_result`",
        (
            {
                "type": "advisor_tool_result",
                "tool_use_id": "srvtoolu_MARK",
                "content": {"type": "advisor_redacted_result", "encrypted_content": "MARK"},
            },
        ),
    ),
    Kind("`fallback`", ({"type": "fallback", "from": {"model": "MARK"}, "to": {"model": "b"}},)),
    Kind("`container_upload`", ({"type": "container_upload", "file_id": "MARK"},), is_users=True),
    Kind(
        "tool `web_search`",
        tools=({"type": "web_search_20260209", "name": "web_search"},),
        words=("web_search", "googleSearch"),
    ),
    Kind(
        "tool `code_execution`",
        tools=({"type": "code_execution_20250825", "name": "code_execution"},),
        words=("code_execution",),
    ),
    Kind("tool `memory`", tools=({"type": "memory_20250818", "name": "memory"},), words=("memory",)),
    Kind("tool `advisor`", tools=({"type": "advisor_20260301", "name": "advisor"},), words=("advisor",)),
    Kind("tool `mcp_toolset`", tools=({"type": "mcp_toolset", "mcp_server_name": "MARK"},)),
    Kind("tool with `defer_loading`", tools=({"name": "fMARK", "defer_loading": True, "input_schema": SCHEMA},)),
    Kind(
        "`context_management`",
        members={"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}},
        words=("clear_thinking",),
    ),
    Kind("`container`", members={"container": "MARK"}),
    Kind("`mcp_servers`", members={"mcp_servers": [{"type": "url", "url": "https://MARK", "name": "x"}]}),
    Kind("`fallbacks`", members={"fallbacks": [{"model": "MARK"}]}),
    Kind("`diagnostics`", members={"diagnostics": {"previous_message_id": "msg_MARK"}}),
    Kind(
        "`thinking.block_binding`",
        members={"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}},
        words=("block_binding",),
    ),
)

KINDS: dict[FormatName, tuple[Kind, ...]] = {"openai_responses": RESPONSES, "anthropic_messages": MESSAGES}


class Told(NamedTuple):
    """What a server got of a request, and what was found."""

    body: str
    findings: tuple[Finding, ...]


def marked(value: Any, mark: str) -> Any:
    """With a mark of its own; a compaction of ours is sealed."""
    text = json.dumps(value).replace("MARK", mark)
    return json.loads(text.replace(f"OWN:{mark}", own_compaction(mark)))


class Asked(NamedTuple):
    """A request, and the position of each of its kinds, as findings name it."""

    body: Json
    places: list[tuple[str, ...]]


def request(client: FormatName, kinds: Sequence[Kind]) -> Asked:
    """A request with all of these, each with a mark of its own."""
    is_list = client == "openai_responses"
    body: Json = {"model": "m"} if is_list else {"model": "m", "max_tokens": 9}
    said: list[Json] = [{"role": "user", "content": "Hi"}]
    tools: list[Json] = []
    places: list[tuple[str, ...]] = []
    for number, kind in enumerate(kinds):
        mark = mark_of(number)
        items = [marked(item, mark) for item in kind.items]
        at = len(said)
        if is_list:
            said += items
            here = [f"/input/{at + n}" for n in range(len(items))]
        elif items:
            said.append(
                {"role": "user" if kind.is_users else "assistant", "content": [*items, {"type": "text", "text": "."}]}
            )
            here = [f"/messages/{at}/content/{n}" for n in range(len(items))]
        else:
            here = []
        here += [f"/tools/{len(tools) + n}" for n in range(len(kind.tools))]
        tools += [marked(tool, mark) for tool in kind.tools]
        body |= marked(dict(kind.members), mark)
        places.append((*here, *(f"/{name}" for name in kind.members)))
    said.append({"role": "user", "content": "And?"})
    return Asked(body | ({"tools": tools} if tools else {}) | {"input" if is_list else "messages": said}, places)


def mark_of(number: int) -> str:
    return f"m{number}x"


def told(client: FormatName, body: Json, to: str) -> Told:
    """What the gateway makes of a request for a server of this format."""
    raw, found = json.dumps(body).encode(), tuple[Finding, ...]()
    target = next((upstream for upstream in UPSTREAMS if upstream.format == to), None)
    contract = target.contract if target is not None else resolve(DEEPSEEK)
    if client == "openai_responses":
        takes = FUNCTIONS_ONLY if target is not None else contract.tools
        read = read_compactions(raw, SEALER, takes)
        raw, found = read.body, read.findings
    if target is None:
        adapted = adapt(raw, client, contract, "leave_out")
        return Told(adapted.body.decode(), (*found, *adapted.findings))
    transcript = FORMATS[client].bodies.decode_request(raw, FORMATS[client].dialect)
    made = translate_request(transcript, target.format, contract, target.model, sealer=SEALER, is_streaming=False)
    return Told(made.transcript.body.decode(), (*found, *made.findings))


def fate(kind: Kind, number: int, asked: Asked, got: Told) -> str:
    """What became of one kind of a request: `lost` is what must never be."""
    arrived = any(word.replace("MARK", mark_of(number)) in got.body for word in kind.words)
    is_found = any(finding.place.startswith(asked.places[number]) for finding in got.findings)
    if arrived:
        return "carried, finding" if is_found else "carried"
    return "left out, finding" if is_found else "lost"


# --- the page ---------------------------------------------------------------------------------------------------------

MARK = "<!-- made by `python -m tests.translation.kinds`, checked by the tests -->\n"
END = "<!-- end of kinds -->\n"
WRAPPED = ("gemini_code_assist", "gemini_interactions", "bedrock_invoke")
"""They hold what another column says."""

TITLES: dict[FormatName, str] = {
    "openai_responses": "From a Responses client",
    "anthropic_messages": "From a Messages client",
}


def table(client: FormatName) -> str:
    """One line a kind, one column a server."""
    columns = [to for to in OTHERS[client] if to not in WRAPPED]
    names = [f"`{to}`" if to in FORMATS else to for to in columns]
    lines = [f"| {TITLES[client]} | {' | '.join(names)} |", f"|{'---|' * (len(columns) + 1)}"]
    for kind in KINDS[client]:
        asked = request(client, [kind])
        cells = [fate(kind, 0, asked, told(client, asked.body, to)) for to in columns]
        lines.append(f"| {kind.name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    return "\n".join(table(client) for client in KINDS)


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(MARK)
    PAGE.write_text(before + MARK + page() + END + rest.partition(END)[2])
