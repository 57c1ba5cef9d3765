"""How much of its prompts a program could have from the cache: `python -m bench.cache_cost`.

Real coding agents, installed by `make clients`, do a task with tools at strict simulators; five requests or more each.
Of every prompt, the part that an earlier one of the session began with could come from the provider's cache: all of it
where providers cache by themselves, and up to the last mark of the earlier prompt where a model needs marks (Claude).
Reasoning must be the same, but is not counted: what the gateway puts back would be missing at the provider's own, too.

The first share is that of what the program sent, at a provider of its own format, or at this one if it speaks that
format; the second that of what went up. Tokens have four bytes each. Where marks are needed, a beginning counts up to a
mark; where providers cache by themselves, to the last block that is the same.
`--only NAME` runs one program. Exit status 1 if a share is smaller by more than half a point.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from tests.clients.agents import CLAUDE_CODE, CLINE, CODEX, CONTINUE, COPILOT_CLI, GEMINI_CLI, OPENCODE, PI, QWEN_CODE
from tests.clients.programs import Place, Program, Trap
from tests.clients.test_own_formats import started
from tests.clients.upstreams import start
from tests.gateway.gateways import moved, running
from thoughtline.settings import DebugSettings, Settings

Json = dict[str, Any]
PROGRAMS = (CLAUDE_CODE, CODEX, GEMINI_CLI, QWEN_CODE, OPENCODE, COPILOT_CLI, CLINE, CONTINUE, PI)
UPSTREAMS = (
    ("anthropic", "claude-sonnet-4-5", "classic"),
    ("openai", "gpt-5", None),
    ("gemini", "gemini-3-pro-preview", None),
    ("deepseek", "deepseek-v4-pro", None),
    ("openrouter", "anthropic/claude-sonnet-4.5", None),
)
BYTES_PER_TOKEN = 4
MARK = re.compile(r',?"cache_control":\{[^{}]*\}')


REASONING_MEMBERS = ("reasoning_content", "reasoning", "reasoning_details", "thoughtSignature", "extra_content")
REASONING_TYPES = ("thinking", "redacted_thinking", "reasoning")


class Segment(NamedTuple):
    """A piece of a prompt, without its mark for caching, how much of it is no reasoning, and whether it had a mark."""

    text: str
    size: int
    is_marked: bool


def segments_of(body: Json) -> list[Segment]:
    """A prompt piece by piece, in the order in which models read it: tools, instructions, conversation."""
    pieces: list[object] = [*_listed(body.get("tools"))]
    for name in ("system", "instructions", "systemInstruction", "system_instruction"):
        pieces += _listed(body.get(name))
    for name in ("messages", "input", "contents"):
        for message in _listed(body.get(name)):
            pieces += _blocks(message)
    found = [_segment(piece) for piece in pieces]
    if "cache_control" in body and found:
        found[-1] = found[-1]._replace(is_marked=True)
    return found


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value] if value else []


def _blocks(message: object) -> Iterator[object]:
    """The blocks of a message, each with its role: a text alone is one block of text."""
    if not isinstance(message, dict) or not isinstance(message.get("content"), (str, list)):
        yield message
        return
    content = message["content"]
    rest = {name: value for name, value in message.items() if name != "content"}
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        yield [rest, block]


def _segment(piece: object) -> Segment:
    text, counted = (json.dumps(one, separators=(",", ":")) for one in (piece, _unreasoned(piece)))
    plain, size = (MARK.sub("", one).replace("{,", "{") for one in (text, counted))
    is_reasoning = _is_reasoning(piece[-1] if isinstance(piece, list) else piece)
    return Segment(plain, 0 if is_reasoning else len(size), '"cache_control"' in text)


def _unreasoned(piece: object) -> object:
    """A piece without the reasoning in it."""
    if isinstance(piece, list):
        return [_unreasoned(one) for one in piece if not _is_reasoning(one)]
    if not isinstance(piece, dict):
        return piece
    return {name: _unreasoned(value) for name, value in piece.items() if name not in REASONING_MEMBERS}


def _is_reasoning(piece: object) -> bool:
    return isinstance(piece, dict) and (piece.get("type") in REASONING_TYPES or piece.get("thought") is True)


class Cost(NamedTuple):
    """Tokens of all prompts of a session, and how many of them the cache could have."""

    prompt: int
    cached: int

    @property
    def share(self) -> float:
        return 100 * self.cached / self.prompt if self.prompt else 0.0


def cost_of(bodies: list[Json], *, needs_marks: bool) -> Cost:
    """What a session's prompts could have from the cache."""
    earlier: list[list[Segment]] = []
    prompt = cached = 0
    for body in bodies:
        segments = segments_of(body)
        prompt += sum(segment.size for segment in segments)
        cached += max((_shared(before, segments, needs_marks=needs_marks) for before in earlier), default=0)
        earlier.append(segments)
    return Cost(prompt // BYTES_PER_TOKEN, cached // BYTES_PER_TOKEN)


def _shared(before: list[Segment], now: list[Segment], *, needs_marks: bool) -> int:
    size = shared = 0
    for one, other in zip(before, now, strict=False):
        if one.text != other.text:
            break
        size += one.size
        if one.is_marked or not needs_marks:
            shared = size
    return shared


def played(program: Program, simulator: str, model: str, profile: str | None) -> tuple[Cost, Cost] | str:
    """What a session of a program costs, alone and through the gateway; or why it did not end."""
    home = Path(tempfile.mkdtemp(prefix="cache-cost-"))
    work = home / "work"
    work.mkdir()
    place = Place(home, work, Trap())
    upstream = start(simulator, profile, program.script(work))
    settings = Settings(debug=DebugSettings(keep_bodies=True), providers={simulator: moved(simulator, upstream.url)})
    if simulator == "openrouter":  # as it is asked by most
        settings = replace(settings, providers={simulator: replace(settings.providers[simulator], formats=CHAT_ONLY)})
    with running({}, settings) as gateway:
        options = ("--provider", simulator, "--model", model, "--url", gateway.url)
        outcome = started(program, place, program.begin("Write a note and look at it."), *options)
        if program.resume is not None and outcome.status == 0:
            outcome = started(program, place, program.resume("Now a copy."), *options)
        if outcome.status != 0:
            return f"exit {outcome.status}"
        kept = [gateway.state.recent.bodies_of(line["request"]) for line in gateway.lines if "request" in line]
    pairs = [(_read(one.client), _read(one.upstream)) for one in kept if one is not None]
    sent, up = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    needs_marks = "claude" in model
    is_same = {_shape(body) for body in sent} == {_shape(body) for body in up}
    needed_alone = needs_marks if is_same else any(_shape(body) == MESSAGES for body in sent)
    return cost_of(sent, needs_marks=needed_alone), cost_of(up, needs_marks=needs_marks)


CHAT_ONLY = ("openai_chat",)
MESSAGES = ("system", "messages")


def _shape(body: Json) -> tuple[str, ...]:
    """Which format a body is of, by its members."""
    return tuple(name for name in ("system", "messages", "input", "contents") if name in body)


def _read(body: bytes) -> Json:
    try:
        read = json.loads(body)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="the name of one program")
    options = parser.parse_args()
    is_worse = False
    print("| program | " + " | ".join(f"{model}" for _, model, _ in UPSTREAMS) + " |", flush=True)
    print("|---|" + "---|" * len(UPSTREAMS))
    for program in PROGRAMS:
        if options.only not in ("", program.name):
            continue
        cells = []
        for simulator, model, profile in UPSTREAMS:
            costs = played(program, simulator, model, profile)
            if isinstance(costs, str):
                cells.append(costs)
                continue
            alone, through = costs
            is_worse = is_worse or through.share < alone.share - 0.5
            cells.append(f"{alone.share:.0f} % → {through.share:.0f} %")
        print(f"| `{program.name}` | " + " | ".join(cells) + " |", flush=True)
    return int(is_worse)


if __name__ == "__main__":
    sys.exit(main())
