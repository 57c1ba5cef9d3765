"""What planning costs as a history grows, beside `orjson.loads` of the same body.

    python -m bench.planner

Every assistant turn lost its reasoning and its record is found: the most there is to do. `needs` computes the keys,
`plan` decides, `encode` writes the body with everything put back.
"""

from __future__ import annotations

import json

import orjson
from msgspec import Raw

from bench.measure import best_seconds
from thoughtline.engine.capture import capture
from thoughtline.formats import FORMATS
from thoughtline.providers import CONTRACTS
from thoughtline.replay.planner import needs, plan
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.items import ReasoningText
from thoughtline.values.records import Key, Record
from thoughtline.values.turns import Candidate, Finish, Provenance, Reply, Transcript, Turn

WHO = Identity("tenant")
ISSUER = Destination("deepseek", "host", "deepseek-v4-pro", "openai_chat", "account")
WHERE = Provenance(
    *("tenant", "deepseek", "host", "account", "deepseek-v4-pro", "deepseek-v4-pro"), "openai_chat", "deepseek"
)
CONTRACT = CONTRACTS["deepseek"]
CHAT = FORMATS["openai_chat"]
RESULT = "def load(path):\n    return open(path).read()\n" * 20


def history(messages: int) -> bytes:
    """A stripped history of about so many messages."""
    said: list[dict[str, object]] = []
    for number in range(max(1, messages // 3)):
        arguments = json.dumps({"path": f"src/{number}.py"})
        call = {"id": f"call_00_{number:08x}", "type": "function", "function": {"name": "read", "arguments": arguments}}
        said += [
            {"role": "user", "content": f"look at {number}"},
            {"role": "assistant", "content": "Reading it.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": RESULT},
        ]
    return json.dumps({"model": "deepseek-v4-pro", "tools": [{}], "messages": said}).encode()


def records_of(transcript: Transcript) -> dict[Key, list[Record]]:
    """The record of every assistant turn."""
    found: dict[Key, list[Record]] = {}
    for position, turn in enumerate(transcript.turns):
        if turn.role == "assistant":
            before = Transcript("openai_chat", transcript.turns[:position], tools=(Raw(b"{}"),))
            answer = Turn("assistant", (ReasoningText(f"thought {position} " * 20), *turn.items))
            reply = Reply("openai_chat", (Candidate(answer, 0, Finish("stop", "stop")),))
            for record in capture(before, reply, WHERE, float(position)):
                for key in record.keys:
                    found.setdefault(key, []).append(record)
    return found


def bench(messages: int) -> None:
    body = history(messages)
    bodies = CHAT.bodies
    transcript = bodies.decode_request(body, CONTRACT.dialect)
    found = records_of(transcript) if messages <= 1000 else _records_of_many(transcript)
    needed = needs(transcript, CONTRACT, WHO)
    planned = plan(transcript, CONTRACT, needed, found, ISSUER)
    restored = planned.apply(transcript)
    seconds = best_seconds(
        {
            "orjson": lambda: orjson.loads(body),
            "needs": lambda: needs(transcript, CONTRACT, WHO),
            "plan": lambda: plan(transcript, CONTRACT, needed, found, ISSUER).apply(transcript),
            "encode": lambda: bodies.encode_request(restored, CONTRACT.dialect),
        },
        rounds=5,
        at_least_seconds=0.05,
    )
    count = len(transcript.turns)
    each = {name: value / count * 1e6 for name, value in seconds.items()}
    row = f"{count:>9} {len(body) / 1e6:>7.2f} {planned.counts.restored:>9}"
    print(row + "".join(f" {each[name]:>9.2f}" for name in ("needs", "plan", "encode", "orjson")))


def _records_of_many(transcript: Transcript) -> dict[Key, list[Record]]:
    """The same for a long history in one pass: the keys that planning asks for are the keys of the records."""
    found: dict[Key, list[Record]] = {}
    template = next(iter(records_of(Transcript("openai_chat", transcript.turns[:3])).values()))[0]
    for step in needs(transcript, CONTRACT, WHO).steps:
        items = (ReasoningText(f"thought {step.positions[0]} " * 20), *step.items)
        record = Record(template.id, WHERE, items, step.keys, 1.0)
        for key in step.keys:
            found.setdefault(key, []).append(record)
    return found


if __name__ == "__main__":
    print("µs per message, all reasoning put back")
    print(f"{'messages':>9} {'MB':>7} {'restored':>9} {'needs':>9} {'plan':>9} {'encode':>9} {'loads':>9}")
    for size in (10, 100, 1_000, 10_000):
        bench(size)
