"""The auditor's rules: each checks a request for one kind of refusal, and reports where, what and why.

A rule is a generator of findings over a `Case`. Its docstring has four parts: what it checks, why, an example, the
source. `docs/findings.md` is generated from them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import NULL, members, plain_value
from thoughtline.formats.request_settings import unforced
from thoughtline.providers import Contract
from thoughtline.providers.contract import has_calls, required_turns
from thoughtline.providers.refusals import RuleCode
from thoughtline.providers.thinking import knob_for
from thoughtline.replay.detection import host_of
from thoughtline.replay.findings import Finding, place_of
from thoughtline.replay.keys import ModelStep
from thoughtline.replay.links import binding_of
from thoughtline.replay.pairing import followers
from thoughtline.replay.plans import is_of_account
from thoughtline.replay.restoring import is_behind_its_prefix
from thoughtline.replay.weaving import has_sentinel, is_filler
from thoughtline.values.destination import Destination
from thoughtline.values.items import (
    REASONING_KINDS,
    Item,
    ReasoningEncrypted,
    ReasoningText,
    Text,
    ToolCall,
    reasoning_of,
    seal_of,
)
from thoughtline.values.records import Record
from thoughtline.values.turns import Transcript, Turn

_BASE64 = re.compile(r"^[A-Za-z0-9+/_-]+={0,2}$")
_SHORTEST_SEAL = 16


class Case(Struct, frozen=True, gc=False):
    """A request, its contract, and for each step its record if one is known."""

    transcript: Transcript
    contract: Contract
    issuer: Destination
    known: tuple[tuple[ModelStep, Record], ...] = ()

    def find(self, rule: RuleCode, at: int, message: str, remedy: str, **facts: object) -> Finding:
        """Return a finding about the turn at this position; `facts` fill in the provider's sentence."""
        turn = self.transcript.turns[at]
        item = facts.get("item")
        field = str(facts.get("field", "")) if item is None else ""
        place = place_of(self.transcript.format, turn, item if isinstance(item, int) else None, field)
        sentence, status = _answer(self.contract, rule, {"index": turn.at, "item": 0, **facts})
        return Finding(rule, place, message, remedy=remedy, answer=sentence, status=status)

    def assistant(self) -> Iterator[tuple[int, Turn]]:
        for position, turn in enumerate(self.transcript.turns):
            if turn.role == "assistant":
                yield position, turn


def _answer(contract: Contract, rule: RuleCode, facts: dict[str, object]) -> tuple[str, int]:
    """Return the provider's sentence and status; empty if it would not object, or its wording is unknown."""
    found = next((one for one in contract.answers if rule == one.rule or rule in one.also), None)
    return (found.text(**facts), max(found.statuses)) if found is not None else ("", 0)


class Rule(NamedTuple):
    """A row of the table of rules."""

    code: RuleCode
    check: Callable[[Case], Iterator[Finding]]


def missing(case: Case) -> Iterator[Finding]:
    """A turn that must carry reasoning has none.

    Why: providers that demand it back refuse the whole request.
    Example: DeepSeek with `tools`, an assistant message without `reasoning_content`.
    Source: the contract's own.
    """
    for position in required_turns(case.transcript, case.contract, [position for position, _ in case.assistant()]):
        turn = case.transcript.turns[position]
        if case.contract.scope == "first_call_of_step":
            at, call = next((at, item) for at, item in enumerate(turn.items) if isinstance(item, ToolCall))
            if call.seal is None and not any(_seal_on_call(item) for item in turn.items):
                yield case.find(
                    "missing",
                    position,
                    f"the call {call.name} has no signature",
                    "put the signature of the response back on this part",
                    item=at,
                    name=call.name,
                    position=turn.at + 1,
                )
        elif not _starts_right(turn, case.contract):
            found = _kind_of(turn.items[0]) if turn.items else "text"
            remedy = "put the reasoning of the response back"
            finding = case.find("missing", position, "this turn has no reasoning", remedy, found=found)
            # DeepSeek's page demands it of plain turns too, but it accepts them without (recorded, 2026-08).
            is_demanded = case.contract.scope != "all_with_tools" or has_calls(turn)
            yield finding if is_demanded else replace(finding, answer="", status=0)


def _seal_on_call(item: Item) -> bool:
    return isinstance(item, ToolCall) and item.seal is not None


def _starts_right(turn: Turn, contract: Contract) -> bool:
    if contract.scope == "loop_head":  # a turn that begins with text may be as it was made
        return any(isinstance(item, (ReasoningText, ReasoningEncrypted)) for item in turn.items)
    return bool(reasoning_of(turn.items))


