"""A law: between conversations that differ in frame or end user, no request carries another one's reasoning."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.written_exchanges import (
    NOTHING,
    SPEAKERS,
    Asked,
    Call,
    Frame,
    Instructed,
    Json,
    Results,
    Said,
    Speaker,
    Turn,
    marks_in,
    thought,
)
from thoughtline import Line

EXAMPLES = 200
OWNERS = ("Anna", "Bert", "Carl")
PROMPTS = ("", "You help.", "You help!", "You help. Be brief.", "You sell boats. Today is 2026-11-18.")
USERS = ("", "u-1", "u-2", "u-3")
WORDS = ("Hi", "Go on", "Look")
ANSWERS = (
    Said("Hello!"),
    Said("Done."),
    Said("  Done.\n"),
    Said("", (Call("call_1"),)),
    Said("Done.", (Call("call_1"),)),
    Said("", (Call("call_1"), Call("call_2", "roof"))),
)
OUTPUTS = ("up", "down")
IDS: tuple[Callable[[str, int], str], ...] = (
    lambda owner, number: f"call_{number}",
    lambda owner, number: f"functions.look:{number}",
    lambda owner, number: f"call_{owner}9fQ2mZx81Lk{number:02d}",
)
"""Counted, counted with the tool's name, and unique."""

OTHER_SPELLING, INSIDE, REFERENCE, PLACES = range(1, 5)

Edit: TypeAlias = Callable[[Sequence[Turn]], Sequence[Turn]]


def _each_result_cleared(talk: Sequence[Turn]) -> Sequence[Turn]:
    return [
        Results(tuple((call, "[cleared]") for call, _ in turn.of)) if isinstance(turn, Results) else turn
        for turn in talk
    ]


def _ids_counted_anew(talk: Sequence[Turn]) -> Sequence[Turn]:
    return [_with_ids(turn, lambda call: call._replace(id=f"{int(call.at == 'roof'):09d}")) for turn in talk]


def _with_ids(turn: Turn, named: Callable[[Call], Call]) -> Turn:
    match turn:
        case Said():
            return turn._replace(calls=tuple(map(named, turn.calls)))
        case Results():
            return Results(tuple((named(call), text) for call, text in turn.of))
        case _:
            return turn


def _trimmed(talk: Sequence[Turn]) -> Sequence[Turn]:
    return [turn._replace(text=turn.text.strip()) if isinstance(turn, Said) else turn for turn in talk]


EDITS: tuple[Edit, ...] = (
    lambda talk: talk,
    lambda talk: talk,
    lambda talk: [Asked("<reminder>be brief</reminder>"), *talk[1:]],
    lambda talk: talk[2:] if len(talk) > 4 and isinstance(talk[2], Asked) else talk,
    _each_result_cleared,
    _ids_counted_anew,
    _trimmed,
)
"""What clients do to a history before they send it: all of them alike."""


class Person(NamedTuple):
    """One conversation: how it differs from the others, and how its provider names calls. `place` is where its prompt
    is: at one of the format's two places, after the user's first message, or behind a reference."""

    prompt: int
    user: int
    ids: int
    has_session: bool
    place: int

    def differs_from(self, other: Person) -> bool:
        return self.prompt != other.prompt or 0 < self.user != other.user > 0


class Step(NamedTuple):
    """A request of one person, with its message, its history and its answer. An answer that `is_lost` leaves no
    record."""

    person: int
    words: int
    answer: int
    outputs: int
    edit: int
    is_lost: bool


PERSONS = st.lists(
    st.builds(
        Person,
        st.integers(0, len(PROMPTS) - 1),
        st.integers(0, len(USERS) - 1),
        st.integers(0, len(IDS) - 1),
        st.booleans(),
        st.integers(0, PLACES - 1),
    ),
    min_size=2,
    max_size=len(OWNERS),
).filter(lambda persons: all(one.differs_from(two) for one, two in itertools.combinations(persons, 2)))
STEPS = st.lists(
    st.builds(
        Step,
        st.integers(0, len(OWNERS) - 1),
        st.integers(0, len(WORDS) - 1),
        st.integers(0, len(ANSWERS) - 1),
        st.integers(0, 3),
        st.integers(0, len(EDITS) - 1),
        st.integers(0, 3).map(lambda number: number == 0),
    ),
    min_size=3,
    max_size=16,
)

