"""A cached conversation: with and without the cache, the same is sent, reported and captured."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from tests.talks import LONG_IDS, MODELS, RESULTS, TTL_SECONDS, WORDS, Habit, Model, Saying, Talk, World, run, written
from thoughtline.engine import resume
from thoughtline.engine.replayer import Replayer
from thoughtline.engine.request import Prepared
from thoughtline.replay import remembering
from thoughtline.stores.base import Filter
from thoughtline.translation import passages
from thoughtline.values.identity import Identity
from thoughtline.values.items import Item, Text, ToolCall, ToolResult
from thoughtline.values.records import Key, RecordId
from thoughtline.values.turns import FormatName, Turn

EXAMPLES = int(os.environ.get("LAW_EXAMPLES", "100"))
"""More of them for a longer look: some seconds a hundred."""

HABITS = st.builds(
    Habit,
    strips=st.booleans(),
    marks=st.booleans(),
    indent=st.sampled_from((False, False, False, True)),
    list_at=st.sampled_from(("first", "middle", "last")),
    thinks=st.sampled_from((True, True, True, False)),
    has_tools=st.sampled_from((True, True, True, False)),
    system=st.sampled_from(("", "Be brief.", "Be long.")),
    noise=st.integers(0, 3),
)
SAYINGS = st.builds(Saying, st.sampled_from(("", *WORDS)), st.sampled_from(("", "hm", LONG_IDS)), st.integers(0, 2))
SAME = st.just(None)
CLIENTS: frozenset[FormatName] = frozenset(("openai_chat", "openai_responses", "anthropic_messages", "gemini_generate"))


class Move(NamedTuple):
    """The next step: an exchange, and what happened to the conversation before it."""

    saying: Saying
    text: str
    befalls: str
    at: int
    habit: Habit | None
    model: int | None
    is_kept: bool


BEFALLS = (
    *("nothing",) * 12,
    *("edit a user's words", "edit the model's words", "truncate", "rename ids", "clear a result", "branch"),
    *("forget the session", "forget everything", "wait", "expire", "ask again", "another talk", "another tenant"),
    *("split a turn", "system message", "refuse a seal", "the same again"),
    *("rewrite the opening", "rewrite the opening", "drop the first turns", "drop the first turns"),
)
MOVES = st.lists(
    st.builds(
        Move,
        SAYINGS,
        st.sampled_from((*WORDS, *RESULTS)),
        st.sampled_from(BEFALLS),
        st.integers(0, 20),
        st.one_of(SAME, SAME, SAME, HABITS),
        st.one_of(SAME, SAME, SAME, SAME, st.integers(0, len(MODELS) - 1)),
        st.sampled_from((True, True, True, True, False)),
    ),
    min_size=4,
    max_size=14,
)


def change(talk: Talk, move: Move) -> None:
    """A client's change to a conversation."""
    turns, at = talk.turns, move.at % max(1, len(talk.turns))
    turn = turns[at] if turns else Turn("other", ())
    match move.befalls, turn.role:
        case ("edit a user's words", "user") | ("edit the model's words", "assistant"):
            turns[at] = replace(turn, items=tuple(map(_edited, turn.items)))
        case "clear a result", _:
            turns[at : at + 1] = [replace(turn, items=tuple(map(_cleared, turn.items)))] if turns else []
        case "truncate", _:
            talk.turns = turns[: at + 1]
        case "rewrite the opening", _ if turns and turns[0].role == "user":
            turns[0] = replace(turns[0], items=(Text(f"It is {move.at} o'clock. {move.text}"),))
        case "drop the first turns", _:
            first = next((at for at in range(3, len(turns)) if turns[at].role == "assistant"), 1)
            talk.turns = [*turns[:1], *turns[first:]]
        case "rename ids", _:
            talk.turns = [replace(turn, items=tuple(map(_renamed, turn.items))) for turn in turns]
        case "split a turn", "assistant" if len(turn.items) > 1:
            turns[at : at + 1] = [Turn("assistant", turn.items[:1]), Turn("assistant", turn.items[1:])]
        case "system message", "user":
            turns.insert(at, Turn("system", (Text("The date has changed."),)))


def befall(world: World, talk: Talk, move: Move) -> Talk:
    """An event for the cache, and the conversation to continue."""
    match move.befalls:
        case "branch":
            world.talks.append(Talk(talk.session, list(talk.turns)))
        case "forget the session":
            run(world.store.delete(Filter(tenant="t", session=talk.session)))
        case "forget everything":
            run(world.store.delete(Filter()))
        case "wait":
            world.now += TTL_SECONDS / 2
        case "expire":
            world.now += TTL_SECONDS + 1
        case "refuse a seal":
            world.lessons.refused |= {Key(f"seal-v2:{move.at:032x}")}
        case "another talk":
            world.talks.append(Talk((None, "one", "two")[move.at % 3]))
            return world.talks[-1]
    return world.talks[move.at % len(world.talks)]