def _kind_of(item: Item) -> str:
    return "tool_use" if isinstance(item, ToolCall) else "text"


def misplaced(case: Case) -> Iterator[Finding]:
    """Reasoning is where its provider does not look for it, or where it must not be.

    Why: Gemini reads the first call of a step only; Claude before 5 refuses a turn that ends in thinking; Responses
    wants stored reasoning, which has an id, before what it led to.
    Example: a signature on the second of two parallel calls and none on the first.
    Source: Gemini docs, Thought signatures; Anthropic docs, Extended thinking; OpenAI docs, Reasoning.
    """
    for position, turn in case.assistant():
        if case.contract.scope == "first_call_of_step":
            calls = [(at, item) for at, item in enumerate(turn.items) if isinstance(item, ToolCall)]
            if calls and calls[0][1].seal is None and any(call.seal for _, call in calls):
                at, call = calls[0]
                facts = {"item": at, "name": call.name, "position": turn.at + 1}
                yield case.find(
                    "misplaced", position, "the signature is on a later call", "move it to the first", **facts
                )
        elif "not_last" in FORMATS[case.transcript.format].quirks and turn.items:
            last = turn.items[-1]
            is_paired = getattr(last, "id", None) and case.transcript.is_stored is not False
            is_looked_at = case.contract.kind == "authenticity" and (is_paired or case.contract.scope != "pairs")
            if isinstance(last, REASONING_KINDS) and is_looked_at:
                remedy = "put what it led to after it, or drop it"
                at = len(turn.items) - 1
                yield case.find("misplaced", position, "a turn ends in reasoning", remedy, item=at, id=last.id or "")


def reordered(case: Case) -> Iterator[Finding]:
    """The reasoning of the latest turn is complete, but not in the order in which the model gave it.

    Why: Anthropic compares the blocks of the latest assistant turn with the original, order included.
    Example: `thinking, text, tool_use, thinking, tool_use` sent back with both thinking blocks first.
    Source: Anthropic's "cannot be modified" refusals.
    """
    for step, record in case.known:
        if case.contract.takes != "own" or not reasoning_of(step.items):
            continue
        shown, made = _order(step.items), _order(record.items)
        if shown != made and sorted(shown) == sorted(made):
            remedy = "send the blocks in the order of the response"
            yield case.find(
                "reordered", step.positions[0], "the blocks are not in their original order", remedy, item=0
            )


def _order(items: tuple[Item, ...]) -> list[str]:
    named = []
    for item in items:
        if isinstance(item, REASONING_KINDS):
            seal = seal_of(item)
            named.append(f"reasoning {seal.data if seal else getattr(item, 'text', '')}")
        elif isinstance(item, ToolCall):
            named.append(f"call {item.name}")
        elif isinstance(item, Text) and item.text.strip():
            named.append("text")
    return named


def altered(case: Case) -> Iterator[Finding]:
    """Reasoning came back, but not as the model gave it.

    Why: altered signed reasoning is refused; altered plain reasoning misses the prompt cache and misleads the model.
    Example: trailing white space trimmed from a thinking block.
    Source: Anthropic's and Gemini's refusals; DeepSeek's cache.
    """
    for step, record in case.known:
        own, made = _texts(step.items), _texts(record.items)
        if own and made and own != made and any(text not in made for text in own):
            remedy = "send the reasoning of the response unchanged"
            yield case.find("altered", step.positions[0], "not as the model gave it", remedy, id=_first_id(step.items))


def _texts(items: tuple[Item, ...]) -> list[str]:
    return [item.text for item in items if isinstance(item, ReasoningText) and not is_filler(item)]


def _first_id(items: tuple[Item, ...]) -> str:
    return next((item.id for item in reasoning_of(items) if item.id), "")


def foreign(case: Case) -> Iterator[Finding]:
    """A seal that another provider or account made.

    Why: only its maker can read it; others refuse it or drop it silently.
    Example: encrypted reasoning of OpenAI sent to Azure after a switch.
    Source: refusals of Anthropic, Gemini, OpenAI and xAI.
    """
    for step, record in case.known:
        if case.contract.takes != "own" or is_of_account(record, case.issuer):
            continue
        made = {seal.data for item in record.items if (seal := seal_of(item)) is not None}
        for at, item in enumerate(step.items):
            seal = seal_of(item)
            if seal is not None and seal.data in made:
                name = getattr(item, "id", None) or ""
                remedy = "drop it, or send the request to its maker"
                yield case.find("foreign", step.positions[0], "sealed by another maker", remedy, item=at, id=name)


