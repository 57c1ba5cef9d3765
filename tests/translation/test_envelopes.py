"""Our envelope in a client's opaque slot: only we open it, only for its tenant, only as we made it."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from tests.translation.lanes import MORE_UPSTREAMS, UPSTREAMS, Client, Lane
from tests.translation.pairs import Dialogue, hold
from thoughtline.translation.envelopes import Opened, Sealer
from thoughtline.values.items import ANTHROPIC_CLAUDE_V1, ReasoningText, Seal, ToolCall, is_envelope
from thoughtline.values.records import Key
from thoughtline.values.turns import Provenance

WHERE = Provenance("tenant", "anthropic", "https://h", "account", "m", "m", "anthropic_messages", "anthropic")
THOUGHT = ReasoningText(
    "thought", "c2ln", ANTHROPIC_CLAUDE_V1, raw=Raw(b'{"type":"thinking","thinking":"thought","signature":"c2ln"}')
)
HELD = Opened(
    WHERE, (THOUGHT, ToolCall("look", "{}", "t1", seal=Seal("s"))), ((0, 0), (7, 0)), Key("prefix-v1:ab"), 5.0
)


def token(sealer: Sealer | None = None) -> str:
    made = (sealer or Sealer(b"key", "tenant")).seal(HELD)
    assert made is not None
    return made


def test_what_was_sealed_is_opened() -> None:
    """Items with their JSON and seals, places, provenance and prefix come out as they went in."""
    assert is_envelope(token())
    assert Sealer(b"key", "tenant").open(token()) == HELD


def test_an_sdk_that_turns_it_into_bytes_and_back() -> None:
    """It is base64: either alphabet, with or without padding, is the same envelope."""
    urlsafe = base64.urlsafe_b64encode(base64.b64decode(token())).decode().rstrip("=")
    assert Sealer(b"key", "tenant").open(urlsafe) == HELD


@pytest.mark.parametrize(
    "sealer", [Sealer(b"another key", "tenant"), Sealer(b"key", "somebody"), Sealer(b"", "tenant")]
)
def test_foreign_envelopes_stay_closed(sealer: Sealer) -> None:
    """Another gateway's, another tenant's, or no key at all."""
    assert sealer.open(token()) is None


@given(at=st.integers(4, 200), byte=st.integers(1, 255))
def test_a_changed_envelope_stays_closed(at: int, byte: int) -> None:
    """One byte is enough."""
    data = bytearray(base64.b64decode(token()))
    data[at % len(data)] ^= byte
    assert Sealer(b"key", "tenant").open(base64.b64encode(bytes(data)).decode()) is None


@given(text=st.text())
def test_anything_else_stays_closed(text: str) -> None:
    """No token makes it raise."""
    assert Sealer(b"key", "tenant").open("TLT1" + text) is None


def test_a_client_that_forges_one_is_told_and_served() -> None:
    """A forged envelope is ignored with a finding, never sent upstream, and the store restores the turn."""
    lane = Lane(UPSTREAMS[2], "openai_responses")
    client = Client(lane, 'forged\nscript:\nthink: a\ncall: weather {"city": "P"}\n---\nsay: b')
    client.ask(False)
    for item in client.history:
        if item.get("type") == "reasoning":
            item["encrypted_content"] = "TLT1" + "A" * 80
    client.go_on()
    answer = client.ask(False)
    assert answer.request is not None
    assert [finding.rule for finding in answer.request.findings] == ["unopened"]
    assert b"TLT1" not in answer.sent
    assert lane.verdicts == ["whole"]


@pytest.mark.parametrize("upstream", UPSTREAMS, ids=lambda one: one.id)
def test_no_envelope_goes_upstream(upstream: object) -> None:
    """Whatever a client keeps, no upstream ever sees a token of ours."""
    for client in ("openai_responses", "anthropic_messages", "gemini_generate"):
        lane = Lane(upstream, client)  # type: ignore[arg-type]  # the rows of the table
        if lane.upstream.format != client:
            talk = hold(lane, Dialogue("interleaved thinking", True, strips=False))
            assert b"TLT1" in str(talk.history).encode()
            assert b"TLT1" not in lane.exchange(talk.body(False), False).sent


# --- words that a client trims ----------------------------------------------------------------------------------------

BOUND = next(upstream for upstream in MORE_UPSTREAMS if upstream.profile == "bound")
BLANKS = st.sampled_from(["", " ", "  ", "\n", "\n\n", "\t", " \n ", "\xa0"])
SAYINGS = st.builds("say: {}Well.{}\n".format, BLANKS, BLANKS)
CALLS = st.builds("{}{}call: look {{}}\n".format, st.sampled_from(["", "think: so\n"]), st.just("") | SAYINGS)
TURNS = st.lists(CALLS, min_size=1, max_size=3).map("".join) | st.builds("{}{}".format, CALLS, SAYINGS) | SAYINGS
TRIMS = st.sampled_from([str.strip, str.rstrip, str.lstrip])


Trim = Callable[[str], str]


def _trim(client: Client, trim: Trim) -> None:
    for content in client.history:
        for part in content["parts"]:
            if content["role"] == "model" and "text" in part:
                part["text"] = trim(part["text"])


@pytest.mark.parametrize("keeps", [False, True], ids=["nothing stored", "stored"])
@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "stream"])
@given(turns=st.lists(TURNS, min_size=2, max_size=4), trim=TRIMS)
def test_words_that_a_client_trims(is_streaming: bool, keeps: bool, turns: list[str], trim: Trim) -> None:
    """Gemini CLI trims text when it resumes, and Claude has bound its thinking to every blank before it. The record has
    the words as they were; where none is left, the envelope has them."""
    lane = Lane(BOUND, "gemini_generate", keeps=keeps)
    client = Client(lane, "script:\n" + "---\n".join([*turns, "say: done"]))
    for _ in turns:
        client.ask(is_streaming)
        client.go_on()
    _trim(client, trim)
    client.ask(is_streaming)
    assert set(lane.verdicts) == {"whole"}


def test_words_alone_need_no_envelope() -> None:
    """A turn without reasoning has none to put back."""
    client = Client(Lane(UPSTREAMS[2], "gemini_generate"), "script:\nno-think\nsay: Well. \n")
    assert b"TLT1" not in client.ask(False).body
