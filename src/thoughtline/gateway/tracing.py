"""Traces: what an exchange tells, and whether anybody wants to hear it.

`otel.py` makes the spans. It is loaded only where the environment asks for traces, so they cost nothing elsewhere.
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
    """One exchange."""

    def carried(self, headers: UpHeaders, target: Destination) -> UpHeaders:
        """The headers that go up to a target: whoever is traced there is a child of this exchange."""

    def end(self, line: Line, watch: Watch | None, first_byte_seconds: float | None) -> None:
        """It is over; `watch` has read the answer, whose first byte went down so long after it began."""


class Tracing(Protocol):
    """Makes traces, and sends them."""

    def begin(self, headers: Mapping[bytes, bytes]) -> ExchangeTrace:
        """An exchange begins; the client's headers may name what it is a part of."""

    def close(self) -> None:
        """Send what is not sent yet. It may take a moment."""


def is_asked_for(environment: Mapping[str, str]) -> bool:
    """Whether the environment asks for traces, by the variables of OpenTelemetry."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if environment.get("OTEL_TRACES_EXPORTER", "").lower() == "none":
        return False
    return any(environment.get(name) for name in _ASKS)


class TracesUnavailable(Exception):
    """Traces are asked for and can't be made; says what to do."""


def open_tracing(environment: Mapping[str, str]) -> Tracing | None:
    """What makes the traces that the environment asks for; None if it asks for none."""
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