def truncated(case: Case) -> Iterator[Finding]:
    """A seal that is empty, cut short or not a token at all.

    Why: a client that was interrupted may keep half a signature, and every later request then fails.
    Example: `"signature": ""`, or a few characters of one.
    Source: Anthropic's "Invalid `signature`", Gemini's "Corrupted thought signature".
    """
    if case.contract.takes != "own":
        return
    for position, turn in case.assistant():
        for at, item in enumerate(turn.items):
            data = item.signature if isinstance(item, ReasoningText) else None
            seal = seal_of(item)
            data = seal.data if seal is not None else data
            if data is not None and not has_sentinel(item) and not _is_whole(data):
                remedy = "drop the block, or put the whole seal back"
                name = getattr(item, "id", None) or ""
                yield case.find("truncated", position, "an incomplete seal", remedy, item=at, id=name)


def _is_whole(data: str) -> bool:
    return len(data) >= _SHORTEST_SEAL and _BASE64.match(data) is not None


def unpaired(case: Case) -> Iterator[Finding]:
    """An element names its partner by id, but the partner is missing or has lost its id.

    Why: OpenAI pairs stored reasoning with what it led to by id; half a pair is refused, no ids at all are fine, and
    with `store: false` nothing is looked for.
    Example: `rs_…` followed by a message without its `msg_…`.
    Source: OpenAI's "required following item" and "required 'reasoning' item".
    """
    if case.contract.scope != "pairs" or case.transcript.is_stored is False:
        return
    for position, turn in case.assistant():
        thoughts = zip(reasoning_of(turn.items), followers(turn.items), strict=True)
        half = next((thought.id for thought, names in thoughts if thought.id and None in names), None)
        if half is not None:
            remedy = "send all ids of the pair, or none"
            yield case.find("unpaired", position, "half of a pair has no id", remedy, item=0, id=half)


def duplicated(case: Case) -> Iterator[Finding]:
    """The same sealed reasoning occurs twice.

    Why: splitting one turn into several messages repeats its blocks; providers refuse the repetition.
    Example: one signed thinking block, repeated before each of two parallel calls.
    Source: Anthropic's "cannot be modified", OpenAI's "Duplicate item found with id".
    """
    if case.contract.takes != "own":
        return
    seen: set[str] = set()
    for position, turn in case.assistant():
        for at, item in enumerate(turn.items):
            seal = seal_of(item) if isinstance(item, REASONING_KINDS) else None
            if seal is None or not seal.data:
                continue
            if seal.data in seen:
                name = getattr(item, "id", None) or ""
                yield case.find("duplicated", position, "occurs twice", "keep the first", item=at, id=name)
            seen.add(seal.data)


def forbidden(case: Case) -> Iterator[Finding]:
    """Reasoning in a field that this provider refuses.

    Why: strict servers answer 400 or 422 to a field they don't know, or to any reasoning.
    Example: `reasoning_content` sent to Groq, to Mistral, or to OpenAI's chat endpoint.
    Source: the contract's own.
    """
    carrier = case.contract.dialect.carrier
    for position, turn in case.assistant():
        wrong = [name for name in turn.carriers if name != carrier]
        if case.contract.takes == "nothing" and reasoning_of(turn.items):
            field = turn.carriers[0] if turn.carriers else "content"
            yield case.find("forbidden", position, "reasoning is refused here", "leave it out", field=field)
        elif wrong and not case.contract.follows_answers and case.contract.refuses_other_fields:
            remedy = f"send it as {carrier}"
            yield case.find("forbidden", position, f"{wrong[0]} is refused here", remedy, field=wrong[0])


def stale_id(case: Case) -> Iterator[Finding]:
    """Reasoning referred to by id alone, in a request that does not store.

    Why: with `store: false` the provider stores nothing under that id.
    Example: `{"type":"reasoning","id":"rs_…","summary":[]}` without `encrypted_content`.
    Source: OpenAI's "Items are not persisted when `store` is set to false".
    """
    if case.contract.scope != "pairs" or case.transcript.is_stored is not False:
        return
    for position, turn in case.assistant():
        sealed = {item.id for item in turn.items if isinstance(item, ReasoningEncrypted)}
        for at, item in enumerate(turn.items):
            if isinstance(item, REASONING_KINDS) and item.id and item.id not in sealed:
                remedy = "ask for encrypted content, or drop the item"
                yield case.find("stale-id", position, "an id that can't be resolved", remedy, item=at, id=item.id)


