"""A line's reports: on the last call, on the last hundred, at the end of each, and in the log."""

from __future__ import annotations

import asyncio
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

import thoughtline
from tests.line.chats import CALL, HEADERS, MESSAGE, NEXT, PATH, RESULT, THOUGHT, Answer, Told, request, streamed, whole
from tests.sim.served_simulators import served
from thoughtline import Line
from thoughtline.line import ExchangeReport

UNKNOWN = request({**MESSAGE, "tool_calls": [{**CALL, "id": "call_never_seen"}]}, RESULT)
REFUSED = json.dumps({"error": {"message": "The model is overloaded.", "type": "server_error"}}).encode()


def said(line: Line, told: Told, *bodies: bytes) -> list[ExchangeReport]:
    """The report of each."""
    with line.http_client(httpx2, base_url=told.url, headers=HEADERS) as client:
        for body in bodies:
            client.post(PATH, content=body)
    return list(line.exchanges[-len(bodies) :])


def test_a_turn_that_was_put_back(line: Line) -> None:
    """`last` and `explain` show which one, and why that record was used."""
    first, second = said(line, Told(lambda body: Answer(whole())), request(), NEXT)
    assert (first.outcome, first.summary, first.saved, first.turns) == ("ok", "passed on", 1, ())
    assert (second.outcome, second.summary, second.counts.restored, second.status) == ("restored", "1 restored", 1, 200)
    (turn,) = second.turns
    assert (turn.place, turn.treatment, turn.why) == ("/messages/1", "restored", "lineage")
    assert turn.words == "restored: same conversation so far, same system prompt"
    assert thoughtline.last() == second
    assert turn.words in line.explain()
    assert line.explain(5).count("deepseek-v4-pro") == 2
    assert THOUGHT not in line.explain(5)


def test_a_turn_that_was_not_found(line: Line) -> None:
    """The report says so, and why."""
    (report,) = said(line, Told(lambda body: Answer(whole())), UNKNOWN)
    assert (report.outcome, report.summary) == ("blank", "1 blank")
    assert report.turns[0].words.startswith("sent blank: there is no record of this turn")


def test_a_request_that_was_healed(line: Line) -> None:
    """Refused, corrected and answered, with the meaning of the refusal."""
    url = served("deepseek", "reseller").url
    with line.http_client(httpx2, base_url=url, headers=HEADERS) as client:
        message = client.post(PATH, content=request()).json()["choices"][0]["message"]
        del message["reasoning_content"]
        result = {**RESULT, "tool_call_id": message["tool_calls"][0]["id"]}
        body = request(message, result).replace(b"deepseek-v4-pro", b"a-model")
        assert client.post(PATH, content=body, headers={"authorization": "Bearer another"}).status_code == 200
    report = thoughtline.last()
    assert report is not None
    assert report.outcome == "healed"
    assert "refused it first (a turn lacks the reasoning that it must carry; remedy:" in report.summary


def test_a_refusal_and_a_failure(line: Line) -> None:
    """For a refusal about reasoning its meaning; for a missing answer that there was none."""
    words = "The `reasoning_content` in the thinking mode must be passed back to the API."
    refusal = json.dumps({"error": {"message": words, "type": "invalid_request_error"}}).encode()
    refused, failed = Answer(refusal, status=400), Answer(REFUSED, status=503)
    answers = [refused, refused, refused, failed]
    reports = said(line, Told(lambda body: answers.pop(0)), UNKNOWN)
    assert (reports[0].outcome, reports[0].status) == ("refused", 400)
    assert "answered 400 (a turn lacks the reasoning that it must carry" in reports[0].summary
    reports = said(line, Told(lambda body: failed), request())
    assert (reports[0].outcome, reports[0].summary) == ("failed", "upstream answered 503")
    client = line.http_client(httpx2, base_url="http://127.0.0.1:1", headers=HEADERS)
    with client, pytest.raises(httpx2.ConnectError):
        client.post(PATH, content=request())
    assert line.exchanges[-1].summary == "upstream gave no answer"


