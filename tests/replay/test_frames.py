"""The frame of a request: what makes two system prompts equal, and what does not."""

from __future__ import annotations

import pytest
from msgspec import Raw

from thoughtline.replay.frames import Scope, scope_of
from thoughtline.values.identity import Identity
from thoughtline.values.items import Role, Text
from thoughtline.values.records import Record, RecordId
from thoughtline.values.turns import Provenance, Transcript, Turn

ME = Identity("t")
PROMPT = "You work for Anna. It is {} now. Her PIN is 4711."
CLOCKS = (
    "2026-11-18",
    "2026/11/18",
    "18.11.2026",
    "11/18/2026, 2:03:22 PM",
    "2026-11-18T14:03:22Z",
    "2026-11-18T14:03:22.120+01:00",
    "2026-11-18 14:03",
    "14:03",
    "2:03 p.m.",
    "November 18, 2026",
    "Nov 18 2026",
    "18th of November 2026",
    "Wednesday, November 18, 2026",
    "Wed, 18 Nov 2026 13:02:11 GMT",
    "Wed Nov 18 13:02:11 UTC 2026",
    "Wed Nov 18 2026 13:02:11 GMT+0100 (CET)",
    "2026-11-18 (Wednesday)",
    "November 2026",
    "2026年11月18日",
)
OTHERS = ("4712", "1990-01-02", "v1.2.3", "10.0.0.1", "100:200", "Monday", "May", "2026", "9:99")


def scope(*prompts: str, user: str = "", identity: Identity = ME, tools: tuple[Raw, ...] = ()) -> Scope:
    turns = tuple(Turn("system", (Text(prompt),)) for prompt in prompts)
    return scope_of(Transcript("openai_chat", (*turns, Turn("user", (Text("Hi"),))), tools=tools, user=user), identity)


@pytest.mark.parametrize("clock", CLOCKS)
def test_dates_and_times_make_no_other_frame(clock: str) -> None:
    assert scope(PROMPT.format(clock)).frame == scope(PROMPT.format("2027-01-02")).frame


@pytest.mark.parametrize("word", OTHERS)
def test_other_numbers_and_words_do(word: str) -> None:
    """A PIN, a date of birth, a version or an address is not a clock."""
    assert scope(PROMPT.format(word)).frame != scope(PROMPT.format("2027-01-02")).frame
    assert scope(PROMPT.format(word)).frame != scope(PROMPT.format("another")).frame


def test_a_prompt_in_one_message_or_two() -> None:
    """White space and message boundaries don't count; words do."""
    assert scope("Be kind.\n", "Be brief.").frame == scope("Be kind. Be brief.").frame
    assert scope("Be kind.").frame != scope("Be brief.").frame != scope().frame


def test_the_attribution_line_of_claude_code() -> None:
    line = "x-anthropic-billing-header: cc_version=2.1.180; cch=a1b2c;"
    assert scope(line, "You are Claude Code.").frame == scope("You are Claude Code.").frame
    assert scope("You are Claude Code.", line).frame != scope("You are Claude Code.").frame


def test_system_messages_behind_what_the_user_says() -> None:
    """System messages before the model's first turn belong to the frame, later ones don't."""

    def frame_of(first: str, second: str) -> str:
        said: tuple[tuple[Role, str], ...] = (
            ("user", "Hi"),
            ("system", first),
            ("assistant", "Ok"),
            ("system", second),
        )
        turns = tuple(Turn(role, (Text(text),)) for role, text in said)
        return scope_of(Transcript("openai_chat", turns), ME).frame

    assert frame_of("A", "B") == frame_of("A", "C") == scope("A").frame
    assert frame_of("A", "B") != frame_of("B", "B")


def test_what_a_request_names_and_does_not_show() -> None:
    """References count by value; a date in them counts no more than one in a prompt."""

    def frame_of(reference: bytes) -> str:
        return scope_of(Transcript("openai_chat", (), references=(Raw(reference),)), ME).frame

    assert frame_of(b'{"id": "p", "day": "2026-11-18"}') == frame_of(b'{"day":"2026-11-19","id":"p"}')
    assert frame_of(b'{"id":"p"}') != frame_of(b'{"id":"q"}') != scope().frame


def test_what_lineages_begin_with() -> None:
    """The frame and the end user, not the tools; with `any_frame` only the end user."""
    any_frame = Identity("t", any_frame=True)
    assert scope("A").start != scope("B").start
    assert scope("A", user="u").start != scope("A").start
    assert scope("A", tools=(Raw(b"{}"),)).start == scope("A").start
    assert scope("A", identity=any_frame).start == scope("B", identity=any_frame).start
    assert scope("A", user="u", identity=any_frame).start != scope("A", identity=any_frame).start


def record(frame: str, user: str = "") -> Record:
    where = Provenance("t", "p", "", account="", model_asked="m", model_answered="m", format="openai_chat", dialect="")
    return Record(RecordId("r"), where, (), (), 0.0, frame=frame, user=user)


def test_a_record_in_its_scope() -> None:
    """A record is in scope with the same frame and end user. A record of an earlier version has neither, and is in no
    scope."""
    own, ann = scope("A"), scope("A", user="ann")
    assert own.has(record(own.frame))
    assert not own.has(record(scope("B").frame))
    assert not own.has(record(""))
    assert not own.has(record(own.frame, "ann"))
    assert ann.is_of_other_user(record(own.frame, "bob"))
    assert not ann.is_of_other_user(record(own.frame))
    assert scope("A", identity=Identity("t", any_frame=True)).has(record(scope("B").frame))
