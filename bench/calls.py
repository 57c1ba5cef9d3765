"""How many Python functions one exchange calls, by file: `python -m bench.calls [--functions] [--turns N]`.

`--chunks N` is an answer that is streamed. `--history KIND` is a conversation of so many turns that grew, with what a
client did to it: `bench.remembered` has the kinds. `lost` and `kept` are translated, its thinking lost or sent back.

Counts, no times: they are the same on a busy machine. `tests/gateway/test_calls.py` holds the gateway to them.
"""

from __future__ import annotations

import argparse
import json
import sysconfig
from collections import Counter
from pathlib import Path

from bench.load.bodies import LAST_ANSWER, Conversation, answer_body, request, stream_events
from bench.load.sessions import Kept, Session
from bench.remembered import KINDS
from tests.gateway.call_counts import Calls, Client, MadeUp, with_gateway

_FOLDERS = (
    f"{Path(__file__).parents[1]}/src/",
    sysconfig.get_path("platlib") + "/",
    sysconfig.get_path("stdlib") + "/",
)


def counted(turns: int, chunks: int = 0) -> Calls:
    """One exchange of a conversation with so many turns to restore, answered by a stream of so many chunks or whole."""
    conversation = Conversation(f"4 kB, {turns} turns", turns, 4_000)
    provider = MadeUp([LAST_ANSWER])

    async def use(client: Client) -> Calls:
        for number in range(turns):
            provider.pieces = [answer_body(conversation.answer(number))]
            await client.ask(request(conversation, number))
        provider.is_stream = bool(chunks)
        provider.pieces = stream_events(chunks) if chunks else [LAST_ANSWER]
        template = conversation.template(bool(chunks))
        for number in range(3):  # what is made once is there then
            await client.ask(template.numbered(number))
        calls = await client.counted(template.numbered(9))
        assert client.headers[b"x-thoughtline-replay"].startswith(b"restored=%d," % turns)
        return calls

    return with_gateway(provider, use)


def counted_grown(kind: str, turns: int) -> Calls:
    """The last exchange of a conversation that grew by a turn with each request, as its client shows it."""
    how = KINDS[kind]
    provider = MadeUp([LAST_ANSWER])

    async def use(client: Client) -> Calls:
        messages = [how.opening]
        for number in range(turns):
            answer = how.answer(number)
            provider.pieces = [json.dumps(answer).encode()]
            await client.ask(json.dumps(how.body(how.shows(messages))).encode())
            messages += how.kept(answer)
        return await client.counted(json.dumps(how.body(how.shows(messages))).encode())

    return with_gateway(provider, use)


def counted_translated(turns: int, *, keeps_thinking: bool) -> Calls:
    """The last exchange of a session of so many turns whose client speaks Messages, and whose provider speaks chat."""
    session, provider = Kept("a session", keeps_thinking=keeps_thinking), MadeUp([LAST_ANSWER])

    async def use(client: Client) -> Calls:
        for number in range(turns):
            provider.pieces = [Session("a session", is_chat=True).answer(number)]
            session.hear(await client.ask(session.request()))
        return await client.counted(session.request())

    return with_gateway(provider, use, "/deepseek/v1/messages", formats=("openai_chat",))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=0, help="turns to restore")
    parser.add_argument("--chunks", type=int, default=0, help="answer with a stream of so many")
    parser.add_argument(
        "--history", default="", choices=["", "lost", "kept", *KINDS], help="a conversation that grew to so many turns"
    )
    parser.add_argument("--functions", action="store_true", help="by function")
    asked = parser.parse_args()
    if asked.history in ("lost", "kept"):
        calls = counted_translated(asked.turns, keeps_thinking=asked.history == "kept")
    else:
        calls = counted_grown(asked.history, asked.turns) if asked.history else counted(asked.turns, asked.chunks)
    rows: Counter[str] = Counter()
    for (file, function), count in calls.items():
        name = file
        for folder in _FOLDERS:
            name = name.removeprefix(folder)
        rows[f"{name} {function}" if asked.functions else name] += count
    for name, count in rows.most_common():
        print(f"{count:>6}  {name}")
    print(f"{calls.total():>6}  in all")


if __name__ == "__main__":
    main()
