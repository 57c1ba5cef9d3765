"""Bodies, streams and headers without anything secret in them. Pure.

A stream's texts are put together first, so that what came in two pieces is found; its stand-in is in the first one.
Keys, ids, signatures and files are always replaced, words only on request. What says how to read the rest (types,
roles, models, names of tools) stays.
"""

from __future__ import annotations

import base64
import json
import random
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from thoughtline.engine.sessions import SESSION_HEADERS
from thoughtline.engine.user_headers import PORTKEY, USER_HEADERS, name_in
from thoughtline.formats.aws_event_stream import EventStream, encode_message
from thoughtline.formats.framing import Frame, Framing, JsonLines, ServerSentEvents, sse
from thoughtline.recording.secrets import PLACEHOLDER, is_file, is_secret_member, random_in, secrets_in
from thoughtline.recording.stand_ins import StandIns

Json: TypeAlias = Any
Path: TypeAlias = tuple[str, ...]
Part: TypeAlias = tuple[int, int, str]
"""A range of a text, and its replacement."""

Kind = Literal["text", "word", "id", "seal", "file", "key"]
StreamKind = Literal["events", "lines", "binary"]

_FRAMINGS: dict[StreamKind, type[ServerSentEvents] | type[JsonLines] | type[EventStream]] = {
    "events": ServerSentEvents,
    "lines": JsonLines,
    "binary": EventStream,
}

_SEAL = re.compile(r"(?:signature|ciphertext|opaque)\Z|^encrypted|^redacted_?(?:content|reasoning)\Z", re.I)
_NO_SEAL = re.compile(r"[a-z_]*|.*\s.*", re.DOTALL)
"""A word used as an identifier, or an argument of a tool."""

_SEALED_TYPES = frozenset({"redacted_thinking", "reasoning.encrypted", "encrypted"})
_ID = re.compile(r"(?:^|_)(?:id|ids)\Z|(?:Id|Ids|ID)\Z")
_IDS = frozenset(
    {"user", "safety_identifier", "prompt_cache_key", "system_fingerprint", "conversation", "container", "obfuscation"}
)


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WORDS = _names(
    "type role model object status name format effort event kind op $ref $schema stop_reason finish_reason "
    "finishReason native_finish_reason stopReason done_reason phase mimeType mime_type media_type responseMimeType "
    "modelVersion model_id modelId version service_tier serviceTier tier mode level thinking_level thinkingLevel "
    "reasoning_effort detail verbosity display ttl tool_choice toolChoice required include category threshold "
    "modality encoding provider tool_name toolName event_type language"
)
_NAME = re.compile(r"[\w.:/@-]{0,128}\Z")
_CONTENT = _names(
    "messages input contents system systemInstruction system_instruction instructions tools functions prompt "
    "metadata choices candidates output content message delta item content_block contentBlock part parts text "
    "arguments steps step reasoning_content refusal partial_json error user suffix annotations turns"
)
_ARGUMENTS = frozenset({"input", "args", "arguments"})
_RESULTS = frozenset({"function_response", "functionResponse"})
_STREAMED = _names(
    "text content reasoning reasoning_content reasoning_text thinking delta partial_json arguments input refusal "
    "summary transcript textDelta text_delta stringValue output string_value code tool_plan inputTextDelta "
    "argsTextDelta thought data partialJson"
)
"""Members that hold a piece of a text, one after the other."""

_TAGS = re.compile(r"</?(?:think|thinking|thought|seed:think|reasoning)>|\[/?THINK\]")
_SPOKEN_WORD = re.compile(r"\w+")
_ALNUM = re.compile(r"[A-Za-z0-9]{8,}")
_JSON_STRING = re.compile(r'"((?:[^"\\]|\\.)*)("?)', re.DOTALL)
_LEAST_KNOWN_CHARS = 6
_LONG_CHARS = 64
_SHORT_FILE_CHARS = 12
_VERSION_HEADER = re.compile(r"-version\Z|beta")
_COMMON_NAMES = frozenset(
    {"user", "home", "work", "test", "admin", "ubuntu", "runner", "node", "data", "code", "main", "build"}
)
_LEAST_NAME_CHARS = 4


@dataclass
class _Leaf:
    """A string and its place. `channel` is the text of a stream that it is a piece of."""

    holder: Any
    key: Any
    path: Path
    kind: Kind
    channel: tuple[Any, ...] | None = None

    @property
    def text(self) -> str:
        return str(self.holder[self.key])


