"""What an exchange costs where client and provider speak differently, beside one format: `python -m bench.translated`.

A whole gateway in process with a made-up provider: Python calls, which don't depend on how busy the machine is, and the
least CPU of many. No turns were played before, so 20 of them were never seen. A chunk is what 200 more of them cost.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from bench.load.bodies import LAST_ANSWER, Conversation, Template, stream_events
from bench.load.messages import MESSAGES_ANSWER, messages_events, messages_template
from tests.gateway.call_counts import Client, MadeUp, with_gateway

_PLAIN, _TURNS = Conversation("4 kB, nothing to restore", 0, 4_000), Conversation("4 kB, 20 turns", 20, 4_000)
_FEW, _MANY = 100, 300


class Lane(NamedTuple):
    """A client and a provider."""

    name: str
    path: str
    is_messages_client: bool
    is_messages_provider: bool

    def template(self, conversation: Conversation, *, is_streaming: bool) -> Template:
        of_client = messages_template if self.is_messages_client else Conversation.template
        return of_client(conversation, is_streaming)

    @property
    def answer(self) -> bytes:
        return MESSAGES_ANSWER if self.is_messages_provider else LAST_ANSWER

    def events(self, count: int) -> list[bytes]:
        return messages_events(count) if self.is_messages_provider else stream_events(count)


LANES = (
    Lane("chat to chat", "/deepseek/v1/chat/completions", False, False),
    Lane("Messages to Messages", "/anthropic/v1/messages", True, True),
    Lane("Messages to chat", "/mistral/v1/messages", True, False),
    Lane("chat to Messages", "/anthropic/v1/chat/completions", False, True),
)


class Cost(NamedTuple):
    calls: float
    micros: float


def cost(lane: Lane, pieces: Sequence[bytes], template: Template) -> Cost:
    """Of one exchange."""

    async def use(client: Client) -> Cost:
        for number in range(5):  # what is made once is there then
            await client.ask(template.numbered(number))
        calls = (await client.counted(template.numbered(9))).total()
        least = float("inf")
        for number in range(40):
            before = time.process_time()
            await client.ask(template.numbered(20 + number))
            least = min(least, time.process_time() - before)
        return Cost(calls, least * 1e6)

    return with_gateway(MadeUp(pieces, is_stream=len(pieces) > 1), use, lane.path)


def chunk(lane: Lane) -> Cost:
    template = lane.template(_PLAIN, is_streaming=True)
    few, many = (cost(lane, lane.events(count), template) for count in (_FEW, _MANY))
    return Cost((many.calls - few.calls) / (_MANY - _FEW), (many.micros - few.micros) / (_MANY - _FEW))


def main() -> None:
    print(f"{'':22}{_PLAIN.name:>26}{_TURNS.name:>20}{'a chunk':>18}")
    print(f"{'':22}{'calls':>16}{'µs':>10}{'calls':>10}{'µs':>10}{'calls':>9}{'µs':>9}")
    for lane in LANES:
        whole = [cost(lane, [lane.answer], lane.template(one, is_streaming=False)) for one in (_PLAIN, _TURNS)]
        row = "".join(f"{one.calls:>{width}.0f}{one.micros:>10.0f}" for one, width in zip(whole, (16, 10), strict=True))
        piece = chunk(lane)
        print(f"{lane.name:<22}{row}{piece.calls:>9.1f}{piece.micros:>9.1f}", flush=True)


if __name__ == "__main__":
    main()
