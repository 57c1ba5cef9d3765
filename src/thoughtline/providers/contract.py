"""What a provider and its model demand back, as data: the types that the rows of providers are made of, and which turns
of a request they are about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.providers.dialects import Carrier, Dialect
from thoughtline.providers.knobs import Knob
from thoughtline.providers.refusals import RefusalTemplate
from thoughtline.providers.setting_rules import SettingRule
from thoughtline.providers.sources import UNVERIFIED
from thoughtline.providers.sources import Source as Source
from thoughtline.providers.sources import unverified as unverified
from thoughtline.providers.tool_forms import USUAL_FORMS, ToolForms
from thoughtline.values.items import ToolCall, ToolResult
from thoughtline.values.options import FUNCTIONS_ONLY, ToolRange
from thoughtline.values.turns import FormatName, ThinkingSwitch, Transcript, Turn

Kind = Literal["presence", "authenticity", "advisory", "forbidden"]
Scope = Literal[
    "nowhere",
    "calls_after_user",  # assistant turns with calls after the last user message
    "calls",  # assistant turns with calls, anywhere
    "all_with_tools",  # every assistant turn, if the request offers tools
    "loop_head",  # the first assistant turn of the tool loop that is being continued
    "first_call_of_step",  # the first call of each model step after the last user message
    "pairs",  # elements that name each other by id
]
Takes = Literal["text", "own", "nothing"]
Unread = Literal[
    "looped",  # turns with calls since the last user message
    "called",  # earlier turns with calls, which an answer follows
    "plain",  # earlier turns without calls
]
Rung = Literal["empty", "inherit", "blank", "sentinel", "unpair", "pause_thinking"]

PRESENCE: tuple[Rung, ...] = ("empty", "blank", "pause_thinking")
"""What to do about text that a maker wants back and nobody has: every maker that wants text takes a blank."""


class Sampling(Struct, frozen=True, gc=False):
    """Settings of sampling that models refuse.

    Models whose names fit `never` take none of `names`. One that thinks takes none of `while_thinking`, and where there
    is a `least_top_p`, no smaller one and no temperature but 1. Only models that fit `takes_both` take a temperature
    beside a `top_p`. `hottest` is the highest temperature. `is_by_mode`: each mode of thinking has fixed values.
    """

    never: str = "(?!)"
    names: tuple[str, ...] = ()
    while_thinking: tuple[str, ...] = ()
    least_top_p: float = 0.0
    takes_both: str = ""
    hottest: float | None = None
    is_by_mode: bool = False
    source: Source = UNVERIFIED


class PromptCache(Struct, frozen=True, gc=False):
    """How prompts are cached. `takes_marks`: the server takes them in this format; models whose names fit `needs_marks`
    cache nothing without one. Others cache by themselves."""

    takes_marks: bool = False
    needs_marks: str = "(?!)"
    source: Source = UNVERIFIED


class Contract(Struct, frozen=True, gc=False):
    """A row. `takes` is what may be sent: any text, only what this provider made, or nothing at all.

    `filler` is the least that is known to be accepted where a field must be there and nobody has its text.
    `follows_answers`: the server's answers say which member holds reasoning; the dialect's is where to begin.
    `may_seal`: nobody lists the server, so seals of a client's may be its own. `drops`: members that it refuses.
    `refused_modes`: words of `thinking.type` that it has refused.
    `knobs` are how thinking is switched, the first that fits the model. `answers` are what the provider says to those
    who break the contract. `when_split` is the dialect of a request that asks for `reasoning_split`. `refuses_empty`:
    an empty text does not pass, not even for a turn that had no reasoning. `refuses_unsigned`: nor does thinking that
    nobody signed. `binds_prefix`: reasoning is good behind the prefix that it was made behind, `binds_chain`: and
    behind the same thinking block; `binds_silently`: it is dropped elsewhere, and not refused. `accounts_differ` is a
    pattern of models that refuse it to newer accounts alone, and read it for older ones. `unread` are models
    whose reasoning it does not read. `insists`: it has refused a turn that was as its model had made it.
    `forces_any` is a pattern of models that can be made to call some tool while they think, `thinks_if_asked` of models
    that can think and don't unless a request asks for it.

    What refusals taught: `settings` are rules for settings, `mends` what a conversation is to be without
    (`formats/mending.py`). `switches` are the members that switch thinking here, none: any that are known; `ignored`
    are members that were found to switch nothing, `*` all of them. What a chat template taught: `unread_turns` are
    those whose reasoning it leaves out, `keeping` the switch that has it read all.
    """

    name: str
    kind: Kind
    dialect: Dialect
    source: Source
    scope: Scope = "nowhere"
    takes: Takes = "text"
    ladder: tuple[Rung, ...] = ()
    filler: str = " "
    thinks_by_default: bool = False
    only_when_thinking: bool = True
    binds_prefix: bool = False
    binds_silently: bool = False
    binds_chain: bool = False
    binds_model: bool = False
    accounts_differ: str = "(?!)"
    unread: str = ""
    insists: bool = False
    follows_answers: bool = False
    may_seal: bool = False
    drops: tuple[str, ...] = ()
    never_thinks: bool = False
    refused_modes: tuple[str, ...] = ()
    format: FormatName = "openai_chat"
    tools: ToolRange = FUNCTIONS_ONLY
    knobs: tuple[Knob, ...] = ()
    answers: tuple[RefusalTemplate, ...] = ()
    sampling: Sampling = Sampling()
    forces_no_tool_while_thinking: bool = False
    refuses_other_fields: bool = False
    refuses_empty: bool = False
    refuses_unsigned: bool = False
    when_split: Dialect | None = None
    forces_any: str = "(?!)"
    thinks_if_asked: str = "(?!)"
    settings: tuple[SettingRule, ...] = ()
    mends: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    unread_turns: tuple[Unread, ...] = ()
    keeping: tuple[SettingRule, ...] = ()
    cache: PromptCache = PromptCache()
    forms: ToolForms = USUAL_FORMS

    def switch(self, transcript: Transcript) -> ThinkingSwitch:
        """What a request says of thinking, in a member that this server reads."""
        if "*" in self.ignored:
            return "unsaid"
        if not transcript.switches or not (self.switches or self.ignored):
            return transcript.thinking
        for name, switch in transcript.switches:
            if (not self.switches or name in self.switches) and name not in self.ignored:
                return switch
        return "unsaid"

    def thinks(self, transcript: Transcript) -> bool:
        """Whether this request has the model think."""
        switch = self.switch(transcript)
        return self.thinks_by_default if switch == "unsaid" else switch != "off"

    @property
    def is_strict(self) -> bool:
        return self.kind in ("presence", "authenticity") and self.scope != "nowhere"


def written_in(dialect: Dialect, carrier: str) -> Dialect:
    """The dialect with its reasoning in another place; an empty name leaves it where it is."""
    return replace(dialect, carrier=cast(Carrier, carrier)) if carrier and carrier != dialect.carrier else dialect


# --- which turns of a request a contract is about --------------------------------------------------------------------
# "The last user message" is the last one that says something itself: a message that only brings results continues a
# tool loop.

DEPEND_ON_THE_END: frozenset[Scope] = frozenset(("calls_after_user", "first_call_of_step", "loop_head"))
"""Scopes in which a turn that must carry reasoning need not any more when the user has spoken again."""


def required_turns(transcript: Transcript, contract: Contract, assistant: Sequence[int]) -> tuple[int, ...]:
    """Positions of the assistant turns that must carry reasoning in this request, of all `assistant` turns."""
    if contract.only_when_thinking and not contract.insists and not contract.thinks(transcript):
        return ()
    turns = transcript.turns
    match contract.scope:
        case "nowhere" | "pairs":
            return ()
        case "all_with_tools":
            return tuple(assistant) if transcript.tools else ()
        case "calls":
            return tuple(position for position in assistant if has_calls(turns[position]))
        case "calls_after_user" | "first_call_of_step":
            start = after_last_user(turns)
            return tuple(position for position in assistant if position >= start and has_calls(turns[position]))
        case "loop_head":
            return _loop_head(turns, assistant)


def _loop_head(turns: Sequence[Turn], assistant: Sequence[int]) -> tuple[int, ...]:
    """The first assistant turn since the last user message, if the request ends with results: all that follows it is
    one turn to Anthropic, whoever made it."""
    if not turns or not any(isinstance(item, ToolResult) for item in turns[-1].items):
        return ()
    start = after_last_user(turns)
    loop = [position for position in assistant if position >= start]
    return tuple(loop[:1]) if any(has_calls(turns[position]) for position in loop) else ()


def has_calls(turn: Turn) -> bool:
    return any(isinstance(item, ToolCall) for item in turn.items)


def after_last_user(turns: Sequence[Turn]) -> int:
    """Where the current turn of the conversation starts: after the last message in which a user says something."""
    for position in range(len(turns) - 1, -1, -1):
        turn = turns[position]
        if is_said_by_user(turn):
            return position + 1
    return 0


def is_said_by_user(turn: Turn) -> bool:
    """Whether it is a user's message that says something itself."""
    return turn.role == "user" and not any(isinstance(item, ToolResult) for item in turn.items)
