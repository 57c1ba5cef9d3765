"""Notes of what was quoted: bounded, shared by replicas, found after a restart, and never a reason to fail."""

from __future__ import annotations

import pytest

from tests.continuity.desks import CLAUDE, DEEPSEEK, ChatTurn, Desk, Ticking, at_desk, request, talk, thinks
from thoughtline.continuity.checkpoints import Checkpoint
from thoughtline.continuity.handover import NOTHING_QUOTED, HandoverLine
from thoughtline.continuity.memory import MAX_PLACES, MAX_SESSIONS, SESSIONS, TTL_SECONDS, Memory
from thoughtline.stores import Note, Store, open_store
from thoughtline.values.errors import StoreUnavailable
from thoughtline.values.records import Key, RecordId


def _line(session: str, *places: str, target: str = "b") -> HandoverLine:
    return HandoverLine("t", session, target, tuple(Key(f"place-v2:{place}") for place in places))


def _quotes(count: int) -> list[Checkpoint]:
    return [Checkpoint(RecordId(f"r{n}"), Key(f"lineage-v2:{n}"), "x", "p/m") for n in range(count)]


async def test_the_sessions_used_longest_ago_go_first() -> None:
    """With 1,001 sessions there are 1,000 left, and the one that was used least recently is the one that went."""
    async with at_desk() as desk:
        for number in range(MAX_SESSIONS):
            desk.clock.now += 1
            await desk.memory.keep(_line(f"s{number}", "1"), _quotes(1))
        desk.clock.now += 100
        await desk.memory.keep(_line("s0", "2"), _quotes(1))
        await desk.memory.keep(_line("new", "1"), _quotes(1))
        assert len(await desk.store.notes(SESSIONS)) == MAX_SESSIONS
        assert (await desk.memory.quoted(_line("s0", "2"))).is_known
        assert (await desk.memory.quoted(_line("new", "1"))).is_known
        assert not (await desk.memory.quoted(_line("s1", "1"))).is_known
        assert (await desk.memory.quoted(_line("s2", "1"))).is_known


async def test_unused_sessions_are_not_kept() -> None:
    """Their notes have expired; their names go with the next session that is counted."""
    async with at_desk() as desk:
        for number in range(5):
            await desk.memory.keep(_line(f"s{number}", "1"), _quotes(1))
        desk.clock.now += TTL_SECONDS + 1
        await desk.memory.keep(_line("new", "1"), _quotes(1))
        assert len(await desk.store.notes(SESSIONS)) == 1


async def test_a_session_keeps_its_last_places() -> None:
    """However long it goes on, a session takes a bounded number of notes."""
    async with at_desk() as desk:
        for number in range(50):
            desk.clock.now += 1
            await desk.memory.keep(_line("s", str(number)), _quotes(1))
        names = [name for name in range(50) if (await desk.memory.quoted(_line("s", str(name)))).is_known]
        assert names == list(range(50 - MAX_PLACES, 50))


async def test_a_hundred_checkpoints_are_kept_of_a_hundred_and_one() -> None:
    """The oldest goes."""
    async with at_desk() as desk:
        await desk.memory.keep(_line("s", "1"), _quotes(101))
        namespace = next(note.key for note in await desk.store.notes(SESSIONS))
        (note,) = await desk.store.notes(f"{SESSIONS}:{namespace}")
        assert b'"r0"' not in note.value
        assert b'"r1"' in note.value
        assert b'"r100"' in note.value


async def test_targets_sessions_and_tenants_have_their_own() -> None:
    """What was quoted to one model was not quoted to another."""
    async with at_desk() as desk:
        await desk.memory.keep(_line("s", "1"), _quotes(1))
        assert (await desk.memory.quoted(_line("s", "1"))).is_known
        assert (await desk.memory.quoted(_line("s", "9", "1"))).is_known, "an earlier place counts"
        for other in (
            _line("s", "2"),
            _line("x", "1"),
            _line("s", "1", target="c"),
            _line("s", "1")._replace(tenant="u"),
        ):
            assert await desk.memory.quoted(other) == NOTHING_QUOTED


