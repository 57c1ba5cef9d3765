"""Reads the sentences of an error body, inside anything that a provider, relay or SDK has wrapped around them."""

from __future__ import annotations

import ast
import functools
import json
import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from thoughtline import providers
from thoughtline.providers import FactTable
from thoughtline.providers.row import RelayedMaker

Json: TypeAlias = Any

# Limits: an error has a few hundred bytes, but Mistral's repeats the refused input, which may be a whole trace.
BODY_BYTES = 4 << 20
_LAYERS = 256
_DEPTH = 24
_LINES = 256
SENTENCE_CHARS = 2000


class _Layer(NamedTuple):
    """A value inside the body, and the error codes of the layer around it."""

    value: Json
    codes: tuple[str, ...] = ()
    depth: int = 0
    is_wrapped: bool = False


class Complaint(NamedTuple):
    """One sentence of an error, with the members next to it. `relay` is the host that put its own words before it."""

    sentence: str
    codes: tuple[str, ...]
    param: str
    relay: str
    is_wrapped: bool


# Reading error bodies: all known envelopes are objects with a few well-known members.

_SENTENCES = ("message", "Message", "msg", "error", "detail", "details", "raw", "param", "status_msg", "error_msg")
_NESTED = (*_SENTENCES, "errors", "metadata", "upstream_error", "base_resp")
_CODE_MEMBERS = ("code", "type", "status")

# MiMo writes `data:` before the JSON of a refused stream (WeKnora#1302); others send it as a whole event.
_EVENT = r"\s{0,9}(?:event:[^\n]{0,200}\n\s{0,9})?(?:data:)?"
_BEFORE_BODY = re.compile(rf"{_EVENT}\s*(?=[{{\[\"])")
# OpenRouter writes `Upstream error: {…}`, relays `HTTP 400: {…}` or `Error from provider (a, b: 400): {…}`, LiteLLM
# `OpenAIException - {…}`, SGLang `1 validation error: {…}`. JSON after other words is user content.
_BEFORE_NESTED = re.compile(
    rf"(?:\A{_EVENT}|(?:[Ee]rrors?|Exception|\b4\d\d|\b500|body|Bad Request)[).:-]{{0,2}}(?:\s-)?)\s{{0,4}}(?=[{{\[])"
)
_PREFIX = (
    r"(?:litellm\.)?\w{0,40}(?:Error|Exception)(?:: | - )|Error from provider(?: \([^)]{1,60}\))?: "
    r"|Upstream request failed: |Provider returned error: |\[(?:invalid_request_error|\d{1,6})\] "
    r"|(?:[Uu]pstream error|Bad [Rr]equest|[Ii]nvalid [Rr]equest|[Vv]alidation(?: error)?)(?: \d{3})?: "
    r"|<\d{3}> [\w.]{1,80}: |(?:Error code: |HTTP )?400:?(?: -)? "
)
_PREFIXES = 6
_NO_SENTENCE = re.compile(r"\Z|[{\[]|<[A-Za-z!?]")


def relays() -> dict[str, RelayedMaker]:
    """Return the hosts that pass on the refusals of a maker, by name."""
    return {row.name: row.relays for row in providers.facts().rows if row.relays is not None}


@functools.lru_cache(2)
def _prefixes_in(table: FactTable) -> re.Pattern[str]:
    """Return a pattern of the prefixes that hosts and SDKs put before a sentence; the matched group names a relay."""
    of_relays = [f"(?P<{row.name}>{row.relays.prefix})" for row in table.rows if row.relays is not None]
    return re.compile("|".join([*of_relays, _PREFIX]), re.ASCII)


def complaints(body: bytes) -> Iterator[Complaint]:
    """Yield all sentences of an error body, outermost first."""
    queue = deque([_Layer(_whole(body))])
    for _ in range(_LAYERS):
        if not queue:
            return
        layer = queue.popleft()
        if isinstance(layer.value, dict):
            layer = layer._replace(codes=_codes(layer.value) or layer.codes)
            yield from _complaints_in(layer)
        if layer.depth < _DEPTH:
            queue.extend(_inside(layer))


def plain_complaint(body: bytes) -> Complaint | None:
    """Return the sentence of a body that is plain text or a JSON string: axum's servers report deserialization errors
    so."""
    text = body[: SENTENCE_CHARS * 4].decode("utf-8-sig", "replace").strip()
    value, end = _decoded(text, 0) if text[:1] == '"' else (text, len(text))
    decoded = value if end == len(text) else text
    if not isinstance(decoded, str) or _NO_SENTENCE.match(decoded) or _BEFORE_BODY.match(decoded):
        return None
    sentence, relay = _without_prefixes(" ".join(decoded[:SENTENCE_CHARS].split()))
    return Complaint(sentence, (), "", relay, False)


