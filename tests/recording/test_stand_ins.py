"""Stand-ins: the same for the same, of the same shape, and with nothing of the original in them."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.recording.stand_ins import StandIns
from thoughtline.replay.ids import is_distinctive, random_parts, unique_forms
from thoughtline.values.items import ToolCall

IDS = [
    "call_AbC123xyz789QQ00",
    "toolu_01A09q90qw90lq917835lq9",
    "functions.bash:0",
    "call_1",
    "D681PevKs",
    "chatcmpl-9aB8cD7eF6gH5iJ4",
    "rs_68c42de022c881948db7ed1cc2529f2e0202c9ad459e0d23",
    "550e8400-e29b-41d4-a716-446655440000",
    "user_9f86d081884c7d65_account_550e8400-e29b-41d4-a716-446655440000_session_550e8400-e29b-41d4-a716-446655440001",
    "00000012",
    "",
]


@pytest.fixture
def stand_ins() -> StandIns:
    return StandIns(random.Random(3))


@pytest.mark.parametrize("id", IDS)
def test_ids_keep_their_prefix_and_shape(id: str, stand_ins: StandIns) -> None:
    """So that replay takes the stand-in for as distinctive as the original, and reads the same from its form."""
    shown = stand_ins.id(id)
    assert re.sub("[0-9]", "0", re.sub("[a-z]", "a", re.sub("[A-Z]", "A", shown))) == re.sub(
        "[0-9]", "0", re.sub("[a-z]", "a", re.sub("[A-Z]", "A", id))
    )
    assert is_distinctive(shown) == is_distinctive(id)
    assert not any(part in shown for part in random_parts(id))
    assert stand_ins.id(id) == shown
    assert stand_ins.id(shown) == shown
    forms = [list(unique_forms([ToolCall(one, "x", "{}")]).values()) for one in (id, shown)]
    assert forms[0] == forms[1]


@given(st.lists(st.text("aAzZ09xX", min_size=8, max_size=20), min_size=2, max_size=20, unique=True))
def test_different_runs_stay_different(runs: list[str]) -> None:
    stand_ins = StandIns(random.Random(3))
    assert len({stand_ins.run(run) for run in runs}) == len(runs)


@given(st.lists(st.text(min_size=1, max_size=12), max_size=30, unique=True))
def test_words_keep_their_length(words: list[str]) -> None:
    stand_ins = StandIns(random.Random(3))
    shown = [stand_ins.word(word) for word in words]
    assert [len(word) for word in shown] == [len(word) for word in words]
    assert [stand_ins.word(word) for word in words] == shown


def test_seals_are_the_same_in_both_alphabets(stand_ins: StandIns) -> None:
    """Some clients write the bytes of a signature in the other alphabet of base64."""
    shown = stand_ins.seal("ab+/cd==")
    assert (stand_ins.seal("ab-_cd"), stand_ins.seal(shown)) == (shown, shown)
    assert stand_ins.seal("ab+/ce==") != shown


def test_a_seal_in_pieces_is_made_of_their_stand_ins(stand_ins: StandIns) -> None:
    """Two of them at one place of a stream, or one in two pieces: what a client sends back is found either way."""
    first, second = "c2lnbmF0dXJlLW51bWJlcjE", "c2lnbmF0dXJlLW51bWJlcjI"
    shown = stand_ins.seal_pieces([first, second])
    assert stand_ins.seal(first + second) == "".join(shown)
    assert [stand_ins.seal(first), stand_ins.seal(second)] == shown
    assert stand_ins.seal_pieces(list("abcdefgh"))[1:] == [""] * 7


def test_addresses_and_homes(stand_ins: StandIns) -> None:
    assert stand_ins.mail("A@x.org") == stand_ins.mail("a@x.org") == "user1@example.com"
    assert (stand_ins.home("joe"), stand_ins.home("ann"), stand_ins.home("joe")) == ("user1", "user2", "user1")
    assert stand_ins.home("root") == "root"
    assert stand_ins.key("a") == stand_ins.key("a") == "KEY_REDACTED_1"
    assert stand_ins.key("KEY_REDACTED_1") == "KEY_REDACTED_1"
    assert stand_ins.file("x" * 300) == stand_ins.file("FILE00000001") == "FILE00000001"
