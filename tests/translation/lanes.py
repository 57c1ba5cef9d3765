"""A client of one format, an upstream of another, and the translated lane between them, all in this process.

    lane.exchange(body, is_streaming)   the client's bytes in, the client's bytes out
    Client(...)                         what a client of a format sends and keeps; it may strip all reasoning

The upstream is a strict simulator. Between the two goes what the gateway does: translate, plan, send, capture, answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.replay.dialogues import Store
from tests.sim.faces import TOOLS, WIRES, Call, command_code_body
from thoughtline.engine.capture import capture
from thoughtline.formats import FORMATS, Wire
from thoughtline.gateway.asgi import as_declined, error_body
from thoughtline.providers import Contract, Dialect
from thoughtline.replay.bounds import bound_of
from thoughtline.replay.detection import resolve
from thoughtline.replay.findings import Finding
from thoughtline.replay.keys import walk
from thoughtline.replay.planner import Plan, needs, plan
from thoughtline.translation import (
    ResponseContext,
    Sealer,
    Sealing,
    StreamTranslator,
    TranslatedRequest,
    translate_error,
    translate_reply,
    translate_request,
    with_opened,
)
from thoughtline.values.destination import Destination
from thoughtline.values.errors import ThoughtlineError
from thoughtline.values.events import Event, fold
from thoughtline.values.identity import Identity
from thoughtline.values.turns import FormatName, Provenance, Reply, Transcript, Turn
from thoughtline_sim.simulation import HttpResponse, Simulation
from thoughtline_sim.simulators import SIMULATORS
from thoughtline_sim.values import HttpRequest

Json = dict[str, Any]
TENANT = "tenant"
NOW = 1_763_200_000
KEY = b"a key of the tests"
BODY_TYPES: tuple[FormatName, ...] = (
    "openai_chat",
    "openai_responses",
    "anthropic_messages",
    "gemini_generate",
    "ollama_chat",
)
EVERY_CLIENT: tuple[FormatName, ...] = (*BODY_TYPES, "command_code_generate")
"""With one that is never answered with a body."""


class Upstream(NamedTuple):
    """A face of a simulator, as a provider of the gateway."""

    simulator: str
    profile: str
    provider: str
    format: FormatName
    model: str
    path: str
    stream_path: str = ""

    @property
    def id(self) -> str:
        return f"{self.format}-{self.simulator}-{self.profile}"

    @property
    def contract(self) -> Contract:
        return resolve(Destination(self.provider, "https://upstream.example", self.model, self.format))


_GENERATE = "/v1beta/models/{model}:generateContent"
_STREAM = "/v1beta/models/{model}:streamGenerateContent"
_CONVERSE = "/model/{model}/converse"
UPSTREAMS: tuple[Upstream, ...] = (
    Upstream("deepseek", "tools", "deepseek", "openai_chat", "deepseek-v4-pro", "/chat/completions"),
    Upstream("openai", "default", "openai", "openai_responses", "gpt-5", "/v1/responses"),
    Upstream("anthropic", "classic", "anthropic", "anthropic_messages", "claude-sonnet-4-5", "/v1/messages"),
    Upstream("gemini", "default", "gemini", "gemini_generate", "gemini-3-pro-preview", _GENERATE, _STREAM),
    Upstream("ollama", "default", "ollama", "ollama_chat", "qwen3:14b", "/api/chat"),
    Upstream(
        *("bedrock", "classic", "bedrock", "bedrock_converse", "us.anthropic.claude-sonnet-4-5"),
        *(_CONVERSE, _CONVERSE + "-stream"),
    ),
    Upstream(
        *("code-assist", "default", "code-assist", "gemini_code_assist", "gemini-3-pro-preview"),
        *("/v1internal:generateContent", "/v1internal:streamGenerateContent"),
    ),
    Upstream(
        *("command-code", "default", "command-code", "command_code_generate"),
        *("deepseek/deepseek-v4-pro", "/alpha/generate"),
    ),
)
MORE_UPSTREAMS: tuple[Upstream, ...] = (
    Upstream("anthropic", "adaptive", "anthropic", "anthropic_messages", "claude-opus-4-8", "/v1/messages"),
    Upstream("anthropic", "bound", "anthropic", "anthropic_messages", "claude-opus-5-5", "/v1/messages"),
    Upstream("kimi", "default", "kimi", "openai_chat", "kimi-k2.6", "/v1/chat/completions"),
    Upstream("kimi", "default", "kimi", "anthropic_messages", "kimi-k2.6", "/anthropic/v1/messages"),
    Upstream("mimo", "default", "mimo", "openai_chat", "mimo-v2.5-pro", "/v1/chat/completions"),
    Upstream("deepseek", "tools", "deepseek", "openai_responses", "deepseek-v4-pro", "/v1/responses"),
    Upstream("deepseek", "tools", "deepseek", "anthropic_messages", "deepseek-v4-pro", "/anthropic/v1/messages"),
    Upstream("glm", "default", "glm", "openai_chat", "glm-5", "/v1/chat/completions"),
    Upstream("minimax", "default", "minimax", "openai_chat", "MiniMax-M2", "/v1/chat/completions"),
    Upstream("qwen", "default", "qwen", "openai_chat", "qwen3.7-max", "/v1/chat/completions"),
    Upstream("gemini", "default", "gemini", "openai_chat", "gemini-3-pro-preview", "/v1beta/openai/chat/completions"),
    Upstream("gemini-2.5", "default", "gemini", "gemini_generate", "gemini-2.5-pro", _GENERATE, _STREAM),
    Upstream("openai", "default", "openai", "openai_chat", "gpt-5", "/v1/chat/completions"),
    Upstream("azure", "default", "azure", "openai_responses", "gpt-5-mini", "/v1/responses"),
    Upstream("xai", "default", "xai", "openai_responses", "grok-4.7", "/v1/responses"),
    Upstream(
        "openrouter", "default", "openrouter", "openai_chat", "anthropic/claude-sonnet-4.5", "/v1/chat/completions"
    ),
    Upstream(
        "openrouter", "default", "openrouter", "openai_chat", "google/gemini-3-pro-preview", "/v1/chat/completions"
    ),
    Upstream("mistral", "default", "mistral", "openai_chat", "magistral-medium-latest", "/v1/chat/completions"),
    Upstream("groq", "default", "groq", "openai_chat", "openai/gpt-oss-120b", "/v1/chat/completions"),
    Upstream("cerebras", "default", "cerebras", "openai_chat", "gpt-oss-120b", "/v1/chat/completions"),
    Upstream("copilot", "default", "copilot", "openai_chat", "claude-sonnet-4.5", "/chat/completions"),
    Upstream(
        *("bedrock", "classic", "bedrock", "bedrock_invoke", "us.anthropic.claude-sonnet-4-5"),
        *("/model/{model}/invoke", "/model/{model}/invoke-with-response-stream"),
    ),
)


class Chunk(NamedTuple):
    """What some bytes of an upstream's become, and what they say."""

    data: bytes
    ending: bytes
    events: list[Event]