class Scrubber:
    """Scrubs one recording: equal values stay equal."""

    def __init__(self, chance: random.Random, *, replaces_texts: bool = False) -> None:
        self.stand_ins = StandIns(chance)
        self._replaces_texts = replaces_texts
        self._known: tuple[int, re.Pattern[str] | None] = (0, None)
        self._cache: dict[tuple[str, bool], list[Part]] = {}
        self._version = (False, -1, -1, -1)
        self._shown_as_key: set[str] = set()
        self.is_learning = False
        """Whether this is the first pass over the recording: random text may turn out to be an id."""

    # --- a text -------------------------------------------------------------------------------------------------------

    def text(self, text: str, *, is_spoken: bool = True) -> str:
        """Scrub a text. `is_spoken`: text of a user, a tool or a model."""
        return replaced(text, self.parts(text, is_spoken=is_spoken))

    def parts(self, text: str, *, is_spoken: bool, is_json: bool = False) -> list[Part]:
        """Return the parts of a text to replace, in order."""
        if is_file(text):
            return [(0, len(text), self.stand_ins.file(text))]
        found = self.stand_ins
        version = (self.is_learning, len(found.keys), len(found.runs), len(found.homes))
        if version != self._version:
            self._cache.clear()
            self._version = version
        parts = self._cache.get((text, is_spoken))
        if parts is None:
            words = is_spoken and self._replaces_texts
            parts = self._json_parts(text, words) if is_json or _is_json(text) else self._plain_parts(text, words)
            if len(text) >= _LONG_CHARS:
                self._cache[text, is_spoken] = parts
        return parts

    def _plain_parts(self, text: str, words: bool) -> list[Part]:
        parts = _Parts(text)
        for found in PLACEHOLDER.finditer(text):
            parts.keep(found.start(), found.end())
        known = self._known_pattern()
        for found in known.finditer(text) if known is not None else ():
            is_home = found[0] in self.stand_ins.homes
            parts.add(*found.span(), self.stand_ins.home(found[0]) if is_home else self.stand_ins.key(found[0]))
        for secret in secrets_in(text):
            if parts.is_free(secret.start, secret.end):
                original = text[secret.start : secret.end]
                parts.add(secret.start, secret.end, self._stand_in(secret.kind, original))
        for found in _ALNUM.finditer(text):
            if found[0] in self.stand_ins.runs:
                parts.add(found.start(), found.end(), self.stand_ins.runs[found[0]])
        for start, end in () if self.is_learning else random_in(text):
            if parts.is_free(start, end):
                parts.add(start, end, self.stand_ins.key(text[start:end]))
        if words:
            for found in _TAGS.finditer(text):
                parts.keep(found.start(), found.end())
            for found in _SPOKEN_WORD.finditer(text):
                parts.add(found.start(), found.end(), self.stand_ins.word(found[0]))
        return parts.in_order()

    def _stand_in(self, kind: str, original: str) -> str:
        match kind:
            case "file":
                return self.stand_ins.file(original)
            case "mail":
                return self.stand_ins.mail(original)
            case "home":
                return self.stand_ins.home(original)
            case "id":
                return self.stand_ins.uuid(original)
            case "account":
                return self.stand_ins.run(original)
        return self.stand_ins.key(original)

    def _known_pattern(self) -> re.Pattern[str] | None:
        """A pattern of keys and user names found elsewhere, which need not look like any here."""
        stand_ins = self.stand_ins
        if (size := len(stand_ins.keys) + len(stand_ins.homes)) != self._known[0]:
            keys = [re.escape(key) for key in stand_ins.keys if key in self._shown_as_key or _is_no_word(key)]
            names = [name for name in stand_ins.homes if len(name) >= _LEAST_NAME_CHARS and name not in _COMMON_NAMES]
            patterns = [
                *sorted(keys, key=len, reverse=True),
                *(
                    rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])"
                    for name in sorted(names, key=len, reverse=True)
                ),
            ]
            self._known = size, re.compile("|".join(patterns)) if patterns else None
        return self._known[1]

    def credential(self, value: str) -> str:
        """Scrub a client's credential, which is secret in any form and at any place."""
        if len(value) >= _LEAST_KNOWN_CHARS:
            self._shown_as_key.add(value)
        return self.stand_ins.key(value)

    def _json_parts(self, text: str, words: bool) -> list[Part]:
        """Return the parts of JSON in a text: values are read by their meaning; member names stay, except keys."""
        parts: list[Part] = []
        member = ""
        for token in _JSON_STRING.finditer(text):
            is_name = re.compile(r"\s*:").match(text, token.end()) is not None
            try:
                value = json.loads(f'"{token[1]}"', strict=False)
            except ValueError:
                value = token[1]
            if is_name:
                member = value
                found = self.parts(value, is_spoken=False)
            elif is_secret_member(member) and value:
                found = [(0, len(value), self.stand_ins.key(value))]
            else:
                found = self.parts(value, is_spoken=words)
            shown = replaced(value, found)
            if shown != value:
                parts.append((token.start(1), token.end(1), json.dumps(shown, ensure_ascii="\\u" in token[1])[1:-1]))
        return parts

    # --- JSON ---------------------------------------------------------------------------------------------------------

    def body(self, value: Json, *, is_error: bool = False) -> Json:
        """Scrub a request, or a whole answer. A list is one of Google's streams as an array."""
        events = value if isinstance(value, list) else [value]
        shown = self.events(events, is_error=is_error, is_stream=isinstance(value, list))
        return shown if isinstance(value, list) else shown[0]

    def events(self, events: list[Json], *, is_error: bool = False, is_stream: bool = True) -> list[Json]:
        """Scrub the payloads of a stream. The text of errors is the provider's, and stays."""
        leaves: list[_Leaf] = []
        walk = _Walk(leaves, is_stream=is_stream)
        holders = [[_with_shown_names(event, self)] for event in events]
        for holder in holders:
            walk.visit(holder, 0, ())
        channels: defaultdict[tuple[Any, ...], list[_Leaf]] = defaultdict(list)
        for at, leaf in enumerate(leaves):
            channels[leaf.channel if leaf.channel is not None else (at,)].append(leaf)
        for pieces in channels.values():
            for leaf, shown in zip(pieces, self._shown(pieces, is_error), strict=True):
                leaf.holder[leaf.key] = shown
        return [holder[0] for holder in holders]

    def _shown(self, pieces: list[_Leaf], is_error: bool) -> list[str]:
        first, texts = pieces[0], [leaf.text for leaf in pieces]
        match first.kind:
            case "seal":
                return self._seals(texts)
            case "key":
                return [self.stand_ins.key(text) for text in texts]
            case "id":
                return [self._id(text, first.path) for text in texts]
            case "file":
                return [self.stand_ins.file(text) if len(text) > _SHORT_FILE_CHARS else text for text in texts]
            case "word":
                return [self.text(text, is_spoken=not _NAME.match(text) and not is_error) for text in texts]
        joined = "".join(texts)
        is_spoken = not is_error and (bool(_CONTENT.intersection(first.path)) or not _NAME.match(joined))
        is_json = first.path[-1] in ("arguments", "partial_json", "delta", "input") and joined.lstrip()[:1] == "{"
        return cut_again(texts, self.parts(joined, is_spoken=is_spoken, is_json=is_json))

    def _seals(self, texts: list[str]) -> list[str]:
        filled = [text for text in texts if text]
        if _NO_SEAL.fullmatch("".join(filled)):
            return [self.text(text) for text in texts]
        shown = iter(self.stand_ins.seal_pieces(filled))
        return [next(shown) if text else "" for text in texts]

    def _id(self, text: str, path: Path) -> str:
        """Scrub an id; some clients write JSON or an address into one."""
        if _is_json(text):
            return json.dumps(self.body(json.loads(text)), ensure_ascii=False, separators=(",", ":"))
        if "@" in text:
            return self.text(text, is_spoken=False)
        shown = self.stand_ins.id(text)
        is_name = path[-1:] == ("user",) and shown == text and not PLACEHOLDER.fullmatch(text)
        return self.stand_ins.run(text) if is_name else shown

    # --- streams, headers, addresses ----------------------------------------------------------------------------------

    def stream(self, data: bytes, kind: StreamKind) -> tuple[bytes, list[Json]]:
        """Return a stream without secrets, and its events. Bytes of events without secrets are not changed."""
        frames = _frames(_FRAMINGS[kind](), data)
        read = [_read(frame.payload, kind) for frame in frames]
        shown = iter(self.events([event for event in read if event is not None]))
        pieces, events = [], []
        for frame, event in zip(frames, read, strict=True):
            if event is None:
                pieces.append(self._unread(frame))
                continue
            scrubbed = next(shown)
            events.append({"event": frame.headers.get(":event-type", ""), "data": scrubbed})
            pieces.append(frame.raw if scrubbed == event else _written(frame, scrubbed, kind))
        return b"".join(pieces), events

    def _unread(self, frame: Frame) -> bytes:
        """Scrub a payload that is not JSON: comments, end markers, and texts."""
        if frame.headers:
            return b""
        is_spoken = re.fullmatch(rb"\[?\w*\]?", frame.payload.strip()) is None
        if not is_spoken:
            return self.text(_utf8(frame.raw), is_spoken=False).encode()
        return frame.with_payload(self.text(_utf8(frame.payload)).encode())

    def headers(self, headers: dict[str, str]) -> dict[str, str]:
        """Return the headers that name a version, or the session or end user of a request; names are in lower case."""
        kept = {name: value for name, value in headers.items() if _VERSION_HEADER.search(name)}
        shown = {name: self.text(value, is_spoken=False) for name, value in kept.items()}
        for name, value in headers.items():
            header = name.encode()
            if header in SESSION_HEADERS:
                shown[name] = self._id(value, ())
            elif header in USER_HEADERS and (user := name_in(header, value.encode())):
                stand_in = self.stand_ins.run(user.decode("utf-8", "replace"))
                shown[name] = json.dumps({"_user": stand_in}) if header == PORTKEY else stand_in
        return shown

    def path(self, path: str) -> str:
        """Return the path without keys in its query."""
        bare, mark, query = path.partition("?")
        pairs = [
            pair
            for pair in query.split("&")
            if not re.match(r"(?:key|api[-_]?key|access_token|token|sig)=", pair, re.I)
        ]
        shown = self.text(bare, is_spoken=False)
        query = "&".join(self.text(pair, is_spoken=False) for pair in pairs if pair)
        return f"{shown}{mark}{query}" if query else shown


