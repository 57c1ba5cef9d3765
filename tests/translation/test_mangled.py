"""Requests that nobody should send, for every pair: carried into the other format, or refused as the client's fault."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.translation.lanes import UPSTREAMS, Upstream
from tests.wire_cases import REQUESTS
from thoughtline.formats import FORMATS
from thoughtline.replay.detection import resolve
from thoughtline.translation import translate_request
from thoughtline.values.destination import Destination
from thoughtline.values.errors import Fault, ThoughtlineError
from thoughtline.values.turns import FormatName

TEXTS = ["", "\0", "\u2028", "é", "{", "tlx0_!!", "tlh_x", "TLT1abcd", "x" * 70, "data:;base64,"]
JUNK: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 2**63, -(2**70), 0.5, 1e308]),
    st.sampled_from(TEXTS),
    st.sampled_from([[], {}, [[]], [None], {"": None}, {"type": "x"}, [{}], {"name": []}]).map(deepcopy),
)


def carry(format: FormatName, body: bytes, upstream: Upstream) -> None:
    """Into the upstream's format, which must be able to read it; the only way to fail is the client's fault."""
    client, wire = FORMATS[format], FORMATS[upstream.format]
    contract = resolve(Destination(upstream.provider, "https://h", upstream.model, upstream.format))
    try:
        asked = client.bodies.decode_request(body, client.dialect)
        request = translate_request(asked, upstream.format, contract, upstream.model, is_streaming=True)
    except ThoughtlineError as error:
        assert error.fault is Fault.CLIENT
        return
    wire.bodies.decode_request(request.transcript.body, contract.dialect)


def _holders(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a body: what holds it, and under which name or number."""
    names = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for name in names:
        yield value, name
        yield from _holders(value[name])


@pytest.mark.parametrize("upstream", UPSTREAMS, ids=lambda upstream: upstream.provider)
@given(data=st.data())
def test_a_request_with_junk_in_it(upstream: Upstream, data: st.DataObject) -> None:
    """Any two values of any request replaced by anything."""
    case = data.draw(st.sampled_from([case for case in REQUESTS if case.format.name != upstream.format]))
    body = json.loads(case.bytes_of("request.json") or b"{}")
    for _ in range(2):
        places = list(_holders(body))
        if places:
            holder, name = data.draw(st.sampled_from(places))
            holder[name] = data.draw(JUNK)
    carry(case.format.name, json.dumps(body).encode(), upstream)


MANGLED: list[tuple[FormatName, Any]] = [
    ("bedrock_converse", {"messages": [], "toolConfig": {"tools": [], "toolChoice": {"tool": []}}}),
    ("bedrock_converse", {"messages": [], "toolConfig": {"tools": [], "toolChoice": {"tool": {"name": 7}}}}),
    ("bedrock_converse", {"messages": [], "toolConfig": {"tools": [], "toolChoice": [1]}}),
    (
        "bedrock_converse",
        {"messages": [{"role": "assistant", "content": [{"reasoningContent": {"redactedContent": "é"}}]}]},
    ),
]


@pytest.mark.parametrize("upstream", UPSTREAMS, ids=lambda upstream: upstream.provider)
@pytest.mark.parametrize(("format", "body"), MANGLED)
def test_requests_that_were_a_fault_of_ours(format: FormatName, body: Any, upstream: Upstream) -> None:
    """Each of these once ended in a traceback."""
    carry(format, json.dumps(body).encode(), upstream)


NO_UTF8: list[tuple[FormatName, bytes]] = [
    (
        "openai_chat",
        b'{"messages":[{"role":"assistant","content":[{"type":"refusal","\xff":1,"refusal":"no"}]},'
        b'{"role":"user","content":"hm"}]}',
    ),
    (
        "bedrock_converse",
        b'{"messages":[{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"n","input":{}}}]},'
        b'{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"json":{"\xff":1}}]}}]}]}',
    ),
]


@pytest.mark.parametrize("upstream", UPSTREAMS, ids=lambda upstream: upstream.provider)
@pytest.mark.parametrize(("format", "body"), NO_UTF8, ids=["refusal", "tool result"])
def test_names_that_are_no_utf8(format: FormatName, body: bytes, upstream: Upstream) -> None:
    """Each of these once ended in a traceback."""
    carry(format, body, upstream)
