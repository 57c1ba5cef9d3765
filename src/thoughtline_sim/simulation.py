"""A running simulator: requests in, responses out. No sockets, no clock: time and randomness are arguments."""

from __future__ import annotations

import random
import re
from collections import deque
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from thoughtline_sim.exchange import Api, Reject, SimExchange, Simulator
from thoughtline_sim.ledger import Ledger, cached_chars, judge, remember_turn, runs_of
from thoughtline_sim.model import play
from thoughtline_sim.pieces import CallTool, Hosted, Redacted, ScriptedTurn, Think
from thoughtline_sim.reading import Json, JsonObject, as_object, canonical
from thoughtline_sim.script import number_in
from thoughtline_sim.tokens import Mint
from thoughtline_sim.values import HttpRequest, InputMessage, ModelAnswer, Rejection, TokenCounts, Verdict
from thoughtline_sim.writing import compact

MAX_LOG = 200
CHUNK_CHARS = 24
MAX_DELAY_MS = 60_000
MIN_CACHED = 1_024
"""Tokens: a shorter prefix is not cached (OpenAI)."""
_SHOWN_CHARS = 4_000
_NOTHING = ScriptedTurn(())
"""The answer to a warm-up."""
_COUNTED = ("opening", "requests", "refusals", "verdicts", "latest")


class HttpResponse(NamedTuple):
    """A response: one frame, or those of a stream with the pause between them. A stream that is cut off never ends
    properly.
    """

    status: int
    content_type: str
    frames: list[bytes]
    headers: tuple[tuple[str, str], ...] = ()
    delay_ms: int = 0
    is_cut: bool = False