def _cleared(item: Item) -> Item:
    return replace(item, content=Raw(b'"[cleared]"')) if isinstance(item, ToolResult) else item


def _edited(item: Item) -> Item:
    return replace(item, text=item.text + " indeed") if isinstance(item, Text) else item


def _renamed(item: Item) -> Item:
    if isinstance(item, ToolCall):
        return replace(item, id=f"other-{item.id}")
    return replace(item, call_id=f"other-{item.call_id}") if isinstance(item, ToolResult) else item


def play(moves: list[Move], habit: Habit, model: Model, client: FormatName | None = None) -> World:
    """Play a conversation: after each move the request is prepared both ways, answered, and continued."""
    world = World(client=client)
    for move in moves:
        talk = befall(world, world.talks[0], move)
        change(talk, move)
        habit = move.habit or habit
        if move.model is not None and MODELS[move.model].format == model.format:
            model = MODELS[move.model]
        if not talk.turns or talk.turns[-1].role == "assistant":
            world.follow(talk, world.spoken(model), move.text)
        if world.spoken(model) in ("anthropic_messages", "bedrock_converse", "gemini_generate"):
            talk.turns = [turn for turn in talk.turns if turn.role != "system"]
        tenant = "other" if move.befalls == "another tenant" else "t"
        prepared = world.send(talk, model, habit, tenant)
        if move.befalls == "the same again":
            prepared = world.send(talk, model, habit, tenant)
        if move.befalls == "ask again":
            world.answer(Talk(talk.session), model, prepared, move.saying)
        world.answer(talk, model, prepared, move.saying, move.is_kept)
        world.follow(talk, world.spoken(model), move.text)
        world.now += 1
    return world


@pytest.fixture(autouse=True)
def short_conversations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make conversations of a few steps cacheable, and identifiable by a few bytes."""
    monkeypatch.setattr(resume, "FEWEST_STEPS", 1)
    monkeypatch.setattr(remembering, "LONG_SAMPLE", 16)
    monkeypatch.setattr(passages, "FEWEST", 1)
    monkeypatch.setattr(passages, "SAMPLE", 48)


@settings(max_examples=EXAMPLES, deadline=None)
@given(moves=MOVES, habit=HABITS, model=st.sampled_from(MODELS))
def test_with_and_without_it_the_same_is_sent(moves: list[Move], habit: Habit, model: Model) -> None:
    """Every body and report, whatever happens to the conversation and to the cache."""
    play(moves, habit, model)


@settings(max_examples=EXAMPLES, deadline=None)
@given(moves=MOVES, habit=HABITS, model=st.sampled_from(MODELS), client=st.sampled_from(sorted(CLIENTS)))
def test_the_same_is_sent_in_another_format(moves: list[Move], habit: Habit, model: Model, client: FormatName) -> None:
    play(moves, habit, model, client)


QUIET = Move(Saying("Let me look.", "hm", 1), "three files", "nothing", 0, None, None, True)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.provider}-{model.name}")
@pytest.mark.parametrize("habit", [Habit(), Habit(strips=False), Habit(strips=False, marks=True)], ids=str)
def test_a_growing_conversation_is_gone_on_with(model: Model, habit: Habit) -> None:
    """In every format, whether or not its client keeps reasoning."""
    assert play([QUIET] * 10, habit, model).resumed >= 7


@pytest.mark.parametrize("model", MODELS[:7], ids=lambda model: f"{model.provider}-{model.name}")
@pytest.mark.parametrize("client", sorted(CLIENTS))
@pytest.mark.parametrize("habit", [Habit(), Habit(strips=False)], ids=str)
def test_a_translated_conversation_is_gone_on_with(model: Model, client: FormatName, habit: Habit) -> None:
    """Whether or not its client keeps our envelopes."""
    world = play([QUIET] * 10, habit, model, client)
    assert world.resumed >= 6
    assert client == model.format or world.joined >= 6


def edits(befalls: str) -> list[Move]:
    """A conversation that grows, with a client that edits it before each request."""
    return [QUIET] * 4 + [QUIET._replace(befalls=befalls, at=at, text=WORDS[at % 3]) for at in range(8)]


TEXTUAL = [model for model in MODELS if model.provider in ("deepseek", "openrouter")]


@pytest.mark.parametrize("model", TEXTUAL, ids=lambda model: f"{model.provider}-{model.name}")
@pytest.mark.parametrize("befalls", ["rewrite the opening", "drop the first turns", "clear a result"])
def test_an_edited_conversation_is_gone_on_with(model: Model, befalls: str) -> None:
    """Steps are identified by their call ids, at any place and in any context."""
    world = play(edits(befalls), Habit(), model)
    assert world.resumed == 10
    assert world.restored == (3 if befalls == "drop the first turns" else 11)


# --- what is kept -----------------------------------------------------------------------------------------------------


def held(world: World, exchanges: int, talk: Talk | None = None, model: Model = MODELS[0]) -> Talk:
    """A conversation of this many exchanges, and the client's next message."""
    talk = talk or world.talks[0]
    for _ in range(exchanges):
        world.follow(talk, model.format, "go on")
        world.answer(talk, model, world.send(talk, model, Habit()), Saying("Let me look.", "hm", 1))
    world.follow(talk, model.format, "go on")
    return talk


