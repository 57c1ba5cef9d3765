"""Every hand-made case, read as its format says."""

from __future__ import annotations

import pytest

from tests.descriptions import describe_reply, describe_request
from tests.wire_cases import CASES, REQUESTS, RESPONSES, STREAMS, WireCase, name_of
from thoughtline.formats import FORMATS
from thoughtline.values.events import fold


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_has_its_odd_cases(name: str) -> None:
    """No format goes without at least a dozen cases."""
    assert len([case for case in CASES if case.format.name == name]) >= 12


@pytest.mark.parametrize("case", REQUESTS, ids=name_of)
def test_request_says_what_it_says(case: WireCase) -> None:
    """A request decodes to the turns and items that a person reads in it."""
    transcript = case.format.bodies.decode_request(case.bytes_of("request.json") or b"", case.dialect)
    assert describe_request(transcript) == case.expected["turns"]


@pytest.mark.parametrize("case", RESPONSES, ids=name_of)
def test_response_says_what_it_says(case: WireCase) -> None:
    """A whole response decodes to the items that a person reads in it."""
    reply = case.format.bodies.decode_response(case.bytes_of("response.json") or b"", case.dialect)
    assert describe_reply(reply) == case.expected.get("candidates", [])
    assert (reply.error is not None) == case.expected.get("error", False)


@pytest.mark.parametrize("case", STREAMS, ids=name_of)
def test_stream_says_what_it_says(case: WireCase) -> None:
    """A stream folds to the items that a person reads in it."""
    decoder = case.format.stream_decoder(case.dialect)
    reply = fold([*decoder.feed(case.stream or b""), *decoder.finish()], case.format.name)
    assert describe_reply(reply) == case.expected.get("candidates", [])
    assert (reply.error is not None) == case.expected.get("error", False)
