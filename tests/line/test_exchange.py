"""`line.begin`: one request and its answer, for code that sends it itself."""

from __future__ import annotations

import json

import pytest

from tests.line.chats import CHUNKS, HEADERS, NEXT, PATH, THOUGHT, events, request, restored, whole
from thoughtline import Line, ThoughtlineError
from thoughtline.engine import open_store
from thoughtline.line import AsyncExchange, SyncExchange
from thoughtline.stores import Filter

URL = f"https://api.deepseek.com{PATH}"
REFUSAL = json.dumps(
    {"error": {"message": "The `reasoning_content` in the thinking mode must be passed back to the API."}}
).encode()


async def begin(line: Line, body: bytes, url: str = URL) -> AsyncExchange:
    return await line.begin("POST", url, HEADERS, body)


def begin_sync(line: Line, body: bytes, url: str = URL) -> SyncExchange:
    return line.begin_sync("POST", url, HEADERS, body)


async def test_a_whole_answer_is_remembered(line: Line) -> None:
    """An answer passed to `read` is restored in the next request, and `outcome` reports it."""
    exchange = await begin(line, request())
    assert exchange.body == request()
    exchange.read(whole())
    await exchange.end()
    following = await begin(line, NEXT)
    assert restored(following.body) == [THOUGHT]
    assert following.outcome.restored == 1
    assert following.headers["x-thoughtline-replay"].startswith("restored=1, ")


def test_the_sync_twin_needs_no_loop(line: Line) -> None:
    """The same calls without an event loop."""
    exchange = begin_sync(line, request())
    exchange.read(whole())
    exchange.end()
    assert restored(begin_sync(line, NEXT).body) == [THOUGHT]


async def test_a_stream_says_when_its_turn_has_ended(line: Line) -> None:
    """`feed` returns true for the piece that ends the turn: saved then, it is found before the piece is shown."""
    exchange = await begin(line, request(stream=True))
    assert [exchange.feed(piece) for piece in events()[:3]] == [False, False, True]
    await exchange.save()
    assert restored((await begin(line, NEXT)).body) == [THOUGHT]


async def test_decoded_chunks_have_a_way_in(line: Line) -> None:
    """`hear` accepts what an SDK has already decoded."""
    exchange = await begin(line, request(stream=True))
    for chunk in CHUNKS:
        if exchange.hear(chunk):
            await exchange.save()
    assert restored((await begin(line, NEXT)).body) == [THOUGHT]


async def test_what_can_not_be_read_is_nobodys_problem(line: Line) -> None:
    """Chunks that are not JSON and bytes that are not an answer end the reading, and nothing else."""
    exchange = await begin(line, request(stream=True))
    assert not exchange.hear(object())
    assert not exchange.hear(CHUNKS[2])
    other = await begin(line, request())
    assert not other.read(b"<html>")
    for one in (exchange, other):
        await one.end()
    assert line.report.saved == 0


@pytest.mark.parametrize(("pieces", "is_complete"), [(2, False), (3, True)])
async def test_a_stream_that_is_cut_is_marked_so(store_url: str, pieces: int, is_complete: bool) -> None:
    """Its content is kept as a truncated turn, once; a turn that was already complete stays so."""
    async with Line(store_url) as line:
        exchange = await begin(line, request(stream=True))
        for piece in events()[:pieces]:
            exchange.feed(piece)
        exchange.cut()
        exchange.cut()
        await exchange.end()
    store = await open_store(store_url)
    kept = (await store.list_entries(Filter())).entries
    await store.close()
    assert [entry.record.is_complete for entry in kept] == [is_complete]


async def test_a_refusal_is_healed_twice_at_most(line: Line) -> None:
    """An unknown provider wants reasoning back: the body changes, until nothing more can be tried."""
    url = f"https://elsewhere.example{PATH}"
    body = NEXT.replace(b"deepseek-v4-pro", b"a-model")
    exchange = await line.begin("POST", url, HEADERS, body)
    assert exchange.body == body
    tries = 0
    while await exchange.heal(400, REFUSAL):
        tries += 1
        assert exchange.body != body
    assert 1 <= tries <= 2
    assert exchange.outcome.healed == 0, "nothing helped"


