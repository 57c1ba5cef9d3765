"""A route whose targets are strict simulators that can fail on command, and the requests that reached each of them.

with stage(DEEPSEEK, CLAUDE) as one:
    one.talk("openai_chat", schedule, is_streaming=True)
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import httpx
from msgspec.structs import replace

from tests.continuity.desks import system_of
from tests.gateway.gateways import Running, moved_in, running
from tests.sim.faces import HTTP
from tests.sim.served_simulators import NOW, listening
from tests.translation.lanes import MORE_UPSTREAMS, UPSTREAMS, Answer, Client, Upstream
from thoughtline.continuity.checkpoints import HEADING
from thoughtline.destinations.catalogue import PROVIDERS, ContinuityWord, TagMode
from thoughtline.settings import ContinuitySettings, ReplaySettings, RouteSettings, Settings
from thoughtline.stores import Store
from thoughtline.values.turns import FormatName
from thoughtline_sim.app import SimulatorApp
from thoughtline_sim.simulation import HttpResponse, Simulation
from thoughtline_sim.simulators import SIMULATORS
from thoughtline_sim.values import HttpRequest

Json = dict[str, Any]

BY_FORMAT: dict[FormatName, Upstream] = {one.format: one for one in UPSTREAMS}
BOUND = next(one for one in MORE_UPSTREAMS if one.profile == "bound")
ON = ContinuitySettings(enabled=True)
PATHS: dict[FormatName, str] = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
    "ollama_chat": "/api/chat",
}
_SEAL = re.compile(
    rb'"(?:signature|thoughtSignature|thought_signature|encrypted_content|data|reasoning_opaque)"\s*:\s*"([^"]{16,})"'
)
_BUSY = HttpResponse(503, "application/json", [b'{"error":{"message":"overloaded"}}'])


TEMPLATE_PATHS = ("/api/show", "/apply-template", "/tokenize")
"""Where servers show what their chat templates read."""


class Seen(NamedTuple):
    """An answered request, and its answer."""

    body: bytes
    status: int
    answer: bytes


class Watched(SimulatorApp):
    """A simulator that fails on command, and keeps its requests."""

    def __init__(self, upstream: Upstream) -> None:
        row = SIMULATORS[upstream.simulator]
        super().__init__(Simulation(row, upstream.profile, 7, lambda: NOW))
        self.upstream = upstream
        self.is_failing = False
        self.seen: list[Seen] = []
        self.url = listening(self)

    def _respond(self, request: HttpRequest) -> HttpResponse:
        if self.is_failing:
            return _BUSY
        response = super()._respond(request)
        if request.path.endswith(TEMPLATE_PATHS):
            return response
        self.seen.append(Seen(request.body, response.status, b"".join(response.frames)))
        return response

    @property
    def seals(self) -> set[bytes]:
        """All seals that it has issued."""
        return {found for one in self.seen for found in _SEAL.findall(one.answer)}

    @property
    def system(self) -> str:
        """The system prompt of the latest request."""
        return system_of(self.upstream.format, json.loads(self.seen[-1].body))


class Step(NamedTuple):
    """One turn of a conversation: who answered, the client's header, and the request that arrived there."""

    target: str
    checkpoints: int
    body: bytes
    system: str
    answer: bytes
    thought: str

    @property
    def quoted(self) -> int:
        return self.system.count("\nReasoning of ")

    @property
    def is_readable(self) -> bool:
        """Whether the provider returned readable reasoning, or a summary."""
        return self.thought.encode() in self.answer

    def quotes(self, thought: str) -> bool:
        return thought in self.system

    def carries(self, thought: str) -> bool:
        """Natively, which means anywhere but in the system prompt and the script."""
        return self.body.count(thought.encode()) > self.system.count(thought) + 1


class Passing:
    """A client's connection to the gateway."""

    def __init__(self, url: str, client: FormatName, headers: Json, model: str = "team") -> None:
        self.client = client
        self.response = httpx.Response(0)
        self._url = url
        self._model = model
        self._headers = {"authorization": "Bearer a-key", **headers}

    def exchange(self, body: bytes, is_streaming: bool) -> Answer:
        body = body.replace(b'"some/model"', f'"{self._model}"'.encode())
        self.response = HTTP.post(self._url + self._path(is_streaming), content=body, headers=self._headers)
        return Answer(self.response.status_code, self.response.content)

    def move(self, url: str) -> None:
        self._url = url

    def ask_for(self, model: str) -> None:
        self._model = model

    def _path(self, is_streaming: bool) -> str:
        if self.client != "gemini_generate":
            return PATHS[self.client]
        action = "streamGenerateContent?alt=sse" if is_streaming else "generateContent"
        return f"/v1beta/models/{self._model}:{action}"


class Stage:
    """A gateway with the route `team`, and the simulators behind it."""

    def __init__(self, gateway: Running, targets: Sequence[Watched]) -> None:
        self.gateway = gateway
        self.targets = {one.upstream.provider: one for one in targets}
        self._numbers = itertools.count()

    def begin(
        self,
        client: FormatName,
        turns: int,
        strips: bool = True,
        script: dict[int, str] | None = None,
        headers: Json | None = None,
    ) -> Talk:
        """Begin a conversation in which every turn has its own reasoning, or follows a script."""
        talk = Talk(self, client, turns, f"{next(self._numbers)}", strips, script or {}, headers or {})
        if client == "anthropic_messages" and any(one.upstream is BOUND for one in self.targets.values()):
            talk.client.extra["thinking"] = {"type": "adaptive"}  # the one word for it that this model knows
        return talk

    def check_seals(self) -> None:
        """Assert that no seal of one ever arrived at another."""
        for name, one in self.targets.items():
            foreign = set().union(*(other.seals for key, other in self.targets.items() if key != name))
            for seen in one.seen:
                assert not [seal for seal in foreign if seal in seen.body], name

    def check_answers(self) -> None:
        """Assert that no request was ever refused, not even one that was healed afterwards."""
        for name, one in self.targets.items():
            assert {seen.status for seen in one.seen} <= {200}, (
                name,
                [seen.answer[:300] for seen in one.seen if seen.status != 200],
            )


