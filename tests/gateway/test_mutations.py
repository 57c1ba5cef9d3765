"""Changes that real clients make to a history between two turns, as rows: the conversation continues without loss.

Each row is a habit from the catalogue of client behaviours (groups A to E), a function on the request that the client
would send, and its scope. The simulator judges: no request is refused, and reasoning comes back exactly.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from tests.gateway.conftest import Gateways, provider_of
from tests.gateway.forgetful_clients import TEN_TURNS, TURNS, Change, Forgetful, forget_everything
from tests.sim.faces import CASES, Body, Case
from tests.sim.served_simulators import served
from thoughtline.values.turns import FormatName

STARTS = (
    "deepseek-openai_chat",
    "deepseek-anthropic_messages",
    "deepseek-openai_responses",
    "kimi-openai_chat",
    "kimi-anthropic_messages",
    "mimo-openai_chat",
    "glm-openai_chat",
    "qwen-openai_chat",
    "minimax-openai_chat-MiniMax-M2",
    "anthropic-classic",
    "anthropic-bound",
    "gemini-gemini_generate-gemini-3-pro",
    "gemini-openai_chat",
    "openai-openai_responses-gpt-5",
    "xai-openai_responses",
    "openrouter-openai_chat-anthropic",
    "openrouter-openai_chat-google",
    "ollama-ollama_chat",
)
FACES = [next(case for case in CASES if case.id.startswith(start)) for start in STARTS]

CHAT = ("openai_chat", "ollama_chat")
NAMED = ("deepseek", "kimi", "mimo", "glm", "qwen")
"""The providers whose chat face keeps its reasoning in `reasoning_content`."""


def said(body: Body) -> Iterator[Body]:
    """The model's own messages of a chat or Messages request."""
    return (message for message in body["messages"] if message["role"] == "assistant")


def blocks(body: Body, kind: str) -> Iterator[Body]:
    for message in body["messages"]:
        if isinstance(message["content"], list):
            yield from (block for block in message["content"] if block["type"] == kind)


def parts(body: Body) -> Iterator[Body]:
    for content in body["contents"]:
        yield from content["parts"]


def then_forget(change: Change) -> Change:
    """The habit of a client that also strips everything."""

    def both(body: Body, format: FormatName) -> None:
        forget_everything(body, format)
        change(body, format)

    return both


# A: fields


def every_other_kept(body: Body, format: FormatName) -> None:
    for number, message in enumerate(said(body)):
        if number % 2:
            forget_everything({"messages": [message]}, format)


def no_ciphertext_asked(body: Body, format: FormatName) -> None:
    body.pop("include", None)


def emptied(body: Body, format: FormatName) -> None:
    for message in said(body):
        message["reasoning_content"] = ""


def trimmed_thoughts(body: Body, format: FormatName) -> None:
    for message in said(body):
        if message.get("reasoning_content"):
            message["reasoning_content"] = message["reasoning_content"].rstrip(".!\n ") + "\n"


def renamed_field(body: Body, format: FormatName) -> None:
    for message in said(body):
        if "reasoning_content" in message:
            message["reasoning"] = message.pop("reasoning_content")


def library_fields(body: Body, format: FormatName) -> None:
    for message in said(body):
        message |= {"refusal": None, "provider_specific_fields": {"a": 1}, "annotations": [], "audio": None}


def no_thought_parts(body: Body, format: FormatName) -> None:
    for content in body["contents"]:
        content["parts"] = [part for part in content["parts"] if not part.get("thought")]


def sentinels(body: Body, format: FormatName) -> None:
    for part in parts(body):
        if "thoughtSignature" in part:
            part["thoughtSignature"] = "skip_thought_signature_validator"


def url_safe(body: Body, format: FormatName) -> None:
    for part in parts(body):
        if "thoughtSignature" in part:
            part["thoughtSignature"] = base64.urlsafe_b64encode(base64.b64decode(part["thoughtSignature"])).decode()


def no_empty_thinking(body: Body, format: FormatName) -> None:
    for message in said(body):
        message["content"] = [block for block in message["content"] if block.get("thinking") != ""]


# B: ids


def renaming(rename: Callable[[str], str]) -> Change:
    """Replaces every call id, in the call and in its result."""

    def change(body: Body, format: FormatName) -> None:
        for name, holder in _ids(body, format):
            holder[name] = rename(holder[name])

    return then_forget(change)


def _ids(body: Body, format: FormatName) -> Iterator[tuple[str, Body]]:
    if format == "openai_responses":
        yield from (("call_id", element) for element in body["input"] if "call_id" in element)
    elif format == "anthropic_messages":
        yield from (("id", block) for block in blocks(body, "tool_use"))
        yield from (("tool_use_id", block) for block in blocks(body, "tool_result"))
    else:
        for message in body["messages"]:
            yield from (("id", call) for call in message.get("tool_calls") or ())
            if "tool_call_id" in message:
                yield "tool_call_id", message


