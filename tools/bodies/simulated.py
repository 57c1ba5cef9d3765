"""Dialogues through the gateway: every client format with every simulator, streamed and whole, kept and forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

import httpx

from tools.bodies.book import Book
from tools.bodies.clients import WIRES, Chat, Json, Responses
from tools.bodies.servers import NOW, SEALED_ALIKE, Upstream, address_of, gateway

# The simulators are a part of the product, or a package beside it.
SIMULATORS_ARE_IN = "thoughtline_sim" if find_spec("thoughtline_sim") else "thoughtline.sim"
simulator_app = import_module(f"{SIMULATORS_ARE_IN}.app").simulator_app
SIMULATORS = import_module(f"{SIMULATORS_ARE_IN}.simulators").SIMULATORS

OPENING = """How is the weather? {name}
script:
think: Two cities, so two calls at once. "quoted" \\ 日本語 🙂
call: weather {{"city": "Paris"}}
call: weather {{"city": "Zürich"}}
---
think: One more, to compare.
say: Let me look at a third.
call: weather {{"city": "Rome"}}
---
think: Now I can answer.
say: Paris is warm, “Zürich” is mild.
---
no-think
call: weather {{"city": "Bergen"}}
---
long 300
say: It is cold in the north.
---
redacted
say: Let me search.
call: weather {{"city": "Lima"}}
---
hosted: web_search {{"query": "weather"}}
say: It is mild.
---
think: The end.
say: Good b
stop: length
"""
TURNS = 8
HABITS = ("kept", "stripped")
CHAINED = "chained"
"""A client of Responses that names the response before, and sends only what is new."""


class Row(NamedTuple):
    """A simulator as a provider of the gateway, one of its models, and what a client of a format says to it."""

    simulator: str
    profile: str
    provider: str
    model: str
    extra: dict[str, Json]

    def table(self, more: str) -> str:
        """Its settings: the built-in ones, but for where the simulator speaks less than the provider, and more."""
        more += SETTINGS.get(self.simulator, "")
        return f'[providers.{self.provider}]\nbase_url = "{address_of(self.provider)}"\n{more}'

    @property
    def id(self) -> str:
        return f"{self.simulator}.{self.profile} {self.model}"


def _row(simulator: str, model: str, profile: str = "default", provider: str = "", **extra: Json) -> Row:
    return Row(simulator, profile, provider or simulator, model, extra)


CHAT_ALONE = 'formats = ["openai_chat"]\n'
SETTINGS = dict.fromkeys(("deepseek-v3.2", "glm", "groq", "llamacpp", "openrouter", "qwen", "vllm"), CHAT_ALONE) | {
    "copilot": 'formats = ["openai_chat", "openai_responses"]\n',
    "deepseek-r1": CHAT_ALONE + 'contract = "deepseek-r1"\n',
    "ollama": 'formats = ["ollama_chat", "openai_chat"]\n',
}
ADAPTIVE = {"thinking": {"type": "adaptive"}}
NOT_SAID: Json = {"additionalModelRequestFields": {}}
ROWS = (
    _row("deepseek-r1", "deepseek-reasoner", provider="deepseek"),
    _row("deepseek-v3.2", "deepseek-reasoner", provider="deepseek"),
    _row("deepseek", "deepseek-v4-pro", "tools"),
    _row("deepseek", "deepseek-v4-pro", "toolcalls"),
    _row("deepseek", "deepseek-v4-pro", "nonblank"),
    _row("deepseek", "deepseek-v4-pro", "reseller"),
    _row("kimi", "kimi-k2.6"),
    _row("mimo", "mimo-v2.5-pro"),
    _row("glm", "glm-5"),
    _row("minimax", "MiniMax-M2"),
    _row("minimax", "MiniMax-M3", openai_chat={"reasoning_split": True}),
    _row("qwen", "qwen3.7-max"),
    _row("anthropic", "claude-sonnet-4-5", "classic"),
    _row("anthropic", "claude-opus-4-8", "adaptive", anthropic_messages=ADAPTIVE),
    _row("anthropic", "claude-opus-5-5", "bound", anthropic_messages=ADAPTIVE),
    *(_row("anthropic", "claude-opus-5-5", kind, anthropic_messages=ADAPTIVE) for kind in ("older", "oauth")),
    _row("bedrock", "us.anthropic.claude-sonnet-4-5", "classic"),
    _row(
        "bedrock",
        "us.anthropic.claude-opus-4-8",
        "adaptive",
        bedrock_converse={"additionalModelRequestFields": ADAPTIVE},
    ),
    _row(
        "bedrock",
        "us.anthropic.claude-opus-5-5",
        "bound",
        bedrock_converse={"additionalModelRequestFields": ADAPTIVE},
    ),
    *(
        _row(
            "bedrock",
            "us.anthropic.claude-opus-5-5",
            kind,
            bedrock_converse={"additionalModelRequestFields": ADAPTIVE},
        )
        for kind in ("older", "first-binding")
    ),
    _row("bedrock", "openai.gpt-oss-120b", "classic", bedrock_converse=NOT_SAID),
    _row("gemini", "gemini-3-pro-preview"),
    _row("gemini-2.5", "gemini-2.5-pro", provider="gemini"),
    _row("code-assist", "gemini-3-pro-preview"),
    _row("openai", "gpt-5"),
    _row("openai", "gpt-6-luna", "unchecked"),
    _row("openai", "gpt-5", "unverified"),
    _row("azure", "gpt-5-mini"),
    _row("xai", "grok-4.7"),
    _row("xai", "grok-3-mini"),
    _row("openrouter", "anthropic/claude-sonnet-4.5"),
    _row("openrouter", "google/gemini-3-pro-preview"),
    _row("openrouter", "openai/gpt-5"),
    _row("openrouter", "deepseek/deepseek-v4-pro"),
    _row("openrouter", "moonshotai/kimi-k2.6"),
    _row("mistral", "magistral-medium-latest"),
    _row("groq", "openai/gpt-oss-120b"),
    _row("cerebras", "gpt-oss-120b"),
    _row("ollama", "qwen3:14b"),
    _row("ollama", "qwen3:14b", "0.17"),
    _row("vllm", "Qwen/Qwen3-32B"),
    *(_row("llamacpp", name, name) for name in SIMULATORS["llamacpp"].profiles),
    _row("copilot", "claude-sonnet-4.5"),
    _row("copilot", "gpt-5.3-codex"),
    _row("copilot", "gpt-5.3-codex", "no-items"),
    _row("meta", "muse-spark"),
)
UNHELD = {"vertex", "command-code"}
"""No client here speaks to them: addresses name a project and a location, or a CLI alone knows the format."""

CONTINUITY = '[continuity]\nenabled = true\nmode = "{mode}"\n'
_BY_MODEL = {row.model: row for row in reversed(ROWS) if row.simulator != "code-assist"}
CROSSINGS = (
    ("deepseek-v4-pro", "claude-sonnet-4-5"),
    ("claude-sonnet-4-5", "gpt-5"),
    ("gpt-5", "gemini-3-pro-preview"),
    ("gemini-3-pro-preview", "deepseek-v4-pro"),
    ("kimi-k2.6", "MiniMax-M2"),
    ("MiniMax-M2", "magistral-medium-latest"),
)
"""Conversations that begin with one model and go on with another, with checkpoints on."""


OWN_KEY = 'api_key = "a-key-of-the-gateway"\n'
"""A caller's own key goes to one provider: a route to several needs theirs."""