class Talk:
    """A conversation of one client with the route."""

    def __init__(
        self,
        stage: Stage,
        client: FormatName,
        turns: int,
        mark: str,
        strips: bool,
        own: dict[int, str],
        headers: Json,
    ) -> None:
        self._stage = stage
        self._thoughts = [f"pondering-{mark}-{turn}-over" for turn in range(turns)]
        written = [_turn(turn, own.get(turn, f"think: {words}")) for turn, words in enumerate(self._thoughts)]
        script = "\n---\n".join(written)
        self.lane = Passing(stage.gateway.url, client, headers)
        self.client = Client(self.lane, f"talk {mark}\nscript:\n{script}", strips, extra=_system(client))  # type: ignore[arg-type]  # a lane by what it does
        if client in ("openai_chat", "ollama_chat"):
            self.client.history.insert(0, {"role": "system", "content": "Be brief."})
        self.steps: list[Step] = []

    def step(self, *failing: str, is_streaming: bool = False) -> Step:
        """Play one more turn, while some targets fail."""
        if self.steps:
            self.client.go_on()
        return self.step_as_it_is(*failing, is_streaming=is_streaming)

    def step_as_it_is(self, *failing: str, is_streaming: bool = False) -> Step:
        """Send the history unchanged."""
        for name, target in self._stage.targets.items():
            target.is_failing = name in failing
        self.client.ask(is_streaming)
        response = self.lane.response
        name = response.headers["x-thoughtline-target"].partition("/")[0]
        told = dict(part.strip().split("=") for part in response.headers["x-thoughtline-replay"].split(","))
        at = self._stage.targets[name]
        thought = self._thoughts[len(self.steps)]
        seen = at.seen[-1]
        self.steps.append(Step(name, int(told["checkpoints"]), seen.body, at.system, seen.answer, thought))
        return self.steps[-1]

    def move(self, stage: Stage) -> None:
        """Continue at another gateway."""
        self._stage = stage
        self.lane.move(stage.gateway.url)

    def check(self, count: int = 3) -> None:
        """Assert that checkpoints are in the latest request exactly where they should be, including earlier ones."""
        now, before = self.steps[-1], self.steps[:-1]
        assert now.quoted == now.checkpoints == sum(now.quotes(one.thought) for one in before)
        assert now.system.count(HEADING) == (1 if now.checkpoints else 0)
        foreign = [one.thought for one in before if one.target != now.target and one.is_readable]
        due = [thought for thought in foreign if not now.carries(thought)]
        quoted = [one.thought for one in before if now.quotes(one.thought)]
        assert set(due[-count:]) <= set(quoted) <= set(due), (now.target, due, quoted)
        there = [one for one in before if one.target == now.target]
        if there:
            assert now.system.startswith(there[-1].system)  # byte for byte, with what is new behind it
            told = [one.thought for one in before if there[-1].quotes(one.thought)]
            assert set(quoted) == {*told, *due[-count:]}


def _turn(turn: int, thinks: str) -> str:
    does = f'call: weather {{"city": "P{turn}"}}' if turn % 2 else f"say: Words {turn}."
    return f"{thinks}\n{does}\nchunk 1000000"


def _system(client: FormatName) -> Json:
    match client:
        case "anthropic_messages":
            return {"system": "Be brief."}
        case "openai_responses":
            return {"instructions": "Be brief."}
        case "gemini_generate":
            return {"systemInstruction": {"parts": [{"text": "Be brief."}]}}
        case _:
            return {}


class Ticking:
    """A clock that advances with every reading: nothing stays open for long."""

    def __init__(self) -> None:
        self._now = time.time()

    def __call__(self) -> float:
        self._now += 0.01
        return self._now


@contextlib.contextmanager
def stage(
    *upstreams: Upstream,
    continuity: ContinuitySettings = ON,
    store_url: str = "memory://",
    apps: Sequence[Watched] = (),
    of_route: ContinuityWord | None = None,
    of_provider: Mapping[str, ContinuityWord] | None = None,
    tags: TagMode | None = None,
    store: Store | None = None,
    replay: ReplaySettings | None = None,
) -> Iterator[Stage]:
    """A gateway with its own simulators, or with existing ones."""
    apps = apps or [Watched(one) for one in upstreams]
    rows = dict(PROVIDERS)
    for app in apps:
        one = app.upstream
        said = (of_provider or {}).get(one.provider)
        row = moved_in(one.provider, app.url, one.format)
        rows[one.provider] = replace(row, api_keys=("a-key",), continuity=said)
    targets = tuple(f"{app.upstream.provider}/{app.upstream.model}" for app in apps)
    route = RouteSettings("team", targets, continuity=of_route)
    settings = Settings(providers=rows, routes={"team": route}, continuity=continuity, tags=tags)
    settings = replace(settings, replay=replay or settings.replay)
    with running({}, settings, store_url, store, clock=Ticking()) as gateway:
        yield Stage(gateway, apps)