def without_gemini_ids(body: Body, format: FormatName) -> None:
    for part in parts(body):
        for kind in ("functionCall", "functionResponse"):
            part.get(kind, {}).pop("id", None)


def without_item_ids(body: Body, format: FormatName) -> None:
    for element in body["input"]:
        if element.get("type") != "function_call_output":
            element.pop("id", None)


def rewritten_item_ids(body: Body, format: FormatName) -> None:
    for number, element in enumerate(body["input"]):
        if element.get("type") == "function_call":
            element["id"] = f"fc_{element['call_id']}"
        elif element.get("type") == "message":
            element["id"] = f"msg_{number}"


def results_twice(body: Body, format: FormatName) -> None:
    for content in body["contents"]:
        if any("functionResponse" in part for part in content["parts"]):
            content["parts"] = [*content["parts"], *content["parts"]]


# C: shape


def calls_apart(body: Body, format: FormatName) -> None:
    """Splits parallel calls into one message each."""
    messages = []
    for message in body["messages"]:
        calls = message.get("tool_calls") or [None]
        messages.append({**message, "tool_calls": calls[:1]} if calls[0] else message)
        messages += [{"role": "assistant", "content": None, "tool_calls": [call]} for call in calls[1:]]
    body["messages"] = messages


def results_backwards(body: Body, format: FormatName) -> None:
    if format == "anthropic_messages":
        for message in body["messages"]:
            if message["role"] == "user" and isinstance(message["content"], list):
                message["content"] = message["content"][::-1]
        return
    messages: list[Body] = []
    for message in body["messages"]:
        at = len(messages)
        while message["role"] == "tool" and messages[at - 1]["role"] == "tool":
            at -= 1
        messages.insert(at, message)
    body["messages"] = messages


def thinking_first(body: Body, format: FormatName) -> None:
    for message in said(body):
        message["content"] = sorted(message["content"], key=lambda block: "thinking" not in block["type"])


def other_shapes(body: Body, format: FormatName) -> None:
    for number, message in enumerate(body["messages"]):
        if message["role"] == "user" and isinstance(message["content"], str):
            block: Body = {"type": "text", "text": message["content"]}
            if format == "anthropic_messages" and number == 0:
                block["cache_control"] = {"type": "ephemeral"}
            message["content"] = [block]
        elif message["role"] == "assistant" and not message.get("content") and format == "openai_chat":
            message["content"] = ""


def trimmed_text(body: Body, format: FormatName) -> None:
    for message in said(body):
        if isinstance(message.get("content"), str):
            message["content"] = message["content"].strip()


def arguments(write: Callable[[Any], str]) -> Change:
    def change(body: Body, format: FormatName) -> None:
        for message in said(body):
            for call in message.get("tool_calls") or ():
                call["function"]["arguments"] = write(json.loads(call["function"]["arguments"]))

    return then_forget(change)


def invented_turns(body: Body, format: FormatName) -> None:
    """The client adds an invented assistant turn after the model's first answer."""
    at = next((at for at, one in enumerate(body["messages"]) if at > 0 and one["role"] == "user"), None)
    if at is not None:
        invented = [{"role": "user", "content": "Note this."}, {"role": "assistant", "content": "Got it. Thanks!"}]
        body["messages"][at:at] = invented


def thoughts_in_text(body: Body, format: FormatName) -> None:
    for message in said(body):
        if thought := message.pop("reasoning_content", None):
            message["content"] = f"<think>{thought}</think>\n{message.get('content') or ''}"


def system_in_the_middle(body: Body, format: FormatName) -> None:
    body["messages"].insert(len(body["messages"]) - 1, {"role": "system", "content": "Be brief."})


# D and E


def rewritten_system(body: Body, format: FormatName) -> None:
    """A different system prompt with every request."""
    count = len(body["messages"])
    if format == "anthropic_messages":
        body["system"] = f"It is {count} o'clock."
    else:
        body["messages"].insert(0, {"role": "system", "content": f"It is {count} o'clock."})


def reminders(body: Body, format: FormatName) -> None:
    for message in body["messages"]:
        if message["role"] == "tool":
            message["content"] += f"\n<system-reminder>{len(body['messages'])}</system-reminder>"


def sliding_window(body: Body, format: FormatName) -> None:
    """Keeps the opening and everything from the last user message on."""
    users = [at for at, message in enumerate(body["messages"]) if message["role"] == "user"]
    body["messages"] = [body["messages"][0], *body["messages"][max(users[-1], 1) :]]


class Habit(NamedTuple):
    """A row. `also` are verdicts that are correct for this habit besides `whole` and `none`."""

    id: str
    change: Change
    formats: tuple[str, ...]
    simulators: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    has_session: bool = False

    def fits(self, case: Case) -> bool:
        return case.format in self.formats and (not self.simulators or case.simulator in self.simulators)