class Simulation:
    """One provider, with its memory."""

    def __init__(self, simulator: Simulator, profile: str, seed: int, now: Callable[[], float]) -> None:
        if profile not in simulator.profiles:
            raise ValueError(f"{simulator.name} has no profile {profile}: {', '.join(simulator.profiles)}")
        self.simulator = simulator
        self.profile = profile
        self.ledger = Ledger()
        self.log: deque[JsonObject] = deque(maxlen=MAX_LOG)
        self._entry: JsonObject | None = None
        self._random = random.Random(seed)
        self._now = now
        # A simulator's key is its name: tokens survive a restart, and other simulators can't open them.
        self.mint = Mint(sha256(b"thoughtline sim " + simulator.name.encode()).digest(), self._random.randbytes)

    def respond(self, request: HttpRequest) -> HttpResponse:
        """The provider's answer to any request."""
        api = self.api_at(request.path)
        if request.method == "GET" and request.path.rstrip("/").endswith("/models"):
            return json_response(200, self._models())
        if api is None or request.method != "POST":
            for path, aside in self.simulator.others:
                if re.search(path, request.path):
                    found = aside(request, self.profile) if callable(aside) else aside
                    return _refused(found) if isinstance(found, Rejection) else json_response(200, found)
            known = ", ".join(path for api in self.simulator.apis for path in _readable(api.path))
            return json_response(404, {"error": {"message": f"{self.simulator.name} answers POST on {known}"}})
        return self.respond_to(api, request)

    def api_at(self, path: str) -> Api | None:
        return next((api for api in self.simulator.apis if re.search(api.path, path)), None)

    def respond_to(self, api: Api, request: HttpRequest) -> HttpResponse:
        """The answer of one API, by its rules."""
        exchange = self._read(api, request)
        if isinstance(exchange, str):
            return self.refuse(request, self._reject(api)(exchange))
        return self._answer(api, exchange)

    def refuse(self, request: HttpRequest, rejection: Rejection) -> HttpResponse:
        """An error for something that is no request of the API, with its log line."""
        self._note(request, rejection)
        return _refused(rejection)

    def take_entry(self) -> JsonObject | None:
        """The log line of the latest request, if there is one that was not returned before."""
        entry, self._entry = self._entry, None
        return entry

    def stats(self) -> JsonObject:
        """The verdicts on the reasoning of every conversation."""
        rows = [
            {"conversation": one.id, **{name: getattr(one, name) for name in _COUNTED}}
            for one in self.ledger.conversations.values()
        ]
        return {"simulator": self.simulator.name, "profile": self.profile, "conversations": rows}

    def _models(self) -> JsonObject:
        owner = self.simulator.name
        rows = [{"id": name, "object": "model", "owned_by": owner} for name in self.simulator.models]
        return {"object": "list", "data": rows}

    def _reject(self, api: Api) -> Reject:
        return api.reject or self.simulator.reject

    def _read(self, api: Api, request: HttpRequest) -> SimExchange | str:
        """The request, or its error."""
        try:
            body: Json = msgspec.json.decode(request.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return "We could not parse the JSON body of your request."
        if not isinstance(body, dict):
            return "The JSON body of a request must be an object."
        model = api.model_of(body, request.path)
        body = as_object(body.get(api.inside)) if api.inside else body
        problem = api.wire.problem_of(body)
        if problem is not None:
            return problem
        exchange = SimExchange(
            body=body,
            history=api.wire.read(body),
            model=model,
            account=account_of(request),
            profile=self.profile,
            request=request,
            is_streaming=api.is_streaming(body, request.path),
            mint=self.mint,
            ledger=self.ledger,
            notes={},
            unread={},
        )
        return exchange._replace(thinks=(api.is_thinking or self.simulator.is_thinking)(exchange))

    def _rejection(self, api: Api, exchange: SimExchange) -> Rejection | None:
        found = next((found for rule in api.rules for found in rule(exchange)), None)
        return self._reject(api)(found) if isinstance(found, str) else found

    def _answer(self, api: Api, exchange: SimExchange) -> HttpResponse:
        conversation = self.ledger.conversation(exchange.account, exchange.history)
        verdicts = judge(conversation, exchange.history)
        rejection = self._rejection(api, exchange)
        conversation.count(verdicts, is_refused=rejection is not None)
        self._note(
            exchange.request,
            rejection,
            model=exchange.model,
            conversation=conversation.id,
            is_streaming=exchange.is_streaming,
            verdicts=verdicts,
            messages=_shown(exchange.history, verdicts),
            unread=list(exchange.unread),
        )
        if rejection is not None:
            return _refused(rejection)
        if api.counts is not None:
            return json_response(200, api.counts(_input_tokens(exchange) - 1))
        if exchange.request.is_websocket and exchange.body.get("generate") is False:
            return _streamed(api, exchange, _NOTHING, api.wire.write(exchange, self._compose(exchange, _NOTHING)))
        turn = play(exchange.history, api.wire.offer(exchange.body), _header_script(exchange.request), exchange.body)
        answer = self._compose(exchange, turn)
        cached = cached_chars(conversation, _prompt(exchange)) // 4
        cached = cached if cached >= MIN_CACHED else 0
        whole = api.wire.write(exchange, replace(answer, usage=replace(answer.usage, cached=cached)))
        remember_turn(conversation, len(runs_of(exchange.history)), api.wire.read(api.wire.echo(whole)))
        return _streamed(api, exchange, turn, whole) if exchange.is_streaming else json_response(200, whole)

    def _compose(self, exchange: SimExchange, turn: ScriptedTurn) -> ModelAnswer:
        thoughts = [piece for piece in turn.pieces if isinstance(piece, (Think, Redacted))]
        pieces = tuple(piece for piece in turn.pieces if exchange.thinks or piece not in thoughts)
        has_calls = any(isinstance(piece, CallTool) for piece in pieces)
        thought = sum(len(piece.text) for piece in thoughts) if exchange.thinks else 0
        again = sum(map(len, exchange.unread.values())) // 4 if thought else 0  # lost reasoning is thought again
        size = sum(len(piece.arguments if isinstance(piece, (CallTool, Hosted)) else piece.text) for piece in pieces)
        return ModelAnswer(
            id=f"{self._random.getrandbits(128):032x}",
            model=exchange.model,
            created=int(self._now()),
            pieces=pieces,
            finish=turn.finish or ("tool_calls" if has_calls else "stop"),
            usage=TokenCounts(
                _input_tokens(exchange), (size + again) // 4 + 1 + len(pieces), -(-(thought + again) // 4)
            ),
            has_ids=turn.has_ids,
        )

    def _note(self, request: HttpRequest, rejection: Rejection | None, **more: Json) -> None:
        """A log line: the conversation as the provider saw it, and the error."""
        unread = {"model": "", "conversation": "", "is_streaming": False, "verdicts": [], "messages": [], "unread": []}
        self._entry = {
            "at": self._now(),
            "method": request.method,
            "path": request.path,
            "account": account_of(request),
            "status": rejection.status if rejection else 200,
            "refusal": rejection.message if rejection else None,
            **unread,
            **more,
        }
        self.log.append(self._entry)


def _prompt(exchange: SimExchange) -> list[str]:
    """What the model sees, in parts that a cache can compare."""
    head = [canonical(exchange.body.get(name)) for name in ("instructions", "system", "tools")]
    unread = set(exchange.unread.values())
    parts = [canonical(message.raw) for message in exchange.history if unread.isdisjoint(message.thoughts)]
    return [*head, *parts]


def _input_tokens(exchange: SimExchange) -> int:
    """Four characters each, without the reasoning that the model does not see."""
    return max(0, len(exchange.request.body) - sum(map(len, exchange.unread.values()))) // 4 + 1


def account_of(request: HttpRequest) -> str:
    """The holder of the key: any key is accepted. Amazon's signatures differ for each request, so the key's id counts
    there.
    """
    headers = request.headers
    key = headers.get("x-api-key") or headers.get("api-key") or headers.get("x-goog-api-key")
    key = key or request.query.get("key") or headers.get("authorization", "")
    if "Credential=" in key:
        key = key.partition("Credential=")[2].partition("/")[0]
    return sha256(key.removeprefix("Bearer ").encode()).hexdigest()[:16]


def _header_script(request: HttpRequest) -> str:
    """The script for a client whose first message can't be changed: `|` stands for a new line."""
    script = request.headers.get("x-sim-script", "")
    return "script:\n" + script.replace("|", "\n") if script else ""


def _streamed(api: Api, exchange: SimExchange, turn: ScriptedTurn, whole: JsonObject) -> HttpResponse:
    request = exchange.request
    chunk_chars = turn.chunk_chars or setting(request, "chunk") or CHUNK_CHARS
    delay_ms = min(turn.delay_ms or setting(request, "delay"), MAX_DELAY_MS)
    frames = api.wire.frames(exchange, whole, chunk_chars)
    cut_after = turn.cut_after or setting(request, "cut")
    is_cut = 0 < cut_after < len(frames)
    frames = frames[:cut_after] if is_cut else frames
    size = setting(request, "bytes")
    if size:
        joined = b"".join(frames)
        frames = [joined[start : start + size] for start in range(0, len(joined), size)]
    return HttpResponse(200, api.wire.stream_type(exchange), frames, delay_ms=delay_ms, is_cut=is_cut)


def setting(request: HttpRequest, name: str) -> int:
    """`x-sim-chunk: 3` or `?sim_chunk=3`."""
    return number_in(request.headers.get(f"x-sim-{name}") or request.query.get(f"sim_{name}") or "")


def json_response(status: int, body: Json) -> HttpResponse:
    return HttpResponse(status, "application/json", [compact(body)])


def _refused(refusal: Rejection) -> HttpResponse:
    return HttpResponse(refusal.status, refusal.content_type, [refusal.body], refusal.headers)


def _shown(history: tuple[InputMessage, ...], verdicts: list[Verdict]) -> list[JsonObject]:
    """The messages for display: long texts shortened, each turn of the model with its verdict."""
    verdict_of = {
        message.index: verdict for run, verdict in zip(runs_of(history), verdicts, strict=True) for message in run
    }
    return [
        {
            "index": message.index,
            "role": message.role,
            "text": message.text[:_SHOWN_CHARS],
            "thoughts": [thought[:_SHOWN_CHARS] for thought in message.thoughts],
            "calls": [f"{call.name} {call.arguments}"[:_SHOWN_CHARS] for call in message.calls],
            "results": list(message.results),
            "verdict": verdict_of.get(message.index),
        }
        for message in history
    ]


_NAME = re.compile(r"\[[^\]]*\]\+")
_OPTIONAL = re.compile(r"\(\?:([^()]*)\)\?|\w\?")
_OPTIONAL_END = re.compile(r"\(\?:([^()]*)\)\?\$$")
_CHOICE = re.compile(r"\(\?:([^()]*)\)")


def _readable(pattern: str) -> list[str]:
    """A pattern of paths in readable form: `/models/NAME:generateContent`."""
    named = _OPTIONAL_END.sub(r"(?:|\1)", _NAME.sub("NAME", pattern))
    plain = _OPTIONAL.sub(r"\1", named).replace("\\", "").strip("^$")
    found = _CHOICE.search(plain)
    if found is None:
        return [plain]
    return [plain[: found.start()] + choice + plain[found.end() :] for choice in found[1].split("|")]
