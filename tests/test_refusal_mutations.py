"""Refusals in other quotes, envelopes and with other words around them: read as in their own."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable

import pytest

from tests.gateway.test_setting_refusals import after, error_of, request_of
from tests.refusal_texts import MORE_WORDINGS, OTHER_WORDINGS, PASSED_ON, REPORTED, ROWS, WRAPPERS, Body, Row
from thoughtline.engine.contracts import ContractBook
from thoughtline.engine.learned import Lessons
from thoughtline.engine.replayer import Replayer
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.settings import StoreSettings
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity

EVERY = ROWS | OTHER_WORDINGS | REPORTED | MORE_WORDINGS | PASSED_ON
NOW = 1_000_000.0


async def healed(row: Row, error: bytes) -> tuple[Body, Body] | None:
    """A row's request as it goes up after the refusal, and the next one; None where the refusal is passed on."""
    store = MemoryStore(StoreSettings(), lambda: NOW)
    lessons = Lessons(store, lambda: NOW)
    replayer = Replayer(store, lessons, ContractBook(lessons), lambda: NOW)
    target = Destination(row.provider, "https://acme.example/v1", row.model, row.format)
    body = json.dumps(request_of(row)[1]).encode()
    sent = await replayer.prepare(body, target, Identity("somebody"))
    again = await replayer.heal(sent, row.status, error)
    if again is None:
        return None
    await replayer.keep_lessons(again)
    return json.loads(again.body), json.loads((await replayer.prepare(body, target, Identity("somebody"))).body)


def check(row: Row, error: bytes) -> str:
    """What is wrong with how a refusal is answered."""
    wanted = None if row.passed else (after(request_of(row)[1], row.wants),) * 2
    found = asyncio.run(healed(row, error))
    return "" if found == wanted else f"{row.sentence}\n  wants {wanted}\n  found {found}"


def complain(problems: list[str]) -> None:
    assert not any(problems), "\n".join(filter(None, problems))


@pytest.mark.parametrize("name", MORE_WORDINGS)
def test_more_wordings(name: str) -> None:
    """The members that are named change, no other does, and the next request is right at once."""
    complain([check(MORE_WORDINGS[name], error_of(MORE_WORDINGS[name]))])


WORD = re.compile(r"[`'\"]([\w.*-]{1,60})[`'\"]")
NOTATIONS = ("Python's repr", "sgl literal", "vllm extra")
"""Their quotes are those of a language."""


@pytest.mark.parametrize("quotes", ["''", '""', "``", "“”", "‘’", "「」"])  # noqa: RUF001 (that is what is tested)
def test_other_quotes(quotes: str) -> None:
    """Quotes are quotes."""
    rows = [row for name, row in EVERY.items() if name not in NOTATIONS and WORD.search(row.sentence)]
    quoted = [row._replace(sentence=WORD.sub(rf"{quotes[0]}\1{quotes[1]}", row.sentence)) for row in rows]
    complain([check(row, error_of(row)) for row in quoted])


@pytest.mark.parametrize("wrapper", [name for name in WRAPPERS if name != "text"])
def test_other_envelopes(wrapper: str) -> None:
    """Whatever a relay puts around an error, and no words of the envelope count."""
    in_chat = [row._replace(format="openai_chat") if row.format == "ollama_chat" else row for row in EVERY.values()]
    errors = map(error_of, in_chat)
    complain([check(row, WRAPPERS[wrapper](error)) for row, error in zip(EVERY.values(), errors, strict=True)])


AROUND: dict[str, Callable[[str], str]] = {
    "an announcement": lambda sentence: f"Invalid request: {sentence}",
    "a number": lambda sentence: f"[1210] {sentence}",
    "advice": lambda sentence: f"{sentence.strip().rstrip('.')}. Please check the documentation.",
    "an id": lambda sentence: f"{sentence.strip().rstrip('.')}. Request id: 0217abc",
    "pydantic's note": lambda sentence: f"{sentence.strip().rstrip('.')}. [type=literal_error, input_type=str]",
    "no full stop": lambda sentence: sentence.rstrip(". "),
}


@pytest.mark.parametrize("around", AROUND)
def test_other_words_around_it(around: str) -> None:
    """What stands before and after a sentence makes no difference."""
    said = [row._replace(sentence=AROUND[around](row.sentence)) for row in EVERY.values()]
    complain([check(row, error_of(row)) for row in said])


MODELS = ("gpt-9.2-nova", "claude-opus-7-1", "qwen9-max-2027-01-02", "moonshotai/kimi-k9", "llama9:70b-q4_K_M")
KNOWN = re.compile(
    r"gpt-[\w.-]*\d|claude-[\w.-]*\d|grok-[\w.-]+|glm-[\w.-]*\w|novel-9|kimi-k9|llama3\.2:1b|o4-mini|gemini-[\w.-]+\w"
)


@pytest.mark.parametrize("model", MODELS)
def test_other_models(model: str) -> None:
    """The name of a model in the sentence is no name of a setting, and no number of it a bound."""
    rows = [row for row in EVERY.values() if KNOWN.search(row.sentence)]
    assert len(rows) > 15
    complain(
        [check(row, error_of(row)) for row in (row._replace(sentence=KNOWN.sub(model, row.sentence)) for row in rows)]
    )


FIELDS = ("reasoning_effort", "effort_level", "thinking_effort", "reasoningEffort")


@pytest.mark.parametrize("field", FIELDS)
def test_other_fields(field: str) -> None:
    """A made-up member is recognized like the known one."""
    rows = [
        row
        for row in EVERY.values()
        if list(row.has) == ["reasoning_effort"] and "reasoning_effort" in row.sentence and row.format == "openai_chat"
    ]
    renamed = [
        row._replace(
            sentence=row.sentence.replace("reasoning_effort", field),
            has={field: row.has["reasoning_effort"]},
            wants={field if name == "reasoning_effort" else name: one for name, one in row.wants.items()},
        )
        for row in rows
    ]
    assert len(renamed) > 15
    complain([check(row, error_of(row)) for row in renamed])


LISTS = (("low", "high"), ("low", "medium", "high", "xhigh"), ("none", "minimal", "low"), ("high",))
WRITTEN: tuple[Callable[[list[str]], str], ...] = (
    lambda words: ", ".join(f"'{word}'" for word in words),
    lambda words: " or ".join(f"`{word}`" for word in words),
    lambda words: f"[{', '.join(words)}]",
    lambda words: "/".join(words),
    lambda words: "|".join(f'"{word}"' for word in words),
    lambda words: ", ".join(words[:-1]) + f" and {words[-1]}" if len(words) > 1 else words[0],
)
PLACES = (
    "Unsupported value: 'reasoning_effort' does not support 'max' with this model. Supported values are: {}.",
    "reasoning_effort: unknown variant `max`, expected one of {}",
    "Invalid reasoning_effort 'max'. Allowed values: {}",
    "`reasoning_effort` must be one of {}",
)


@pytest.mark.parametrize("words", LISTS, ids="-".join)
def test_other_lists(words: tuple[str, ...]) -> None:
    """The highest of any list, however it is written, stands for the most there is."""
    highest = words[-1]
    rows = [
        Row(place.format(write(list(words))), {"reasoning_effort": "max"}, {"reasoning_effort": highest})
        for place in PLACES
        for write in WRITTEN
    ]
    complain([check(row, error_of(row)) for row in rows])
