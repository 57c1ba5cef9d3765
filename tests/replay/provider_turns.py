"""Turns in which a provider ran its own tools, exactly as it wrote them, and their wires."""

from __future__ import annotations

from typing import Any

from tests.replay.dialogues import (
    Json,
    fc,
    msg,
    rs,
    runs,
    thinking,
    use,
    words,
)
from tests.replay.turn_wires import Elements
from thoughtline.values.turns import FormatName

# --- the turns --------------------------------------------------------------------------------------------------------


def hosted(kind: str, id: str, **members: Any) -> Json:
    """A call by OpenAI, with its id and its result in one."""
    return {"id": id, "type": kind, "status": "completed"} | members


def ran_there(id: str, name: str = "web_search", **arguments: Any) -> Json:
    return {"type": "server_tool_use", "id": id, "name": name, "input": arguments or {"query": "files"}}


def found(id: str, kind: str = "web_search_tool_result") -> Json:
    return {"type": kind, "tool_use_id": id, "content": [{"type": "web_search_result", "url": "https://x.example"}]}


def code(text: str, signature: str | None = None) -> Json:
    part: Json = {"executableCode": {"language": "PYTHON", "code": text}}
    return part if signature is None else part | {"thoughtSignature": signature}


def outcome(text: str) -> Json:
    return {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": text}}


def at_google(kind: str, id: str, signature: str) -> Json:
    return {kind: {"id": id, "toolType": "GOOGLE_SEARCH_WEB"}, "thoughtSignature": signature}


def thought(text: str, signature: str) -> Json:
    return {"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}


def chunk(text: str) -> Json:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


SEARCHED = {"action": {"type": "search", "query": "files"}}
UPLOADED = {"type": "container_upload", "file_id": "file_1"}
GROUND = {
    "toolUse": {"toolUseId": "tooluse_1", "name": "nova_grounding", "type": "server_tool_use", "input": {"q": "f"}}
}
GROUNDED = {"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": "three"}], "status": "success"}}
NEW = {"type": "quantum_call", "qubits": 3}
REFERENCE = {"type": "reference", "reference_ids": [1]}

