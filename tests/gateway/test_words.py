"""Users' words: in no store by default; where they are kept, encrypted under a key, for their own time, and gone with
their session or person. The stores' raw bytes are read for them."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from msgspec.structs import replace

from tests.gateway.managed_gateways import CACHE, Json, Managed, managed
from thoughtline.gateway.words import NAME, Words, words_store
from thoughtline.settings import DashboardSettings, Settings
from thoughtline.stores import Filter, MemoryStore, StoreSettings, open_store

WORDS, RESULT, PROMPT = "zebra crossing at noon", "quartz in the drawer", "obey the walrus"
FRAME = b"\x28\xb5\x2f\xfd"
KEY = base64.b64encode(b"k" * 32).decode()


def settings(keep_text: bool = True, key: str | None = None, keep_bytes: int = 2**20) -> Settings:
    store = StoreSettings(encryption_key=key) if key else StoreSettings()
    return replace(Settings(), dashboard=DashboardSettings(keep_text, keep_text_bytes=keep_bytes), store=store)


def talk(gateway: Managed, session: str = "s", key: str = "someone", words: str = WORDS) -> list[Json]:
    """Two requests: the user's words, then what a tool returned."""
    history: list[Json] = [{"role": "system", "content": PROMPT}, {"role": "user", "content": words}]
    message = gateway.send(history, key, session).json()["choices"][0]["message"]
    calls = message["tool_calls"]
    history += [message, *({"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in calls)]
    assert gateway.send(history, key, session).status_code == 200
    return history


def bytes_of(folder: Path) -> bytes:
    """All that the files of a folder hold, free pages and logs too, and what is compressed in them."""
    raw = b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
    return raw + b"".join(unpacked(raw))


def unpacked(raw: bytes) -> Iterator[bytes]:
    """What begins as zstandard's frames do, as far as it can be read."""
    at = raw.find(FRAME)
    while at >= 0:
        with contextlib.suppress(zstandard.ZstdError):
            yield zstandard.ZstdDecompressor().decompressobj().decompress(raw[at : at + 2**20])
        at = raw.find(FRAME, at + 1)


def sessions(gateway: Managed) -> list[Json]:
    found: list[Json] = gateway.get("/api/sessions")["sessions"]
    return found


def before(gateway: Managed, session: str = "s", **params: str) -> list[list[tuple[str, str]] | None]:
    """What was said before each turn, as soon as it is written."""
    gateway.gateway.wait_for(gateway.gateway.state.words.written())
    turns = gateway.get(f"/api/sessions/{session}", **params)["turns"]
    return [turn["before"] and [(one["kind"], one["text"]) for one in turn["before"]] for turn in turns]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/turns.db"


@pytest.fixture(params=["memory", "sqlite"])
def gateway(request: pytest.FixtureRequest, url: str) -> Iterator[Managed]:
    with managed(settings(), "memory://" if request.param == "memory" else url) as one:
        yield one


def test_by_default_no_word_is_in_any_store(tmp_path: Path, url: str) -> None:
    """Nor a prompt, nor a result; there is no file for them, and the page says that they are not kept."""
    with managed(settings(keep_text=False), url) as gateway:
        talk(gateway)
        found = gateway.get("/api/sessions/s")
        assert found["keepsText"] is False
        assert [turn["before"] for turn in found["turns"]] == [None, None]
        assert before(gateway) == [None, None]
    kept = bytes_of(tmp_path)
    assert kept
    assert not [word for word in (WORDS, RESULT, PROMPT) if word.encode() in kept]
    assert [path.name for path in tmp_path.iterdir() if NAME in path.name] == []


def test_a_session_reads_as_a_conversation(gateway: Managed) -> None:
    """What the user wrote, what was thought and called, what came back; the system prompt is not part of it."""
    talk(gateway)
    assert before(gateway) == [[("user", WORDS)], [("result", RESULT)]]
    first, second = gateway.get("/api/sessions/s")["turns"]
    kinds = [one["kind"] for one in first["says"]]
    assert kinds[0] == "thought"
    assert "call" in kinds
    call = next(one for one in first["says"] if one["kind"] == "call")
    assert (call["name"], call["callId"]) == ("bash", first["toolCallId"])
    assert second["outcome"]["restored"] == 0
    assert PROMPT not in str(gateway.get("/api/sessions/s"))


def test_the_first_words_are_the_title(gateway: Managed) -> None:
    """Of a session that its client calls by an identifier; a name that a person chose is better."""
    talk(gateway, session="0199a1f2-aaaa-7bbb-8ccc-1234567890ab")
    talk(gateway, session="fix-the-parser")
    gateway.gateway.wait_for(gateway.gateway.state.words.written())
    named, unnamed = sessions(gateway)
    assert (named["title"], named["titledBy"]) == ("fix-the-parser", "client")
    assert (unnamed["title"], unnamed["titledBy"]) == (WORDS, "words")
    assert unnamed["models"] == ["deepseek/deepseek-v4-pro"]
    assert unnamed["startedAt"] < unnamed["newestEntry"]


def test_words_are_encrypted_where_turns_are(tmp_path: Path, url: str) -> None:
    """The raw bytes hold none of them under a key; without one they do."""
    with managed(settings(key=KEY), url) as gateway:
        talk(gateway)
        assert before(gateway) == [[("user", WORDS)], [("result", RESULT)]]
    kept = bytes_of(tmp_path)
    assert not [word for word in (WORDS, RESULT) if word.encode() in kept]


def test_words_without_a_key_are_in_their_own_file(tmp_path: Path, url: str) -> None:
    """What the test of encryption would find."""
    with managed(settings(), url) as gateway:
        talk(gateway)
        before(gateway)
    for path in tmp_path.iterdir():
        raw = path.read_bytes()
        assert (WORDS.encode() in raw + b"".join(unpacked(raw))) is (path.name == "turns.db.words"), path
        assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.parametrize("by", ["session", "tenant", "person", "everything"])
def test_words_go_with_what_is_deleted(tmp_path: Path, url: str, by: str) -> None:
    """A session, or a person: nothing of them is in any file afterwards. Others keep theirs."""
    mine, theirs = "mauve teapot on a shelf", "ochre lantern by a lake"
    with managed(settings(), url) as gateway:
        talk(gateway, "s-1", "me", mine)
        tenant = sessions(gateway)[0]["tenant"]
        talk(gateway, "s-2", "other", theirs)
        assert before(gateway, "s-1")
        assert before(gateway, "s-2")
        if by == "person":
            assert gateway.admin.delete(f"/api/people/{tenant}").json()["turns"] == 2
        else:
            query = {"session": {"session": "s-1"}, "tenant": {"tenant": tenant}, "everything": {}}[by]
            assert gateway.admin.delete(CACHE, params=query).json()["deleted"] == (4 if by == "everything" else 2)
        assert [one["id"] for one in sessions(gateway)] == ([] if by == "everything" else ["s-2"])
    kept = bytes_of(tmp_path)
    assert mine.encode() not in kept
    assert (theirs.encode() in kept) is (by != "everything")


def test_words_have_their_own_time(gateway: Managed) -> None:
    """They are gone while the turns are still there, read or not."""
    talk(gateway)
    assert before(gateway)[0] == [("user", WORDS)]
    running, words = gateway.gateway, gateway.gateway.state.words
    url = running.state.settings.store_url

    async def cleaned() -> int:
        later = words_store(words.settings, lambda: running.state.clock() + 8 * 86400)
        if url.startswith("memory"):
            here = await words._opened()
            assert isinstance(here, MemoryStore)
            here._clock = lambda: running.state.clock() + 8 * 86400
            later = here
        await later.open()
        return await later.clean()

    assert running.wait_for(cleaned()) == 2
    assert len(gateway.get("/api/sessions/s")["turns"]) == 2
    assert before(gateway) == [None, None]


def test_words_have_their_own_size(url: str) -> None:
    """The oldest go; turns stay."""
    with managed(settings(keep_bytes=20_000), url) as gateway:
        for number in range(8):
            noise = random.Random(number).randbytes(3000).hex()  # which can't be compressed by more than half
            talk(gateway, f"s-{number}", words=noise)
        before(gateway, "s-7")
        words = gateway.gateway.state.words

        async def cleaned() -> int:
            return await (await words._opened()).clean()

        gateway.gateway.wait_for(cleaned())
        assert before(gateway, "s-0") == [None, None]
        assert before(gateway, "s-7")[0] is not None
        assert len(sessions(gateway)) == 8


def test_switched_off_means_gone(tmp_path: Path, url: str) -> None:
    """The next start without it removes what was kept."""
    with managed(settings(), url) as gateway:
        talk(gateway)
        before(gateway)
    assert WORDS.encode() in bytes_of(tmp_path)
    with managed(settings(keep_text=False), url) as gateway:
        gateway.get("/api/sessions")
    assert WORDS.encode() not in bytes_of(tmp_path)


def test_a_command_forgets_words_too(tmp_path: Path, url: str) -> None:
    """`thoughtline cache clear --store` opens the store itself."""
    with managed(settings(), url) as gateway:
        talk(gateway)
        before(gateway)

    async def cleared() -> int:
        kept = replace(settings(), store_url=url)
        turns = await open_store(url)
        words = Words(kept, turns, lambda: 4e9)
        try:
            return await words.forget(Filter(session="s"))
        finally:
            await words.close()
            await turns.close()

    assert asyncio.run(cleared()) == 2
    assert WORDS.encode() not in bytes_of(tmp_path)


def test_replicas_share_words(shared_url: str) -> None:
    """What one has kept, another shows, also after a restart; and nothing when it was deleted at one of them."""
    with managed(settings(), shared_url) as one, managed(settings(), shared_url) as other:
        talk(one, "mine", "me")
        talk(one, "theirs", "other")
        assert before(one, "mine") == [[("user", WORDS)], [("result", RESULT)]]
        assert before(other, "mine") == [[("user", WORDS)], [("result", RESULT)]]
    with managed(settings(), shared_url) as one, managed(settings(), shared_url) as other:
        tenant = one.get("/api/sessions/mine")["tenant"]
        assert before(other, "mine") == [[("user", WORDS)], [("result", RESULT)]]
        assert one.admin.delete(CACHE, params={"tenant": tenant}).json() == {"deleted": 2}
        words = other.gateway.state.words
        for session, left in (("mine", 0), ("theirs", 2)):
            listed = other.gateway.wait_for(kept_words(words, session))
            assert listed == left
    with managed(settings(keep_text=False), shared_url) as one:
        one.gateway.refresh()
    with managed(settings(), shared_url) as one:
        assert before(one, "theirs") == [None, None]


async def kept_words(words: Words, session: str) -> int:
    return len((await (await words._opened()).list_entries(Filter(session=session))).entries)
