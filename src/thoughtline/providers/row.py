"""A provider as a row: everything that is true of it, and its models."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from thoughtline.providers.contract import Contract
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.refusals import RefusalTemplate
from thoughtline.providers.sources import UNVERIFIED, Source
from thoughtline.providers.tool_forms import USUAL_FORMS, ToolForms
from thoughtline.values.errors import FailureKind
from thoughtline.values.items import ReasoningFormat
from thoughtline.values.options import ALL_TOOLS, FUNCTIONS_ONLY, ToolRange
from thoughtline.values.turns import FormatName

AuthStyle = Literal["bearer", "x-api-key", "x-goog-api-key", "api-key", "query", "aws", "none"]
Held = Literal["threads", "conversations", "interactions"]
Rules = Literal[
    "own",  # it makes its models, or has one rule for all that it serves
    "makers",  # it serves models of others, and their rules hold
    "strict makers",  # likewise where a maker wants reasoning to be present; else its own
]
Wants = Literal["always", "by model", "by contract", "never"]
TemplateAt = Literal[
    "",
    "apply-template",  # llama.cpp renders messages without generating
    "tokenize",  # vLLM counts the tokens of rendered messages
    "show",  # Ollama shows the template itself
]

NOT_OPENAIS = ToolRange(
    lacks=(
        *("namespace", "custom", "tool_search", "web_search", "image_generation"),
        *("local_shell", "shell", "apply_patch", "computer", "computer_use_preview"),
        *("compaction", "compaction_trigger", "agent_message"),
    )
)
"""A Responses server that is not OpenAI's: none takes a namespace (openai/codex#32318, coder/coder#28656)."""

SEARCHES = NOT_OPENAIS.having("web_search")
UNTOLD = NOT_OPENAIS.having("compaction")
"""A server that nobody lists: a compaction that a client has may be its own."""


THINKING_TOKENS = 8192
"""Enough for a model to think before it calls a tool; what the other preservers ask for too."""


class ModelRow(Struct, frozen=True, kw_only=True):
    """Models of one maker that go by the same rules.

    `contracts` hold where the maker serves them, `elsewhere` where others do; None: the same. A row for all `models`
    says no more than its contracts, and rests on their source.
    """

    models: str = ""
    contracts: tuple[Contract, ...]
    elsewhere: tuple[Contract, ...] | None = None
    source: Source = UNVERIFIED

    def contract(self, format: FormatName, *, is_maker: bool) -> Contract | None:
        """The one of a format."""
        contracts = self.contracts if is_maker or self.elsewhere is None else self.elsewhere
        return next((one for one in contracts if one.format == format), None)


class Context(Struct, frozen=True):
    """How many tokens models take whose names begin so."""

    beginning: str
    tokens: int
    source: Source


class RelayedMaker(Struct, frozen=True, kw_only=True):
    """A maker whose refusals a host passes on, and how they show that they came through it.

    `prefix` is a pattern of what stands before the maker's sentence, `codes` are error codes of the host's own.
    """

    maker: str
    prefix: str = "(?!)"
    codes: frozenset[str] = frozenset()


class FailureCodes(Struct, frozen=True, kw_only=True):
    """Numbers that say what failed, in an answer of 200 too: `member` of the body's `holder`."""

    holder: str
    member: str
    kinds: dict[int, FailureKind]
    source: Source = UNVERIFIED


NO_MODELS = "(?!)"
"""A pattern that no name fits."""


class Door(Struct, frozen=True, kw_only=True):
    """Requests that go up in another format than they came in, because that one can carry their reasoning.

    `models` are those that it is for, and `but` are older or other ones among them. `needs`: only requests with tools,
    or only those that say nothing of thinking. `is_refused`: with an effort, in the format that they came in, they are.
    """

    comes_in: FormatName
    goes_up: FormatName
    models: str
    source: Source
    but: str = NO_MODELS
    needs: Literal["", "tools", "unsaid"] = ""
    is_refused: bool = False

    def is_for(self, model: str) -> bool:
        lowered = model.lower()
        return re.search(self.models, lowered) is not None and re.search(self.but, lowered) is None