async def test_two_replicas_and_a_restart_quote_the_same(shared_url: str) -> None:
    """One durable store: quotes of one process are repeated by the next one, and by another one running at the same
    time.
    """
    history: list[ChatTurn] = []
    async with at_desk(url=shared_url) as desk:
        await talk(desk, history, (DEEPSEEK, thinks(1)), (DEEPSEEK, thinks(2)))
        first = (await talk(desk, history, (CLAUDE, thinks(3))))[0]
        async with at_desk(url=shared_url) as replica:
            replica.clock.now = desk.clock.now
            beside = (await talk(replica, history, (CLAUDE, thinks(4))))[0]
            clock = replica.clock.now
    async with at_desk(url=shared_url) as again:
        again.clock.now = clock
        after = await again.ask(CLAUDE, request("anthropic_messages", [*history, ChatTurn("user", "And now?")]))
    assert first.texts == ["thought 1", "thought 2"]
    assert beside.json["system"] == first.json["system"]
    assert after.json["system"] == first.json["system"]


async def test_notes_hold_no_content() -> None:
    """A note names records by digest: neither thoughts nor words nor who said them."""
    async with at_desk() as desk:
        await talk(desk, [], (DEEPSEEK, thinks(1)), (CLAUDE, thinks(2)), session="my-session")
        index = await desk.store.notes(SESSIONS)
        assert len(index) == 1
        notes = [*index, *await desk.store.notes(f"{SESSIONS}:{index[0].key}")]
        stored = b"".join(note.value + note.key.encode() for note in notes)
        assert not [word for word in (b"thought", b"Answer", b"my-session", b"deepseek") if word in stored]


async def test_a_session_without_a_name_is_known_by_its_turns() -> None:
    """A client that names no session is in the one it began, while its history shows that; words alone, without their
    beginning, don't."""
    async with at_desk() as desk:
        history: list[ChatTurn] = []
        sent = await talk(desk, history, *((DEEPSEEK, thinks(number)) for number in range(6)))
        again = await desk.ask(DEEPSEEK, request("openai_chat", [*history, ChatTurn("user", "And now?")]))
        assert again.handover.session == sent[0].handover.session
        cut = await desk.ask(DEEPSEEK, request("openai_chat", [*history[6:], ChatTurn("user", "And now?")]))
        other = await desk.ask(DEEPSEEK, request("openai_chat", [ChatTurn("user", "Something else")]))
        assert len({again.handover.session, cut.handover.session, other.handover.session}) == 3


async def test_an_unreadable_note_says_nothing() -> None:
    """A note of another version is as good as none."""
    async with at_desk() as desk:
        await desk.memory.keep(_line("s", "1"), _quotes(1))
        name = (await desk.store.notes(SESSIONS))[0].key
        (note,) = await desk.store.notes(f"{SESSIONS}:{name}")
        await desk.store.put_note(Note(note.namespace, note.key, b'{"v":9}', note.expires_at))
        assert await desk.memory.quoted(_line("s", "1")) == NOTHING_QUOTED


async def test_a_store_that_fails_costs_stability_and_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints come from the turns of the request; without notes they are chosen again."""

    async def broken(*_: object) -> None:
        raise StoreUnavailable("down")

    clock = Ticking()
    store: Store = await open_store("memory://", clock=clock)
    desk = Desk(store, clock)
    history: list[ChatTurn] = []
    await talk(desk, history, (DEEPSEEK, thinks(1)))
    for name in ("notes", "put_note", "delete_notes"):
        monkeypatch.setattr(store, name, broken)
    desk.memory = Memory(store, clock)
    sent = await talk(desk, history, (CLAUDE, thinks(2)), (CLAUDE, thinks(3)))
    assert [one.texts for one in sent] == [["thought 1"], ["thought 1"]]
    await store.close()
