"""Translates the options of a request: everything except the conversation.

An agent sends the same options with every request of a conversation, so results are cached: `translate_options` depends
only on the members around the conversation, which are compared byte by byte.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import encode, members, object_of
from thoughtline.providers import Contract, maker_of
from thoughtline.providers.contract import Sampling
from thoughtline.providers.thinking import BUDGETS, Settled, knob_for, settle
from thoughtline.replay.findings import Finding
from thoughtline.translation.tools import ToolOffer, offer
from thoughtline.values.errors import Untranslatable
from thoughtline.values.options import FunctionTool, MissingTools, Options, ReadOptions, Thinking, ToolChoice
from thoughtline.values.records import digest
from thoughtline.values.turns import FormatName

_LONGEST_USER = 64
"""OpenAI rejects longer names for an end user, such as Claude Code's. A digest distinguishes users just as well."""

DEFAULT_MAX_TOKENS = 32_000
"""Anthropic requires a limit. All models since Claude Opus 4 can write this much."""

_MAX_KEPT, LONGEST_KEPT = 64, 128 * 2**10
"""Number of cached results, and the longest input that is cached: at most 16 MiB with the results."""


class TargetModel(NamedTuple):
    """The provider and model that get the request. `may_ask_to_think`: ask for thinking if the client leaves it to its
    provider.
    """

    to: FormatName
    contract: Contract
    model: str
    is_streaming: bool
    missing_tools: MissingTools
    may_ask_to_think: bool = False


class TranslatedOptions(NamedTuple):
    """`options` are those that the client set, `offered` those with tools that the upstream accepts; `body` has all
    members except the conversation.
    """

    read: ReadOptions
    options: Options
    offered: ToolOffer
    body: bytes
    findings: tuple[Finding, ...]

    def offering(self, offered: ToolOffer, target: TargetModel) -> TranslatedOptions:
        """A copy with other tools."""
        if offered is self.offered:
            return self
        body, findings = _body(self.read, offered.options, target)
        return self._replace(offered=offered, body=body, findings=findings)


@lru_cache(maxsize=_MAX_KEPT)
def translate_options(frame: bytes, format: FormatName, target: TargetModel) -> TranslatedOptions:
    """Translate the members around a conversation. Raises `Untranslatable` if the upstream can't serve them."""
    read = FORMATS[format].options.decode_options(frame)
    options = replace(read.options, model=target.model, is_streaming=target.is_streaming)
    _refuse_what_is_kept(read, target.to)
    if target.may_ask_to_think and "thinks_unasked" in FORMATS[format].quirks:
        options = _asked_to_think(options, target.contract, FORMATS[format].usual_sampling)
    offered = offer(read, options, FORMATS[target.to], target.contract, target.missing_tools)
    return TranslatedOptions(read, options, offered, *_body(read, offered.options, target))


def _refuse_what_is_kept(read: ReadOptions, to: FormatName) -> None:
    if read.options.previous_response_id is not None and "stored_responses" not in FORMATS[to].quirks:
        place = read.places.get("previous_response_id", "/previous_response_id")
        remedy = "send the whole conversation in `input`"
        raise Untranslatable("the upstream keeps no responses", place, remedy)


def _asking_for_seals(options: Options, to: FormatName, contract: Contract) -> Options:
    """Ask for encrypted reasoning if the provider stores nothing; some models reject that option."""
    gives = contract.takes == "own" or (contract.may_seal and contract.takes != "nothing")
    inclusion = FORMATS[to].inclusion
    if inclusion is None or options.store or not gives:
        return options
    return replace(options, include=tuple(dict.fromkeys((*options.include, inclusion.seals))))


