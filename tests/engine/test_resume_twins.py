"""A remembered conversation among others that look like it: with and without remembering, the same goes up.

Few words, so that conversations of several users are the same for long; records that are lost, deleted or saved late;
edits between requests; one replica, or two that share a store and are restarted.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.talks import MODELS, TTL_SECONDS, Habit, Ids, Model, Saying, Talk, World, run
from thoughtline.engine import resume
from thoughtline.replay import remembering
from thoughtline.stores import Filter
from thoughtline.values.items import Text, ToolCall
from thoughtline.values.records import Record
from thoughtline.values.turns import Turn

EXAMPLES = int(os.environ.get("LAW_EXAMPLES", "60"))
"""More of them for a longer look: some seconds a hundred."""

USERS = (Habit(), Habit(), Habit(system="Be brief."), Habit(user="u-1"), Habit(user="u-2"))
"""Whose conversations they are: two of one user, others under another system prompt or for other end users."""

BEFALLS = (
    *("nothing",) * 12,
    *("a twin", "a twin", "lose a record", "lose a record", "a late record", "a late record"),
    *("delete a session", "delete a call", "delete a tenant", "restart", "wait", "expire", "session"),
    *("rewrite the opening", "drop the first turns", "drop a turn", "edit words", "split a turn"),
)


class Move(NamedTuple):
    """A request of one of the conversations, what the model says to it, and what befell before."""

    talk: int
    replica: int
    text: int
    words: int
    calls: int
    file: int
    befalls: str
    at: int
    is_kept: bool


MOVES = st.lists(
    st.builds(
        Move,
        st.integers(0, 3),
        st.sampled_from((0, 0, 0, 1)),
        st.sampled_from((0, 0, 0, 1)),
        st.sampled_from((0, 0, 0, 1)),
        st.sampled_from((0, 0, 1, 1, 2)),
        st.sampled_from((0, 0, 1)),
        st.sampled_from(BEFALLS),
        st.integers(0, 20),
        st.sampled_from((True, True, True, True, False)),
    ),
    min_size=8,
    max_size=24,
)


class Story:
    """Conversations that begin alike, each with the habit of its user, and records that are not saved yet."""

    def __init__(self, world: World, model: Model, ids: Ids) -> None:
        self.world, self.model, self.ids = world, model, ids
        self.talks = [(Talk(None), USERS[0])]
        self.late: list[Sequence[Record]] = []

    def play(self, moves: Sequence[Move]) -> None:
        for move in moves:
            self.world.use(move.replica)
            self._befall(move)
            self._exchange(*self.talks[move.talk % len(self.talks)], move)
            self.world.now += 1

    def _exchange(self, talk: Talk, habit: Habit, move: Move) -> None:
        world, model = self.world, self.model
        if not talk.turns or talk.turns[-1].role == "assistant":
            world.follow(talk, model.format, ("go on", "and now?")[move.text])
        prepared = world.send(talk, model, habit)
        file = move.file + len(talk.turns) // 2
        says = Saying(("Done.", "Well.")[move.words], "hm", move.calls, self.ids, file)
        records = world.answer(talk, model, prepared, says, move.is_kept)
        if not move.is_kept:
            self.late.append(records)

    def _befall(self, move: Move) -> None:
        talk, habit = self.talks[move.talk % len(self.talks)]
        if move.befalls == "a twin":
            user = USERS[move.at % len(USERS)] if move.at % 2 else habit
            self.talks.insert(0, (Talk(talk.session, talk.turns[: move.at * 2]), user))
        elif move.befalls == "session":
            talk.session = (None, "one", "two")[move.at % 3]
        else:
            self._befall_store(talk, move)
            edit(talk, move)

    def _befall_store(self, talk: Talk, move: Move) -> None:
        """What happens to what is known."""
        world = self.world
        match move.befalls:
            case "lose a record":
                world.lose(f"hm {move.at % (world.made + 1)}")
            case "a late record" if self.late:
                run(world.remembering.save(self.late.pop(move.at % len(self.late))))
            case "delete a session":
                run(world.store.delete(Filter(tenant="t", session=talk.session)))
            case "delete a call":
                items = [item for turn in talk.turns for item in turn.items]
                calls = [item.id for item in items if isinstance(item, ToolCall) and item.id]
                if calls:
                    run(world.store.delete(Filter(tenant="t", call_id=calls[move.at % len(calls)])))
            case "delete a tenant":
                run(world.store.delete(Filter(tenant="t")))
            case "restart":
                world.restart()
            case "wait":
                world.now += 30
            case "expire":
                world.now += TTL_SECONDS / 2


def edit(talk: Talk, move: Move) -> None:
    """What clients do to a conversation."""
    turns, at = talk.turns, move.at % max(1, len(talk.turns))
    match move.befalls:
        case "rewrite the opening" if turns:
            turns[0] = Turn("user", (Text(f"It is {move.at} o'clock."),))
        case "drop the first turns":
            first = next((at for at in range(3, len(turns)) if turns[at].role == "assistant"), 1)
            talk.turns = [*turns[:1], *turns[first:]]
        case "drop a turn" if len(turns) > 4 and turns[at].role == "user" and turns[at - 1].role == "assistant":
            del turns[at - 1 : at + 1]
        case "edit words" if turns and turns[at].role == "user":
            turns[at] = Turn("user", (Text("go on, please"),))
        case "split a turn" if turns and turns[at].role == "assistant" and len(turns[at].items) > 1:
            turns[at : at + 1] = [Turn("assistant", turns[at].items[:1]), Turn("assistant", turns[at].items[1:])]


@pytest.fixture(autouse=True)
def short_conversations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Conversations of a few steps are remembered, and found by a few bytes."""
    monkeypatch.setattr(resume, "FEWEST_STEPS", 1)
    monkeypatch.setattr(remembering, "LONG_SAMPLE", 16)
    monkeypatch.setattr(remembering, "NAMES_SECONDS", 0.0)


@settings(max_examples=EXAMPLES, deadline=None)
@given(moves=MOVES, model=st.sampled_from(MODELS), ids=st.sampled_from(get_args(Ids)))
def test_among_twins_the_same_is_sent(moves: list[Move], model: Model, ids: Ids) -> None:
    """Whatever is lost, deleted or late, and however clients edit what they show."""
    Story(World(), model, ids).play(moves)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=MOVES, model=st.sampled_from(MODELS), ids=st.sampled_from(get_args(Ids)))
def test_two_replicas_send_the_same(
    tmp_path_factory: pytest.TempPathFactory, moves: list[Move], model: Model, ids: Ids
) -> None:
    """Over one store: what one replica saves and deletes counts at the other."""
    world = World(shared=f"sqlite:///{tmp_path_factory.mktemp('store')}/turns.db")
    try:
        Story(world, model, ids).play([move for move in moves if move.befalls != "lose a record"])
    finally:
        world.close()
