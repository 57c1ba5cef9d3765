"""Frameworks that make their clients themselves, whole by `thoughtline.install()` alone; two that keep thoughts; and
those that it does not help."""

from __future__ import annotations

import os
from typing import NamedTuple

import pytest

import thoughtline
from tests.clients.upstreams import Upstream, start
from tests.library import frameworks
from tests.library.ten_turns import TURNS, check_refused, check_whole
from thoughtline import Line

os.environ.setdefault("GOOGLE_API_KEY", "key-of-an-app")
os.environ.update(OTEL_SDK_DISABLED="true", CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false")

ASYNC, ALL = ("async", "streamed"), ("sync", "async", "streamed")
FORCED = "Thinking mode does not support this tool_choice"


class Row(NamedTuple):
    """A framework: the module that an environment must have, the provider, and how it can be asked."""

    name: str
    module: str
    ways: tuple[str, ...]
    of: str = "deepseek"


FORGET = (
    Row("autogen", "autogen_ext", ASYNC),
    Row("crewai", "crewai", ALL),
    Row("dspy", "dspy", ALL),
    Row("haystack", "haystack", ALL),
    Row("langchain_openrouter", "langchain_openrouter", ALL, "openrouter"),
    Row("llama_index", "llama_index.llms.openai_like", ALL),
    Row("magentic", "magentic", ALL),
    Row("mirascope", "mirascope", ("streamed",)),
    Row("openrouter", "openrouter", ALL, "openrouter"),
    Row("semantic_kernel", "semantic_kernel", ASYNC),
    Row("strands", "strands", ALL),
)
KEEP = (Row("google_adk", "google.adk", ASYNC, "gemini"), Row("mirascope", "mirascope", ("sync", "async")))


def each(rows: tuple[Row, ...]) -> pytest.MarkDecorator:
    some = [(row, way) for row in rows for way in row.ways]
    return pytest.mark.parametrize(("row", "way"), some, ids=[f"{row.name}-{way}" for row, way in some])


def talk(row: Row, upstream: Upstream, way: str) -> str:
    pytest.importorskip(row.module)
    answer: str = getattr(frameworks, row.name)(upstream.url, way)
    return answer


@each(FORGET)
def test_a_framework_that_forgets(row: Row, way: str, line: Line) -> None:
    """Refused without a line; whole once it is installed, in ten requests; and refused again after that."""
    pytest.importorskip(row.module)
    bare, upstream, after = start(row.of), start(row.of), start(row.of)
    with pytest.raises(Exception, match=r"."):
        talk(row, bare, way)
    check_refused(bare)
    with thoughtline.install(line):
        check_whole(upstream, talk(row, upstream, way))
    with pytest.raises(Exception, match=r"."):
        talk(row, after, way)
    check_refused(after)


@each(KEEP)
def test_a_framework_that_keeps_thoughts(row: Row, way: str, line: Line) -> None:
    """It is whole without us, and not disturbed."""
    pytest.importorskip(row.module)
    bare, upstream = start(row.of), start(row.of)
    check_whole(bare, talk(row, bare, way))
    with thoughtline.install(line):
        check_whole(upstream, talk(row, upstream, way))


@pytest.mark.parametrize("way", ALL)
def test_instructor(line: Line, way: str) -> None:
    """It forces a tool, which DeepSeek refuses while it thinks: the first request is healed, what that taught is kept,
    and every thought comes back."""
    pytest.importorskip("instructor")
    bare, upstream = start("deepseek"), start("deepseek")
    with pytest.raises(Exception, match=FORCED):
        frameworks.instructor(bare.url, way)
    with thoughtline.install(line):
        assert frameworks.instructor(upstream.url, way)
    assert upstream.refusals() == [FORCED]
    assert upstream.verdicts()[-1] == ["whole"] * (TURNS - 1)
    assert line.report.healed == 1


def test_smolagents(line: Line) -> None:
    """It forces a tool, and writes calls and results as text. A call that is only text names no turn: it runs, and no
    thought comes back."""
    pytest.importorskip("smolagents")
    bare, upstream = start("deepseek"), start("deepseek")
    with pytest.raises(Exception, match=FORCED):
        frameworks.smolagents(bare.url, "sync")
    with thoughtline.install(line):
        frameworks.smolagents(upstream.url, "sync")
    assert upstream.refusals() == [FORCED]
    assert set(upstream.verdicts()[-1]) == {"missing"}
    assert line.report.blank
