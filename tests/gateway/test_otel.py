"""Traces: one span for each answer, under the client's own span, without any content."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from tests.gateway.gateways import Running, running
from tests.gateway.test_serving import Serving, command, home
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.served_simulators import served
from thoughtline.gateway.otel import OtelTracing
from thoughtline.gateway.tracing import TracesUnavailable, is_asked_for, open_tracing
from thoughtline.providers import PROVIDERS

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
SCRIPT = "script:\nthink: nobody must see this\nsay: nor this"
CHAT: dict[str, Any] = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": SCRIPT}]}


class Traced:
    """A gateway whose spans are kept here."""

    def __init__(self, gateway: Running) -> None:
        self.url = f"{gateway.url}/deepseek/v1/chat/completions"
        self._gateway = gateway
        self._kept = InMemorySpanExporter()
        tracing = OtelTracing(SimpleSpanProcessor(self._kept), {})
        gateway.app.state = gateway.app.state._replace(tracing=tracing)

    def ask(self, body: Any = CHAT, **headers: str) -> httpx.Response:
        with self._gateway.listening() as next_line:
            answer = httpx.post(self.url, json=body, headers={"authorization": "Bearer k", **headers}, timeout=30)
            next_line()
        return answer

    @property
    def spans(self) -> list[ReadableSpan]:
        self._gateway.wait_for(_nothing())  # the exchange's last step is behind us then
        return list(self._kept.get_finished_spans())

    @property
    def span(self) -> ReadableSpan:
        (span,) = self.spans
        return span


async def _nothing() -> None:
    """Let the gateway's event loop run once."""


@pytest.fixture
def traced() -> Iterator[Traced]:
    with running({"deepseek": served("deepseek").url}) as gateway:
        yield Traced(gateway)


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.mark.parametrize("is_streaming", [False, True])
def test_an_answer_is_a_span(traced: Traced, is_streaming: bool) -> None:
    """Named and described by the conventions for GenAI; the same for streams."""
    answer = traced.ask({**CHAT, "stream": True, "stream_options": {"include_usage": True}} if is_streaming else CHAT)
    known = attributes(traced.span)
    assert traced.span.name == "chat deepseek-v4-pro"
    assert traced.span.kind is SpanKind.CLIENT
    assert known["gen_ai.operation.name"] == "chat"
    assert known["gen_ai.provider.name"] == "deepseek"
    assert known["gen_ai.request.model"] == known["gen_ai.response.model"] == "deepseek-v4-pro"
    assert known["gen_ai.response.finish_reasons"] == ("stop",)
    assert known["gen_ai.usage.input_tokens"] > 0
    assert known["gen_ai.usage.output_tokens"] > known["gen_ai.usage.reasoning.output_tokens"] > 0
    assert known.get("gen_ai.request.stream", False) is is_streaming
    assert ("gen_ai.response.time_to_first_chunk" in known) is is_streaming
    assert known["server.address"] == "127.0.0.1"
    assert known["http.response.status_code"] == 200
    assert known["thoughtline.request"] == answer.headers["x-thoughtline-request"]
    assert "error.type" not in known
    assert traced.span.status.status_code is StatusCode.UNSET


def test_the_outcome_is_reported(traced: Traced) -> None:
    """How many turns were restored or missing, whether the request was healed, and its session."""
    message = traced.ask().json()["choices"][0]["message"]
    del message["reasoning_content"]
    history = [*CHAT["messages"], message, {"role": "user", "content": "go on"}]
    shell = {"type": "function", "function": {"name": "shell", "parameters": {"type": "object"}}}
    traced.ask({**CHAT, "messages": history, "tools": [shell]}, **{"x-thoughtline-session": "s-1"})
    known = attributes(traced.spans[-1])
    assert known["thoughtline.restored"] == 1
    assert (known["thoughtline.missing"], known["thoughtline.healed"]) == (0, 0)
    assert known["thoughtline.session"] == known["gen_ai.conversation.id"]
    assert known["thoughtline.session"]


def test_no_content_is_in_a_span(traced: Traced) -> None:
    """No prompt, no answer, no reasoning, no credential."""
    traced.ask()
    told = traced.span.to_json()
    for secret in ("nobody must see this", "nor this", "Bearer"):
        assert secret not in told


def test_an_error_has_its_type(traced: Traced) -> None:
    """The provider's status, or our own code; and no content."""
    traced.ask({**CHAT, "messages": 5})
    traced.ask({"messages": []}, **{"content-encoding": "unheard-of"})
    refused, declined = traced.spans
    assert attributes(refused)["error.type"] == "400"
    assert refused.status.status_code is declined.status.status_code is StatusCode.ERROR
    assert refused.status.description is None
    assert not attributes(declined)["error.type"].isdigit()


def test_the_clients_trace_goes_on(traced: Traced) -> None:
    """Our span is a child of the client's."""
    traced.ask(traceparent=TRACEPARENT)
    assert traced.span.context is not None
    assert traced.span.parent is not None
    assert f"{traced.span.context.trace_id:032x}" == TRACE
    assert f"{traced.span.parent.span_id:016x}" == PARENT


