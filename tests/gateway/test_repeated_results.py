"""Histories of Google's clients at other providers, over real sockets: results sent twice, chunks kept as contents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.gateway.test_translation import GatewayLane, lane
from tests.sim.faces import TOOLS, WIRES
from tests.translation.lanes import MORE_UPSTREAMS, THINKS, UPSTREAMS, Upstream

Json = dict[str, Any]
NOT_GEMINI = [upstream for upstream in (*UPSTREAMS, *MORE_UPSTREAMS) if upstream.format != "gemini_generate"]
SCRIPT = """Weather, please.
script:
think: two cities at once
call: weather {"city": "A"}
call: weather {"city": "B"}
---
think: and one more, to be sure of it all
say: Let me look again, for it may have changed.
call: weather {"city": "C"}
---
think: enough
say: It is sunny everywhere, and it will be for days.
---
think: the last one
say: Goodbye."""


class GenAi:
    """A client of Google's SDK: contents in, chunks out."""

    def __init__(self, one: GatewayLane, *, keeps_chunks: bool) -> None:
        self._lane = one
        self._keeps_chunks = keeps_chunks
        self.contents: list[Json] = [{"role": "user", "parts": [{"text": SCRIPT}]}]

    def ask(self) -> list[Json]:
        """One turn, streamed; the calls that it made."""
        wire = WIRES["gemini_generate"]
        body = {"contents": self.contents, wire.tools_member: wire.tools(TOOLS), **THINKS["gemini_generate"]}
        answer = self._lane.exchange(json.dumps(body).encode(), True)
        assert answer.status == 200, answer.body
        chunks = [json.loads(line[6:]) for line in answer.body.decode().splitlines() if line.startswith("data: {")]
        contents = [chunk["candidates"][0]["content"] for chunk in chunks if chunk["candidates"][0].get("content")]
        contents = [content for content in contents if content.get("parts")]
        parts = [part for content in contents for part in content["parts"]]
        self.contents += contents if self._keeps_chunks else [{"role": "model", "parts": parts}]
        return [part["functionCall"] for part in parts if "functionCall" in part]

    def answer(self, calls: list[Json]) -> Json:
        results = [
            {"functionResponse": {"id": call["id"], "name": call["name"], "response": {"result": call["args"]["city"]}}}
            for call in calls
        ]
        content = {"role": "user", "parts": results}
        self.contents.append(content)
        return content


@pytest.mark.parametrize("upstream", NOT_GEMINI, ids=lambda upstream: upstream.id)
def test_chunks_that_are_contents_of_their_own_are_one_turn(upstream: Upstream) -> None:
    """google-genai keeps a streamed answer chunk by chunk: parallel calls are next to their results, text is whole, and
    all thinking comes back once."""
    with lane(upstream, "gemini_generate") as one:
        client = GenAi(one, keeps_chunks=True)
        assert len(client.ask()) == 2
        client.answer([part["functionCall"] for c in client.contents for part in c["parts"] if "functionCall" in part])
        client.answer(client.ask())
        assert client.ask() == []
        client.contents.append({"role": "user", "parts": [{"text": "Thanks."}]})
        client.ask()
        assert sum(content["role"] == "model" for content in client.contents) > 5
        assert set(one.verdicts) <= {"whole", "none"}


@pytest.mark.parametrize("where", ["in the next content", "in the same content", "after the next answer"])
@pytest.mark.parametrize("upstream", NOT_GEMINI, ids=lambda upstream: upstream.id)
def test_a_result_that_is_sent_twice_is_one(upstream: Upstream, where: str) -> None:
    """Gemini CLI repeats every result when it resumes a session, directly after the first or later."""
    with lane(upstream, "gemini_generate") as one:
        client = GenAi(one, keeps_chunks=False)
        told = client.answer(client.ask())
        if where == "in the next content":
            client.contents.append(told)
        elif where == "in the same content":
            told["parts"] = told["parts"] * 2
        again = client.answer(client.ask())
        client.contents += [told, again] if where == "after the next answer" else [again]
        assert client.ask() == []
        client.contents.append({"role": "user", "parts": [{"text": "Thanks."}]})
        client.ask()
        assert set(one.verdicts) <= {"whole", "none"}