class _Walk:
    """Finds the strings of events, and which of them are pieces of one text."""

    def __init__(self, leaves: list[_Leaf], *, is_stream: bool) -> None:
        self._leaves = leaves
        self._is_stream = is_stream
        self._breaks: defaultdict[Path, int] = defaultdict(int)
        self._last: dict[Path, bool | None] = {}

    def visit(self, holder: Any, key: Any, path: Path, at: tuple[Any, ...] = (), *, is_argument: bool = False) -> None:
        value = holder[key]
        if isinstance(value, str):
            kind = _kind(value, path, holder, is_argument)
            is_piece = self._is_stream and bool(path) and (path[-1] in _STREAMED or kind == "seal")
            marks = (
                tuple(item for item in holder.items() if isinstance(item[1], bool)) if isinstance(holder, dict) else ()
            )
            channel = (kind, path, at, marks) if is_piece and kind in ("text", "seal") else None
            self._leaves.append(_Leaf(holder, key, path, kind, channel))
        elif isinstance(value, dict):
            if "logprobs" in value:
                value["logprobs"] = None  # they repeat each piece of a text
            value.pop("logprobsResult", None)
            at = (*at, *(item for item in value.items() if _places(*item)))
            if path in ((), ("bytes",)) and isinstance(value.get("type"), str):
                at = (*at, value["type"])  # the type of the event
            for name in value:
                inner = is_argument or _begins_arguments(name, value[name], path)
                self.visit(value, name, (*path, name), at, is_argument=inner)
        elif isinstance(value, list):
            for number, element in enumerate(value):
                if path[-1:] == ("parts",) and isinstance(element, dict):
                    self._look_at_part(path, element)
                place = (self._breaks[path],) if path[-1:] == ("parts",) else () if _has_index(element) else (number,)
                self.visit(value, number, path, (*at, *place), is_argument=is_argument)

    def _look_at_part(self, path: Path, part: dict[str, Json]) -> None:
        """Parts have no number: a text continues until a part of another kind comes."""
        kind = (
            bool(part.get("thought"))
            if "text" in part and not part.keys() & {"functionCall", "function_call"}
            else None
        )
        if kind is None or kind != self._last.get(path):
            self._breaks[path] += 1
        self._last[path] = kind


