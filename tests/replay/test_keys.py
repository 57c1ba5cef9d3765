"""The keys that steps are found by, and what an id is worth."""

from __future__ import annotations

import pytest

from thoughtline.replay.keys import is_distinctive

ONE_IN_THE_WORLD = (
    "call_00_Qx7Lm2Zp",
    "call_NKBrzaRfgcLAkvIldhIYsqtH",
    "toolu_01AbCdEfGhIjKlMnOpQrStUv",
    "toolu_bdrk_QwErTyUiOpAsDfGhJkLzXcVb",
    "tooluse_kZJMlvQmRJ6eAyJE5GIl7Q",
    "chatcmpl-tool-9d3c1f0e0a7b4c58a7de3f1f0e0c9a11",
    "call_77278669",
    "call_-7807255211226955507",
    "call_blqyt530",
    "uWqVbNzKd",
    "fc_68e1b2c3d4e5f60718293a4b5c6d7e8f",
    "msg_kKqPzRtYuIoLmNbVcXzAsDfG",
)
SAYS_NOTHING = (
    "",
    "call_1",
    "functions.bash:0",
    "functions_bash_0",
    "functionsbash0",
    "functionsread12",
    "Bash:0",
    "call_00000001",
    "toolcall_a",
    "getCurrentWeather",
    "readManyFiles",
    "msg_1",
)


@pytest.mark.parametrize("name", ONE_IN_THE_WORLD)
def test_random_ids_mean_one_call(name: str) -> None:
    """An id that nobody gives twice: letters and digits, many digits, or many letters of both cases."""
    assert is_distinctive(name)


@pytest.mark.parametrize("name", SAYS_NOTHING)
def test_counts_and_names_mean_nothing(name: str) -> None:
    """An id that is a count, a word or the name of a tool stands in many conversations."""
    assert not is_distinctive(name)


def test_the_name_of_a_tool_is_not_random() -> None:
    """What an id has of the tool's own name says nothing about the call."""
    assert is_distinctive("functions.kDBQueryV2Xa:0")
    assert not is_distinctive("functions.kDBQueryV2Xa:0", "kDBQueryV2Xa")
    assert is_distinctive("call_lookup_9fK2mQ7z", "lookup")