def _body(read: ReadOptions, options: Options, target: TargetModel) -> tuple[bytes, tuple[Finding, ...]]:
    """The body without its conversation."""
    to, contract = target.to, target.contract
    findings: list[Finding] = []
    options = _asking_for_seals(options, to, contract)
    options = _with_limit(_without_defaults(options, to), contract)
    options = _narrowed(options, to)
    options, thinking = _unforced(options, contract, read, findings)
    settled = settle(thinking, contract, options.model, options.max_tokens)
    if thinking.switch != read.options.thinking.switch and settled.is_thinking:
        findings.append(Finding("asked-to-think", "", _ASKED_MESSAGE, "`[translation] think = false` leaves it out"))
    findings += [_finding(read, "thinking", problem) for problem in settled.problems]
    options, lost = sampled(options, contract, is_thinking=settled.is_thinking)
    findings += [_finding(read, name, why) for name, why in lost]
    written = FORMATS[to].options.encode_options(options, contract.dialect)
    findings += [_finding(read, name, _why_dropped(name, to)) for name in written.dropped]
    findings += [Finding("untranslatable", place, f"{to} has no member for it", "") for place in read.leftovers]
    is_strict = any(isinstance(tool, FunctionTool) and tool.strict for tool in options.tools)
    if is_strict and not FORMATS[to].has_openai_tools:
        findings.append(_finding(read, "tools", f"{to} has no strict tools"))
    return _merged(dict(written.members), settled), tuple(findings)


def _why_dropped(name: str, to: FormatName) -> str:
    if name in ("logprobs", "top_logprobs"):
        return f"{name}: log probabilities are not converted between formats"
    return f"{to} has no member for {name}"


def _finding(read: ReadOptions, name: str, message: str) -> Finding:
    return Finding("untranslatable", read.places.get(name, ""), message, "")


def _without_defaults(options: Options, to: FormatName) -> Options:
    """Leave out options that every upstream applies by default."""
    wire, changes = FORMATS[to], dict[str, object]()
    if options.n == 1:
        changes["n"] = None
    if not options.logprobs:
        changes["logprobs"] = None
    if not options.top_logprobs:
        changes["top_logprobs"] = None
    if options.store is False:
        changes["store"] = None
    if options.truncation == "disabled":
        changes["truncation"] = None
    if (options.parallel_tool_calls and not wire.has_openai_tools) or not options.tools:
        changes["parallel_tool_calls"] = None
    if options.service_tier in ("auto", "default") and "usual_tier" not in wire.quirks:
        changes["service_tier"] = None
    if options.user is not None and len(options.user) > _LONGEST_USER:
        changes["user"] = digest(options.user.encode()).hex()
    return replace(options, **changes)


def _narrowed(options: Options, to: FormatName) -> Options:
    """For a format that can't express a choice among some of the tools: offer only those."""
    choice = options.tool_choice
    if choice is None or not choice.allowed or FORMATS[to].has_openai_tools:
        return options
    tools = tuple(tool for tool in options.tools if isinstance(tool, FunctionTool) and tool.name in choice.allowed)
    return replace(options, tools=tools, tool_choice=replace(choice, allowed=()))


def _with_limit(options: Options, contract: Contract) -> Options:
    if options.max_tokens is not None or "max_tokens_needed" not in FORMATS[contract.format].quirks:
        return options
    maker = maker_of(options.model)
    known = maker.most_output if maker is not None else ()
    limit = next((most for name, most in known if name in options.model), DEFAULT_MAX_TOKENS)
    return replace(options, max_tokens=limit)


_ASKED_MESSAGE = "the model is asked to think, as the client's own provider does unasked"
_SAMPLING = ("temperature", "top_p", "top_k")


