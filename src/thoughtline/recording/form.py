"""The form of a file of recorded exchanges: how it is written and read. The test suite reads the same. Pure.

    {"id", "family", "provider", "model", …, "exchanges": [
        {"method", "path", "family", "provider", "request", "status", "content_type", "request_headers",
         and one of "response", "stream", "stream_b64" (with "stream_events"), "response_text"}]}

`docs/recordings.md` says what each member means.
"""

from __future__ import annotations

import base64
import functools
import json
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from thoughtline.destinations.catalogue import listed
from thoughtline.destinations.credentials import credential_of
from thoughtline.destinations.request_url import AskedAddress, read_address
from thoughtline.formats import FORMATS, Wire
from thoughtline.formats.aws_event_stream import CONTENT_TYPE as BINARY
from thoughtline.formats.encodings import unpacked
from thoughtline.providers import canonical_name
from thoughtline.recording.scrubbing import Scrubber, StreamKind, json_bytes
from thoughtline.values.errors import DecodeError, ThoughtlineError
from thoughtline.values.turns import FormatName

Json: TypeAlias = dict[str, Any]

MAX_BODY_BYTES = 64 * 2**20
"""Limit for one body without its compression."""

_STREAMS: dict[str, StreamKind] = {
    "text/event-stream": "events",
    "application/x-ndjson": "lines",
    "application/jsonl": "lines",
    BINARY: "binary",
}
_THINK_TAG = re.compile(r"<think>")


@dataclass(frozen=True)
class RecordedExchange:
    """One request and its response, in the form of the file."""

    recorded: Json

    @property
    def family(self) -> str:
        return str(self.recorded.get("family", ""))

    @property
    def provider(self) -> str:
        return str(self.recorded.get("provider", ""))

    @property
    def path(self) -> str:
        return str(self.recorded.get("path") or "")

    @property
    def status(self) -> int:
        status = self.recorded.get("status")
        return status if isinstance(status, int) else 200

    @property
    def content_type(self) -> str:
        return str(self.recorded.get("content_type") or "").partition(";")[0].strip().lower()

    @property
    def headers(self) -> dict[str, str]:
        headers = self.recorded.get("request_headers")
        return {str(name).lower(): str(value) for name, value in headers.items()} if isinstance(headers, dict) else {}

    @property
    def address(self) -> AskedAddress | None:
        """The parsed address of its path, if it is one of a format."""
        return read_address(str(self.recorded.get("method") or "POST"), f"https://recorded{self.path}")

    @property
    def format_name(self) -> FormatName | None:
        """The format, by its path, by its family, or the only one of its provider; None for an unknown wire."""
        if (address := self.address) is not None:
            return address.format
        for wire in FORMATS.values():
            if wire.family == self.family:
                return wire.name
        provider = listed().get(canonical_name(self.provider))
        return provider.formats[0] if provider is not None and len(provider.formats) == 1 else None

    @property
    def request(self) -> bytes | None:
        request = self.recorded.get("request")
        return None if request is None else json_bytes(request)

    @property
    def response(self) -> bytes | None:
        """A whole answer, even if it is not JSON."""
        if "response_text" in self.recorded:
            return str(self.recorded["response_text"]).encode()
        response = self.recorded.get("response")
        return None if response is None or self.is_array_stream else json_bytes(response)

    @property
    def is_array_stream(self) -> bool:
        """Whether it is Gemini's stream without `alt=sse`, which is recorded as one JSON array."""
        return isinstance(self.recorded.get("response"), list)

    @property
    def stream(self) -> bytes | None:
        if "stream_b64" in self.recorded:
            return base64.b64decode(str(self.recorded["stream_b64"]))
        if self.is_array_stream:
            return json.dumps(self.recorded["response"], ensure_ascii=False, indent=1).encode()
        stream = self.recorded.get("stream")
        return None if stream is None else str(stream).encode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class RecordingFile:
    """A file: exchanges in the order of their requests."""

    entry: Json

    @functools.cached_property
    def exchanges(self) -> list[RecordedExchange]:
        return [RecordedExchange(one) for one in self.entry["exchanges"]]


def read_recording(data: bytes) -> RecordingFile:
    """Read a recording. Raises `DecodeError` for anything else."""
    try:
        entry = json.loads(data)
    except (ValueError, RecursionError):
        raise DecodeError("it is not JSON") from None
    exchanges = entry.get("exchanges") if isinstance(entry, dict) else None
    if not isinstance(exchanges, list) or not all(isinstance(one, dict) for one in exchanges):
        raise DecodeError("it is no recording: it has no list of exchanges")
    return RecordingFile(entry)


# --- writing ----------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class TakenExchange:
    """An exchange as it passed, with all its secrets: only ever in memory. Header names are in lower case."""

    provider: str
    wire: Wire
    path: str
    headers: dict[str, str]
    request: bytearray = field(default_factory=bytearray)
    status: int = 0
    answer_headers: dict[str, str] = field(default_factory=dict)
    answer: bytearray = field(default_factory=bytearray)

    @property
    def size(self) -> int:
        return len(self.request) + len(self.answer)


@dataclass(frozen=True)
class WriteOptions:
    """How a recording is written. `notes` are sentences about it."""

    chance: random.Random
    recorded: str
    version: str
    replaces_texts: bool = False
    notes: Sequence[str] = ()