ALL = tuple({case.format: None for case in FACES})
HABITS = [
    Habit("A1 A3 A4 A10 strips everything", forget_everything, ALL),
    Habit("A2 keeps every other turn", every_other_kept, ("openai_chat", "ollama_chat", "anthropic_messages")),
    Habit("A4 never asks for ciphertext", then_forget(no_ciphertext_asked), ("openai_responses",)),
    Habit("A5 sends empty strings", emptied, CHAT, NAMED),
    Habit("A7 trims reasoning", trimmed_thoughts, CHAT, NAMED),
    Habit("A8 renames the field", renamed_field, CHAT, NAMED),
    Habit("A9 adds fields", then_forget(library_fields), ("openai_chat",)),
    Habit("A11 drops thought parts", no_thought_parts, ("gemini_generate",)),
    Habit("A12 sends sentinels", sentinels, ("gemini_generate",)),
    Habit("A13 re-encodes signatures", url_safe, ("gemini_generate",)),
    Habit("A14 drops empty thinking", no_empty_thinking, ("anthropic_messages",)),
    Habit(
        "B2 sanitises ids",
        renaming(lambda name: name.replace(".", "_").replace(":", "_")),
        (*CHAT[:1], "anthropic_messages"),
    ),
    Habit(
        "B3 regenerates ids",
        renaming(lambda name: f"call{abs(hash(name)) % 10**9:09d}"),
        ("openai_chat", "openai_responses", "anthropic_messages"),
    ),
    Habit(
        "B4 lengthens ids",
        renaming(lambda name: f"{name}-0123456789"),
        ("openai_chat", "openai_responses", "anthropic_messages"),
    ),
    Habit("B5 a signature in the id", renaming(lambda name: f"{name}__thought__c2lnbmVk"), ("openai_chat",)),
    Habit("B6 drops ids", then_forget(without_gemini_ids), ("gemini_generate",)),
    Habit("B7 drops item ids", then_forget(without_item_ids), ("openai_responses",)),
    Habit("B7 rewrites item ids", then_forget(rewritten_item_ids), ("openai_responses",)),
    Habit("B8 repeats results", then_forget(results_twice), ("gemini_generate",)),
    Habit("C1 splits parallel calls", then_forget(calls_apart), ("openai_chat",), (*NAMED, "minimax"), ("altered",)),
    Habit("C4 results in another order", then_forget(results_backwards), ("openai_chat", "anthropic_messages")),
    Habit("C5 thinking first", thinking_first, ("anthropic_messages",)),
    Habit("C6 other shapes", then_forget(other_shapes), ("openai_chat", "anthropic_messages")),
    Habit("C7 trims text", then_forget(trimmed_text), CHAT),
    Habit(
        "C8 compact arguments",
        arguments(lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False)),
        ("openai_chat",),
    ),
    Habit("C8 ASCII arguments", arguments(json.dumps), ("openai_chat",)),
    Habit(
        "C9 invents turns",
        then_forget(invented_turns),
        ("openai_chat",),
        NAMED,
        ("unknown", "missing", "invented", "altered"),
    ),
    Habit("C10 reasoning in the text", thoughts_in_text, ("openai_chat",), NAMED),
    # A client that changes its system prompt is another one, unless it names its session or has ids that are unique.
    Habit("C11 system in the middle", then_forget(system_in_the_middle), ("openai_chat",), has_session=True),
    Habit("D2 another system prompt", then_forget(rewritten_system), ("openai_chat",), has_session=True),
    Habit(
        "D2 another system prompt",
        then_forget(rewritten_system),
        ("anthropic_messages",),
        (),
        ("missing",),
        has_session=True,
    ),
    Habit("D2 reminders in results", then_forget(reminders), ("openai_chat",), has_session=True),
    Habit(
        "D6 a sliding window",
        then_forget(sliding_window),
        ("openai_chat",),
        NAMED,
        ("unknown", "missing", "altered", "invented"),
    ),
]
ROWS = [(habit, case) for habit in HABITS for case in FACES if habit.fits(case)]


@pytest.mark.parametrize(("habit", "case"), ROWS, ids=[f"{habit.id}-{case.id}" for habit, case in ROWS])
def test_a_habit(gateways: Gateways, habit: Habit, case: Case) -> None:
    """Ten turns with a client of this habit: nothing is refused, and its reasoning comes back."""
    gateway = gateways(case)
    opening = TEN_TURNS.format(mark=f"{habit.id} {case.id}")
    dialogue = Forgetful(f"{gateway.url}/{provider_of(case)}", case, opening, change=habit.change)
    if habit.has_session:
        dialogue.headers = {"x-session-id": f"{habit.id} {case.id}".replace(" ", "-")}
    log = served(case.simulator, case.profile).app.simulation.log
    for turn in range(TURNS):
        answer = dialogue.ask(is_streaming=bool(turn % 2))
        assert log[-1]["status"] == 200
        if turn < TURNS - 1:
            dialogue.go_on(answer)
    verdicts = list(log[-1]["verdicts"])
    thoughtless = {4, 8}
    for turn, verdict in enumerate(verdicts):
        allowed = ("whole", "none", "invented") if turn in thoughtless else ("whole",)
        assert verdict in (*allowed, *habit.also), (turn, verdicts)