def sentinel(case: Case) -> Iterator[Finding]:
    """A call that carries a skip value instead of its signature.

    Why: it is accepted but costs quality, since the model does not know what it thought.
    Example: `skip_thought_signature_validator`.
    Source: Gemini docs, Thought signatures, FAQ.
    """
    for position, turn in case.assistant():
        for at, item in enumerate(turn.items):
            if has_sentinel(item):
                yield case.find("sentinel", position, "a skip value in place of a signature", "put it back", item=at)


def bound_prefix_changed(case: Case) -> Iterator[Finding]:
    """A block is bound to everything before it, and something before it was changed.

    Why: from Claude Fable 5.1 on, a block is valid only after the system prompt, tools and messages it was made after.
    Example: thinking that is kept although a compaction has replaced the first message.
    Source: Anthropic docs, Preserved thinking.
    """
    if not case.contract.binds_prefix:
        return
    behaviour = binding_of(case.transcript.body)
    if behaviour == "drop_block":
        return  # the provider drops it itself, and reports that
    for step, record in case.known:
        if reasoning_of(step.items) and not is_behind_its_prefix(step, record, case.contract):
            remedy = "drop this block and every later one"
            why = "something before it was changed"
            found = case.find("bound-prefix-changed", step.positions[0], why, remedy, item=0)
            if behaviour != "error" and re.search(case.contract.accounts_differ, case.issuer.model.lower()):
                found = replace(found, message=f"{why}: newer accounts are refused it", answer="", status=0)
            yield found


def setting(case: Case) -> Iterator[Finding]:
    """A setting that this model refuses, or refuses while it thinks.

    Why: efforts, forced tools and thinking exclude each other on some models, and a refused setting fails the request.
    Example: `tool_choice: "required"` for DeepSeek while it thinks; `reasoning_effort` for Grok Code Fast.
    Source: the rows of models; recorded refusals.
    """
    contract, model, request = case.contract, case.issuer.model.lower(), members(case.transcript.body)
    if contract.forces_no_tool_while_thinking and contract.thinks(case.transcript):
        to_any = re.search(contract.forces_any, model) is not None
        if unforced(plain_value(request.get("tool_choice", NULL)), to_any=to_any) is not None:
            why = "no tool can be forced on this model while it thinks"
            yield Finding("setting", "/tool_choice", why, "let the model choose", status=400)
    effort, knob = _effort(case), knob_for(contract, model)
    # How a host handles an effort for models of other makers is not known.
    if effort is None or not knob.models or host_of(case.issuer).rules != "own":
        return
    place = "/" + "/".join(FORMATS[case.transcript.format].effort)
    words = (*(("none",) if knob.can_be_off else ()), *knob.efforts)
    if knob.style == "no_knob":
        yield Finding("setting", place, "this model takes no effort", "leave it out", status=400)
    elif knob.efforts and effort not in words:
        yield Finding("setting", place, f"this model takes {', '.join(words)}", "use one of these", status=400)


def _effort(case: Case) -> str | None:
    value = plain_value(case.transcript.body)
    for name in FORMATS[case.transcript.format].effort:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


def door(case: Case) -> Iterator[Finding]:
    """A request that this endpoint refuses, and another endpoint of the provider takes.

    Why: OpenAI's models from GPT-5.4 on think together with function tools only in Responses.
    Example: `tools` and `reasoning_effort` for `gpt-5.4-mini` in Chat Completions.
    Source: OpenAI's "Function tools with reasoning_effort are not supported", recorded.
    """
    transcript, model = case.transcript, case.issuer.model
    if not transcript.tools or _effort(case) in (None, "none"):
        return
    for one in host_of(case.issuer).doors:
        if one.is_refused and one.comes_in == transcript.format and one.is_for(model):
            yield Finding(
                "door", "/tools", "no tools beside an effort in this format", f"use {one.goes_up}", status=400
            )


RULES: tuple[Rule, ...] = (
    Rule("missing", missing),
    Rule("misplaced", misplaced),
    Rule("reordered", reordered),
    Rule("altered", altered),
    Rule("foreign", foreign),
    Rule("truncated", truncated),
    Rule("unpaired", unpaired),
    Rule("duplicated", duplicated),
    Rule("forbidden", forbidden),
    Rule("stale-id", stale_id),
    Rule("sentinel", sentinel),
    Rule("bound-prefix-changed", bound_prefix_changed),
    Rule("setting", setting),
    Rule("door", door),
)


def check(case: Case) -> list[Finding]:
    """Return all findings, ordered by place."""
    found = [finding for rule in RULES for finding in rule.check(case)]
    return sorted(found, key=lambda finding: [int(part) if part.isdigit() else 0 for part in finding.place.split("/")])