VARIANTS = (
    ("tags-markers", '[tags]\nmode = "markers"\n', "MiniMax-M2"),
    ("tags-lift", '[tags]\nmode = "lift"\n', "MiniMax-M2"),
    ("plain-content", '[content]\nmode = "plain"\n', "magistral-medium-latest"),
    ("inherit", '[replay]\non_miss = "inherit"\n', "deepseek-v4-pro"),
    ("route", '[routes.smart]\ntargets = ["deepseek/deepseek-v4-pro", "glm/glm-5"]\n', "deepseek-v4-pro"),
    ("failover", '[routes.smart]\ntargets = ["glm/glm-5", "deepseek/deepseek-v4-pro"]\n', "deepseek-v4-pro"),
)
"""Settings that change what goes up or down. The model of a route is `smart`; its GLM is overloaded."""


def simulated(book: Book) -> None:
    known = {(row.simulator, row.profile) for row in ROWS}
    others = [each for each in SIMULATORS.values() if each.name not in UNHELD]
    missing = {(each.name, profile) for each in others for profile in each.profiles} - known
    if missing:
        raise SystemExit(f"simulators without a row: {sorted(missing)}")
    for row in ROWS:
        _all_dialogues(book, (row,), f"sim {row.id}", "")
    for first, second in CROSSINGS:
        rows = (_BY_MODEL[first], _BY_MODEL[second])
        for mode in ("handoff", "always"):
            _all_dialogues(book, rows, f"crossing {mode} {first} {second}", CONTINUITY.format(mode=mode))
    for name, settings, model in VARIANTS:
        other = f'[providers.glm]\nbase_url = "{address_of("glm")}"\n{OWN_KEY}' if "[routes" in settings else ""
        _all_dialogues(book, (_BY_MODEL[model],), f"variant {name}", settings + other)