async def _answers(got: Got, out: Out) -> None:
    await out.whole(200, b"{}")


def test_traceparent_is_sent_unchanged_without_traces() -> None:
    """Headers are the client's own."""
    with upstream(_answers) as up, running({"deepseek": up.url}) as gateway:
        headers = {"traceparent": TRACEPARENT, "tracestate": "a=1", "authorization": "Bearer k"}
        httpx.post(f"{gateway.url}/deepseek/chat/completions", json=CHAT, headers=headers, timeout=30)
    assert up.got[0].header("traceparent") == TRACEPARENT
    assert up.got[0].header("tracestate") == "a=1"


@pytest.mark.parametrize("sent", [TRACEPARENT, None])
def test_our_span_is_the_parent_upstream(sent: str | None) -> None:
    """One header with our span, in the client's trace if it has one."""
    with upstream(_answers) as up, running({"deepseek": up.url}) as gateway:
        traced = Traced(gateway)
        traced.ask(**({"traceparent": sent, "tracestate": "a=1"} if sent else {}))
        (value,) = [value for name, value in up.got[0].headers if name == "traceparent"]
        assert traced.span.context is not None
        assert value[:-2] == f"00-{traced.span.context.trace_id:032x}-{traced.span.context.span_id:016x}-"
        assert (TRACE in value) is (sent is not None)
        assert up.got[0].header("tracestate") == ("a=1" if sent else None)


def test_a_traceparent_that_is_none_is_no_parent(traced: Traced) -> None:
    """A malformed header begins a trace of our own."""
    traced.ask(traceparent="00-nonsense")
    assert traced.span.parent is None


ASKED = [
    ({}, False),
    ({"OTEL_SERVICE_NAME": "x"}, False),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
    ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
    ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
    ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, False),
    ({"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, False),
]


@pytest.mark.parametrize(("environment", "expected"), ASKED)
def test_the_environment_asks(environment: dict[str, str], expected: bool) -> None:
    """By the usual variables."""
    assert is_asked_for(environment) is expected


@pytest.mark.parametrize("more", [{"OTEL_TRACES_EXPORTER": "zipkin"}, {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}])
def test_an_unsupported_exporter_is_reported(more: dict[str, str]) -> None:
    """Instead of silently sending nothing."""
    with pytest.raises(TracesUnavailable, match="http/protobuf"):
        open_tracing({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", **more})


def test_it_is_not_loaded_unless_asked_for() -> None:
    """Nobody pays for traces that nobody wants."""
    code = "import sys, thoughtline.commands.serve; sys.exit('opentelemetry' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_the_extra_it_says_what_to_install() -> None:
    """The gateway serves anyway."""
    code = """
import sys
sys.modules["opentelemetry"] = None
from thoughtline.gateway.tracing import TracesUnavailable, open_tracing
try:
    open_tracing({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"})
except TracesUnavailable as problem:
    sys.exit(0 if "thoughtline[otel]" in str(problem) else 1)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", sorted(row.name for row in PROVIDERS if row.traced_as))
def test_names_of_the_registry(name: str) -> None:
    """Providers that have another name at OpenTelemetry."""
    row = next(row for row in PROVIDERS if row.name == name)
    known = {"azure.ai.openai", "aws.bedrock", "gcp.gemini", "gcp.vertex_ai", "mistral_ai", "moonshot_ai", "x_ai"}
    assert row.traced_as in known


def test_spans_reach_a_collector(tmp_path: Any) -> None:
    """`serve` with only `OTEL_EXPORTER_OTLP_ENDPOINT`: pending spans are sent when it stops."""

    async def collect(got: Got, out: Out) -> None:
        await out.whole(200, b"", ("content-type", "application/x-protobuf"))

    with upstream(collect) as collector:
        environment = {**home(tmp_path), "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SERVICE_NAME": "mine"}
        arguments = command(tmp_path, "--upstream", served("deepseek").url, "--provider", "deepseek")
        process = subprocess.Popen(arguments, stderr=subprocess.PIPE, env=environment, cwd=tmp_path)
        try:
            serving = Serving(process)
            answer = httpx.post(
                f"{serving.url}/v1/chat/completions", json=CHAT, headers={"traceparent": TRACEPARENT}, timeout=60
            )
            process.terminate()
            process.wait(60)
        finally:
            process.kill()
    assert {got.target for got in collector.got} == {"/v1/traces"}
    sent = ExportTraceServiceRequest.FromString(collector.got[0].body)
    resource = {one.key: one.value.string_value for one in sent.resource_spans[0].resource.attributes}
    (span,) = sent.resource_spans[0].scope_spans[0].spans
    known = {one.key: one.value.string_value for one in span.attributes}
    assert resource["service.name"] == "mine"
    assert span.trace_id.hex() == TRACE
    assert known["thoughtline.request"] == answer.headers["x-thoughtline-request"]
    assert os.environ.get("OTEL_SERVICE_NAME") != "mine"
