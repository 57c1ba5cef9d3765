"""Every face of every simulator as a row, and a well-behaved client for each wire format."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import httpx

from tests.sim.served_simulators import served
from thoughtline import formats, providers
from thoughtline.formats import FORMATS
from thoughtline.providers import Dialect
from thoughtline.values.events import fold
from thoughtline.values.turns import FormatName, Reply

Body = dict[str, Any]
TOOLS = {"weather": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
NOTHING: Body = {}
HTTP = httpx.Client(timeout=60)


class Case(NamedTuple):
    """A face: where it is, what is asked of it."""

    simulator: str
    format: FormatName
    path: str
    model: str
    dialect: Dialect
    profile: str | None = None
    extra: Body = NOTHING
    stream_path: str = ""

    @property
    def id(self) -> str:
        return "-".join(
            part for part in (self.simulator, self.profile, self.format, self.model.replace("/", ".")) if part
        )


CHAT = "/v1/chat/completions"
GENERATE = "/v1beta/models/{model}:generateContent"
STREAM_SSE = "/v1beta/models/{model}:streamGenerateContent?alt=sse"
STREAM_ARRAY = "/v1beta/models/{model}:streamGenerateContent"
CONVERSE = "/model/{model}/converse"
INVOKE = "/model/{model}/invoke"
ENABLED = {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 8000}
NO_STORE = {"store": False, "include": ["reasoning.encrypted_content"], "reasoning": {"summary": "auto"}}


def chat(simulator: str, model: str, dialect: Dialect, **extra: Any) -> Case:
    return Case(simulator, "openai_chat", CHAT, model, dialect, extra=extra)


def converse(model: str, dialect: Dialect, fields: Body) -> Case:
    extra = {"additionalModelRequestFields": fields}
    return Case("bedrock", "bedrock_converse", CONVERSE, model, dialect, None, extra, CONVERSE + "-stream")


def invoke(model: str, profile: str | None, **extra: Any) -> Case:
    extra = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 8000, **extra}
    path = INVOKE + "-with-response-stream"
    return Case("bedrock", "bedrock_invoke", INVOKE, model, providers.ANTHROPIC, profile, extra, path)


def generate(simulator: str, model: str, stream_path: str) -> Case:
    return Case(simulator, "gemini_generate", GENERATE, model, providers.GEMINI, None, {}, stream_path)


def code_assist(model: str, dialect: Dialect, **extra: Any) -> Case:
    path = "/v1internal:generateContent"
    stream_path = "/v1internal:streamGenerateContent?alt=sse"
    return Case("code-assist", "gemini_code_assist", path, model, dialect, None, extra, stream_path)


def interactions(model: str, **extra: Any) -> Case:
    return Case("gemini", "gemini_interactions", "/v1beta/interactions", model, providers.INTERACTIONS, extra=extra)


def messages(simulator: str, path: str, model: str, dialect: Dialect, profile: str | None, **extra: Any) -> Case:
    return Case(simulator, "anthropic_messages", path, model, dialect, profile, {"max_tokens": 8000, **extra})


def responses(simulator: str, model: str, dialect: Dialect, **extra: Any) -> Case:
    return Case(simulator, "openai_responses", "/v1/responses", model, dialect, None, extra)


THINKS = {"thinkingConfig": {"thinkingBudget": 2048, "includeThoughts": True}}
BOUND = {"thinking": {"type": "adaptive"}}
CASES: tuple[Case, ...] = (
    chat("deepseek-v3.2", "deepseek-reasoner", providers.DEEPSEEK),
    chat("deepseek", "deepseek-v4-pro", providers.DEEPSEEK),
    messages("deepseek", "/anthropic/v1/messages", "deepseek-v4-pro", providers.DEEPSEEK_ANTHROPIC, None),
    responses("deepseek", "deepseek-v4-pro", providers.DEEPSEEK_RESPONSES),
    chat("kimi", "kimi-k2.6", providers.KIMI),
    messages("kimi", "/anthropic/v1/messages", "kimi-k2.6", providers.KIMI_ANTHROPIC, None),
    chat("mimo", "mimo-v2.5-pro", providers.MIMO),
    messages("mimo", "/anthropic/v1/messages", "mimo-v2.5-pro", providers.MIMO_ANTHROPIC, None),
    chat("glm", "glm-5", providers.GLM),
    chat("minimax", "MiniMax-M2", providers.MINIMAX_TAGS),
    chat("minimax", "MiniMax-M3", providers.MINIMAX_SPLIT, reasoning_split=True),
    messages("minimax", "/anthropic/v1/messages", "MiniMax-M3", providers.MINIMAX_ANTHROPIC, None, **BOUND),
    chat("qwen", "qwen3.7-max", providers.QWEN),
    messages("anthropic", "/v1/messages", "claude-sonnet-4-5", providers.ANTHROPIC, "classic", **ENABLED),
    messages("anthropic", "/v1/messages", "claude-opus-4-8", providers.ANTHROPIC, "adaptive", **BOUND),
    messages("anthropic", "/v1/messages", "claude-opus-5-5", providers.ANTHROPIC, "bound", **BOUND),
    converse("us.anthropic.claude-sonnet-4-5", providers.BEDROCK_CLAUDE, ENABLED),
    converse("openai.gpt-oss-120b", providers.BEDROCK_PLAIN, {}),
    invoke("us.anthropic.claude-sonnet-4-5", None, **ENABLED),
    invoke("us.anthropic.claude-opus-5-5", "bound", **BOUND),
    generate("gemini", "gemini-3-pro-preview", STREAM_SSE),
    generate("gemini", "gemini-3.7-flash", STREAM_ARRAY),
    chat("gemini", "gemini-3-pro-preview", providers.GOOGLE_CHAT),
    generate("gemini-2.5", "gemini-2.5-pro", STREAM_SSE),
    code_assist("gemini-3-pro-preview", providers.GEMINI),
    code_assist("claude-sonnet-4-5", providers.ANTIGRAVITY_CLAUDE, generationConfig=THINKS),
    interactions("gemini-3-pro-preview", store=False, generation_config={"thinking_summaries": "auto"}),
    responses("openai", "gpt-5", providers.OPENAI_RESPONSES, **NO_STORE),
    responses("openai", "gpt-5-stored", providers.OPENAI_RESPONSES, store=True),
    chat("openai", "gpt-5", providers.NO_REASONING),
    responses("azure", "gpt-5-mini", providers.AZURE_RESPONSES, **NO_STORE),
    responses("xai", "grok-4.7", providers.XAI_RESPONSES, **NO_STORE),
    chat("xai", "grok-3-mini", providers.REASONING_CONTENT),
    chat("openrouter", "anthropic/claude-sonnet-4.5", providers.REASONING_DETAILS),
    chat("openrouter", "google/gemini-3-pro-preview", providers.REASONING_DETAILS),
    chat("openrouter", "openai/gpt-5", providers.REASONING_DETAILS),
    chat("openrouter", "deepseek/deepseek-v4-pro", providers.REASONING_DETAILS),
    chat("openrouter", "moonshotai/kimi-k2.6", providers.REASONING_DETAILS),
    chat("mistral", "magistral-medium-latest", providers.MISTRAL),
    chat("groq", "openai/gpt-oss-120b", providers.REASONING),
    chat("cerebras", "gpt-oss-120b", providers.REASONING),
    Case("ollama", "ollama_chat", "/api/chat", "qwen3:14b", providers.OLLAMA),
    chat("ollama", "qwen3:14b", providers.REASONING),
    chat("vllm", "Qwen/Qwen3-32B", providers.REASONING),
    chat("copilot", "claude-sonnet-4.5", providers.COPILOT),
    responses("copilot", "gpt-5.3-codex", providers.OPENAI_RESPONSES, **NO_STORE),
)


class Call(NamedTuple):
    id: str
    name: str


class Wire(NamedTuple):
    """What a client knows of a wire format."""

    tools: Callable[[Body], Any]
    say: Callable[[str], Body]
    echo: Callable[[Body], list[Body]]
    calls: Callable[[Body], list[Call]]
    results: Callable[[list[Call]], list[Body]]
    member: str = "messages"
    tools_member: str = "tools"


def _chat_results(calls: list[Call]) -> list[Body]:
    return [{"role": "tool", "tool_call_id": call.id, "content": "21 degrees"} for call in calls]


def _converse_results(calls: list[Call]) -> list[Body]:
    blocks = [{"toolResult": {"toolUseId": call.id, "content": [{"text": "21 degrees"}]}} for call in calls]
    return [{"role": "user", "content": blocks}]


WIRES: dict[str, Wire] = {
    "openai_chat": Wire(
        lambda tools: [
            {"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in tools.items()
        ],
        lambda text: {"role": "user", "content": text},
        lambda whole: [whole["choices"][0]["message"]],
        lambda whole: [
            Call(call["id"], call["function"]["name"])
            for call in whole["choices"][0]["message"].get("tool_calls") or []
        ],
        _chat_results,
    ),
    "openai_responses": Wire(
        lambda tools: [{"type": "function", "name": name, "parameters": schema} for name, schema in tools.items()],
        lambda text: {"role": "user", "content": text},
        lambda whole: whole["output"],
        lambda whole: [Call(i["call_id"], i["name"]) for i in whole["output"] if i["type"] == "function_call"],
        lambda calls: [{"type": "function_call_output", "call_id": call.id, "output": "21 degrees"} for call in calls],
        "input",
    ),
    "anthropic_messages": Wire(
        lambda tools: [{"name": name, "input_schema": schema} for name, schema in tools.items()],
        lambda text: {"role": "user", "content": text},
        lambda whole: [{"role": "assistant", "content": whole["content"]}],
        lambda whole: [Call(b["id"], b["name"]) for b in whole["content"] if b["type"] == "tool_use"],
        lambda calls: [
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "21 degrees"} for call in calls],
            }
        ],
    ),
    "gemini_generate": Wire(
        lambda tools: [
            {"functionDeclarations": [{"name": name, "parameters": schema} for name, schema in tools.items()]}
        ],
        lambda text: {"role": "user", "parts": [{"text": text}]},
        lambda whole: [whole["candidates"][0]["content"]],
        lambda whole: [
            Call(part["functionCall"].get("id", ""), part["functionCall"]["name"])
            for part in whole["candidates"][0]["content"]["parts"]
            if "functionCall" in part
        ],
        lambda calls: [
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": call.name, "response": {"result": "21 degrees"}}} for call in calls
                ],
            }
        ],
        "contents",
    ),
    "bedrock_converse": Wire(
        lambda tools: {
            "tools": [{"toolSpec": {"name": name, "inputSchema": {"json": schema}}} for name, schema in tools.items()]
        },
        lambda text: {"role": "user", "content": [{"text": text}]},
        lambda whole: [whole["output"]["message"]],
        lambda whole: [
            Call(block["toolUse"]["toolUseId"], block["toolUse"]["name"])
            for block in whole["output"]["message"]["content"]
            if "toolUse" in block
        ],
        _converse_results,
        tools_member="toolConfig",
    ),
    "ollama_chat": Wire(
        lambda tools: [
            {"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in tools.items()
        ],
        lambda text: {"role": "user", "content": text},
        lambda whole: [whole["message"]],
        lambda whole: [
            Call(call.get("id", ""), call["function"]["name"]) for call in whole["message"].get("tool_calls", [])
        ],
        _chat_results,
    ),
}
WIRES["bedrock_invoke"] = WIRES["anthropic_messages"]
WIRES["command_code_generate"] = Wire(
    WIRES["anthropic_messages"].tools,
    lambda text: {"role": "user", "content": text},
    lambda whole: [whole],
    lambda whole: [
        Call(part["toolCallId"], part["toolName"]) for part in whole["content"] if part["type"] == "tool-call"
    ],
    lambda calls: [
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": call.id,
                    "toolName": call.name,
                    "output": {"type": "text", "value": "21 degrees"},
                }
            ],
        }
        for call in calls
    ],
)

WIRES["gemini_interactions"] = Wire(
    WIRES["openai_responses"].tools,
    lambda text: {"type": "user_input", "content": [{"type": "text", "text": text}]},
    lambda whole: whole["steps"],
    lambda whole: [Call(step["id"], step["name"]) for step in whole["steps"] if step["type"] == "function_call"],
    lambda calls: [
        {"type": "function_result", "call_id": call.id, "name": call.name, "result": "21 degrees"} for call in calls
    ],
    "input",
)
GENERATES = WIRES["gemini_generate"]
WIRES["gemini_code_assist"] = GENERATES._replace(
    echo=lambda whole: GENERATES.echo(whole["response"]), calls=lambda whole: GENERATES.calls(whole["response"])
)


def command_code_body(params: Body) -> Body:
    """A request in the envelope that Command Code's CLI puts around it."""
    where = {"workingDir": "/w", "date": "2026-11-18", "environment": "linux", "structure": []}
    git = {"isGitRepo": False, "currentBranch": "", "mainBranch": "", "gitStatus": "", "recentCommits": []}
    return {"config": where | git, "memory": "", "taste": None, "skills": None, "params": params}


