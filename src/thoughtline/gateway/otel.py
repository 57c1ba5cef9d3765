"""OpenTelemetry spans: one per generation request, with the names of the GenAI conventions.

https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-spans.md, read 2026-11-16. A
span covers an exchange with all its attempts. It holds counts, names and times, and nothing of a conversation.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib.metadata import version
from urllib.parse import urlsplit

from opentelemetry import propagate
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode, set_span_in_context
from opentelemetry.util.types import AttributeValue

from thoughtline.engine.capture import Watch
from thoughtline.gateway.journal import Line
from thoughtline.gateway.tracing import UpHeaders
from thoughtline.providers import host_named
from thoughtline.values.destination import Destination
from thoughtline.values.outcome import COUNTED

OPERATION = "chat"
CLOSE_MILLISECONDS = 3_000

Attributes = dict[str, AttributeValue]


class OtelTracing:
    """The spans of one process."""

    def __init__(self, processor: SpanProcessor, environment: Mapping[str, str]) -> None:
        self._provider = TracerProvider(resource=_resource(environment))
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("thoughtline", version("thoughtline"))

    @classmethod
    def to_collector(cls, environment: Mapping[str, str]) -> OtelTracing:
        """Export to the collector that the environment names, which also sets sampling and limits."""
        return cls(BatchSpanProcessor(OTLPSpanExporter()), environment)

    def begin(self, headers: Mapping[bytes, bytes]) -> OtelTrace:
        fields = propagate.get_global_textmap().fields
        carrier = {name: headers[key].decode("latin-1") for name in fields if (key := name.encode()) in headers}
        return OtelTrace(self, propagate.extract(carrier, Context()))

    def start(self, name: str, parent: Context, attributes: Attributes, *, began: int) -> Span:
        return self._tracer.start_span(name, parent, SpanKind.CLIENT, attributes, start_time=began)

    def close(self) -> None:
        self._provider.force_flush(CLOSE_MILLISECONDS)
        self._provider.shutdown()


class OtelTrace:
    """One exchange. Its span is created when the target is known, because samplers use it."""

    def __init__(self, tracing: OtelTracing, parent: Context) -> None:
        self._tracing = tracing
        self._parent = parent
        self._began = time.time_ns()
        self._span: Span | None = None

    def carried(self, headers: UpHeaders, target: Destination) -> UpHeaders:
        if self._span is None:
            self._span = self._start(target.model, _target_attributes(target))
        ours: dict[str, str] = {}
        propagate.inject(ours, set_span_in_context(self._span, self._parent))
        return [*(pair for pair in headers if pair[0].lower() not in ours), *ours.items()]

    def end(self, line: Line, watch: Watch | None, first_byte_seconds: float | None) -> None:
        if line.route != "generate":
            return
        span = self._span or self._start(line.model, {"gen_ai.provider.name": _provider_name(line.provider)})
        span.set_attributes(_line_attributes(line))
        if watch is not None:
            span.set_attributes(_answer_attributes(watch))
        if line.is_streaming and first_byte_seconds is not None:
            span.set_attribute("gen_ai.response.time_to_first_chunk", first_byte_seconds)
        if line.model:
            span.update_name(f"{OPERATION} {line.model}")
        error = line.code or (str(line.status) if line.status >= 400 or not line.status else "")
        if error:
            span.set_attribute("error.type", error)
            span.set_status(StatusCode.ERROR)
        span.end()

    def _start(self, model: str, attributes: Attributes) -> Span:
        named = {"gen_ai.request.model": model} if model else {}
        every: Attributes = {"gen_ai.operation.name": OPERATION, **named, **attributes}
        return self._tracing.start(f"{OPERATION} {model}".rstrip(), self._parent, every, began=self._began)


def _resource(environment: Mapping[str, str]) -> Resource:
    """Return the resource, with the name from the environment or our own."""
    is_named = environment.get("OTEL_SERVICE_NAME") or "service.name=" in environment.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    own = {} if is_named else {"service.name": "thoughtline"}
    return Resource.create({"service.version": version("thoughtline"), **own})


def _provider_name(name: str) -> str:
    row = host_named(name)
    return row.traced_as or row.name if row is not None else name


def _target_attributes(target: Destination) -> Attributes:
    where = urlsplit(target.endpoint)
    port = where.port or (443 if where.scheme == "https" else 80)
    address: Attributes = {"server.address": where.hostname, "server.port": port} if where.hostname else {}
    return {"gen_ai.provider.name": _provider_name(target.provider), **address}


def _line_attributes(line: Line) -> Attributes:
    """Return attributes of what was done, with the provider that answered in the end."""
    known: Attributes = {
        "http.response.status_code": line.status,
        "gen_ai.provider.name": _provider_name(line.provider),
        "thoughtline.request": line.request,
        "thoughtline.tenant": line.tenant,
        "thoughtline.format": line.format,
        "thoughtline.attempts": line.attempts,
        "thoughtline.avoided": line.avoided,
        "thoughtline.captured": line.captured,
        "thoughtline.own_ms": line.own_ms,
        "thoughtline.store": line.store,
        **{f"thoughtline.{name}": getattr(line, name) for name in COUNTED},
    }
    if line.model:
        known["gen_ai.request.model"] = line.model
    if line.is_streaming:
        known["gen_ai.request.stream"] = True
    if line.session:
        known |= {"gen_ai.conversation.id": line.session, "thoughtline.session": line.session}
    if line.via:
        known["thoughtline.route"] = line.via
    return known


def _answer_attributes(watch: Watch) -> Attributes:
    """Return attributes of the answer. A count that the provider did not give is omitted."""
    known: Attributes = {}
    if watch.answer_id:
        known["gen_ai.response.id"] = watch.answer_id
    if watch.answer_model:
        known["gen_ai.response.model"] = watch.answer_model
    if watch.finishes:
        known["gen_ai.response.finish_reasons"] = [finish.native for finish in watch.finishes]
    if watch.usage is not None:
        known |= {
            "gen_ai.usage.input_tokens": watch.usage.input,
            "gen_ai.usage.output_tokens": watch.usage.output,
        }
        if watch.usage.reasoning:
            known["gen_ai.usage.reasoning.output_tokens"] = watch.usage.reasoning
        if watch.usage.cached:
            known["gen_ai.usage.cache_read.input_tokens"] = watch.usage.cached
    return known
