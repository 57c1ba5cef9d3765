"""Families that only look whether reasoning is there: DeepSeek, Kimi, MiMo (contracts.md §1-§3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from thoughtline_sim.exchange import Rule, SimExchange
from thoughtline_sim.ledger import runs_of, visible_of
from thoughtline_sim.refusals import deepseek_error, kimi_error, mimo_error
from thoughtline_sim.values import InputMessage, Rejection, last_person
from thoughtline_sim.wire import JsonObject, as_object, objects, string
from thoughtline_sim.wires.messages import blocks_of
from thoughtline_sim.wires.responses import kind_of

GUIDE = "https://api-docs.deepseek.com/guides/thinking_mode#tool-calls"


def is_thinking(exchange: SimExchange) -> bool:
    """On, unless the request switches it off in one of the three ways the three APIs have."""
    body = exchange.body
    effort = as_object(body.get("reasoning")).get("effort") or body.get("reasoning_effort")
    return as_object(body.get("thinking")).get("type") != "disabled" and effort != "none"


def deepseek_is_thinking(exchange: SimExchange) -> bool:
    """`deepseek-chat` is the name of the model that does not think, unless it is told to."""
    if exchange.model == "deepseek-chat":
        return as_object(exchange.body.get("thinking")).get("type") == "enabled"
    return is_thinking(exchange)


def kimi_is_thinking(exchange: SimExchange) -> bool:
    """K2-thinking and K3 can't be switched off (contracts.md §2 f)."""
    return "thinking" in exchange.model or "k3" in exchange.model or is_thinking(exchange)


def has_field(message: InputMessage) -> bool:
    return isinstance(message.raw.get("reasoning_content"), str)


def has_block(message: InputMessage) -> bool:
    return any(
        block.get("type") == "thinking" and isinstance(block.get("thinking"), str) for block in blocks_of(message.raw)
    )


# DeepSeek


def deepseek_r1_forbids(exchange: SimExchange) -> Rejection | None:
    """The body of that era's error is not known (contracts.md §31.1): the sentence is ours, and says so."""
    for message in exchange.history:
        if "reasoning_content" in message.raw:
            return deepseek_error(
                f"simulated wording: `reasoning_content` is not allowed in the input (message index {message.index})."
            )
    return None


def deepseek_v3_2_requires(exchange: SimExchange) -> Rejection | None:
    """Assistant messages with tool calls after the last user message."""
    if not deepseek_is_thinking(exchange):
        return None
    for message in exchange.history[last_person(exchange.history) + 1 :]:
        if message.role == "assistant" and message.calls and not has_field(message):
            return deepseek_error(
                f"Missing `reasoning_content` field in the assistant message at message index {message.index}. "
                f"For more information, please refer to {GUIDE}"
            )
    return None


def _demands(exchange: SimExchange) -> Callable[[tuple[InputMessage, ...]], bool]:
    """Which turns must have their reasoning: with `tools` in the request all of them, by the profile `toolcalls` those
    that called."""
    if exchange.profile == "toolcalls":
        return lambda run: any(message.calls for message in run)
    return lambda run: bool(exchange.body.get("tools"))


def deepseek_chat_requires(exchange: SimExchange) -> Rejection | None:
    if not deepseek_is_thinking(exchange):
        return None
    demands = _demands(exchange)
    for message in exchange.history:
        is_blank = exchange.profile == "nonblank" and not string(message.raw.get("reasoning_content"))
        if message.role == "assistant" and demands((message,)) and (not has_field(message) or is_blank):
            return deepseek_error("The `reasoning_content` in the thinking mode must be passed back to the API.")
    return None


def deepseek_messages_requires(exchange: SimExchange) -> Rejection | None:
    if not any(_lacking(exchange, has_block)):
        return None
    return deepseek_error("The `content[].thinking` in the thinking mode must be passed back to the API.")


def deepseek_responses_requires(exchange: SimExchange) -> Rejection | None:
    if not any(_lacking(exchange, lambda message: kind_of(message.raw) == "reasoning")):
        return None
    return deepseek_error("The `reasoning_text` in the thinking mode must be passed back to the API.")


def _lacking(
    exchange: SimExchange, has_reasoning: Callable[[InputMessage], bool]
) -> Iterator[tuple[InputMessage, ...]]:
    """Turns that must have reasoning and have none. A turn that was said here without any can't bring any back."""
    if not deepseek_is_thinking(exchange):
        return
    demands = _demands(exchange)
    for turn, run in enumerate(runs_of(exchange.history)):
        is_bare = demands(run) and not any(has_reasoning(message) for message in run)
        if is_bare and not _was_silent(exchange, turn, run):
            yield run