def enveloped(body: Body) -> Body:
    """A request of Gemini's in Code Assist's envelope."""
    inner = {name: value for name, value in body.items() if name != "model"}
    return {"model": body["model"], "project": "p-1", "user_prompt_id": "prompt-1", "request": inner}


# Fields that go back even if the turn had nothing in them. A stream of such a turn amounts to no reasoning, and the
# product does not write what is not there: a client of these providers has to.
MUST_COME_BACK: dict[str, tuple[str, Any]] = {
    "deepseek": ("reasoning_content", ""),
    "deepseek-v3.2": ("reasoning_content", ""),
    "kimi": ("reasoning_content", ""),
    "mimo": ("reasoning_content", ""),
    "openrouter": ("reasoning_details", []),
}


class Dialogue:
    """A client that keeps all it got and sends it back."""

    def __init__(self, case: Case, opening: str, key: str = "key-1", **extra: Any) -> None:
        self.case = case
        self.key = key
        self.wire = WIRES[case.format]
        self.headers: dict[str, str] = {}
        self.base = served(case.simulator, case.profile).url
        self.body: Body = {
            **({"model": case.model} if "{model}" not in case.path else {}),
            self.wire.member: [self.wire.say(opening)],
            self.wire.tools_member: self.wire.tools(TOOLS),
            **case.extra,
            **extra,
        }

    @property
    def history(self) -> list[Body]:
        messages: list[Body] = self.body[self.wire.member]
        return messages

    def outgoing(self) -> Body:
        """The request as this client sends it: all that it knows."""
        return self.as_sent(self.body)

    def as_sent(self, body: Body) -> Body:
        return enveloped(body) if self.case.format == "gemini_code_assist" else body

    def path(self, *, is_streaming: bool = False) -> str:
        case = self.case
        return (case.stream_path if is_streaming and case.stream_path else case.path).replace("{model}", case.model)

    def request(self, *, is_streaming: bool = False) -> httpx.Request:
        """The request as it stands."""
        body = self.outgoing()
        if not self.case.stream_path:
            body = {**body, "stream": is_streaming}
        headers = {"authorization": f"Bearer {self.key}", **self.headers}
        return HTTP.build_request("POST", self.base + self.path(is_streaming=is_streaming), json=body, headers=headers)

    def post(self, *, is_streaming: bool = False) -> httpx.Response:
        return HTTP.send(self.request(is_streaming=is_streaming))

    def ask(self, *, is_streaming: bool = False) -> Body:
        """One turn of the model, kept as a whole body however it came."""
        response = self.post(is_streaming=is_streaming)
        assert response.status_code == 200, response.text
        return self.hear(response.content, is_streaming=is_streaming)

    def hear(self, content: bytes, *, is_streaming: bool) -> Body:
        """What the model said, kept."""
        whole = encoded(self.case, streamed(self.case, content)) if is_streaming else json.loads(content)
        echoed = self.wire.echo(whole)
        field = MUST_COME_BACK.get(self.case.simulator)
        if field and self.case.format == "openai_chat":
            echoed[0].setdefault(*field)
        self.history.extend(echoed)
        return dict(whole)

    def go_on(self, whole: Body, words: str = "And then?") -> None:
        """Run the tools that were called, or say something."""
        calls = self.wire.calls(whole)
        self.history.extend(self.wire.results(calls) if calls else [self.wire.say(words)])


def format_of(case: Case) -> formats.Wire:
    return FORMATS[case.format]


def decoded(case: Case, body: bytes) -> Reply:
    bodies = format_of(case).bodies
    return bodies.decode_response(body, case.dialect)


def streamed(case: Case, stream: bytes) -> Reply:
    """The reply that a stream amounts to, read by the product."""
    decoder = format_of(case).stream_decoder(case.dialect)
    return fold([*decoder.feed(stream), *decoder.finish()], case.format)


def encoded(case: Case, reply: Reply) -> Body:
    bodies = format_of(case).bodies
    body: Body = json.loads(bodies.encode_response(reply, case.dialect))
    return body


def verdicts_of(dialogue: Dialogue) -> list[str]:
    """What the simulator says of the reasoning in the dialogue's latest request."""
    log = HTTP.get(served(dialogue.case.simulator, dialogue.case.profile).url + "/_log").json()
    return list(log[-1]["verdicts"])