class StreamReader:
    """Bytes of an upstream's stream in, decoded and translated; in one and the same format, the very bytes."""

    def __init__(self, way: ResponseContext) -> None:
        self._is_same = way.source == way.to
        self._decoder = FORMATS[way.source].stream_decoder(way.source_dialect)
        self._translator = StreamTranslator(way)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self._translator.findings

    def feed(self, data: bytes) -> Chunk:
        events = self._decoder.feed(data)
        return Chunk(data, b"", events) if self._is_same else Chunk(*self._translator.feed(events), events)

    def finish(self) -> Chunk:
        events = self._decoder.finish()
        return Chunk(b"", b"", events) if self._is_same else Chunk(*self._translator.end(events), events)

    def fail(self, message: str) -> bytes:
        return self._translator.fail(message)


class Answer(NamedTuple):
    """What the client got, and what happened on the way."""

    status: int
    body: bytes
    request: TranslatedRequest | None = None
    plan: Plan | None = None
    findings: tuple[Finding, ...] = ()
    sent: bytes = b""


@dataclass
class Lane:
    """The translated lane of a gateway."""

    upstream: Upstream
    client: FormatName
    store: Store = field(default_factory=Store)
    keeps: bool = True
    simulation: Simulation = field(init=False)

    def __post_init__(self) -> None:
        row = SIMULATORS[self.upstream.simulator]
        self.simulation = Simulation(row, self.upstream.profile, 7, lambda: float(NOW))

    @property
    def sealer(self) -> Sealer:
        return Sealer(KEY, TENANT)

    def exchange(self, body: bytes, is_streaming: bool) -> Answer:
        """What the gateway does with a client's request."""
        spoken = FORMATS[self.client]
        asked = spoken.bodies.decode_request(body, spoken.dialect)
        contract = self.upstream.contract
        who = Identity(TENANT)
        try:
            request = translate_request(
                *(asked, self.upstream.format, contract, self.upstream.model, who, self.sealer),
                is_streaming=is_streaming,
            )
        except ThoughtlineError as error:
            return Answer(error.status, error_body(as_declined(error), self.client, "req_1"))
        planned = self._planned(request, contract, who)
        bodies = FORMATS[self.upstream.format].bodies
        sent = bodies.encode_request(planned.apply(request.transcript), contract.dialect)
        response = self._send(sent, is_streaming)
        answer = self._answered(request, response, is_streaming)
        return answer._replace(request=request, plan=planned, sent=sent)

    def _planned(self, request: TranslatedRequest, contract: Contract, who: Identity) -> Plan:
        needed = needs(request.transcript, contract, who)
        found = with_opened(self.store.find(needed.keys), request.records)
        issuer = Destination(
            self.upstream.provider, "https://upstream.example", self.upstream.model, self.upstream.format, "account"
        )
        return plan(request.transcript, contract, needed, found, issuer)

    def _send(self, body: bytes, is_streaming: bool) -> HttpResponse:
        up = self.upstream
        path = (up.stream_path if is_streaming and up.stream_path else up.path).replace("{model}", up.model)
        query = {"alt": "sse"} if "stream" in path else {}
        headers = {"authorization": "Bearer key", "x-command-code-version": "1.69.0"}
        return self.simulation.respond(HttpRequest("POST", path, query, headers, body))

    def _provenance(self, model: str) -> Provenance:
        up = self.upstream
        return Provenance(
            *(TENANT, up.provider, "https://upstream.example", "account", up.model, model),
            *(up.format, up.contract.dialect.name),
        )

    def way(self, request: TranslatedRequest, dialect: Dialect | None = None) -> ResponseContext:
        asked = request.transcript
        prefix = walk(asked, Identity(TENANT), bound_of(asked)).end.prefix()
        sealing = Sealing(self.sealer, self._provenance(self.upstream.model), prefix, float(NOW))
        return ResponseContext(
            *(self.upstream.format, self.upstream.contract.dialect, self.client, FORMATS[self.client].dialect),
            *(request.call_ids, sealing, request.options.wants_usage, NOW),
        )

    def _answered(self, request: TranslatedRequest, response: HttpResponse, is_streaming: bool) -> Answer:
        body = b"".join(response.frames)
        if response.status != 200:
            return Answer(*translate_error(response.status, body, self.upstream.format, self.client))
        if is_streaming:
            return self._streamed(request, response)
        bodies = FORMATS[self.upstream.format].bodies
        reply = bodies.decode_response(body, self.upstream.contract.dialect)
        self._capture(request, reply)
        translated = translate_reply(reply, self.way(request))
        return Answer(200, translated.body, findings=translated.findings)

    def _streamed(self, request: TranslatedRequest, response: HttpResponse) -> Answer:
        translator = StreamReader(self.way(request))
        events: list[Event] = []
        out: list[bytes] = []
        for frame in response.frames:
            chunk = translator.feed(frame)
            events += chunk.events
            out += [chunk.data, chunk.ending]
        last = translator.finish()
        out += [last.data, last.ending]
        self._capture(request, fold([*events, *last.events], self.upstream.format))
        return Answer(200, b"".join(out), findings=translator.findings)

    def _capture(self, request: TranslatedRequest, reply: Reply) -> None:
        if self.keeps:
            self.store.clock += 1
            where = self._provenance(reply.model or self.upstream.model)
            self.store.save(capture(request.transcript, reply, where, self.store.clock))

    @property
    def verdicts(self) -> list[str]:
        """What the simulator says of the reasoning in the latest request."""
        return list(self.simulation.log[-1]["verdicts"])


