"""Traces of exchanges, if they are enabled.

`otel.py` makes the spans. It is loaded only if the environment enables traces, so they cost nothing otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Protocol, cast

from thoughtline.engine.capture import Watch
from thoughtline.gateway.journal import Line
from thoughtline.values.destination import Destination

_ASKS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER")

UpHeaders = list[tuple[str, str]]


class ExchangeTrace(Protocol):
    """The trace of one exchange."""

    def carried(self, headers: UpHeaders, target: Destination) -> UpHeaders:
        """Return the headers for a target, which make its own spans children of this exchange."""

    def end(self, line: Line, watch: Watch | None, first_byte_seconds: float | None) -> None:
        """End the trace; `watch` has read the answer, whose first byte was sent after `first_byte_seconds`."""


class Tracing(Protocol):
    """Makes and exports traces."""

    def begin(self, headers: Mapping[bytes, bytes]) -> ExchangeTrace:
        """Begin an exchange; the client's headers may name a parent."""

    def close(self) -> None:
        """Export everything that is left. It may take a moment."""


def is_asked_for(environment: Mapping[str, str]) -> bool:
    """Whether the environment enables traces, by OpenTelemetry's variables."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if environment.get("OTEL_TRACES_EXPORTER", "").lower() == "none":
        return False
    return any(environment.get(name) for name in _ASKS)


class TracesUnavailable(Exception):
    """Traces are enabled but not possible; the message says what to do."""


def open_tracing(environment: Mapping[str, str]) -> Tracing | None:
    """Return the tracing that the environment enables; None if it enables none."""
    if not is_asked_for(environment):
        return None
    exporter = environment.get("OTEL_TRACES_EXPORTER") or "otlp"
    protocol = environment.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environment.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    if exporter != "otlp" or protocol not in (None, "", "http/protobuf"):
        raise TracesUnavailable("they are sent by OTLP over http/protobuf alone")
    try:
        module = import_module("thoughtline.gateway.otel")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "opentelemetry":
            raise
        raise TracesUnavailable("pip install 'thoughtline[otel]'") from None
    return cast(Tracing, module.OtelTracing.to_collector(environment))