def _all_dialogues(book: Book, rows: tuple[Row, ...], name: str, settings: str) -> None:
    dialogues = [one for one in _dialogues(name) if book.wants(one.title) and one.can_cross >= len(rows)]
    if not dialogues:
        return
    upstream = Upstream()
    has_route = "[routes" in settings
    tables = [row.table(OWN_KEY if has_route else "") for row in rows]
    with gateway(SEALED_ALIKE + settings + "".join(tables), proxy=upstream.url) as url, book.connected():
        for dialogue in dialogues:
            upstream.apps = {
                row.provider: simulator_app(row.simulator, row.profile, seed=7, now=lambda: NOW) for row in rows
            }
            dialogue.hold(rows, Door(book, url, upstream, has_route))


def _dialogues(name: str) -> Iterator[Dialogue]:
    for wire in WIRES.values():
        for is_streaming in (False, True):
            for habit in (*HABITS, *([CHAINED] if isinstance(wire, Responses) else [])):
                yield Dialogue(name=name, wire=wire, is_streaming=is_streaming, habit=habit)


class Door(NamedTuple):
    """Where the gateway is, what stands behind it, and what takes notes."""

    book: Book
    url: str
    upstream: Upstream
    has_route: bool


@dataclass(kw_only=True)
class Dialogue:
    """One conversation. It ends early where it is refused."""

    name: str
    wire: Chat
    is_streaming: bool
    habit: str
    history: list[Json] = field(default_factory=list)
    previous: str = ""

    @property
    def title(self) -> str:
        return f"{self.name} {self.wire.name} {'streamed' if self.is_streaming else 'whole'} {self.habit}"

    @property
    def can_cross(self) -> int:
        """With how many providers it can talk: a response that one keeps, another does not know."""
        return 1 if self.habit == CHAINED else len(ROWS)

    def hold(self, rows: tuple[Row, ...], door: Door) -> None:
        self.history = [self.wire.say(OPENING.format(name=self.title))]
        for turn in range(TURNS):
            response = self._ask(rows[turn * len(rows) // TURNS], door, turn)
            if response.status_code != 200:
                return
            self._go_on(response.content)

    def _ask(self, row: Row, door: Door, turn: int) -> httpx.Response:
        wire, is_streaming = self.wire, self.is_streaming
        model, prefix = ("smart", "") if door.has_route else (row.model, f"/{row.provider}")
        body = wire.body(model, self.history, is_streaming=is_streaming) | row.extra.get(wire.name, {})
        if self.habit == CHAINED:
            body |= {"store": True} | ({"previous_response_id": self.previous} if self.previous else {})
        url = f"{door.url}{prefix}{wire.path(model, is_streaming=is_streaming)}"
        data = json.dumps(body, ensure_ascii=False).encode()
        return door.book.post(f"{self.title} {turn}", url, data, key=self.title, upstream=door.upstream)

    def _go_on(self, content: bytes) -> None:
        wire = self.wire
        kept = wire.fold(content) if self.is_streaming else wire.whole(content)
        calls = wire.calls(kept)
        more = wire.results(calls) if calls else [wire.say("And then?")]
        if self.habit == CHAINED and isinstance(wire, Responses):
            self.previous = wire.id_of(content)
            self.history = more
        else:
            self.history += (wire.forget(kept) if self.habit == "stripped" else kept) + more
