"""The session of a request, from clients' headers and members."""

from __future__ import annotations

import json

import pytest

from thoughtline.engine.sessions import unnamed_session, who_asks
from thoughtline.formats import FORMATS
from thoughtline.values.identity import Identity
from thoughtline.values.turns import UNNAMED_SESSION, Provenance, Transcript

UUID = "0b2f9a3c-1d2e-4f5a-8b9c-0d1e2f3a4b5c"

HEADERS = [
    ({b"x-claude-code-session-id": b"s1"}, Identity("t", "s1", None)),
    ({b"x-claude-code-session-id": b"s1", b"x-claude-code-agent-id": b"a1"}, Identity("t", "s1", "a1")),
    (
        {b"x-thoughtline-session": b"s2", b"x-thoughtline-agent": b"a2", b"x-claude-code-agent-id": b"a1"},
        Identity("t", "s2", "a2"),
    ),
    ({b"session-id": b"codex"}, Identity("t", "codex", None)),
    ({b"session_id": b"older"}, Identity("t", "older", None)),
    ({b"x-session-id": b"opencode"}, Identity("t", "opencode", None)),
    ({b"agent-session-id": b"goose"}, Identity("t", "goose", None)),
    ({b"x-session-affinity": b"kilo"}, Identity("t", "kilo", None)),
    ({b"x-task-id": b"cline"}, Identity("t", "cline", None)),
    ({b"x-thoughtline-session": b"mine", b"x-session-id": b"theirs"}, Identity("t", "mine", None)),
    ({b"x-client-request-id": b"one request"}, Identity("t", None, None)),
    ({b"x-gemini-api-privileged-user-id": b"a person"}, Identity("t", None, None)),
    ({b"x-session-id": b"  "}, Identity("t", None, None)),
    ({b"x-session-id": b"~forged"}, Identity("t", "forged", None)),
]

BODIES = [
    ({"metadata": {"user_id": json.dumps({"device_id": "d", "session_id": UUID})}}, UUID),
    ({"metadata": {"user_id": f"user_abc_account__session_{UUID}"}}, UUID),
    ({"metadata": {"user_id": "somebody"}}, None),
    ({"prompt_cache_key": "cache"}, "cache"),
    ({"session_id": "router", "prompt_cache_key": "cache"}, "router"),
    ({"metadata": {"litellm_session_id": "litellm"}}, "litellm"),
    ({"client_metadata": {"session_id": "codex"}}, "codex"),
    ({"conversation": "conv_1"}, "conv_1"),
    ({"conversation": {"id": "conv_2"}}, "conv_2"),
    ({"user": "a person", "safety_identifier": "a person"}, None),
    ({"metadata": 3, "session_id": None, "prompt_cache_key": ["x"]}, None),
]


@pytest.mark.parametrize(("headers", "expected"), HEADERS)
def test_headers_name_a_session(headers: dict[bytes, bytes], expected: Identity) -> None:
    """The headers of observed clients, and none that name a person or a single request."""
    assert who_asks("t", headers, b"{}")[0] == expected


@pytest.mark.parametrize(("body", "expected"), BODIES)
def test_bodies_name_a_session(body: dict[str, object], expected: str | None) -> None:
    """Members that name a session, in the order that gateways have settled on; values of other types are ignored."""
    assert who_asks("t", {}, json.dumps(body).encode())[0].session == expected


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b'{"metadata": {"user_id": "{"}}', b"[" * 100_000])
def test_a_body_that_can_not_be_read_names_none(body: bytes) -> None:
    """Finding no session is never an error."""
    assert who_asks("t", {}, body)[0] == Identity("t", None, None)


def test_a_long_name_is_replaced_by_its_digest() -> None:
    """Long names are hashed, and two of them stay different."""
    one, other = (who_asks("t", {b"x-session-id": (b"x" * 10_000) + end}, b"{}")[0].session for end in (b"1", b"2"))
    assert one is not None
    assert len(one) <= 64
    assert one != other


def _transcript(*messages: tuple[str, str]) -> Transcript:
    body = json.dumps({"messages": [{"role": role, "content": content} for role, content in messages]}).encode()
    chat = FORMATS["openai_chat"]
    return chat.bodies.decode_request(body, chat.dialect)


def test_an_unnamed_conversation_is_identified_by_its_beginning() -> None:
    """The same opening has the same name, whatever follows and with any system prompt."""
    began = unnamed_session(_transcript(("user", "hello ")))
    went_on = unnamed_session(_transcript(("system", "x"), ("user", "hello"), ("assistant", "hi"), ("user", "more")))
    other = unnamed_session(_transcript(("user", "good bye")))
    assert began == went_on
    assert began != other
    assert began.startswith(UNNAMED_SESSION)


def test_a_name_of_ours_is_never_taken_for_the_clients() -> None:
    """A record under such a name belongs to no findable session."""
    made = Provenance("t", "p", "e", "a", "m", "m", "openai_chat", "d", unnamed_session(_transcript(("user", "x"))))
    assert made.named_session is None
    assert Provenance("t", "p", "e", "a", "m", "m", "openai_chat", "d", "told").named_session == "told"


@pytest.mark.parametrize("headers", [{}, {b"x-session-id": b"one"}])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"model": "kimi-k2", "messages": []}', "kimi-k2"),
        (b'{"messages": [{"model": "inner"}], "model": "kimi-k2"}', "kimi-k2"),
        (b'{"messages": [], "model": "kimi\\u002dk2", "session_id": "two"}', "kimi-k2"),
        (b'{"messages": [], "model": 3}', ""),
        (b'{"messages": []}', ""),
        (b"no body", ""),
    ],
)
def test_the_model_is_found_at_any_position(headers: dict[bytes, bytes], body: bytes, expected: str) -> None:
    """SDKs that sort members write it after the conversation."""
    assert who_asks("t", headers, body)[1] == expected
