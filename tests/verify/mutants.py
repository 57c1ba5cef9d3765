"""Simulators with one rule changed, each with the facts that a verification must find wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from thoughtline.values.turns import FormatName
from thoughtline_sim.exchange import Api, Rule, SimExchange, Simulator
from thoughtline_sim.reading import JsonObject, as_object, objects
from thoughtline_sim.rules.anthropic import last_block_not_thinking, latest_turn_unchanged
from thoughtline_sim.rules.openai_preserved import reasoning_preserved
from thoughtline_sim.simulators import SIMULATORS
from thoughtline_sim.values import Rejection

TOOL_LOOP = "without it in a tool loop"
EARLIER = "without it in an earlier tool loop"
ANSWER = "without it in an earlier answer"
ALTERED = "with it altered"
WHOLE = "its own reasoning, whole"
THINKS = "thinks unless told otherwise"
COMES_IN = "reasoning comes in"
OFF = "thinking can be switched off"
FORCED = "a forced tool while it thinks"
WARM = "a temperature while it thinks"
EDITED = "behind an edited message"
READ = "it is read in a tool loop"
TOOLS = "takes tools in this format"
OTHERS = "of another model"
DROPPED = "dropped behind an edited message"
ORDER = "behind what it led to"
EMPTY = "with an empty text"


class Mutant(NamedTuple):
    """A simulator that breaks one belief. `finds` are facts of which one must differ, or a refusal must be unknown."""

    name: str
    simulator: Simulator
    provider: str
    model: str
    format: FormatName
    finds: tuple[str, ...]
    is_unknown_refusal: bool = False
    other: str = ""


def _apis(simulator: Simulator, change: Callable[[Api], Api]) -> Simulator:
    return simulator._replace(apis=tuple(change(api) for api in simulator.apis))


def _without_rules(simulator: Simulator) -> Simulator:
    return _apis(simulator, lambda api: api._replace(rules=()))


def _without_rule(simulator: Simulator, rule: Rule) -> Simulator:
    return _apis(simulator, lambda api: api._replace(rules=tuple(one for one in api.rules if one is not rule)))


def _with_rule(simulator: Simulator, rule: Rule) -> Simulator:
    return _apis(simulator, lambda api: api._replace(rules=(*api.rules, rule)))


def _never_thinking(simulator: Simulator) -> Simulator:
    """It thinks only if the request says so."""

    def is_asked(exchange: SimExchange) -> bool:
        body = exchange.body
        config = as_object(as_object(body.get("generationConfig")).get("thinkingConfig"))
        told = as_object(body.get("thinking")).get("type") in ("enabled", "adaptive")
        effort = body.get("reasoning_effort") or as_object(body.get("reasoning")).get("effort")
        is_on = body.get("enable_thinking") is True or as_object(body.get("reasoning")).get("enabled") is True
        return bool(told or effort or is_on or config.get("thinkingLevel"))

    return _apis(simulator._replace(is_thinking=is_asked), lambda api: api._replace(is_thinking=is_asked))


def _always_thinking(simulator: Simulator) -> Simulator:
    return _apis(
        simulator._replace(is_thinking=lambda exchange: True),
        lambda api: api._replace(is_thinking=lambda exchange: True),
    )


def _wording(simulator: Simulator) -> Simulator:
    """It refuses in other words than it is known for."""

    def reject(sentence: str) -> Rejection:
        return simulator.reject("Turn incomplete, kindly resend everything that we sent you before")

    return _apis(simulator._replace(reject=reject), lambda api: api._replace(reject=reject))


def no_forced_tool(exchange: SimExchange) -> Iterator[str]:
    choice = exchange.body.get("tool_choice")
    config = as_object(as_object(exchange.body.get("toolConfig")).get("functionCallingConfig"))
    if choice in ("required", "any") or as_object(choice).get("type") == "any" or config.get("mode") == "ANY":
        yield "tool_choice is not supported with this model"


def no_temperature(exchange: SimExchange) -> Iterator[str]:
    config = as_object(exchange.body.get("generationConfig"))
    if exchange.body.get("temperature") is not None or config.get("temperature") is not None:
        yield "temperature is not supported with this model"


def no_low_effort(exchange: SimExchange) -> Iterator[str]:
    body = exchange.body
    output = as_object(body.get("output_config")).get("effort")
    if "low" in (body.get("reasoning_effort"), as_object(body.get("reasoning")).get("effort"), output):
        yield "reasoning_effort: must be one of high, max"


def no_tools(exchange: SimExchange) -> Iterator[str]:
    if exchange.body.get("tools"):
        yield "tools are not supported in this API, use another endpoint"


def all_demanded(exchange: SimExchange) -> Iterator[str]:
    """Every turn of the model must come back with its reasoning."""
    for message in exchange.history:
        if message.role == "assistant" and not message.thoughts:
            yield "The reasoning of an earlier turn is missing: it must be passed back to the API"


def none_taken(exchange: SimExchange) -> Iterator[str]:
    for message in exchange.history:
        if message.role == "assistant" and message.thoughts:
            yield "reasoning is not allowed in the input"


def no_empty(exchange: SimExchange) -> Iterator[str]:
    for message in exchange.history:
        if message.role == "assistant" and message.raw.get("reasoning_content") == "":
            yield "reasoning_content must not be empty"


def never_last(exchange: SimExchange) -> Iterator[str]:
    """No turn ends in reasoning."""
    last: JsonObject = {}
    for item in objects(exchange.body.get("input")):
        if item.get("type") == "reasoning":
            last = item
        elif item.get("type") in ("function_call", "message"):
            last = {}
        elif item.get("type") == "function_call_output" and last:
            yield "Item of type 'reasoning' was provided without its required following item"
    for message in objects(exchange.body.get("messages")):
        blocks = objects(message.get("content"))
        if message.get("role") == "assistant" and blocks and blocks[-1].get("type") == "thinking":
            yield "The final block in an assistant message cannot be `thinking`."


def never_edited(exchange: SimExchange) -> Iterator[str]:
    """The first message is the one that was sent before."""
    first = next((message.text for message in exchange.history if message.role == "user"), "")
    if len(exchange.history) > 1 and "Please." in first:
        yield "the messages before a reasoning block were changed"


def no_hole(exchange: SimExchange) -> Iterator[str]:
    """Where a later turn has its reasoning, the earlier ones have theirs."""
    turns = [bool(message.thoughts) for message in exchange.history if message.role == "assistant"]
    if sorted(turns, reverse=True) != turns:
        yield "the reasoning before a later block is missing"


def no_other_model() -> Rule:
    """What another model has made since this one was asked is refused."""
    asked: list[str] = []

    def rule(exchange: SimExchange) -> Iterator[str]:
        if len(exchange.history) == 1:
            asked.append(exchange.model)
        elif asked[-1:] != [exchange.model] and any(message.thoughts for message in exchange.history):
            yield "Invalid `signature` in `thinking` block"

    return rule


def edited_unread(exchange: SimExchange) -> Iterator[str]:
    """Behind an edited message, reasoning is dropped in silence."""
    first = next((message.text for message in exchange.history if message.role == "user"), "")
    return _unread(exchange) if "Please." in first else iter(())


def _unread(exchange: SimExchange) -> Iterator[str]:
    """Reasoning is dropped in silence, and not billed."""
    for message in exchange.history:
        if message.role == "assistant" and message.thoughts:
            exchange.unread[f"{message.index}"] = "".join(message.thoughts)
    return iter(())


PRESENT = {"deepseek": "deepseek-v4-pro", "kimi": "kimi-k2.6", "mimo": "mimo-v2.5-pro"}
ADVISORY = {"glm": "glm-5", "cerebras": "gpt-oss-120b", "groq": "openai/gpt-oss-120b"}
SEALED: dict[str, tuple[str, FormatName]] = {
    "anthropic": ("claude-opus-4-8", "anthropic_messages"),
    "gemini": ("gemini-3-pro-preview", "gemini_generate"),
}
CHAT: FormatName = "openai_chat"
HOLED: tuple[tuple[str, str, FormatName], ...] = (
    ("glm", "glm-5", CHAT),
    ("groq", "openai/gpt-oss-120b", CHAT),
    ("anthropic", "claude-opus-4-8", "anthropic_messages"),
)


def _mutants() -> Iterator[Mutant]:
    for name, model in PRESENT.items():
        row = SIMULATORS[name]
        yield Mutant(f"{name} demands nothing", _without_rules(row), name, model, CHAT, (TOOL_LOOP,))
        yield Mutant(f"{name} takes none", _with_rule(_without_rules(row), none_taken), name, model, CHAT, (WHOLE,))
        yield Mutant(f"{name} thinks if asked", _never_thinking(row), name, model, CHAT, (THINKS,))
        yield Mutant(f"{name} always thinks", _always_thinking(row), name, model, CHAT, (OFF,))
        if name != "mimo":  # its sentence stands elsewhere in the body
            yield Mutant(f"{name} has other words", _wording(row), name, model, CHAT, (), is_unknown_refusal=True)
        yield Mutant(f"{name} takes no empty text", _with_rule(row, no_empty), name, model, CHAT, (EMPTY,))
        yield Mutant(f"{name} takes no tools", _with_rule(row, no_tools), name, model, CHAT, (TOOLS,))
        yield Mutant(f"{name} binds the prefix", _with_rule(row, never_edited), name, model, CHAT, (EDITED,))
    for name, model in ADVISORY.items():
        row = SIMULATORS[name]
        yield Mutant(f"{name} demands all", _with_rule(row, all_demanded), name, model, CHAT, (TOOL_LOOP, EARLIER))
        yield Mutant(f"{name} takes none", _with_rule(row, none_taken), name, model, CHAT, (WHOLE,))
        yield Mutant(f"{name} takes no temperature", _with_rule(row, no_temperature), name, model, CHAT, (WARM,))
        yield Mutant(f"{name} forces no tool", _with_rule(row, no_forced_tool), name, model, CHAT, (FORCED,))
        if name != "glm":  # it has one word for an effort
            yield Mutant(
                f"{name} has no low effort", _with_rule(row, no_low_effort), name, model, CHAT, ("effort low",)
            )
        yield Mutant(f"{name} reads none", _with_rule(row, _unread), name, model, CHAT, (READ,))
    for name, (model, api) in SEALED.items():
        row = SIMULATORS[name]
        yield Mutant(f"{name} checks nothing", _without_rules(row), name, model, api, (ALTERED, TOOL_LOOP))
        yield Mutant(f"{name} takes no tools", _with_rule(row, no_tools), name, model, api, (TOOLS,))
    (claude, messages), (gemini, generate) = SEALED["anthropic"], SEALED["gemini"]
    row = _always_thinking(SIMULATORS["anthropic"])
    yield Mutant("claude always thinks", row, "anthropic", claude, messages, (THINKS,))
    row = _with_rule(SIMULATORS["gemini"], no_forced_tool)
    yield Mutant("gemini forces no tool", row, "gemini", gemini, generate, (FORCED,))
    row = SIMULATORS["openai"]
    yield Mutant("chat takes tools", _without_rules(row), "openai", "gpt-6-astra", CHAT, (TOOLS,))
    sealed = _without_rules(row)
    yield Mutant("openai checks nothing", sealed, "openai", "gpt-6-astra", "openai_responses", (ALTERED, EDITED))
    responses: FormatName = "openai_responses"
    reading = _without_rule(row, reasoning_preserved)
    yield Mutant("openai reads it behind an edit", reading, "openai", "gpt-6-astra", responses, (DROPPED,))
    dropping = _with_rule(SIMULATORS["xai"], edited_unread)
    yield Mutant("xai drops it behind an edit", dropping, "xai", "grok-4.7", responses, (DROPPED,))
    single = _with_rule(SIMULATORS["anthropic"], no_other_model())
    yield Mutant(
        "claude refuses another model's",
        single,
        "anthropic",
        "claude-opus-5-5",
        messages,
        (OTHERS,),
        other="claude-sonnet-5-5",
    )
    taking = _without_rules(SIMULATORS["gemini"])
    yield Mutant(
        "gemini takes another model's", taking, "gemini", gemini, generate, (OTHERS,), other="gemini-3.7-flash"
    )
    for name, model, api in (
        ("anthropic", "claude-opus-5-5", messages),
        ("openai", "gpt-6-astra", responses),
        ("deepseek", "deepseek-v4-pro", messages),
    ):
        ordered = _with_rule(SIMULATORS[name], never_last)
        yield Mutant(f"{name} wants reasoning first", ordered, name, model, api, (ORDER,))
    row = _without_rule(SIMULATORS["anthropic"], last_block_not_thinking)
    unordered = _without_rule(row, latest_turn_unchanged)
    yield Mutant("claude takes reasoning last", unordered, "anthropic", claude, messages, (ORDER,))
    for name, model, api in HOLED:
        whole = _with_rule(SIMULATORS[name], no_hole)
        yield Mutant(f"{name} takes no hole", whole, name, model, api, (EARLIER,))
    other = SIMULATORS["groq"]._replace(name="kimi", models=("kimi-k2.6",))
    yield Mutant("kimi has another member", _without_rules(other), "kimi", "kimi-k2.6", CHAT, (COMES_IN,))
    moved = SIMULATORS["kimi"]._replace(name="groq", models=("openai/gpt-oss-120b",))
    yield Mutant("groq has another member", _without_rules(moved), "groq", "openai/gpt-oss-120b", CHAT, (COMES_IN,))


MUTANTS = tuple(_mutants())