REASONING_MEMBERS = ("reasoning_content", "reasoning", "reasoning_details", "thinking")
THINKS: dict[str, Json] = {
    "openai_chat": {"reasoning_effort": "high"},
    "openai_responses": {"reasoning": {"effort": "high", "summary": "auto"}, "store": False},
    "anthropic_messages": {"max_tokens": 8000, "thinking": {"type": "enabled", "budget_tokens": 4000}},
    "gemini_generate": {"generationConfig": {"thinkingConfig": {"thinkingBudget": 4000, "includeThoughts": True}}},
    "ollama_chat": {"think": True},
    "command_code_generate": {"reasoning_effort": "high"},
}


@dataclass
class Client:
    """A client of a format: what it sends, and what it keeps of the answers."""

    lane: Lane
    opening: str
    strips: bool = False
    tools: Json = field(default_factory=lambda: dict(TOOLS))
    extra: Json = field(default_factory=dict)
    history: list[Json] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.wire = WIRES[self.lane.client]
        self.history.append(self.wire.say(self.opening))

    def body(self, is_streaming: bool) -> bytes:
        known: Json = {self.wire.member: self.history, **THINKS[self.lane.client], **self.extra}
        if self.tools:
            known[self.wire.tools_member] = self.wire.tools(self.tools)
        if self.lane.client != "gemini_generate":
            upstream = getattr(self.lane, "upstream", None)
            model = "some/model"
            if upstream is not None and self.lane.client == upstream.format:  # such a request is not translated
                model = upstream.model
            known |= {"model": model, "stream": is_streaming}
        if self.lane.client == "command_code_generate":
            known = command_code_body(known | {"stream": True})
        return json.dumps(known, ensure_ascii=False).encode()

    def ask(self, is_streaming: bool) -> Answer:
        """One turn of the model. What it said is kept, without its reasoning if this client strips it."""
        answer = self.lane.exchange(self.body(is_streaming), is_streaming)
        assert answer.status == 200, answer.body
        spoken = FORMATS[self.lane.client]
        if "streams_only" in spoken.quirks:
            reply = spoken.bodies.decode_response(answer.body, spoken.dialect)
            whole = _as_message(spoken, reply)
        elif is_streaming:
            decoder = spoken.stream_decoder(spoken.dialect)
            reply = fold([*decoder.feed(answer.body), *decoder.finish()], self.lane.client)
            whole = json.loads(spoken.bodies.encode_response(reply, spoken.dialect))
        else:
            whole = json.loads(answer.body)
            reply = spoken.bodies.decode_response(answer.body, spoken.dialect)
        self.replies.append(reply)
        self.whole = whole
        echoed = self.wire.echo(whole)
        self.history += stripped(self.lane.client, echoed) if self.strips else echoed
        return answer

    def go_on(self, words: str = "And then?") -> None:
        calls = self.wire.calls(self.whole)
        if calls and self.lane.client == "gemini_generate":
            self.history.append({"role": "user", "parts": [_function_response(call) for call in calls]})
        else:
            self.history += self.wire.results(calls) if calls else [self.wire.say(words)]