def _places(name: str, value: Json) -> bool:
    """Whether a member says which of several texts the others belong to."""
    if isinstance(value, bool):
        return False
    return (isinstance(value, int) and name.lower().endswith("index")) or name == "item_id"


def _has_index(element: Json) -> bool:
    return isinstance(element, dict) and isinstance(element.get("index"), int)


def _begins_arguments(name: str, value: Json, path: Path) -> bool:
    """Whether a member holds a tool's arguments or result: its own member names mean nothing here."""
    is_result = name == "response" and path[-1:] != () and path[-1] in _RESULTS
    return isinstance(value, dict) and (name in _ARGUMENTS or is_result)


def _kind(value: str, path: Path, holder: Any, is_argument: bool) -> Kind:
    name = path[-1] if path else ""
    if is_secret_member(name) and value:
        return "key"
    if is_argument:
        return "text"
    parent = holder.get("type") if isinstance(holder, dict) else None
    if _SEAL.search(name) or (name == "data" and parent in _SEALED_TYPES):
        return "seal"
    if name in _WORDS:
        return "word"
    if _ID.search(name) or name in _IDS:
        return "id"
    if (
        name == "data"
        and isinstance(holder, dict)
        and holder.keys() & {"media_type", "mimeType", "mime_type", "format"}
    ):
        return "file"
    return "text"