def is_resumed(world: World, talk: Talk, habit: Habit, tenant: str = "t") -> bool:
    return world.send(talk, MODELS[0], habit, tenant).whole is not None


def test_members_besides_the_list_may_change() -> None:
    """Members before and after it, and their order."""
    world = World()
    talk = held(world, 4)
    assert is_resumed(world, talk, Habit(noise=2))
    assert is_resumed(world, talk, Habit(list_at="first"))


@pytest.mark.parametrize("habit", [Habit(thinks=False), Habit(has_tools=False), Habit(indent=True)], ids=str)
def test_what_plans_depend_on_takes_the_whole_way(habit: Habit) -> None:
    """The same for changed bytes, whatever they mean."""
    world = World()
    talk = held(world, 4, model=MODELS[4])
    assert world.send(talk, MODELS[4], Habit()).whole is not None
    assert world.send(talk, MODELS[4], habit).whole is None


def test_another_caller_or_session_takes_the_whole_way() -> None:
    world = World()
    talk = held(world, 4)
    assert not is_resumed(world, talk, Habit(), tenant="other")
    assert not is_resumed(world, Talk("two", talk.turns), Habit())
    assert is_resumed(world, talk, Habit())


def test_a_deleted_turn_takes_the_whole_way() -> None:
    world = World()
    talk = held(world, 4)
    run(world.store.delete(Filter(tenant="t")))
    assert not is_resumed(world, talk, Habit())


def test_a_branch_leaves_the_conversation_that_it_left() -> None:
    """Two conversations with the same beginning are both continued."""
    world = World()
    talk = held(world, 20)
    branch = Talk(talk.session, talk.turns[:5])
    held(world, 8, branch)
    assert is_resumed(world, branch, Habit())
    assert is_resumed(world, talk, Habit())


def test_conversations_are_bounded_and_the_least_recently_used_goes_first() -> None:
    world = World()
    talks = [Talk("one", [Turn("user", (Text(f"This is conversation {number}. " * 40),))]) for number in range(6)]
    for talk in talks[:2]:
        held(world, 4, talk)
    size = world.remembering.remembered_size
    world.remembering = Replayer(world.store, world.lessons, world.book, lambda: world.now, remembered_bytes=2 * size)
    for talk in talks:
        held(world, 4, talk)
        assert world.remembering.remembered_size <= 2 * size
    assert is_resumed(world, talks[-1], Habit())
    assert not is_resumed(world, talks[0], Habit())


def test_abandoned_conversations_are_evicted() -> None:
    world = World()
    held(world, 4)
    size = world.remembering.remembered_size
    world.now += remembering.IDLE_SECONDS + 1
    held(world, 4, Talk("another"))
    assert world.remembering.remembered_size <= size + 100


def exchanged(world: World, talk: Talk, text: str, says: str) -> Prepared:
    """Without calls, only its history identifies a turn."""
    talk.turns.append(Turn("user", (Text(text),)))
    prepared = world.send(talk, MODELS[0], Habit())
    world.answer(talk, MODELS[0], prepared, Saying(says, "hm", 0))
    world.now += 1
    return prepared