_tenants = itertools.count()
_answers = itertools.count()


@pytest.fixture(scope="module")
def line() -> Iterator[Line]:
    with Line("memory://") as opened:
        yield opened


class Conversation:
    """The knowledge of a person's client."""

    def __init__(self, owner: str, person: Person, speaker: Speaker) -> None:
        members: Json = speaker.end_users[0](USERS[person.user]) if person.user else NOTHING
        self.owner, self.speaker, self.name_of = owner, speaker, IDS[person.ids]
        prompt, self.inner = PROMPTS[person.prompt], ""
        self.frame = Frame(prompt, members, is_other_spelling=person.place == OTHER_SPELLING)
        if prompt and person.place == INSIDE and speaker.provider != "bedrock":
            self.frame, self.inner = Frame("", members), prompt
        if prompt and person.place == REFERENCE and speaker.references:
            self.frame = Frame("", members | speaker.references[0](prompt))
        self.headers = {"x-thoughtline-session": f"session of {owner}"} if person.has_session else {}
        self.talk: list[Turn] = []
        self.thoughts = self.calls = 0

    def go_on(self, step: Step) -> None:
        """Add a user message, or the results of the last answer's calls."""
        last = self.talk[-1] if self.talk else None
        if isinstance(last, Said) and last.calls:
            outputs = (OUTPUTS[step.outputs // 2], OUTPUTS[step.outputs % 2])
            self.talk.append(Results(tuple(zip(last.calls, outputs, strict=False))))
        else:
            self.talk.append(Asked(WORDS[step.words]))

    def shown(self, step: Step) -> list[Turn]:
        """The history as the client shows it."""
        first, *rest = EDITS[step.edit](self.talk)
        return [first, *([Instructed(self.inner)] if self.inner else []), *rest]

    def answered(self, step: Step) -> Said:
        said = ANSWERS[step.answer]
        named = []
        for call in said.calls:
            self.calls += 1
            named.append(call._replace(id=self.name_of(self.owner, self.calls)))
        return said._replace(calls=tuple(named))


def exchange(line: Line, conversation: Conversation, step: Step, key: str) -> bytes:
    """Send a request and read its answer; return what would reach the upstream."""
    speaker, shown = conversation.speaker, conversation.shown(step)
    body = json.dumps(speaker.body(shown, conversation.frame, is_streaming=False)).encode()
    url = f"https://{HOSTS[speaker.provider]}{speaker.path_for(conversation.frame, is_streaming=False)}"
    begun = line.begin_sync("POST", url, {"authorization": f"Bearer {key}", **conversation.headers}, body)
    sent, said = begun.body, conversation.answered(step)
    conversation.thoughts += 1
    answer = speaker.answer(said, thought(conversation.owner, conversation.thoughts), next(_answers))
    if not step.is_lost:
        begun.read(json.dumps(answer).encode())
    begun.end()
    conversation.talk.append(said)
    return sent


HOSTS = {
    "deepseek": "api.deepseek.com",
    "anthropic": "api.anthropic.com",
    "openai": "api.openai.com",
    "gemini": "generativelanguage.googleapis.com",
    "ollama": "127.0.0.1:11434",
    "bedrock": "bedrock-runtime.us-east-1.amazonaws.com",
}


@pytest.mark.parametrize("speaker", SPEAKERS.values(), ids=lambda speaker: speaker.format)
@settings(max_examples=EXAMPLES)
@given(persons=PERSONS, steps=STEPS)
def test_no_word_of_another(line: Line, speaker: Speaker, persons: list[Person], steps: list[Step]) -> None:
    """Whatever was captured, in any order, and however clients edit their histories."""
    key = f"key-{next(_tenants)}"
    conversations = [Conversation(owner, person, speaker) for owner, person in zip(OWNERS, persons, strict=False)]
    for step in steps:
        conversation = conversations[step.person % len(conversations)]
        conversation.go_on(step)
        marks = marks_in(exchange(line, conversation, step, key))
        assert all(mark.startswith(conversation.owner) for mark in marks), (marks, conversation.talk)
