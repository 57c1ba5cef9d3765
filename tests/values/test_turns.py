"""Edits of a request and of a response: what becomes new, and what stays as it was."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from thoughtline.values.items import Text
from thoughtline.values.turns import SYSTEM_MEMBER, UNNAMED_SESSION, Candidate, Provenance, Reply, Transcript, Turn

OLD, NEW, NEWER = (Text("old"),), (Text("new"),), (Text("newer"),)
SYSTEM = Turn("system", OLD, SYSTEM_MEMBER)
REQUEST = Transcript("openai_chat", (SYSTEM, Turn("user", OLD, 0), Turn("assistant", OLD, 1, carriers=("reasoning",))))


def test_a_turn_keeps_what_it_said_first() -> None:
    """However often it is edited; its place and its carriers stay."""
    edited = REQUEST.turns[2].with_items(NEW).with_items(NEWER)
    assert (edited.items, edited.original, edited.is_edited) == (NEWER, OLD, True)
    assert (edited.role, edited.at, edited.carriers) == ("assistant", 1, ("reasoning",))
    assert REQUEST.turns[2].items == OLD


def test_reasoning_that_moves_stays_moved() -> None:
    moved = REQUEST.turns[2].with_reasoning_moved()
    assert (moved.items, moved.is_edited, moved.moves_reasoning) == (OLD, True, True)
    assert moved.with_items(NEW).moves_reasoning


def test_an_edit_is_of_one_turn() -> None:
    """The others are the very same, and so is the request it was made of."""
    edited = REQUEST.with_items(1, NEW)
    assert [turn.is_edited for turn in edited.turns] == [False, True, False]
    assert (edited.turns[0], edited.turns[2]) == (REQUEST.turns[0], REQUEST.turns[2])
    assert (REQUEST.is_edited, edited.is_edited) == (False, True)


def test_turns_that_come_and_go() -> None:
    """A removed system prompt in a member of its own is remembered as removed."""
    assert REQUEST.with_turns(REQUEST.turns).is_edited
    assert not REQUEST.with_turns(REQUEST.turns[:2]).drops_system
    without = REQUEST.with_turns(REQUEST.turns[1:])
    assert without.drops_system
    assert without.with_turns(()).drops_system


def test_members_are_edited_in_order() -> None:
    edited = REQUEST.with_member("a", b"1").with_member("b", None)
    assert edited.member_edits == (("a", b"1"), ("b", None))
    assert edited.is_edited


def test_a_request_inside_of_another_body() -> None:
    inside = replace(REQUEST, body=b"{}", around=(b'{"request":', b"}"))
    assert (inside.whole, replace(inside, around=None).whole) == (b'{"request":{}}', b"{}")


def test_a_response_is_edited_by_candidate() -> None:
    reply = Reply("openai_chat", (Candidate(Turn("assistant", OLD)), Candidate(Turn("assistant", OLD))))
    edited = reply.with_items(1, NEW)
    assert [candidate.turn.items for candidate in edited.candidates] == [OLD, NEW]
    assert (reply.is_edited, edited.is_edited) == (False, True)


@pytest.mark.parametrize(("session", "named"), [(None, None), ("s", "s"), (f"{UNNAMED_SESSION}made-up", None)])
def test_a_session_that_a_client_named(session: str | None, named: str | None) -> None:
    """One that we named for people finds nothing."""
    where = Provenance("t", "p", "e", "a", "m", "m", "openai_chat", "d", session)
    assert where.named_session == named
