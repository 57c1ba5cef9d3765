"""Claude's chain of thinking blocks through the gateway, with accounts that check it and accounts that don't."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.clients.upstreams import Upstream, start
from tests.gateway.gateways import Running, running

Json = dict[str, Any]
MODEL = "claude-opus-5-5"
TOOLS = [{"name": "look", "description": "Look.", "input_schema": {"type": "object", "properties": {}}}]
BINDING = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}


class Client:
    """Sends its whole conversation each time. `forgets` are the model turns whose thinking it does not keep."""

    def __init__(self, url: str, key: str = "a-key", model: str = MODEL) -> None:
        self.url = url
        self.key = key
        self.body: Json = {"model": model, "max_tokens": 4096, "system": "Be brief.", "tools": TOOLS, "messages": []}
        self.forgets: set[int] = set()
        self.last: httpx.Response | None = None

    @property
    def messages(self) -> list[Json]:
        messages: list[Json] = self.body["messages"]
        return messages

    def ask(self, text: str, headers: dict[str, str] | None = None, **members: Any) -> httpx.Response:
        """One more message of the user, and the model's answer to it."""
        self.messages.append({"role": "user", "content": text})
        shown, turn = [], 0
        for message in self.messages:
            if message["role"] == "assistant":
                turn += 1
                if turn in self.forgets:
                    message = message | {
                        "content": [one for one in message["content"] if "thinking" not in one["type"]]
                    }
            shown.append(message)
        body = self.body | members | {"messages": shown}
        response = httpx.post(self.url, json=body, headers={"x-api-key": self.key, **(headers or {})}, timeout=30)
        if response.status_code == 200:
            self.messages.append({"role": "assistant", "content": response.json()["content"]})
        else:
            self.messages.pop()
        self.last = response
        return response


@contextmanager
def chain(profile: str = "bound", store: str = "memory://") -> Iterator[tuple[Upstream, Running, Client]]:
    """A simulated account, a gateway in front of it, and a client."""
    simulator = start("anthropic", profile)
    with running({"anthropic": simulator.url}, store_url=store) as gateway:
        yield simulator, gateway, Client(f"{gateway.url}/anthropic/v1/messages")


def refusals(simulator: Upstream) -> int:
    return len(simulator.refusals())


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-fable-5-3", "claude-opus-6"])
@pytest.mark.parametrize("forgotten", [{1}, {2}, {1, 2}, {1, 3}])
def test_lost_blocks_come_back_as_one_chain(forgotten: set[int], model: str) -> None:
    """Whichever blocks a client loses, those of its answers are restored in their original order."""
    with chain() as (simulator, _, client):
        client.body["model"] = model
        client.forgets = forgotten
        assert [client.ask(f"Question {number}").status_code for number in range(5)] == [200] * 5
        assert refusals(simulator) == 0
        assert client.last is not None
        assert f"restored={len(forgotten)}" in client.last.headers["x-thoughtline-replay"]


def test_a_block_is_not_put_before_one_that_was_made_without_it() -> None:
    """The second answer was made without the gateway, and without the first one's block: restoring that would break
    it."""
    with chain() as (simulator, gateway, client):
        client.ask("One")
        client.forgets = {1}
        client.url = f"{simulator.url}/v1/messages"
        assert client.ask("Two").status_code == 200
        client.url = f"{gateway.url}/anthropic/v1/messages"
        response = client.ask("Three")
        assert (response.status_code, refusals(simulator)) == (200, 0)
        assert "restored=0" in response.headers["x-thoughtline-replay"]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_one_retry_heals_a_broken_chain_for_good(is_restarted: bool, tmp_path: Path) -> None:
    """A changed system prompt breaks the blocks of a client that keeps them. Its request is refused once, healed
    without them, and no later one is refused, even after a restart."""
    store = f"sqlite:///{tmp_path}/kept.db"
    simulator = start("anthropic", "bound")
    with running({"anthropic": simulator.url}, store_url=store) as gateway:
        client = Client(f"{gateway.url}/anthropic/v1/messages")
        assert [client.ask(f"Question {number}").status_code for number in range(2)] == [200, 200]
        client.body["system"] = "Be verbose."
        healed = client.ask("And now?")
        assert (healed.status_code, refusals(simulator)) == (200, 1)
        assert "healed=1" in healed.headers["x-thoughtline-replay"]
        if not is_restarted:
            assert [client.ask(f"More {number}").status_code for number in range(3)] == [200] * 3
    if is_restarted:
        with running({"anthropic": simulator.url}, store_url=store) as gateway:
            client.url = f"{gateway.url}/anthropic/v1/messages"
            assert [client.ask(f"More {number}").status_code for number in range(3)] == [200] * 3
    assert refusals(simulator) == 1


def test_an_account_that_does_not_check_gets_what_the_client_sent() -> None:
    """After a changed prompt an older account still reads the blocks that a client kept: they are sent unchanged."""
    with chain("older") as (simulator, _, client):
        client.ask("One")
        client.body["system"] = "Be verbose."
        response = client.ask("Two")
        assert (response.status_code, refusals(simulator)) == (200, 0)
        assert "stripped=0" in response.headers["x-thoughtline-replay"]


def test_a_clients_own_block_binding_is_its_own_business() -> None:
    """A client that asks for the refusal gets it, word for word; one that asks for the drop gets its report."""
    with chain() as (simulator, _, client):
        client.ask("One")
        client.body["system"] = "Be verbose."
        for behaviour, status in (("error", 400), ("drop_block", 200)):
            thinking = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": behaviour}}
            response = client.ask("Two", BINDING, thinking=thinking)
            assert response.status_code == status
        assert [one["reason"] for one in response.json()["input_transformations"]] == ["prefix_binding_mismatch"]
        assert refusals(simulator) == 1


def test_a_side_request_costs_the_main_thread_nothing() -> None:
    """The same turns under another system prompt are refused and healed; their own conversation keeps its blocks, and
    so does another key."""
    with chain() as (simulator, gateway, client):
        other = Client(client.url, "another-key")
        for one in (client, other):
            one.ask("One")
            one.ask("Two")
        side = Client(client.url)
        side.body |= {"system": "Name this conversation.", "messages": json.loads(json.dumps(client.messages))}
        assert side.ask("A title, please.").status_code == 200
        refused = refusals(simulator)
        for one in (client, other):
            response = one.ask("Three")
            assert response.status_code == 200
            assert "stripped=0" in response.headers["x-thoughtline-replay"]
        assert refusals(simulator) == refused
        assert gateway.state.lessons.refused == frozenset()


def test_what_is_no_part_of_the_prefix_costs_nothing() -> None:
    """Claude Code's attribution line, a deferred tool and cache markers change, and lost blocks are still restored."""
    with chain() as (simulator, _, client):
        words = {"type": "text", "text": "Be brief."}
        client.body["system"] = [{"type": "text", "text": "x-anthropic-billing-header: cc_version=2; cch=1;"}, words]
        client.ask("One")
        client.forgets = {1}
        client.body["system"] = [
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=2; cch=2;"},
            words | {"cache_control": {"type": "ephemeral"}},
        ]
        client.body["tools"] = [*TOOLS, TOOLS[0] | {"name": "late", "defer_loading": True}]
        response = client.ask("Two")
        assert (response.status_code, refusals(simulator)) == (200, 0)
        assert "restored=1" in response.headers["x-thoughtline-replay"]