async def test_what_healed_is_known_at_the_next_start(store_url: str) -> None:
    """A lesson is kept in the store, and loaded when another line is opened over it."""
    url = f"https://elsewhere.example{PATH}"
    body = NEXT.replace(b"deepseek-v4-pro", b"a-model")
    async with Line(store_url) as line:
        exchange = await line.begin("POST", url, HEADERS, body)
        assert await exchange.heal(400, REFUSAL)
        healed = exchange.body
        exchange.read(whole().replace(b"deepseek-v4-pro", b"a-model"))
        await exchange.end()
        assert exchange.outcome.healed == 1
        assert line.report.healed == 1
    async with Line(store_url) as again:
        assert (await again.begin("POST", url, HEADERS, body)).body == healed


async def test_other_errors_are_none_of_ours(line: Line) -> None:
    """A refusal that is not about reasoning heals nothing."""
    exchange = await begin(line, NEXT)
    assert not await exchange.heal(400, b'{"error": {"message": "no such model"}}')
    assert not await exchange.heal(429, b"slow down")


@pytest.mark.parametrize(
    ("method", "url"), [("GET", URL), ("POST", "https://api.deepseek.com/v1/embeddings"), ("POST", "not an address")]
)
async def test_what_is_no_conversation_goes_out_as_it_came(line: Line, method: str, url: str) -> None:
    """For an address of no format, nothing is prepared, read or reported."""
    exchange = await line.begin(method, url, HEADERS, b"anything")
    assert (exchange.body, exchange.headers) == (b"anything", {})
    assert not exchange.read(whole())
    await exchange.end()
    assert not await exchange.heal(400, REFUSAL)


async def test_a_signed_request_is_left_alone(line: Line) -> None:
    """Changing the body of a signed request makes its signature invalid."""
    headers = {"Authorization": "AWS4-HMAC-SHA256 Credential=a, Signature=b"}
    assert (await line.begin("POST", URL, headers, NEXT)).headers == {}


async def test_tenants_never_mix(line: Line, store_url: str) -> None:
    """Another credential finds nothing; a named tenant takes precedence over the credential."""
    exchange = await begin(line, request())
    exchange.read(whole())
    await exchange.end()
    other = await line.begin("POST", URL, {"authorization": "Bearer another"}, NEXT)
    assert other.outcome.restored == 0
    async with Line(store_url, tenant="ann") as anns:
        assert (await begin(anns, NEXT)).outcome.restored == 0


def test_a_session_names_what_is_asked_in_it(line: Line) -> None:
    """Records of one `session` have its name."""
    with line.session("task-42"):
        exchange = begin_sync(line, request())
        exchange.read(whole())
        assert [record.provenance.session for record in exchange._taken()] == ["task-42"]


async def test_a_store_that_a_person_must_mend_fails_no_request() -> None:
    """Memory works alone, and the report says why; opening the line explicitly raises the error."""
    url = "sqlite:no-such-form"
    line = Line(url)
    exchange = await begin(line, request())
    exchange.read(whole())
    await exchange.end()
    assert restored((await begin(line, NEXT)).body) == [THOUGHT]
    assert line.report.store == "memory"
    assert line.report.problem
    await line.aclose()
    with pytest.raises(ThoughtlineError), Line(url):
        pass


async def test_a_report_counts(line: Line) -> None:
    """Requests, turns saved, and what was restored."""
    exchange = await begin(line, request())
    exchange.read(whole())
    await exchange.end()
    await begin(line, NEXT)
    report = line.report
    assert (report.requests, report.saved, report.restored, report.late, report.store) == (2, 1, 1, 0, "ok")
