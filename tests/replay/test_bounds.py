"""What Claude's thinking is bound to apart from the conversation, and Claude Code's line that does not count."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thoughtline.formats import FORMATS
from thoughtline.providers import ANTHROPIC
from thoughtline.replay.bounds import bound_of, unattributed
from thoughtline.values.turns import Transcript

LINE = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.326; cc_entrypoint=cli; cch=ab12c;"}
WORDS = {"type": "text", "text": "Be brief."}
TOOL = {"name": "look", "input_schema": {"type": "object"}}
BODIES = FORMATS["anthropic_messages"].bodies


def asking(**members: Any) -> Transcript:
    body = {
        "model": "m",
        "system": [WORDS],
        "tools": [TOOL],
        "messages": [{"role": "user", "content": "Hi"}],
        **members,
    }
    return BODIES.decode_request(json.dumps(body).encode(), ANTHROPIC)


@pytest.mark.parametrize(
    "members",
    [
        {"system": "Be brief."},
        {"system": [LINE, WORDS]},
        {"system": [WORDS | {"cache_control": {"type": "ephemeral"}}]},
        {"tools": [TOOL, TOOL | {"name": "late", "defer_loading": True}]},
        {"tools": [{"input_schema": {"type": "object"}, "name": "look"}]},
    ],
)
def test_what_is_no_part_of_it(members: dict[str, Any]) -> None:
    """Another form of the same prompt, the attribution line, cache markers, deferred tools and key order don't
    count."""
    assert bound_of(asking(**members)) == bound_of(asking())


@pytest.mark.parametrize(
    "members",
    [
        {"system": "Be verbose."},
        {"system": [{"type": "text", "text": LINE["text"] + "\nBe brief."}, WORDS]},
        {"tools": [TOOL, TOOL | {"name": "late"}]},
        {"tools": [TOOL, TOOL | {"name": "late", "defer_loading": False}]},
        {"tools": [TOOL | {"description": "Look."}]},
        {"tools": []},
    ],
)
def test_what_is_part_of_it(members: dict[str, Any]) -> None:
    """The words of the prompt and every loaded tool count."""
    assert bound_of(asking(**members)) != bound_of(asking())


def test_the_line_goes_and_nothing_else() -> None:
    """In Claude Code's request for another model, the other entries stay unchanged; any other request is the same
    value."""
    changed = unattributed(asking(system=[LINE, WORDS]))
    assert json.loads(BODIES.encode_request(changed, ANTHROPIC))["system"] == [WORDS]
    plain = asking()
    assert unattributed(plain) is plain