@pytest.mark.parametrize(("session", "kept"), [(None, []), ("one", ["hm 1", "hm 2", "hm 3", "hm 5"])])
def test_a_turn_after_another_record_takes_the_whole_way(session: str | None, kept: list[str]) -> None:
    """Of two conversations that look the same up to a turn, one lost its record of it: the other's is cached for both,
    and no turn of the first one comes after it. In one session, what a turn followed says which it was."""
    world = World()
    one = Talk(session)
    for number in range(5):
        exchanged(world, one, f"and {number}?", "It is done.")
    world.lose("hm 4")
    other = Talk(session, one.turns[:6])
    exchanged(world, other, "and 3?", "It is done.")
    exchanged(world, other, "and 4?", "Not so.")
    assert exchanged(world, other, "and 5?", "It is done.").whole is not None
    prepared = exchanged(world, one, "and 5?", "It is done.")
    assert prepared.whole is None
    messages = json.loads(prepared.body)["messages"]
    assert [one["reasoning_content"] for one in messages if "hm" in one.get("reasoning_content", "")] == kept


def test_an_unnamed_conversation_is_named_as_it_begins_now() -> None:
    """Where its opening was rewritten, it is another name, until the opening is rewritten again."""
    world = World()
    talk = held(world, 4, Talk(None))
    talk.turns[0] = Turn("user", (Text("It is noon."),))
    held(world, 3, talk)
    assert world.send(talk, MODELS[0], Habit()).whole is not None


def test_another_record_of_a_call_is_seen() -> None:
    """Steps that were found by their call ids are looked up again."""
    world = play(edits("rewrite the opening"), Habit(), MODELS[0])
    assert world.remembering.remembered_size > 0
    record = run(world.store.list_entries(Filter())).entries[-1].record
    run(world.remembering.save([replace(record, id=RecordId("another"))]))
    assert world.remembering.remembered_size == 0
    talk = world.talks[0]
    assert world.send(talk, MODELS[0], Habit()).whole is None


def test_another_record_of_a_call_at_another_replica_is_seen_within_a_minute(tmp_path: Path) -> None:
    """An id that looks random may not be: then the steps around it decide."""
    world = World(shared=f"sqlite:///{tmp_path}/turns.db")
    talk = world.talks[0]
    for number in range(6):
        held(world, 1, talk)
        talk.turns[0] = Turn("user", (Text(f"It is {number} o'clock."),))
    world.send(talk, MODELS[0], Habit())
    record = run(world.store.list_entries(Filter())).entries[-1].record
    calls = tuple(key for key in record.keys if key.startswith("call-"))
    world.use(1)
    run(world.remembering.save([replace(record, id=RecordId("another"), keys=calls)]))
    world.use(0)
    world.now += remembering.NAMES_SECONDS
    assert not is_resumed(world, talk, Habit())
    world.close()


def test_the_ids_of_calls_are_looked_for_again_each_minute() -> None:
    """And steps that nothing speaks against are gone on with."""
    world = World()
    talk = world.talks[0]
    for number in range(6):
        held(world, 1, talk)
        talk.turns[0] = Turn("user", (Text(f"It is {number} o'clock."),))
        assert is_resumed(world, talk, Habit()) is (number > 1)
        world.now += remembering.NAMES_SECONDS


def test_zero_bytes_remember_nothing() -> None:
    world = World()
    talk = held(world, 4)
    body = written(talk.turns, MODELS[0], Habit(), world.book.contract_for(MODELS[0].destination))
    prepared = run(world.forgetting.prepare(body, MODELS[0].destination, Identity("t", "one")))
    assert prepared.whole is None
    assert world.forgetting.remembered_size == 0


def test_a_list_inside_another_member_is_not_taken_for_the_conversation() -> None:
    """The bytes are there, at another place."""
    world = World()
    talk = held(world, 4)
    body = json.loads(written(talk.turns, MODELS[0], Habit(), world.book.contract_for(MODELS[0].destination)))
    nested = {"metadata": {"messages": body["messages"]}, **body}
    cuts = world.remembering.cuts(json.dumps(nested, ensure_ascii=False).encode(), "openai_chat", "t")
    assert cuts == ()


def test_a_refusal_is_healed_the_whole_way() -> None:
    """A refusal names a place in the whole request."""
    world = World()
    talk, model = held(world, 4, model=MODELS[4]), MODELS[4]
    world.send(talk, model, Habit(strips=False))
    prepared = world.send(talk, model, Habit(strips=False))
    assert prepared.whole is not None
    error = {
        "type": "invalid_request_error",
        "message": "messages.1.content.0: Invalid `signature` in `thinking` block",
    }
    refused = json.dumps({"type": "error", "error": error}).encode()
    healed = run(world.remembering.heal(prepared, 400, refused))
    assert healed is not None
    assert healed.transcript is not None
    assert len(healed.transcript.turns) == len(talk.turns)
    sent, before = (json.loads(one.body)["messages"] for one in (healed, prepared))
    assert sent[1]["content"] == [block for block in before[1]["content"] if block["type"] != "thinking"]