def _as_message(spoken: Wire, reply: Reply) -> Json:
    """What a client keeps of an answer that is a stream and nothing else."""
    turns = (Turn("assistant", reply.candidates[0].turn.items),)
    body = spoken.bodies.encode_request(
        Transcript(spoken.name, (), b'{"messages":[]}').with_turns(turns), spoken.dialect
    )
    message: Json = json.loads(body)[spoken.inside]["messages"][0]
    return message


def _function_response(call: Call) -> Json:
    known: Json = {"name": call.name, "response": {"result": "21 degrees"}}
    return {"functionResponse": known | ({"id": call.id} if call.id else {})}


def stripped(format: FormatName, echoed: list[Json]) -> list[Json]:
    """What a client that knows of no reasoning sends back."""
    match format:
        case "openai_chat" | "ollama_chat":
            return [{name: value for name, value in one.items() if name not in REASONING_MEMBERS} for one in echoed]
        case "anthropic_messages":
            kept = [block for block in echoed[0]["content"] if block["type"] not in ("thinking", "redacted_thinking")]
            return [{**echoed[0], "content": kept}]
        case "gemini_generate":
            parts = [{k: v for k, v in part.items() if k != "thoughtSignature"} for part in echoed[0]["parts"]]
            kept = [part for part in parts if not part.get("thought") and part != {"text": ""}]
            return [{**echoed[0], "parts": kept}]
        case "command_code_generate":
            parts = [{k: v for k, v in part.items() if k != "providerOptions"} for part in echoed[0]["content"]]
            return [{**echoed[0], "content": [part for part in parts if part["type"] != "reasoning"]}]
        case _:
            return [{k: v for k, v in one.items() if k != "id"} for one in echoed if one["type"] != "reasoning"]
