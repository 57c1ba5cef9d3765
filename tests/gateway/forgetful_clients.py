"""Clients that forget: a dialogue through the gateway whose client strips, or changes, what it sends back."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

from tests.sim.faces import Body, Case, Dialogue
from thoughtline.values.turns import FormatName

Change = Callable[[Body, FormatName], None]
"""A change that a client makes to a request before it sends it; the request is its own copy."""

TWO_TURNS = """How is the weather? {mark}
script:
think: Two cities, so two calls at once.
call: weather {{"city": "Paris"}}
call: weather {{"city": "Zürich"}}
---
think: Now I know.
say: Both are sunny.
"""
TEN_TURNS = """How is the weather? {mark}
script:
think: Two cities, so two calls at once.
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
think: The user asks again. \\"quoted\\" \\\\ and 日本語 🙂
call: weather {{"city": "Oslo"}}
---
no-think
call: weather {{"city": "Bergen"}}
---
long 900
say: It is cold in the north.
---
think: Three at once.
say: Three more.
call: weather {{"city": "Lima"}}
call: weather {{"city": "Quito"}}
call: weather {{"city": "Lima"}}
---
think: Nothing to look up.
say: All three are mild.
---
no-think
say: As I said.
---
think: The end.
say: Good bye.
"""
TURNS = 10

_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "reasoning_text", "reasoning_opaque", "thinking")
_TAGS = re.compile(r"\s*<think>.*?</think>\s*", re.DOTALL)


def forget_everything(body: Body, format: FormatName) -> None:
    """Strip all reasoning, in every shape of the format."""
    match format:
        case "openai_responses":
            body["input"] = [element for element in body["input"] if element.get("type") != "reasoning"]
        case "gemini_interactions":
            body["input"] = [step for step in body["input"] if step["type"] != "thought"]
        case "gemini_generate" | "gemini_code_assist":
            for content in body["contents"]:
                content["parts"] = [
                    _without(part, "thoughtSignature") for part in content["parts"] if not _is_thought(part)
                ]
        case "bedrock_converse":
            for message in body["messages"]:
                message["content"] = [block for block in message["content"] if "reasoningContent" not in block]
        case _:
            for message in body["messages"]:
                _forget_in_message(message)


def _forget_in_message(message: Body) -> None:
    for field in _FIELDS:
        message.pop(field, None)
    for call in message.get("tool_calls") or []:
        call.pop("extra_content", None)
    content = message.get("content")
    if message["role"] != "assistant":
        return
    if isinstance(content, list):
        message["content"] = [block for block in content if "thinking" not in str(block.get("type"))]
    elif isinstance(content, str):
        message["content"] = _TAGS.sub("", content)


def _is_thought(part: Body) -> bool:
    return bool(part.get("thought")) or set(part) == {"thoughtSignature"}


def _without(part: Body, *names: str) -> Body:
    return {name: value for name, value in part.items() if name not in names}


class Forgetful(Dialogue):
    """A client behind a gateway that changes each request before it sends it."""

    def __init__(
        self, base: str, case: Case, opening: str, key: str = "key-1", change: Change = forget_everything, **extra: Any
    ) -> None:
        super().__init__(case, opening, key, **extra)
        self.base = base
        self._change = change

    def outgoing(self) -> Body:
        body = copy.deepcopy(self.body)
        self._change(body, self.case.format)
        return self.as_sent(body)