class ProviderRow(Struct, frozen=True, kw_only=True):
    """All that is true of a provider. What has no default must be said.

    `hosts` and `models` are patterns of addresses (of hosts, or with a `/` of whole addresses) and of the names of
    models that it makes; `rows` its contracts, the first that fits, the last for all others. `rules` says whose
    contracts hold for the models that it serves, `dialect` where it keeps reasoning whoever made it. `base_url` is what
    the provider's own SDK takes, empty where only settings can know it; `bases` are the addresses of formats that live
    elsewhere, `paths` what is appended where it is not the format's own path. A row without `formats` is known and not
    listed.

    `wants_back`: whether a program that calls it should keep the reasoning of tool calls, and for which of its own
    `wanted_models`; `by contract`: where a model's contract takes its own. `asks` is what such a program adds to a
    request with tools so that reasoning comes: members by the pattern of a model, the first that fits. `makes` is
    whose reasoning its models make. `is_lenient`: no refusal is known of it, so nothing is made up on a miss.
    `has_documented_field`: which member has reasoning is written down; others say so in their answers.
    `responses_tools` are those that it takes in OpenAI's Responses format, None where it is as OpenAI's;
    `messages_tools` in Anthropic's, where that is known of the host and not of its models. `owns`: formats in which
    its contracts hold wherever they are spoken. `guests` are makers whose models it serves in a format of theirs, and
    no others in that. `is_located`: its addresses name a project and a location, which says the host too (Vertex).
    `holds` is what it keeps of a conversation for clients that send only what is new. `counts`: the formats in which
    it counts the tokens of a request for nothing. `tool_forms`: which names and schemas of tools
    it takes. `has_websocket`: its Responses API can be asked over one.
    `most_output`: how many tokens its older models write, by a part of their names. `failures` are words of its own
    errors, in lower case, that speak against it and not against the request, `failure_codes` its numbers; `flags`:
    members of an error's `metadata` that say why input was flagged. `relays`: it passes on what makers
    say. `traced_as`: what OpenTelemetry calls it, where that is another name (its registry of `gen_ai.provider.name`,
    read 2026-11-16).
    `template_at`: a server of one's own, and where its chat template can be asked for. `switches` are the members of a
    chat request that switch thinking here, whatever the model; none: as its maker has it.
    `doors` are formats for some requests whose own format can't carry reasoning here.
    `key_variables`: where its users have its key in the environment, if not in `NAME_API_KEY`. `key_prefixes`: how its
    keys begin, so that they are known wherever they stand.
    """

    name: str
    hosts: str
    base_url: str
    formats: tuple[FormatName, ...]
    rules: Rules
    rows: tuple[ModelRow, ...]
    models: str = NO_MODELS
    refusals: tuple[RefusalTemplate, ...] = ()
    wants_back: Wants = "by model"
    has_documented_field: bool = True
    aliases: tuple[str, ...] = ()
    bases: dict[FormatName, str] = {}
    paths: dict[FormatName, str] = {}
    auth: AuthStyle = "bearer"
    dialect: Dialect | None = None
    makes: tuple[ReasoningFormat, ...] = ()
    wanted_models: str = ""
    asks: tuple[tuple[str, dict[str, object]], ...] = ()
    is_lenient: bool = False
    may_seal: bool = False
    responses_tools: ToolRange | None = NOT_OPENAIS
    messages_tools: ToolRange | None = None
    owns: tuple[FormatName, ...] = ()
    guests: dict[str, FormatName] = {}
    is_located: bool = False
    holds: tuple[Held, ...] = ()
    counts: tuple[FormatName, ...] = ()
    tool_forms: ToolForms = USUAL_FORMS
    has_websocket: bool = False
    example_model: str = ""
    contexts: tuple[Context, ...] = ()
    most_output: tuple[tuple[str, int], ...] = ()
    failures: dict[str, FailureKind] = {}
    failure_codes: FailureCodes | None = None
    flags: tuple[str, ...] = ()
    relays: RelayedMaker | None = None
    traced_as: str = ""
    doors: tuple[Door, ...] = ()
    template_at: TemplateAt = ""
    switches: tuple[str, ...] = ()
    key_variables: tuple[str, ...] = ()
    key_prefixes: tuple[str, ...] = ()
    source: Source = UNVERIFIED

    @property
    def makes_models(self) -> bool:
        """Whether its models are its own, and not named by who made them."""
        return self.models != NO_MODELS

    def row_for(self, model: str, format: FormatName, *, is_maker: bool = True) -> Contract | None:
        """What is demanded for a model; at its maker's, one that no row names goes by the last."""
        for row in self.rows:
            if re.search(row.models, model):
                found = row.contract(format, is_maker=is_maker)
                if found is not None or not is_maker:
                    return found
        return None

    def obeys(self, contract: Contract) -> bool:
        """Whether a maker's contract holds here. A lenient host's Responses are of OpenAI's shape, whoever made it."""
        return not (self.is_lenient and contract.format == "openai_responses" and contract.kind == "presence")

    def tools_for(self, contract: Contract) -> ToolRange:
        """The tools that it takes under a contract: the host's own, where the contract names none in particular."""
        if contract.format == "openai_responses" and contract.tools in (ALL_TOOLS, NOT_OPENAIS, UNTOLD):
            return self.responses_tools or contract.tools
        if contract.format == "anthropic_messages" and contract.tools == FUNCTIONS_ONLY:
            return self.messages_tools or contract.tools
        return contract.tools

    @property
    def contracts(self) -> tuple[Contract, ...]:
        """Every contract that it states, those for most of its models first."""
        return tuple(one for row in reversed(self.rows) for one in (*row.contracts, *(row.elsewhere or ())))