def _was_silent(exchange: SimExchange, turn: int, run: tuple[InputMessage, ...]) -> bool:
    conversation = exchange.ledger.conversation(exchange.account, exchange.history)
    told = conversation.said.get(turn, [])
    return any(not said.thoughts and said.visible == visible_of(run) for said in told)


def deepseek_tool_choice(exchange: SimExchange) -> Rejection | None:
    """Recorded: a forced tool under thinking."""
    choice = exchange.body.get("tool_choice")
    is_forced = choice in ("required", "any") or as_object(choice).get("type") in ("function", "any", "tool")
    if is_forced and deepseek_is_thinking(exchange):
        return deepseek_error("Thinking mode does not support this tool_choice")
    return None


def deepseek_tool_kinds(exchange: SimExchange) -> Rejection | None:
    for tool in objects(exchange.body.get("tools")):
        kind = tool.get("type")
        if kind != "function":
            return deepseek_error(f"unknown variant '{string(kind)}', expected 'function'")
    return None


def deepseek_calls_before_outputs(exchange: SimExchange) -> Rejection | None:
    """Responses: an assistant message between two calls of a batch leaves the first without its output."""
    open_calls: list[str] = []
    for message in exchange.history:
        if message.calls:
            open_calls.append(message.calls[0].id or "")
        elif message.results:
            open_calls = [name for name in open_calls if name not in message.results]
        elif open_calls and kind_of(message.raw) == "message":
            return deepseek_error(f"No tool output found for tool call {open_calls[0]}.")
    return None


# Kimi


def kimi_thinking_is_object(exchange: SimExchange) -> Rejection | None:
    if isinstance(exchange.body.get("thinking"), bool):
        return kimi_error(
            "the thinking field in the request (expected type object) is illegal, and bool is not acceptable"
        )
    return None


def kimi_one_switch(exchange: SimExchange) -> Rejection | None:
    if exchange.body.get("thinking") is not None and exchange.body.get("reasoning_effort") is not None:
        return kimi_error("cannot specify both 'thinking' and 'reasoning_effort'")
    return None


def kimi_text_not_empty(exchange: SimExchange) -> Rejection | None:
    """The coding endpoint alone."""
    if "/coding/" not in exchange.path:
        return None
    for message in exchange.history:
        if any(part.get("type") == "text" and part.get("text") == "" for part in _parts(message.raw)):
            return kimi_error("text content is empty")
    return None


def _parts(message: JsonObject) -> list[JsonObject]:
    return objects(message.get("content"))


def kimi_requires(has_reasoning: Callable[[InputMessage], bool]) -> Rule:
    """Thinking on, and an assistant message with calls that has none, wherever it stands. Prefixes are let through."""

    def rule(exchange: SimExchange) -> Rejection | None:
        for index in _lacking_calls(exchange, kimi_is_thinking, has_reasoning):
            return kimi_error(
                f"thinking is enabled but reasoning_content is missing in assistant tool call message at index {index}"
            )
        return None

    return rule


def _lacking_calls(
    exchange: SimExchange, thinks: Callable[[SimExchange], bool], has_reasoning: Callable[[InputMessage], bool]
) -> Iterator[int]:
    if not thinks(exchange):
        return
    can_say_nothing = has_reasoning is has_field
    for turn, run in enumerate(runs_of(exchange.history)):
        for message in run:
            is_bare = message.calls and not has_reasoning(message) and message.raw.get("partial") is not True
            if is_bare and (can_say_nothing or not _was_silent(exchange, turn, run)):
                yield message.index


# MiMo


def mimo_requires(has_reasoning: Callable[[InputMessage], bool]) -> Rule:
    def rule(exchange: SimExchange) -> Rejection | None:
        for _ in _lacking_calls(exchange, mimo_is_thinking, has_reasoning):
            sentence = "The reasoning_content in the thinking mode must be passed back to the API."
            return mimo_error(sentence, exchange.is_streaming)
        return None

    return rule


def mimo_is_thinking(exchange: SimExchange) -> bool:
    """On by default but for v2-flash."""
    told = as_object(exchange.body.get("thinking")).get("type")
    return told == "enabled" or (told is None and "v2-flash" not in exchange.model)
