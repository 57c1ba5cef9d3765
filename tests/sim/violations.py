"""What the tests of contracts share: conversations to spoil, ways to spoil them, and rows of violations."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.sim.faces import CASES, Body, Case, Dialogue

Edit = Callable[[Dialogue], None]
OPENING = 'Weather? {mark}\nscript:\nthink: I look it up.\ncall: weather {{"city": "Paris"}}\n---\n'
OPENING += (
    'think: That is all.\nsay: It is warm.\n---\nthink: Again.\ncall: weather {{"city": "Rome"}}\n---\nsay: Warm.\n'
)
JSON = "application/json"
OCTETS = "application/octet-stream"


def case_of(simulator: str, format: str = "openai_chat", part: str = "") -> Case:
    return next(case for case in CASES if (case.simulator, case.format) == (simulator, format) and part in case.id)


def called(case: Case, mark: str, **extra: Any) -> Dialogue:
    """user, assistant that called, result."""
    dialogue = Dialogue(case, OPENING.format(mark=mark), **extra)
    dialogue.go_on(dialogue.ask())
    return dialogue


def answered(case: Case, mark: str, **extra: Any) -> Dialogue:
    """user, assistant that called, result, assistant that answered, user."""
    dialogue = called(case, mark, **extra)
    dialogue.go_on(dialogue.ask())
    return dialogue


def without(field: str) -> Callable[[Dialogue], None]:
    """Every assistant message loses a field."""

    def edit(dialogue: Dialogue) -> None:
        for message in dialogue.history:
            if message.get("role") == "assistant":
                message.pop(field, None)

    return edit


def adding(field: str, value: Any, at: int = 1) -> Callable[[Dialogue], None]:
    def edit(dialogue: Dialogue) -> None:
        dialogue.history[at][field] = value

    return edit


def setting(**members: Any) -> Callable[[Dialogue], None]:
    def edit(dialogue: Dialogue) -> None:
        dialogue.body.update(members)

    return edit


def system_first(dialogue: Dialogue) -> None:
    dialogue.history.insert(0, {"role": "system", "content": "Be kind."})


class Violation(NamedTuple):
    """A row: who, after what, what is done wrong, what is answered."""

    name: str
    case: Case
    after: Callable[..., Dialogue]
    edits: tuple[Callable[[Dialogue], None], ...]
    body: Any
    status: int = 400
    content_type: str = JSON
    is_streaming: bool = False


def openai(message: str, param: str | None = None, code: str | None = None) -> Body:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def brief(message: str) -> Body:
    return {"error": {"message": message, "type": "invalid_request_error"}}


def flipped(token: str) -> str:
    """A token with one character changed, somewhere in its middle."""
    middle = len(token) // 2
    return token[:middle] + ("A" if token[middle] != "A" else "B") + token[middle + 1 :]


def other_account(dialogue: Dialogue) -> None:
    dialogue.key = "key-2"


def check_violation(row: Violation) -> None:
    """The answer is the documented one, byte for byte."""
    dialogue = row.after(row.case, row.name)
    for edit in row.edits:
        edit(dialogue)
    response = dialogue.post(is_streaming=row.is_streaming)
    expected = row.body if isinstance(row.body, str) else json.dumps(row.body, separators=(",", ":"))
    assert response.text == expected
    assert response.status_code == row.status
    assert response.headers["content-type"] == row.content_type