def test_a_stream(line: Line) -> None:
    """Pending until it ends; a caller that leaves early is distinguished."""
    told = Told(lambda body: streamed())
    seen: list[str] = []
    line.on_exchange(lambda report: seen.append(report.outcome))
    with line.http_client(httpx2, base_url=told.url, headers=HEADERS) as client:
        with client.stream("POST", PATH, content=request(stream=True)) as answer:
            report = thoughtline.last()
            assert report is not None
            assert (report.outcome, seen) == ("pending", [])
            answer.read()
        with client.stream("POST", PATH, content=request(stream=True)):
            pass
    assert seen == ["ok", "gone"]


def test_each_thread_and_task_has_its_own_last(line: Line) -> None:
    """None before its first call."""
    told = Told(lambda body: Answer(whole()))

    def ask(number: int) -> bool:
        body = request().replace(b"deepseek-v4-pro", b"model-%d" % number)
        with line.http_client(httpx2, base_url=told.url, headers=HEADERS) as client:
            client.post(PATH, content=body)
        report = thoughtline.last()
        return report is not None and report.destination.model == f"model-{number}"

    async def ask_async(number: int) -> bool:
        assert thoughtline.last() is None
        body = request().replace(b"deepseek-v4-pro", b"model-%d" % number)
        async with line.async_http_client(httpx2, base_url=told.url, headers=HEADERS) as client:
            await client.post(PATH, content=body)
        report = thoughtline.last()
        return report is not None and report.destination.model == f"model-{number}"

    async def all_tasks() -> list[bool]:
        return await asyncio.gather(*map(ask_async, range(6)))

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(ask, range(6)))
    with ThreadPoolExecutor(1) as pool:  # a thread that has made no call
        assert pool.submit(lambda: asyncio.run(all_tasks())).result() == [True] * 6


def test_functions_that_want_to_know(line: Line, caplog: pytest.LogCaptureFixture) -> None:
    """Each is called once per call; one that fails affects neither the call nor the others."""
    seen: list[ExchangeReport] = []

    @line.on_exchange
    def fails(report: ExchangeReport) -> None:
        raise ValueError(THOUGHT)

    line.on_exchange(seen.append)
    reports = said(line, Told(lambda body: Answer(whole())), request(), NEXT)
    assert seen == reports
    assert "a function given to on_exchange has failed: ValueError" in caplog.text
    assert THOUGHT not in caplog.text

    async def waits(report: ExchangeReport) -> None: ...

    wrong: Any
    for wrong in (waits, "a name"):
        with pytest.raises(TypeError, match="not async"):
            line.on_exchange(wrong)


def test_the_log(line: Line, caplog: pytest.LogCaptureFixture) -> None:
    """One line for a changed request, and none if there was nothing to do."""
    caplog.set_level(logging.INFO, "thoughtline")
    said(line, Told(lambda body: Answer(whole())), request())
    assert caplog.messages == []
    said(line, Told(lambda body: Answer(whole())), NEXT)
    (message,) = caplog.messages
    assert message.endswith("deepseek-v4-pro: 1 restored")


def test_what_is_kept_is_bounded(line: Line) -> None:
    """A hundred calls, without requests or answers."""
    for _ in range(120):
        exchange = line.begin_sync("POST", f"https://api.deepseek.com{PATH}", HEADERS, request())
        exchange.read(whole())
        exchange.end()
    assert len(line.exchanges) == 100
    assert exchange.report == line.exchanges[-1]
    assert Line("memory://").explain() == "nothing was asked through this line yet"
    with pytest.raises(ValueError, match="at least one"):
        line.explain(0)


def test_a_request_that_is_none_of_ours(line: Line) -> None:
    """There is no report on it."""
    exchange = line.begin_sync("GET", "https://example.org/", {}, b"")
    assert (exchange.report, exchange.headers) == (None, {})
    exchange.cut()
    assert line.exchanges == ()
