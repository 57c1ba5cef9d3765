"""Identifies the session of a request, from clients' headers and members, and the model it names.

A session only narrows a search: one id may cover sub-agents, title calls and several conversations, so it is never
taken for a conversation. If a client names none, a name is made from the beginning of the conversation, for display; it
finds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct, field

from thoughtline.engine.user_headers import USER_HEADERS, end_user_in
from thoughtline.formats.json_text import peek
from thoughtline.values.identity import Identity
from thoughtline.values.items import Text
from thoughtline.values.records import digest
from thoughtline.values.turns import UNNAMED_SESSION, Transcript

MAX_ID_CHARS = 256
"""The length that OpenRouter accepts for its `session_id`; a longer id is replaced by its digest."""

# Seen on the wire with current clients, 2026-11. `x-client-request-id` is not among them: most clients give every
# request its own.
_HEADERS = (
    b"x-thoughtline-session",
    b"x-claude-code-session-id",
    b"session-id",
    b"session_id",
    b"thread-id",
    b"conversation_id",
    b"x-session-id",
    b"x-session-affinity",
    b"x-opencode-session",
    b"x-kilo-session",
    b"x-kilocode-taskid",
    b"x-task-id",
    b"x-zoo-session-id",
    b"x-amp-thread-id",
    b"x-cagent-session-id",
    b"agent-session-id",
    b"helicone-session-id",
    b"x-openwebui-chat-id",
)
_KNOWN_HEADERS = frozenset(_HEADERS)
_AGENT, _CLAUDE_CODES_AGENT = b"x-thoughtline-agent", b"x-claude-code-agent-id"
SESSION_HEADERS = _KNOWN_HEADERS | {_AGENT, _CLAUDE_CODES_AGENT}
"""All headers that name a session, or an agent in one."""

_IN_USER_ID = re.compile(r"_session_([0-9a-fA-F-]{36})\Z")
_MODEL = re.compile(rb'\A\s*\{\s*"model"\s*:\s*"([^"\\]{1,200})"')


class _Members(Struct, gc=False):
    """The members of a body that may name a session, and the model. Raw: invalid values are not our error to report."""

    model: Raw = Raw(b"")
    metadata: Raw = Raw(b"")
    session_id: Raw = Raw(b"")
    litellm_session_id: Raw = Raw(b"")
    prompt_cache_key: Raw = Raw(b"")
    conversation: Raw = Raw(b"")
    client_metadata: Raw = Raw(b"")
    request: Raw = Raw(b"")
    user_prompt_id: Raw = Raw(b"")
    params: Raw = Raw(b"")
    thread_id: Raw = field(default=Raw(b""), name="threadId")


class _Inner(Struct, gc=False):
    user_id: str = ""
    session_id: str = ""
    camel_session_id: str = field(default="", name="sessionId")
    litellm_session_id: str = ""
    id: str = ""
    model: str = ""


_NOTHING = _Members()
_members = msgspec.json.Decoder(_Members)
_inner = msgspec.json.Decoder(_Inner)
_word = msgspec.json.Decoder(str)


def who_asks(tenant: str, headers: Mapping[bytes, bytes], body: bytes) -> tuple[Identity, str]:
    """The caller, its end user and the model: the session is the one in the headers, else the one in the body."""
    shown = headers.get(_AGENT) or headers.get(_CLAUDE_CODES_AGENT)
    agent = _name(shown.decode("latin-1")) if shown else None
    session = None if _KNOWN_HEADERS.isdisjoint(headers) else _in_headers(headers)
    user = "" if USER_HEADERS.isdisjoint(headers) else end_user_in(headers)
    model = first_model(body)
    if session and model:
        return Identity(tenant, session, agent, user=user), model
    members = peek(_members, body) or _NOTHING
    if session is None and members != _Members(members.model):
        session = _first_named(members)
    model = model or _string(members.model) or (_object(members.params).model if members.params else "")
    return Identity(tenant, session, agent, user=user), model


def first_model(body: bytes) -> str:
    """The model of a body, if it comes first, as most clients write it."""
    found = _MODEL.match(body, 0, 256)
    return found[1].decode("utf-8", "replace") if found is not None else ""


def session_of(headers: Mapping[bytes, bytes], body: bytes) -> str | None:
    """The session that a request names: in its headers, lower case as in HTTP/2, or in its body."""
    return who_asks("", headers, body)[0].session


def unnamed_session(transcript: Transcript) -> str:
    """A name for a conversation without one, made from its beginning. No client's own name looks like it."""
    words = ""
    for turn in transcript.turns:
        if turn.role == "user":
            for item in turn.items:
                if isinstance(item, Text):
                    words += item.text
            break
    return UNNAMED_SESSION + digest(words.strip().encode("utf-8", "replace")).hex()[:24]


def _name(text: str) -> str | None:
    text = text.strip()
    if len(text) > MAX_ID_CHARS:
        text = digest(text.encode("utf-8", "replace")).hex()
    return text.lstrip(UNNAMED_SESSION) or None


def _in_headers(headers: Mapping[bytes, bytes]) -> str | None:
    for name in _HEADERS:
        named = headers.get(name)
        if named and named.strip():
            return _name(named.decode("latin-1"))
    return None


def _first_named(members: _Members) -> str | None:
    metadata = _object(members.metadata)
    names = (
        _in_user_id(metadata.user_id),
        _string(members.session_id),
        _string(members.thread_id),
        metadata.session_id,
        _string(members.litellm_session_id),
        metadata.litellm_session_id,
        _object(members.client_metadata).session_id,
        _string(members.prompt_cache_key),
        _string(members.conversation) or _object(members.conversation).id,
        *_in_request(members),
    )
    return next((name for one in names if one and (name := _name(one))), None)


def _in_request(members: _Members) -> tuple[str, ...]:
    """In Code Assist's envelope. Gemini CLI appends the number of the prompt to its session's id, Antigravity has
    another spelling.
    """
    request = _object(members.request)
    return request.session_id, request.camel_session_id, _string(members.user_prompt_id).partition("########")[0]


def _in_user_id(user_id: str) -> str:
    """Claude Code writes its session into the user's id: as JSON, in older versions after `_session_`."""
    if user_id.startswith("{"):
        return _object(Raw(user_id.encode("utf-8", "replace"))).session_id
    found = _IN_USER_ID.search(user_id)
    return found[1] if found else ""


def _object(raw: Raw) -> _Inner:
    try:
        return _inner.decode(raw) if bytes(raw)[:1] == b"{" else _Inner()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Inner()


def _string(raw: Raw) -> str:
    text = bytes(raw)
    try:
        return _word.decode(text) if text[:1] == b'"' else ""
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
