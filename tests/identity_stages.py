"""Clients that forget reasoning, in front of a gateway or a line, and an upstream that thinks what a test says.

stage = Stage(post, upstream, MESSAGES, is_streaming=True)
anna = stage.client("Anna")
anna.ask("Hi", says="Hello!")
anna.ask("And?").marks      ["Anna01"]: whose thoughts reached the upstream
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import httpx

from tests.gateway.upstreams import Got, Out
from tests.written_exchanges import NOTHING, Asked, Frame, Json, Results, Said, Speaker, Turn, marks_in, thought

Post = Callable[[str, Json, Mapping[str, str]], httpx.Response]
"""Sends a body to an address below a provider's name."""

_answers = itertools.count(1)
_tenants = itertools.count(1)
_NO_HEADERS: Mapping[str, str] = {}


class Upstream:
    """Answers each request with what `next_answer` is, and keeps the bodies that arrived."""

    def __init__(self) -> None:
        self.next_answer: tuple[Speaker, Json, bool] | None = None
        self.bodies: list[bytes] = []

    async def __call__(self, got: Got, out: Out) -> None:
        self.bodies.append(got.body)
        assert self.next_answer is not None
        speaker, whole, is_streaming = self.next_answer
        if not is_streaming:
            await out.whole(200, json.dumps(whole).encode())
            return
        await out.stream(("content-type", speaker.stream_type))
        for frame in speaker.frames(whole):
            await out.chunk(frame)
        await out.end()


class Reached(NamedTuple):
    """What reached the upstream, and what the response said of it."""

    raw: bytes
    headers: httpx.Headers
    has_findings: bool = True

    @property
    def marks(self) -> list[str]:
        """Whose thoughts it carries, in order."""
        return marks_in(self.raw)

    @property
    def body(self) -> Json:
        body: Json = json.loads(self.raw)
        return body

    @property
    def findings(self) -> set[str]:
        """The rules in `x-thoughtline-findings`."""
        summary = self.headers.get("x-thoughtline-findings", "")
        return {part.partition("=")[0] for part in summary.split(", ") if part}

    def names(self, rule: str) -> bool:
        """Whether a finding names this rule, where responses have findings at all."""
        return not self.has_findings or rule in self.findings


class Stage:
    """One tenant of a gateway or of a line, in one format, whole or streamed.

    `has_findings`: responses carry `x-thoughtline-findings`.
    """

    def __init__(
        self, post: Post, upstream: Upstream, speaker: Speaker, *, is_streaming: bool, has_findings: bool = True
    ) -> None:
        self.speaker = speaker
        self.is_streaming = is_streaming
        self._has_findings = has_findings
        self._post = post
        self._upstream = upstream
        self._key = f"key-of-tenant-{next(_tenants)}"

    def again(self) -> Stage:
        """The same for another tenant."""
        return Stage(
            self._post,
            self._upstream,
            self.speaker,
            is_streaming=self.is_streaming,
            has_findings=self._has_findings,
        )

    def client(self, owner: str, frame: Frame | None = None, **headers: str) -> Client:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Client(self, owner, frame or Frame(), named)

    def exchange(self, body: Json, answer: Json, frame: Frame, headers: Mapping[str, str] = _NO_HEADERS) -> Reached:
        """Send a request that the upstream answers so."""
        self._upstream.next_answer = self.speaker, answer, self.is_streaming
        path = f"/{self.speaker.provider}{self.speaker.path_for(frame, is_streaming=self.is_streaming)}"
        response = self._post(path, body, {"authorization": f"Bearer {self._key}", **headers})
        assert response.status_code == 200, response.text
        reached = Reached(self._upstream.bodies[-1], response.headers, self._has_findings)
        for mark in set(reached.marks):
            times = reached.raw.count(f"ThoughtOf{mark}".encode())
            assert times == self.speaker.spellings, f"the thought {mark} does not stand in one turn"
        return reached


class Client:
    """One conversation. `talk` is what its client shows of it: tests edit it as clients do. `count` is how often it
    has asked."""

    def __init__(self, stage: Stage, owner: str, frame: Frame, headers: dict[str, str]) -> None:
        self._stage = stage
        self._owner = owner
        self.count = 0
        self.frame = frame
        self.headers = headers
        self.talk: list[Turn] = []

    def ask(self, turn: str | Results, says: str | Said = "Fine.") -> Reached:
        """Go on with the conversation: what the client sends, and the visible part of the answer."""
        self.talk.append(Asked(turn) if isinstance(turn, str) else turn)
        said = Said(says) if isinstance(says, str) else says
        self.count += 1
        reached = self.send(said, thought(self._owner, self.count))
        self.talk.append(said)
        return reached

    def send(self, said: Said, thinks: str) -> Reached:
        """Send the conversation as it stands."""
        stage = self._stage
        body = stage.speaker.body(self.talk, self.frame, is_streaming=stage.is_streaming)
        answer = stage.speaker.answer(said, thinks, next(_answers))
        return stage.exchange(body, answer, self.frame, self.headers)

    def own(self, *numbers: int) -> list[str]:
        """The marks of its own turns."""
        return [f"{self._owner}{number:02d}" for number in numbers]

    def has_only_own(self, reached: Reached) -> bool:
        """Whether each thought was made for a turn of this conversation, and they stand in order."""
        marks = reached.marks
        return marks == sorted(set(marks)) and all(mark.startswith(self._owner) for mark in marks)


def frame(system: str, *, members: Json = NOTHING, **more: Any) -> Frame:
    return Frame(system, members, **more)
