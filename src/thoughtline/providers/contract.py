"""What a provider and its model demand back, as data: the types of a provider's row, and which turns of a request a
contract is about."""

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
    "called",  # earlier turns with calls that have been answered
    "plain",  # earlier turns without calls
]
Rung = Literal["empty", "inherit", "blank", "sentinel", "unpair", "pause_thinking"]

PRESENCE: tuple[Rung, ...] = ("empty", "blank", "pause_thinking")
"""Fallbacks for missing text that a maker wants back: every such maker accepts a blank."""


class Sampling(Struct, frozen=True, gc=False):
    """Sampling settings that models refuse.

    Models that match `never` accept none of `names`. A model that thinks accepts none of `while_thinking`; with
    `least_top_p` set, it refuses a smaller top_p and any temperature except 1. Only models that match `takes_both`
    accept a temperature together with a `top_p`. `hottest` is the highest temperature. `is_by_mode`: each thinking mode
    has fixed values.
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
    """How a provider caches prompts. `takes_marks`: the server accepts cache markers in this format. Models that match
    `needs_marks` cache nothing without one; others cache automatically."""

    takes_marks: bool = False
    needs_marks: str = "(?!)"
    source: Source = UNVERIFIED


class Contract(Struct, frozen=True, gc=False):
    """What one provider demands for one model in one format. `takes` is what may be sent: any text, only what this
    provider made, or nothing.

    `filler` is the smallest value known to be accepted where a field is required and its text is lost.
    `follows_answers`: the server's answers show which member holds reasoning; the dialect's is the initial guess.
    `may_seal`: the server is not listed, so seals that a client sends may be its own. `drops`: members that it refuses.
    `refused_modes`: values of `thinking.type` that it has refused.

    `knobs` are the ways to switch thinking; the first that fits the model is used. `answers` are the provider's
    refusals when the contract is broken. `when_split` is the dialect of a request with `reasoning_split`.
    `refuses_empty`: empty text is refused, even for a turn that had no reasoning. `refuses_unsigned`: so is thinking
    without a signature. `binds_prefix`: reasoning is valid only after the prefix it was made after; `binds_chain`: and
    only after the same thinking block; `binds_silently`: elsewhere it is dropped, not refused. `accounts_differ` is a
    pattern of models that refuse reasoning from newer accounts only. `unread` are the turns whose reasoning the model
    does not read. `insists`: the server has refused a turn that was exactly as its model had made it. `forces_any` is a
    pattern of models that can be forced to call some tool while they think; `thinks_if_asked` of models that can think,
    but only do so if a request asks for it.

    Learned from refusals: `settings` are rules for settings; `mends` names what to remove from a conversation
    (`formats/mending.py`). `switches` are the members that switch thinking here; empty means any known one. `ignored`
    are members that turned out to switch nothing; `*` means all of them. Learned from a chat template: `unread_turns`
    are the turns whose reasoning it omits; `keeping` is the switch that makes it read all of them.
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
        """Return what a request says about thinking, in a member that this server reads."""
        if "*" in self.ignored:
            return "unsaid"
        if not transcript.switches or not (self.switches or self.ignored):
            return transcript.thinking
        for name, switch in transcript.switches:
            if (not self.switches or name in self.switches) and name not in self.ignored:
                return switch
        return "unsaid"

    def thinks(self, transcript: Transcript) -> bool:
        """Whether the model thinks in this request."""
        switch = self.switch(transcript)
        return self.thinks_by_default if switch == "unsaid" else switch != "off"

    @property
    def is_strict(self) -> bool:
        return self.kind in ("presence", "authenticity") and self.scope != "nowhere"


def written_in(dialect: Dialect, carrier: str) -> Dialect:
    """Return the dialect with another carrier. An empty name keeps the carrier."""
    return replace(dialect, carrier=cast(Carrier, carrier)) if carrier and carrier != dialect.carrier else dialect


# --- which turns of a request a contract is about --------------------------------------------------------------------
# "The last user message" is the last one with content of its own. A message that contains only results continues a tool
# loop.

DEPEND_ON_THE_END: frozenset[Scope] = frozenset(("calls_after_user", "first_call_of_step", "loop_head"))
"""Scopes in which a turn no longer has to carry reasoning once the user has sent another message."""


def required_turns(transcript: Transcript, contract: Contract, assistant: Sequence[int]) -> tuple[int, ...]:
    """Positions of the turns that must carry reasoning in this request, out of all `assistant` turns."""
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
    """The first assistant turn since the last user message, if the request ends with results. Anthropic counts
    everything after it as one turn, whichever model made it."""
    if not turns or not any(isinstance(item, ToolResult) for item in turns[-1].items):
        return ()
    start = after_last_user(turns)
    loop = [position for position in assistant if position >= start]
    return tuple(loop[:1]) if any(has_calls(turns[position]) for position in loop) else ()


def has_calls(turn: Turn) -> bool:
    return any(isinstance(item, ToolCall) for item in turn.items)


def after_last_user(turns: Sequence[Turn]) -> int:
    """Where the current turn of the conversation starts: after the last message with content from a user."""
    for position in range(len(turns) - 1, -1, -1):
        turn = turns[position]
        if is_said_by_user(turn):
            return position + 1
    return 0


def is_said_by_user(turn: Turn) -> bool:
    """Whether it is a user message with content of its own, not only results."""
    return turn.role == "user" and not any(isinstance(item, ToolResult) for item in turn.items)
