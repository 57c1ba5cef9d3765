"""Families that only check the presence of reasoning: DeepSeek, Kimi, MiMo."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from thoughtline_sim.exchange import Rule, SimExchange
from thoughtline_sim.ledger import runs_of, visible_of
from thoughtline_sim.reading import as_object, objects, string
from thoughtline_sim.refusals import mimo_error
from thoughtline_sim.values import InputMessage, Rejection, last_person
from thoughtline_sim.wires.messages import blocks_of
from thoughtline_sim.wires.responses import kind_of

GUIDE = "https://api-docs.deepseek.com/guides/thinking_mode#tool-calls"
MIMO_SENTENCE = "The reasoning_content in the thinking mode must be passed back to the API."


def _has_switched_on(exchange: SimExchange) -> bool:
    return as_object(exchange.body.get("thinking")).get("type") == "enabled"


def is_thinking(exchange: SimExchange) -> bool:
    """On, unless the request switches it off in one of the ways of the three APIs."""
    body = exchange.body
    effort = as_object(body.get("reasoning")).get("effort") or body.get("reasoning_effort")
    return as_object(body.get("thinking")).get("type") != "disabled" and effort != "none"


def deepseek_is_thinking(exchange: SimExchange) -> bool:
    """`deepseek-chat` is the name of the model that thinks only on request."""
    return _has_switched_on(exchange) if exchange.model == "deepseek-chat" else is_thinking(exchange)


def mimo_is_thinking(exchange: SimExchange) -> bool:
    """On by default except for v2-flash."""
    is_default = as_object(exchange.body.get("thinking")).get("type") is None
    return _has_switched_on(exchange) or (is_default and "v2-flash" not in exchange.model)


def has_field(message: InputMessage) -> bool:
    return isinstance(message.raw.get("reasoning_content"), str)


def has_block(message: InputMessage) -> bool:
    return any(
        block.get("type") == "thinking" and isinstance(block.get("thinking"), str) for block in blocks_of(message.raw)
    )


def has_item(message: InputMessage) -> bool:
    """Readable text: another provider's ciphertext doesn't count."""
    parts = objects(message.raw.get("content"))
    return kind_of(message.raw) == "reasoning" and any(part.get("type") == "reasoning_text" for part in parts)


# DeepSeek


def deepseek_r1_forbids(exchange: SimExchange) -> Iterator[str]:
    """The error body of that time is unknown: the message is ours, and says so."""
    for message in exchange.history:
        if "reasoning_content" in message.raw:
            yield f"simulated wording: `reasoning_content` is not allowed in the input (message index {message.index})."


def deepseek_v3_2_requires(exchange: SimExchange) -> Iterator[str]:
    """Assistant messages with tool calls after the last user message."""
    for message in exchange.history[last_person(exchange.history) + 1 :]:
        if exchange.thinks and message.role == "assistant" and message.calls and not has_field(message):
            yield (
                f"Missing `reasoning_content` field in the assistant message at message index {message.index}. "
                f"For more information, please refer to {GUIDE}"
            )


def _is_demanded(exchange: SimExchange, run: tuple[InputMessage, ...]) -> bool:
    """Whether a turn must have its reasoning: with `tools` in the request every turn, with the profile `toolcalls` one
    with calls.
    """
    if exchange.profile == "toolcalls":
        return any(message.calls for message in run)
    return bool(exchange.body.get("tools"))


def deepseek_chat_requires(exchange: SimExchange) -> Iterator[str]:
    for message in exchange.history:
        is_blank = exchange.profile == "nonblank" and not string(message.raw.get("reasoning_content"))
        is_demanded = exchange.thinks and message.role == "assistant" and _is_demanded(exchange, (message,))
        if is_demanded and (not has_field(message) or is_blank):
            yield "The `reasoning_content` in the thinking mode must be passed back to the API."


def deepseek_requires(has_reasoning: Callable[[InputMessage], bool], member: str) -> Rule:
    """Messages and Responses: by turn. A turn that was sent without reasoning can't return any."""

    def rule(exchange: SimExchange) -> Iterator[str]:
        for turn, run in enumerate(runs_of(exchange.history)):
            is_bare = _is_demanded(exchange, run) and not any(has_reasoning(message) for message in run)
            if exchange.thinks and is_bare and not _was_silent(exchange, turn, run):
                yield f"The `{member}` in the thinking mode must be passed back to the API."

    return rule


def _was_silent(exchange: SimExchange, turn: int, run: tuple[InputMessage, ...]) -> bool:
    conversation = exchange.ledger.conversation(exchange.account, exchange.history)
    return any(not sent.thoughts and sent.visible == visible_of(run) for sent in conversation.sent.get(turn, []))


def deepseek_tool_choice(exchange: SimExchange) -> Iterator[str]:
    """Recorded: a forced tool under thinking."""
    choice = exchange.body.get("tool_choice")
    is_forced = choice in ("required", "any") or as_object(choice).get("type") in ("function", "any", "tool")
    if is_forced and exchange.thinks:
        yield "Thinking mode does not support this tool_choice"


def deepseek_tool_kinds(exchange: SimExchange) -> Iterator[str]:
    for tool in objects(exchange.body.get("tools")):
        if tool.get("type") != "function":
            yield f"unknown variant '{string(tool.get('type'))}', expected 'function'"


def deepseek_calls_before_outputs(exchange: SimExchange) -> Iterator[str]:
    """Responses: an assistant message between two calls of a batch leaves the first without its output."""
    open_calls: list[str] = []
    for message in exchange.history:
        if message.calls:
            open_calls.append(message.calls[0].id or "")
        elif message.results:
            open_calls = [name for name in open_calls if name not in message.results]
        elif open_calls and kind_of(message.raw) == "message":
            yield f"No tool output found for tool call {open_calls[0]}."


# Kimi


def kimi_thinking_is_object(exchange: SimExchange) -> Iterator[str]:
    if isinstance(exchange.body.get("thinking"), bool):
        yield "the thinking field in the request (expected type object) is illegal, and bool is not acceptable"


def kimi_one_switch(exchange: SimExchange) -> Iterator[str]:
    if exchange.body.get("thinking") is not None and exchange.body.get("reasoning_effort") is not None:
        yield "cannot specify both 'thinking' and 'reasoning_effort'"


def kimi_text_not_empty(exchange: SimExchange) -> Iterator[str]:
    """Only the coding endpoint."""
    for message in exchange.history if "/coding/" in exchange.request.path else ():
        parts = objects(message.raw.get("content"))
        if any(part.get("type") == "text" and part.get("text") == "" for part in parts):
            yield "text content is empty"


def calls_require(
    has_reasoning: Callable[[InputMessage], bool], missing: Callable[[SimExchange, int], str | Rejection]
) -> Rule:
    """Kimi and MiMo: thinking on, and an assistant message with calls but without reasoning, at any position. Prefixes
    are accepted.
    """
    can_say_nothing = has_reasoning is has_field

    def rule(exchange: SimExchange) -> Iterator[str | Rejection]:
        for turn, run in enumerate(runs_of(exchange.history) if exchange.thinks else ()):
            for message in run:
                is_bare = message.calls and not has_reasoning(message) and message.raw.get("partial") is not True
                if is_bare and (can_say_nothing or not _was_silent(exchange, turn, run)):
                    yield missing(exchange, message.index)

    return rule


def kimi_missing(exchange: SimExchange, index: int) -> str:
    return f"thinking is enabled but reasoning_content is missing in assistant tool call message at index {index}"


def mimo_missing(exchange: SimExchange, index: int) -> Rejection:
    return mimo_error(MIMO_SENTENCE, exchange.is_streaming)