def recording_of(taken: Iterable[TakenExchange], options: WriteOptions) -> Json:
    """Return the file of these exchanges, without secrets."""
    taken = list(taken)
    scrubber = Scrubber(options.chance, replaces_texts=options.replaces_texts)
    for one in taken:
        for credential in _credentials(one):
            scrubber.credential(credential)
    scrubber.is_learning = True
    for one in taken:
        _exchange(one, scrubber)
    scrubber.is_learning = False
    exchanges = [_exchange(one, scrubber) for one in taken]
    first = exchanges[0] if exchanges else {"family": "", "provider": ""}
    families = list(dict.fromkeys(one["family"] for one in exchanges))
    providers = list(dict.fromkeys(one["provider"] for one in exchanges))
    models = list(filter(None, map(model_of, map(RecordedExchange, exchanges))))
    is_tagged = any(_THINK_TAG.search(json.dumps([one.get("response"), one.get("stream")])) for one in exchanges)
    number = f"{options.chance.getrandbits(32):08x}"
    several = {"families": families, "providers": providers} if len(families) > 1 or len(providers) > 1 else {}
    return {
        "id": "--".join(filter(None, (first["family"], first["provider"], options.recorded[:10], number))),
        "source": f"thoughtline record, {options.version}",
        "recorded": options.recorded,
        "family": first["family"],
        "provider": first["provider"],
        **several,
        "model": models[0] if models else "",
        "multi_turn": len(exchanges) > 1,
        "tools": any(isinstance(one["request"], dict) and bool(one["request"].get("tools")) for one in exchanges),
        "streaming": any("stream" in one or "stream_b64" in one for one in exchanges),
        "reasoning_kinds": ["inline_think_tag"] if is_tagged else [],
        "response_only": False,
        "sanitized": True,
        "texts": "replaced" if options.replaces_texts else "kept",
        "errors": [
            {"exchange": at, "status": one["status"]} for at, one in enumerate(exchanges) if one["status"] >= 400
        ],
        "notes": list(options.notes),
        "exchanges": exchanges,
    }


def recording_text(recording: Json) -> bytes:
    """Write it in a form that people can read before they send it."""
    try:
        return json.dumps(recording, ensure_ascii=False, indent=1).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(recording, indent=1).encode() + b"\n"


def _credentials(taken: TakenExchange) -> list[str]:
    """Return all credentials of a client, from its headers and its address."""
    headers = {name.encode(): value.encode("latin-1", "replace") for name, value in taken.headers.items()}
    from_query = [
        value
        for name, _, value in (pair.partition("=") for pair in taken.path.partition("?")[2].split("&"))
        if "key" in name
    ]
    shown = credential_of(headers, taken.path.partition("?")[2])
    named = [value for name, value in taken.headers.items() if re.search(r"api-?key|token\Z|secret", name)]
    bearer = taken.headers.get("authorization", "").rpartition(" ")[2]
    return list(dict.fromkeys(filter(None, (shown, bearer, *named, *from_query))))


def _exchange(taken: TakenExchange, scrubber: Scrubber) -> Json:
    shown = _credentials(taken)[:1]
    content_type = taken.answer_headers.get("content-type", "")
    exchange: Json = {
        "method": "POST",
        "path": scrubber.path(taken.path),
        "family": taken.wire.family,
        "provider": taken.provider,
        "credential": scrubber.credential(shown[0]) if shown else "",
        "request_headers": scrubber.headers(taken.headers),
        "request": None,
        "status": taken.status,
        "content_type": content_type,
    }
    try:
        plain = unpacked(bytes(taken.request), taken.headers.get("content-encoding", ""), MAX_BODY_BYTES)
        exchange["request"] = scrubber.body(json.loads(plain))
    except (ValueError, RecursionError, ThoughtlineError):
        exchange["note"] = "the request could not be read, and was left out"
    try:
        answer = unpacked(bytes(taken.answer), taken.answer_headers.get("content-encoding", ""), MAX_BODY_BYTES)
        exchange |= _answer(answer, content_type, scrubber, is_error=taken.status >= 400)
    except (RecursionError, ThoughtlineError):
        exchange["note"] = "the response could not be read, and was left out"
    return exchange


def _answer(data: bytes, content_type: str, scrubber: Scrubber, *, is_error: bool) -> Json:
    kind = _STREAMS.get(content_type.partition(";")[0].strip().lower())
    if kind == "binary":
        stream, events = scrubber.stream(data, kind)
        return {"stream_b64": base64.b64encode(stream).decode(), "stream_events": events}
    if kind is not None:
        return {"stream": scrubber.stream(data, kind)[0].decode("utf-8", "replace")}
    try:
        return {"response": scrubber.body(json.loads(data), is_error=is_error)}
    except ValueError:
        return {"response_text": scrubber.text(data.decode("utf-8", "replace"), is_spoken=not is_error)}


def model_of(exchange: RecordedExchange) -> str:
    """Return the model of an exchange, from the request or its address."""
    request, address = exchange.recorded.get("request"), exchange.address
    named = request.get("model") if isinstance(request, dict) else None
    return named if isinstance(named, str) else address.model if address is not None else ""