def _with_shown_names(value: Json, scrubber: Scrubber) -> Json:
    """Return a copy whose member names hold no secrets either."""
    if isinstance(value, dict):
        return {
            scrubber.text(name, is_spoken=False): _with_shown_names(element, scrubber)
            for name, element in value.items()
        }
    return [_with_shown_names(element, scrubber) for element in value] if isinstance(value, list) else value


class _Parts:
    """Parts of a text that don't overlap: the first one to claim a place gets it."""

    def __init__(self, text: str) -> None:
        self._claimed = bytearray(len(text))
        self._parts: list[Part] = []

    def is_free(self, start: int, end: int) -> bool:
        return self._claimed.find(1, start, end) < 0

    def add(self, start: int, end: int, shown: str) -> None:
        if self.is_free(start, end):
            self._parts.append((start, end, shown))
            self.keep(start, end)

    def keep(self, start: int, end: int) -> None:
        self._claimed[start:end] = b"\1" * (end - start)

    def in_order(self) -> list[Part]:
        return sorted(self._parts)


def replaced(text: str, parts: list[Part]) -> str:
    """Return a text with its replacements."""
    return cut_again([text], parts)[0]


def cut_again(texts: list[str], parts: list[Part]) -> list[str]:
    """Return the pieces of a text with replacements: each is in the piece in which its original began."""
    shown: list[str] = []
    waiting, start = list(reversed(parts)), 0
    for text in texts:
        end, position, out = start + len(text), start, ""
        while position < end:
            if not waiting or waiting[-1][0] >= end:
                out += text[position - start :]
                break
            first, last, stand_in = waiting[-1]
            if position <= first:
                out += text[position - start : first - start] + stand_in
            position = min(last, end)
            if last <= end:
                waiting.pop()
        shown.append(out)
        start = end
    return shown


def _frames(framing: Framing, data: bytes) -> list[Frame]:
    return [*framing.feed(data), *framing.finish()]


def _read(payload: bytes, kind: StreamKind) -> Json | None:
    """Decode the JSON of an event; some services wrap it once more."""
    try:
        value = json.loads(payload) if payload else None
        if kind == "binary" and isinstance(value, dict) and isinstance(value.get("bytes"), str):
            value = {**value, "bytes": json.loads(base64.b64decode(value["bytes"]))}
    except ValueError:
        return None
    return value if isinstance(value, dict | list) else None


def _written(frame: Frame, event: Json, kind: StreamKind) -> bytes:
    if kind == "binary" and isinstance(event, dict) and isinstance(event.get("bytes"), dict | list):
        event = {**event, "bytes": base64.b64encode(json_bytes(event["bytes"])).decode()}
    payload = json_bytes(event)
    if kind == "binary":
        return encode_message(dict(frame.headers), payload)
    return sse(payload) if frame.spread else frame.with_payload(payload)


def json_bytes(value: Json) -> bytes:
    """Encode on one line; half a character, at which a stream may be cut, is escaped."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def _is_no_word(key: str) -> bool:
    """Whether a key can't also be an ordinary word elsewhere."""
    return len(key) >= 2 * _SHORT_FILE_CHARS or (len(key) > 7 and re.search(r"[^A-Za-z_./:-]", key) is not None)


def _utf8(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False