TURNS: dict[str, tuple[FormatName, Elements]] = {
    "search": (
        "openai_responses",
        [rs("rs_1", "gA1"), hosted("web_search_call", "ws_1", **SEARCHED), rs("rs_2", "gA2"), msg("msg_1", "Three.")],
    ),
    "search, then words at once": (
        "openai_responses",
        [rs("rs_1", "gA1"), hosted("web_search_call", "ws_1", **SEARCHED), msg("msg_1", "Three.")],
    ),
    "words, then search and a call": (
        "openai_responses",
        [
            *(rs("rs_1", "gA1"), msg("msg_1", "I look."), hosted("web_search_call", "ws_1", **SEARCHED)),
            *(hosted("web_search_call", "ws_2", **SEARCHED), fc("fc_1", "call_aB3dE5gH")),
        ],
    ),
    "two equal searches": (
        "openai_responses",
        [
            *(rs("rs_1", "gA1"), hosted("web_search_call", "ws_1", **SEARCHED), rs("rs_2", "gA2")),
            *(hosted("web_search_call", "ws_2", **SEARCHED), rs("rs_3", "gA3"), msg("msg_1", "Three.")),
        ],
    ),
    "search, then a call": (
        "openai_responses",
        [
            rs("rs_1", "gA1"),
            hosted("web_search_call", "ws_1", **SEARCHED),
            rs("rs_2", "gA2"),
            fc("fc_1", "call_aB3dE5gH"),
        ],
    ),
    "file search, then parallel calls": (
        "openai_responses",
        [
            *(rs("rs_1", "gA1"), hosted("file_search_call", "fs_1", queries=["a"]), rs("rs_2", "gA2")),
            *(fc("fc_1", "call_aB3dE5gH"), fc("fc_2", "call_iJ7kL9mN", "pwd")),
        ],
    ),
    "code interpreter": (
        "openai_responses",
        [
            *(
                rs("rs_1", "gA1"),
                hosted("code_interpreter_call", "ci_1", code="1+2", container_id="cntr_1", outputs=None),
            ),
            *(rs("rs_2", "gA2"), msg("msg_1", "Three.")),
        ],
    ),
    "MCP": (
        "openai_responses",
        [
            *({"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "s", "tools": []}, rs("rs_1", "gA1")),
            *(hosted("mcp_call", "mcp_1", name="count", arguments="{}", output="3"), rs("rs_2", "gA2")),
            msg("msg_1", "Three."),
        ],
    ),
    "a picture": (
        "openai_responses",
        [
            rs("rs_1", "gA1"),
            hosted("image_generation_call", "ig_1", result="aGk="),
            rs("rs_2", "gA2"),
            msg("msg_1", "Here."),
        ],
    ),
    "tool search": (
        "openai_responses",
        [
            *(rs("rs_1", "gA1"), hosted("tool_search_call", "tsc_1", execution="server", call_id=None)),
            *(hosted("tool_search_output", "tso_1", execution="server", call_id=None, tools=[]), rs("rs_2", "gA2")),
            fc("fc_1", "call_aB3dE5gH"),
        ],
    ),
    "a shell in a container": (
        "openai_responses",
        [
            *(rs("rs_1", "gA1"), hosted("shell_call", "sh_1", call_id="call_s"), rs("rs_2", "gA2")),
            *(
                hosted("shell_call_output", "sho_1", call_id="call_s", output=[]),
                rs("rs_3", "gA3"),
                msg("msg_1", "Three."),
            ),
        ],
    ),
    "a screen": (
        "openai_responses",
        [rs("rs_1", "gA1"), hosted("computer_call", "cu_1", call_id="call_aB3dE5gH", action={"type": "screenshot"})],
    ),
    "said between": (
        "openai_responses",
        [
            *(rs("rs_1", "gA1"), msg("msg_1", "I look."), rs("rs_2", "gA2")),
            *(hosted("web_search_call", "ws_1", **SEARCHED), rs("rs_3", "gA3"), msg("msg_2", "Three.")),
        ],
    ),
    "a kind of tomorrow, twice, without ids": (
        "openai_responses",
        [rs("rs_1", "gA1"), msg("msg_1", "So:"), NEW, rs("rs_2", "gA2"), fc("fc_1", "call_aB3dE5gH"), NEW],
    ),
    "Claude's search, then a call": (
        "anthropic_messages",
        [
            thinking("A", "Es1"),
            ran_there("srvtoolu_1"),
            found("srvtoolu_1"),
            thinking("B", "Es2"),
            use("toolu_01AbCdEfGh"),
        ],
    ),
    "Claude's search, then words": (
        "anthropic_messages",
        [thinking("A", "Es1"), ran_there("srvtoolu_1"), found("srvtoolu_1"), thinking("B", "Es2"), words("Three.")],
    ),
    "Claude's search, then words at once": (
        "anthropic_messages",
        [thinking("A", "Es1"), ran_there("srvtoolu_1"), found("srvtoolu_1"), words("Three.")],
    ),
    "Claude's two equal searches": (
        "anthropic_messages",
        [
            *(thinking("A", "Es1"), ran_there("srvtoolu_1"), found("srvtoolu_1"), thinking("B", "Es2")),
            *(ran_there("srvtoolu_2"), found("srvtoolu_2"), thinking("C", "Es3"), use("toolu_01AbCdEfGh")),
        ],
    ),
    "Claude's code": (
        "anthropic_messages",
        [
            *(thinking("A", "Es1"), words("I run it."), ran_there("srvtoolu_1", "bash_code_execution", command="ls")),
            *(found("srvtoolu_1", "bash_code_execution_tool_result"), UPLOADED, thinking("B", "Es2"), UPLOADED),
            *(thinking("", "Es3"), words("Three.")),
        ],
    ),
    "Claude's MCP": (
        "anthropic_messages",
        [
            *(
                thinking("A", "Es1"),
                {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "n", "server_name": "s", "input": {}},
            ),
            {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False, "content": [words("3")]},
            *({"type": "redacted_thinking", "data": "Er4"}, words("Three."), use("toolu_01AbCdEfGh")),
        ],
    ),
    "Claude's advisor": (
        "anthropic_messages",
        [
            *(thinking("A", "Es1"), ran_there("srvtoolu_1", "advisor"), found("srvtoolu_1", "advisor_tool_result")),
            *(thinking("B", "Es2"), words("So:"), use("toolu_01AbCdEfGh"), use("toolu_02IjKlMnOp", "pwd")),
        ],
    ),
    "Gemini's code": (
        "gemini_generate",
        [code("print(1)", "EsA1"), outcome("1"), {"text": "One.", "thoughtSignature": "EsA2"}],
    ),
    "Gemini's code, twice": (
        "gemini_generate",
        [
            *({"text": "First.", "thought": True}, code("print(1)", "EsA1"), outcome("ok")),
            *({"text": "Then.", "thought": True}, code("print(2)", "EsA2"), outcome("ok")),
            {"text": "Done.", "thoughtSignature": "EsA3"},
        ],
    ),
    "Gemini's equal codes": (
        "gemini_generate",
        [code("print(1)", "EsA1"), outcome("1"), code("print(1)", "EsA2"), outcome("1"), runs("ls", "EsA3", id="c-1")],
    ),
    "Gemini's search, then a call": (
        "gemini_generate",
        [at_google("toolCall", "t1", "EsA1"), at_google("toolResponse", "t1", "EsA2"), runs("ls", "EsA3", id="c-1")],
    ),
    "Gemini's words, code, words": (
        "gemini_generate",
        [{"text": "I count."}, code("print(3)", "EsA1"), outcome("3"), {"text": "Three."}],
    ),
    "Converse's grounding": (
        "bedrock_converse",
        [thought("A", "Es1"), GROUND, GROUNDED, thought("B", "Es2"), {"text": "Three."}],
    ),
    "Mistral's reference": (
        "openai_chat",
        [chunk("A"), {"type": "text", "text": "Three"}, REFERENCE, {"type": "text", "text": " files."}, REFERENCE],
    ),
}

THOUGHTS = ("thinking", "redacted_thinking", "reasoning")


def is_thought(element: Json) -> bool:
    return element.get("type") in THOUGHTS or "reasoningContent" in element or element.get("thought") is True


def is_plain(element: Json) -> bool:
    """Whether it has only text and calls of the client's own tools, which every client keeps."""
    if any(name in element for name in ("text", "functionCall")):
        return True
    return element.get("type") in ("message", "function_call", "text", "tool_use", "computer_call")


def bare(turn: Elements) -> Elements:
    """Without thoughts and seals."""
    kept = [element for element in turn if not is_thought(element)]
    return [{name: held for name, held in element.items() if name != "thoughtSignature"} for element in kept]