def _whole(body: bytes) -> Json:
    text = body.decode("utf-8-sig", "replace")
    start = _BEFORE_BODY.match(text)
    value = _decoded(text, start.end())[0] if start else None
    return _nested(value)[0] if isinstance(value, str) else value


def _nested(text: str) -> tuple[Json, str]:
    """Return the JSON inside a string, alone or after an announcing prefix, and the text around it."""
    start = _BEFORE_NESTED.search(text[:SENTENCE_CHARS])
    if start is None:
        return None, text
    value, end = _decoded(text, start.end())
    return (None, text) if value is None else (value, text[: start.end()] + text[end:])


def _decoded(text: str, start: int) -> tuple[Json, int]:
    """Decode the JSON at a position, and return where it ends. Also reads objects in Python's notation."""
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return _literal(text, start)
    else:
        return value, end


_LITERAL_CHARS = 20_000
_LITERAL_END = re.compile(r"[}\]]")


def _literal(text: str, start: int) -> tuple[Json, int]:
    """Decode an object or list in Python's notation, as SDKs and Python servers put them into a sentence."""
    bounded = text[: start + _LITERAL_CHARS]
    if not re.match(r"[{\[]{1,2}\s*'", bounded[start:]):
        return None, start
    for close in [match.end() for match in _LITERAL_END.finditer(bounded, start)][:_LAYERS]:
        if bounded.count("{", start, close) == bounded.count("}", start, close):
            try:
                return ast.literal_eval(bounded[start:close]), close
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                continue
    return None, start


def _codes(error: dict[str, Json]) -> tuple[str, ...]:
    values = (error.get(name) for name in _CODE_MEMBERS)
    return tuple(str(value)[:64] for value in values if isinstance(value, str | int) and not isinstance(value, bool))


def _inside(layer: _Layer) -> Iterator[_Layer]:
    """Yield the inner values that may be errors. Only known members are read: others repeat a user's words."""
    inner = layer._replace(depth=layer.depth + 1)
    if isinstance(layer.value, list):
        for value in layer.value[:_LAYERS]:
            if isinstance(value, dict | list):
                yield inner._replace(value=value)
            elif isinstance(value, str):
                yield inner._replace(value={"message": value})
        return
    if not isinstance(layer.value, dict):
        return
    for name in _NESTED:
        value = layer.value.get(name)
        if isinstance(value, dict | list):
            yield inner._replace(value=value, is_wrapped=inner.is_wrapped or name in ("raw", "upstream_error"))
        elif isinstance(value, str) and (nested := _nested(value)[0]) is not None:
            yield inner._replace(value=nested, codes=(), is_wrapped=True)


def _complaints_in(layer: _Layer) -> Iterator[Complaint]:
    error = layer.value
    param = error.get("param")
    param = param if isinstance(param, str) else ""
    is_wrapped = layer.is_wrapped or "raw" in error
    for text in _texts(error) or [""]:
        words = _nested(text)[1]
        for line in words[: SENTENCE_CHARS * _LINES].splitlines()[:_LINES] or [""]:
            sentence, relay = _without_prefixes(" ".join(line[:SENTENCE_CHARS].split()))
            yield Complaint(sentence, layer.codes, param, relay, is_wrapped)


def _texts(error: dict[str, Json]) -> list[str]:
    """Return the sentences of an error object. MiMo's sentence is in `param`, Mistral's place in `loc`."""
    texts = {name: error[name] for name in _SENTENCES if isinstance(error.get(name), str)}
    if "message" in texts and "param" in texts:
        texts["param"] = f"{texts['message']}: {texts['param']}"
    location = error.get("loc")
    if "msg" in texts and isinstance(location, list | tuple):
        texts["msg"] = f"{_dotted(location)}: {texts['msg']}"
    return list(texts.values())


def _dotted(location: Sequence[Json]) -> str:
    steps = [str(step)[:80] for step in location[:32] if isinstance(step, str | int)]
    return ".".join(steps[1:] if steps[:1] == ["body"] else steps)


def _without_prefixes(line: str) -> tuple[str, str]:
    """Return a sentence without the prefixes of hosts and SDKs, and the relay among them."""
    relay = ""
    for _ in range(_PREFIXES):
        prefix = _prefixes_in(providers.facts()).match(line)
        if prefix is None:
            break
        relay = prefix.lastgroup or relay
        line = line[prefix.end() :]
    return line, relay
