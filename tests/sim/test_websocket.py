"""Responses over WebSocket: the same provider on another wire, with what its connections keep and refuse."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest
from websockets.exceptions import ConnectionClosedError, ConnectionClosedOK, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.sim.faces import HTTP, NO_STORE, TOOLS
from tests.sim.served_simulators import served

Item = dict[str, Any]
SCRIPT = (
    'Weather? {mark}\nscript:\nthink: I look.\ncall: weather {{"city": "Paris"}}\n---\nthink: Warm.\nsay: It is warm.\n'
)
PROVIDERS = pytest.mark.parametrize("name", ["openai", "azure", "xai"])


def request(*items: Item, **more: Any) -> Item:
    tools = [{"type": "function", "name": name, "parameters": schema} for name, schema in TOOLS.items()]
    return {"type": "response.create", "model": "gpt-5", "tools": tools, **NO_STORE, "input": list(items), **more}


def user(text: str = "") -> Item:
    return {"role": "user", "content": text or SCRIPT.format(mark=uuid.uuid4())}


@contextmanager
def connected(name: str = "openai", **headers: str) -> Iterator[ClientConnection]:
    url = served(name).url.replace("http", "ws") + "/v1/responses"
    headers = {"authorization": "Bearer key-1", **{key.replace("_", "-"): value for key, value in headers.items()}}
    with connect(url, additional_headers=headers, max_size=None) as socket:
        yield socket


def events_of(socket: ClientConnection) -> list[Item]:
    """All events up to the one that ends a response."""
    events: list[Item] = []
    while not events or events[-1]["type"] not in ("response.completed", "response.incomplete", "error"):
        events.append(json.loads(socket.recv()))
    return events


def ask(socket: ClientConnection, body: Item) -> Item:
    socket.send(json.dumps(body))
    return events_of(socket)[-1]


def output(call: Item) -> Item:
    return {"type": "function_call_output", "call_id": call["call_id"], "output": "21 degrees"}


def latest_verdicts(name: str = "openai") -> list[str]:
    return list(served(name).app.simulation.log[-1]["verdicts"])


# conversations


@PROVIDERS
def test_a_delta_continues_the_latest_response(name: str) -> None:
    """Only the new items are sent; the provider judges all of it, and the reasoning it holds is whole."""
    with connected(name) as socket:
        first = ask(socket, request(user()))["response"]
        call = first["output"][-1]
        second = ask(socket, request(output(call), previous_response_id=first["id"]))["response"]
    assert second["output"][-1]["content"][0]["text"] == "It is warm."
    assert second["previous_response_id"] == first["id"]
    assert latest_verdicts(name) == ["whole"]


def test_events_are_those_of_the_stream() -> None:
    """One JSON object a frame, numbered, and nothing after the last."""
    opening = user()
    with connected() as socket:
        socket.send(json.dumps(request(opening)))
        events = events_of(socket)
    body = {key: value for key, value in request(opening, stream=True).items() if key != "type"}
    streamed = HTTP.post(served("openai").url + "/v1/responses", json=body, headers={"authorization": "Bearer key-1"})
    lines = [json.loads(line[6:]) for line in streamed.text.splitlines() if line.startswith("data: ")]
    assert [event["type"] for event in events] == [line["type"] for line in lines]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


def test_whole_input_is_taken_too() -> None:
    """A client that sends everything again is judged as over HTTP."""
    opening = user()
    with connected() as socket:
        first = ask(socket, request(opening, store=True))["response"]["output"]
        second = ask(socket, request(opening, *first, output(first[-1]), store=True))
        lost = ask(socket, request(opening, first[-1], output(first[-1]), store=True))
    assert second["type"] == "response.completed"
    assert latest_verdicts() == ["missing"]
    assert (lost["status"], lost["error"]["param"]) == (400, "input")
    assert "was provided without its required 'reasoning' item" in lost["error"]["message"]


def test_a_warm_up_says_nothing_and_is_remembered() -> None:
    """`generate: false` gives an id; the first turn leaves out what the warm-up had."""
    opening = user()
    with connected() as socket:
        warm = ask(socket, request(opening, generate=False))["response"]
        assert warm["output"] == []
        first = ask(socket, request(previous_response_id=warm["id"]))["response"]
    assert first["output"][-1]["name"] == "weather"


def test_stored_responses_outlive_their_connection() -> None:
    """With `store` any connection can go on; without, only the one that holds it."""
    with connected() as socket:
        kept = ask(socket, request(user(), store=True))["response"]
        left = ask(socket, request(user()))["response"]
    with connected() as socket:
        result = ask(socket, request(output(kept["output"][-1]), previous_response_id=kept["id"]))
        gone = ask(socket, request(output(left["output"][-1]), previous_response_id=left["id"]))
    assert result["type"] == "response.completed"
    assert gone["error"]["code"] == "previous_response_not_found"


# streams


def test_streams_run_side_by_side_and_each_in_order() -> None:
    """A slow stream holds up no other; every event names its stream."""
    slow = user(f"slow {uuid.uuid4()}\nscript:\nsay: tortoise\ndelay 20\nchunk 1")
    quick = user(f"quick {uuid.uuid4()}\nscript:\nsay: hare")
    with connected() as socket:
        for stream_id, opening in (("a", slow), ("a", quick), ("b", quick)):
            socket.send(json.dumps(request(opening, stream_id=stream_id)))
        events = [event for _ in range(3) for event in events_of(socket)]
    ends = [event for event in events if event["type"] == "response.completed"]
    texts = [(event["stream_id"], event["response"]["output"][-1]["content"][0]["text"]) for event in ends]
    assert texts == [("b", "hare"), ("a", "tortoise"), ("a", "hare")]


def test_a_stream_forks_from_another() -> None:
    """`previous_response_id` says where to go on, `stream_id` in which stream."""
    with connected() as socket:
        first = ask(socket, request(user(), stream_id="main"))["response"]
        result = output(first["output"][-1])
        fork = ask(socket, request(result, previous_response_id=first["id"], stream_id="critic"))
        main = ask(socket, request(result, previous_response_id=first["id"], stream_id="main"))
    assert [fork["type"], main["type"]] == ["response.completed"] * 2


def test_streams_are_counted_and_named() -> None:
    with connected() as socket:
        for number in range(32):
            ask(socket, request(user("hi"), stream_id=f"stream-{number}"))
        refused = ask(socket, request(user("hi"), stream_id="one-more"))
        unnamed = ask(socket, request(user("hi"), stream_id=""))
        assert ask(socket, request(user("hi")))["type"] == "response.completed"
    assert refused["error"]["code"] == "websocket_stream_limit_reached"
    assert refused["stream_id"] == "one-more"
    assert unnamed["error"]["code"] == "invalid_stream_id"


# refusals


@PROVIDERS
def test_an_unknown_response(name: str) -> None:
    with connected(name) as socket:
        error = ask(socket, request(user("hi"), previous_response_id="resp_abc"))
    assert error == {
        "type": "error",
        "status": 400,
        "error": {
            "message": "Previous response with id 'resp_abc' not found.",
            "type": "invalid_request_error",
            "param": "previous_response_id",
            "code": "previous_response_not_found",
        },
    }


def test_an_older_response_is_forgotten() -> None:
    """A connection goes on from the latest alone."""
    with connected() as socket:
        first = ask(socket, request(user()))["response"]
        ask(socket, request(user()))
        error = ask(socket, request(output(first["output"][-1]), previous_response_id=first["id"]))
    assert error["error"]["code"] == "previous_response_not_found"


def test_a_failed_turn_evicts_what_it_named() -> None:
    """The items that the connection holds, sent once more, are duplicates; after that the response is gone."""
    with connected() as socket:
        first = ask(socket, request(user()))["response"]
        items = first["output"]
        twice = ask(socket, request(*items, output(items[-1]), previous_response_id=first["id"]))
        again = ask(socket, request(output(items[-1]), previous_response_id=first["id"]))
    assert twice["error"]["message"].startswith("Duplicate item found with id")
    assert again["error"]["code"] == "previous_response_not_found"


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ("{", "could not parse"),
        ("[]", "must be an object"),
        ('{"type":"response.cancel"}', "Supported values are: 'response.create'"),
        ('{"type":"response.create","input":7}', "Invalid type for 'input'"),
        ('{"type":"response.create","input":[7]}', "Invalid type for 'input'"),
        ('{"type":"response.create","input":[],"previous_response_id":7}', "not found"),
    ],
)
def test_frames_that_are_none(frame: str, words: str) -> None:
    """Each gets an error with a status, and the connection goes on."""
    with connected() as socket:
        socket.send(frame)
        error = json.loads(socket.recv())
        assert ask(socket, request(user("hi")))["type"] == "response.completed"
    assert error["status"] == 400
    assert words in error["error"]["message"]


def test_a_binary_frame_ends_the_connection() -> None:
    with connected() as socket:
        socket.send(b"{}")
        with pytest.raises(ConnectionClosedError) as closed:
            socket.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1003


def test_a_frame_beyond_16_mib_ends_the_connection() -> None:
    with connected() as socket:
        socket.send(" " * (16 * 2**20 + 1))
        with pytest.raises(ConnectionClosedError) as closed:
            socket.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


def test_a_life_that_is_over() -> None:
    """An event says so, then the provider closes."""
    with connected(x_sim_life="1") as socket:
        error = json.loads(socket.recv())
        with pytest.raises(ConnectionClosedOK):
            socket.recv()
    assert error["status"] == 400
    assert error["error"]["code"] == "websocket_connection_limit_reached"


def test_a_connection_that_breaks_off() -> None:
    """In the middle of a response, and without a word."""
    with connected() as socket:
        socket.send(json.dumps(request(user(f"{uuid.uuid4()}\nscript:\nsay: never said\ncut 3\nchunk 2"))))
        received = [socket.recv() for _ in range(3)]
        with pytest.raises(ConnectionClosedError) as closed:
            socket.recv()
    assert len(received) == 3
    assert closed.value.rcvd is None


@pytest.mark.parametrize(("name", "status"), [("openai", 401), ("deepseek", 404)])
def test_upgrades_that_are_refused(name: str, status: int) -> None:
    """Without a key; at a provider that has no such thing."""
    with pytest.raises(InvalidStatus) as refused, connected(name, authorization=""):
        pass
    assert refused.value.response.status_code == status


@pytest.mark.parametrize("member", ["type", "stream_id", "generate"])
def test_members_of_frames_are_unknown_over_http(member: str) -> None:
    body = {"model": "gpt-5", "input": "hi", member: False}
    response = HTTP.post(served("openai").url + "/v1/responses", json=body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "unknown_parameter")


# the official SDK


def test_the_sdk() -> None:
    """Its own connection: a call, its result as a delta, an answer."""
    client = openai.OpenAI(base_url=served("openai").url + "/v1", api_key="key-1")
    body: Any = {key: value for key, value in request(user()).items() if key != "type"}
    with client.responses.connect() as connection:
        connection.response.create(**body)
        first: Any = next(event for event in connection if event.type == "response.completed")
        result = output(first.response.output[-1].to_dict())
        connection.response.create(**{**body, "input": [result], "previous_response_id": first.response.id})
        second: Any = next(event for event in connection if event.type == "response.completed")
    assert second.response.output_text == "It is warm."
    assert latest_verdicts() == ["whole"]
