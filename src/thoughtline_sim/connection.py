"""A WebSocket connection to the Responses API: a frame in, events out, with the rules of the HTTP side.

Content that a frame leaves to the connection is filled in before the rules apply: the frame becomes the request that a
client without a connection would have sent. Facts: developers.openai.com, guide "WebSocket mode", and the events' types
in openai-python, both read on 2026-11-16.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from thoughtline_sim.exchange import Api
from thoughtline_sim.reading import Json, JsonObject, as_object, string
from thoughtline_sim.refusals import openai_error
from thoughtline_sim.rules.responses import previous_not_found
from thoughtline_sim.simulation import HttpResponse, Simulation, account_of, json_response
from thoughtline_sim.values import HttpRequest, Rejection
from thoughtline_sim.wires.responses import items_of
from thoughtline_sim.writing import compact

MAX_STREAMS = 32
_STREAM_ID = re.compile(r"[\w.-]{1,256}", re.ASCII)
_OVER = ("response.completed", "response.incomplete")
_FRAME_MEMBERS = ("type", "stream_id", "previous_response_id")

LIFE_OVER = openai_error(
    "Responses websocket connection limit reached (60 minutes). Create a new websocket connection to continue.",
    code="websocket_connection_limit_reached",
)


class CreateFrame(NamedTuple):
    """A valid `response.create`, and its stream: empty for the unnamed one."""

    body: JsonObject
    stream_id: str


class SocketAnswer(NamedTuple):
    """The events for one frame, and the pause between them. After a cut-off answer the connection is closed."""

    events: list[str]
    delay_ms: int = 0
    is_cut: bool = False


class _Held(NamedTuple):
    """A response that the connection still has, with everything before it."""

    id: str
    items: list[Json]


def connect(simulation: Simulation, upgrade: HttpRequest) -> SimConnection | HttpResponse:
    """A connection, or the response to a rejected upgrade."""
    api = simulation.api_at(upgrade.path)
    if api is None or not api.has_websocket:
        return json_response(404, {"error": {"message": f"{simulation.simulator.name} has no websocket here"}})
    if not any(upgrade.headers.get(name) for name in ("authorization", "api-key", "x-api-key")):
        return simulation.refuse(upgrade, openai_error("Missing bearer or basic authentication in header", 401))
    return SimConnection(simulation, api, upgrade)


class SimConnection:
    """What a provider keeps while a connection is open: the latest response of each stream."""

    def __init__(self, simulation: Simulation, api: Api, upgrade: HttpRequest) -> None:
        self._simulation = simulation
        self._api = api
        self._upgrade = upgrade
        self._stream_ids: set[str] = set()
        self._latest: dict[str, _Held] = {}

    def read(self, text: str) -> CreateFrame | SocketAnswer:
        """The frame, or its error."""
        try:
            body: Json = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return self._refused(openai_error("We could not parse the JSON body of your request."))
        if not isinstance(body, dict):
            return self._refused(openai_error("The JSON body of a request must be an object."))
        if body.get("type") != "response.create":
            message = f"Invalid value: '{string(body.get('type'))}'. Supported values are: 'response.create'."
            return self._refused(openai_error(message, param="type", code="invalid_value"))
        return self._in_stream(body)

    def _in_stream(self, body: JsonObject) -> CreateFrame | SocketAnswer:
        stream_id = string(body.get("stream_id"))
        if "stream_id" not in body:
            return CreateFrame(body, "")
        if not _STREAM_ID.fullmatch(stream_id):
            message = (
                "The 'stream_id' field must be a non-empty string with at most 256 characters and may only contain "
                "letters, numbers, underscores, hyphens, and periods."
            )
            return self._refused(openai_error(message, param="stream_id", code="invalid_stream_id"))
        if stream_id not in self._stream_ids and len(self._stream_ids) == MAX_STREAMS:
            message = (
                f"This WebSocket connection has reached its maximum number of distinct stream IDs ({MAX_STREAMS}). "
                "Reuse an existing stream_id or open a new WebSocket connection."
            )
            refusal = openai_error(message, param="stream_id", code="websocket_stream_limit_reached")
            return self._refused(refusal, stream_id)
        self._stream_ids.add(stream_id)
        return CreateFrame(body, stream_id)

    def answer(self, frame: CreateFrame) -> SocketAnswer:
        """The provider's answer. Frames of one stream must be passed in order."""
        name = frame.body.get("previous_response_id")
        held = self._held(string(name)) if name is not None else _Held("", [])
        if held is None:
            return self._refused(previous_not_found(string(name)), frame.stream_id)
        given = frame.body.get("input")
        whole = given if isinstance(given, list) else items_of(frame.body)
        body = {key: value for key, value in frame.body.items() if key not in _FRAME_MEMBERS}
        body |= {"stream": True}
        if isinstance(given, (str, list)) or (given is None and held.id):
            body["input"] = [*held.items, *whole]
        response = self._simulation.respond_to(self._api, self._upgrade._replace(body=compact(body)))
        if response.status >= 400:
            # A failed turn makes the provider forget the response that it named.
            self._latest = {stream_id: known for stream_id, known in self._latest.items() if known.id != held.id}
            return SocketAnswer([_error_event(response.status, response.frames[0], frame.stream_id)])
        return self._answered(frame, response, body["input"])

    def _held(self, name: str) -> _Held | None:
        """A response by its id: the latest of any stream, or a stored one."""
        latest = next((known for known in self._latest.values() if known.id == name), None)
        if latest is not None:
            return latest
        stored = self._simulation.ledger.responses.get((account_of(self._upgrade), name))
        return _Held(name, [*stored.before, *stored.items]) if stored and stored.is_stored else None

    def _answered(self, frame: CreateFrame, response: HttpResponse, before: list[Json]) -> SocketAnswer:
        """The events of a response as frames. A successful response becomes its stream's latest."""
        events: list[str] = []
        for part in b"".join(response.frames).split(b"\n\n")[:-1]:
            event: JsonObject = msgspec.json.decode(part.partition(b"\ndata: ")[2])
            if "response" in event:
                event["response"]["previous_response_id"] = frame.body.get("previous_response_id")
            if event["type"] in _OVER:
                self._latest[frame.stream_id] = _Held(event["response"]["id"], [*before, *event["response"]["output"]])
            events.append(_text(event, frame.stream_id))
        return SocketAnswer(events, response.delay_ms, response.is_cut)

    def _refused(self, rejection: Rejection, stream_id: str = "") -> SocketAnswer:
        self._simulation.refuse(self._upgrade, rejection)
        return SocketAnswer([_error_event(rejection.status, rejection.body, stream_id)])


def life_over() -> str:
    """The last event of a connection that has reached its maximum age."""
    return _error_event(LIFE_OVER.status, LIFE_OVER.body, "")


def _error_event(status: int, body: bytes, stream_id: str) -> str:
    """An error of the HTTP side, in any envelope, as a frame."""
    members = as_object(msgspec.json.decode(body))
    error = members.get("error")
    if not isinstance(error, dict):
        error = {"message": error, "type": "invalid_request_error", "param": None, "code": members.get("code")}
    return _text({"type": "error", "status": status, "error": error}, stream_id)


def _text(event: JsonObject, stream_id: str) -> str:
    return compact({**event, "stream_id": stream_id} if stream_id else event).decode()
