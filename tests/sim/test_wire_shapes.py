"""Simulated answers compared with recorded ones: the members with content, the events, one after the other."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import pytest

from tests import recordings
from tests.sim.faces import CASES, Case, Dialogue
from tests.sim.shapes import carries, paths_of, payloads_of, recorded_stream, steps_of, turns_in

SCRIPT = """{mark}
script:
think: one two three four five six seven eight nine
call: weather {{"city": "A"}}
call: weather {{"city": "B"}}
---
think: and on and on and on and on and on and on
say: it is warm in the city of light, and so on and on
"""

Source = tuple[str, str]


class Compared(NamedTuple):
    """Which recordings a face is held against. `kin` fills in what none of its own recordings shows."""

    own: Source
    kin: tuple[Source, ...] = ()


COMPARED: dict[tuple[str, str], Compared] = {
    ("deepseek", "openai_chat"): Compared(("openai-chat", "deepseek")),
    ("deepseek-v3.2", "openai_chat"): Compared(("openai-chat", "deepseek")),
    ("deepseek", "openai_responses"): Compared(("openai-responses", "deepseek"), (("openai-responses", "openai"),)),
    ("glm", "openai_chat"): Compared(("openai-chat", "zai")),
    ("qwen", "openai_chat"): Compared(("openai-chat", "alibaba"), (("openai-chat", "deepseek"),)),
    ("cerebras", "openai_chat"): Compared(("openai-chat", "cerebras"), (("groq", "groq"),)),
    ("groq", "openai_chat"): Compared(("groq", "groq")),
    ("mistral", "openai_chat"): Compared(("mistral", "mistral"), (("groq", "groq"), ("openai-chat", "zai"))),
    ("xai", "openai_chat"): Compared(("xai", "xai")),
    ("xai", "openai_responses"): Compared(("openai-responses", "xai")),
    ("openrouter", "openai_chat"): Compared(("openrouter", "openrouter")),
    ("ollama", "ollama_chat"): Compared(("ollama", "ollama")),
    ("ollama", "openai_chat"): Compared(("openai-chat", "ollama")),
    ("anthropic", "anthropic_messages"): Compared(("anthropic", "anthropic")),
    ("bedrock", "bedrock_converse"): Compared(("bedrock", "bedrock")),
    ("gemini", "gemini_generate"): Compared(("gemini", "google")),
    ("gemini-2.5", "gemini_generate"): Compared(("gemini", "google")),
    ("openai", "openai_responses"): Compared(("openai-responses", "openai")),
    ("azure", "openai_responses"): Compared(("openai-responses", "azure"), (("openai-responses", "openai"),)),
    ("copilot", "openai_responses"): Compared(("openai-responses", "copilot"), (("openai-responses", "openai"),)),
}
"""Not held against any: Kimi, MiMo, MiniMax, vLLM, OpenAI's and Copilot's chat and the Anthropic faces of DeepSeek,
Kimi, MiMo and MiniMax were not recorded; Gemini's OpenAI face only in a shape of 2.5 that is gone."""

NOT_RECORDED = {"bedrock": ("toolUse", "contentBlockStart")}
"""No recorded Converse stream calls a tool: those events follow the service's documentation."""

found = [case for case in CASES if (case.simulator, case.format) in COMPARED]
held = pytest.mark.parametrize("case", found, ids=[case.id for case in found])
pytestmark = recordings.needs_recordings


@functools.cache
def recorded(source: Source) -> tuple[list[Any], list[list[Any]]]:
    """Whole answers and streams of one provider."""
    wholes: list[Any] = []
    streams: list[list[Any]] = []
    for recording in recordings.ALL:
        for exchange in recording.file["exchanges"]:
            is_other = (exchange["family"], exchange["provider"]) != source or exchange["status"] >= 400
            if is_other or exchange["path"].endswith(("/compact", "/api/generate")):
                continue
            answer, stream = exchange.get("response"), recorded_stream(exchange)
            wholes += [answer] if isinstance(answer, dict) else []
            streams += [answer] if isinstance(answer, list) else []
            streams += turns_in(payloads_of(*stream)) if stream else []
    return wholes, streams


@functools.cache
def known(source: Source) -> tuple[set[str], set[str], set[tuple[str, str]]]:
    """Paths of whole answers, paths of events, steps from one event to the next."""
    wholes, streams = recorded(source)
    events = [payload for stream in streams for payload in stream]
    steps = set().union(*map(steps_of, streams))
    return set().union(*map(paths_of, wholes)), set().union(*map(paths_of, events)), steps


def answers(case: Case) -> tuple[list[Any], list[list[Any]]]:
    """Two turns of the simulator, both ways: parallel calls, then an answer."""
    dialogue = Dialogue(case, SCRIPT.format(mark=f"shapes {case.id}"))
    wholes, streams = [], []
    for _ in range(2):
        wholes.append(dialogue.post().json())
        response = dialogue.post(is_streaming=True)
        streams.append(payloads_of(response.content, response.headers["content-type"]))
        dialogue.go_on(dialogue.ask())
    return wholes, streams


def sources_of(case: Case) -> tuple[Source, ...]:
    compared = COMPARED[case.simulator, case.format]
    return (compared.own, *compared.kin)


def is_recorded(case: Case, what: object) -> bool:
    return not any(word in str(what) for word in NOT_RECORDED.get(case.simulator, ()))


def is_breakdown(path: str) -> bool:
    """How a provider divides its counts of tokens."""
    return "usage" in path and "_details" in path.lower()


@held
def test_keys_of_whole_answers(case: Case) -> None:
    """No key that was never recorded; every key that all recorded answers have, and that carries something."""
    mine: set[str] = set().union(*map(paths_of, answers(case)[0]))
    allowed = set().union(*(known(source)[0] for source in sources_of(case)))
    demanded = set.intersection(*map(paths_of, recorded(sources_of(case)[0])[0]))
    assert {path for path in mine - allowed if not is_breakdown(path)} == set()
    assert {path for path in demanded - mine if carries(path) and not is_breakdown(path)} == set()


@held
def test_keys_of_events(case: Case) -> None:
    """No member in any event that was never recorded there."""
    mine: set[str] = set().union(*(paths_of(event) for stream in answers(case)[1] for event in stream))
    allowed = set().union(*(known(source)[1] for source in sources_of(case)))
    assert {path for path in mine - allowed if is_recorded(case, path) and not is_breakdown(path)} == set()


@held
def test_order_of_events(case: Case) -> None:
    """No event follows another that it was never recorded to follow."""
    mine = set().union(*map(steps_of, answers(case)[1]))
    allowed = set().union(*(known(source)[2] for source in sources_of(case)))
    assert {step for step in mine - allowed if is_recorded(case, step)} == set()