def _asked_to_think(options: Options, contract: Contract, usual_sampling: tuple[tuple[str, float], ...]) -> Options:
    """Options that ask for thinking, if the client neither mentions it nor sets anything that excludes it.

    A forced tool, the client's own sampling settings, or a limit that leaves too little room for the answer exclude
    thinking. Sampling settings that are the defaults of the client's provider don't count and are left out.
    """
    thinking, choice, model = options.thinking, options.tool_choice, options.model.lower()
    is_said = thinking.switch != "unsaid" or thinking.effort is not None or thinking.budget is not None
    knob = knob_for(contract, model)
    is_refused = knob.modes and not any(mode not in contract.refused_modes for mode in knob.modes if mode != "disabled")
    if is_said or is_refused or contract.thinks_by_default or contract.never_thinks or knob.style == "no_knob":
        return options
    if not re.search(contract.thinks_if_asked, model) or (choice is not None and choice.is_forced):
        return options
    sampling = {name: value for name in _SAMPLING if (value := getattr(options, name)) is not None}
    if not sampling.items() <= set(usual_sampling):
        return options
    most = BUDGETS["medium"]
    if options.max_tokens is not None:
        most = min(most, options.max_tokens // 2)  # the answer keeps half of the client's limit
    if most < BUDGETS["low"]:
        return options
    budget = most if knob.style == "claude_budget" else None
    return replace(options, thinking=replace(thinking, switch="on", budget=budget), **dict.fromkeys(sampling))


def _unforced(
    options: Options, contract: Contract, read: ReadOptions, findings: list[Finding]
) -> tuple[Options, Thinking]:
    """Thinking takes precedence over a forced tool if the model can't do both: it may then choose whether, or which,
    tool to call.
    """
    thinking = options.thinking
    choice = options.tool_choice
    thinks = contract.thinks_by_default if thinking.switch == "unsaid" else thinking.switch != "off"
    is_clash = choice is not None and choice.is_forced and bool(options.tools)
    if not is_clash or not thinks or not contract.forces_no_tool_while_thinking:
        return options, thinking
    assert choice is not None
    if re.search(contract.forces_any, options.model.lower()):
        if choice.mode == "required":
            return options, thinking
        findings.append(_finding(read, "tool_choice", "this upstream forces no single tool on a model that thinks"))
        return replace(options, tool_choice=ToolChoice("required")), thinking
    findings.append(_finding(read, "tool_choice", "this upstream forces no tool on a model that thinks"))
    return replace(options, tool_choice=ToolChoice("auto")), thinking


def _merged(written: dict[str, bytes], settled: Settled) -> bytes:
    """The written members merged with those that control thinking."""
    nested: dict[str, object] = {}
    for path, value in settled.members:
        inner = nested
        for step in path[:-1]:
            held = inner.setdefault(step, {})
            inner = held if isinstance(held, dict) else {}
        inner[path[-1]] = value
    for name, value in nested.items():
        written[name] = _deep(written.get(name), value)
    return object_of(written.items())


def _deep(before: bytes | None, value: object) -> bytes:
    """Merge the members of `value` into an object; replace anything else."""
    if before is None or not isinstance(value, dict):
        return encode(value)
    inner = {name: bytes(raw) for name, raw in members(before).items()}
    for name, held in value.items():
        inner[name] = _deep(inner.get(name), held)
    return object_of(inner.items())


class Sampled(NamedTuple):
    """Options that the model accepts, and those that were removed: the option and the reason."""

    options: Options
    dropped: tuple[tuple[str, str], ...] = ()


def sampled(options: Options, contract: Contract, *, is_thinking: bool) -> Sampled:
    """The options without the settings that this model rejects."""
    rules, model = contract.sampling, options.model.lower()
    if re.search(rules.never, model):
        return _without(options, rules.names, "can't be set on this model")
    dropped: list[tuple[str, str]] = []
    if is_thinking:
        options, lost = _without(options, _while_thinking(options, rules), "can't be set on a model that thinks")
        dropped += lost
    if options.temperature is not None and options.top_p is not None and not re.search(rules.takes_both, model):
        name = "temperature" if options.temperature == 1 else "top_p"
        options, lost = _without(options, (name,), "can't be set beside the other one on this model")
        dropped += lost
    if rules.hottest is not None and options.temperature is not None and options.temperature > rules.hottest:
        dropped.append(("temperature", f"temperature ends at {rules.hottest:g} here"))
    return Sampled(options, tuple(dropped))


def _while_thinking(options: Options, rules: Sampling) -> tuple[str, ...]:
    """Options that must not be set while the model thinks."""
    if not rules.least_top_p:
        return rules.while_thinking
    is_wide = options.top_p is None or options.top_p >= rules.least_top_p
    narrow = (*(() if is_wide else ("top_p",)), *(() if options.temperature == 1 else ("temperature",)))
    return (*rules.while_thinking, *narrow)


def _without(options: Options, names: tuple[str, ...], why: str) -> Sampled:
    given = tuple(name for name in names if getattr(options, name) is not None)
    lost = tuple((name, f"{name} {why}") for name in given if not _is_default(options, name))
    return Sampled(replace(options, **dict.fromkeys(given)), lost)


def _is_default(options: Options, name: str) -> bool:
    return name in ("temperature", "top_p") and getattr(options, name) == 1
