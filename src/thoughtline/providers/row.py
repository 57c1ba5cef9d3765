"""A provider as a row: all facts about it and its models."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from thoughtline.providers.contract import Contract
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.knobs import Knob
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
    "own",  # it makes its models, or has one contract for all that it serves
    "makers",  # it serves models of others, and their makers' contracts hold
    "strict makers",  # likewise where a maker requires reasoning; otherwise its own
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
"""A Responses server other than OpenAI's: none accepts a namespace (openai/codex#32318, coder/coder#28656)."""

SEARCHES = NOT_OPENAIS.having("web_search")
UNTOLD = NOT_OPENAIS.having("compaction")
"""An unlisted server: a compaction that a client sends may be its own."""


THINKING_TOKENS = 8192
"""Enough for a model to think before it calls a tool; other preservers use the same number."""


class ModelRow(Struct, frozen=True, kw_only=True):
    """Models of one maker that follow the same contracts.

    `contracts` hold where the maker serves them, `elsewhere` at other hosts (None: the same ones). A row for all
    `models` adds nothing to its contracts, and rests on their source.
    """

    models: str = ""
    contracts: tuple[Contract, ...]
    elsewhere: tuple[Contract, ...] | None = None
    source: Source = UNVERIFIED

    def contract(self, format: FormatName, *, is_maker: bool) -> Contract | None:
        """Return the contract for a format."""
        contracts = self.contracts if is_maker or self.elsewhere is None else self.elsewhere
        return next((one for one in contracts if one.format == format), None)


class Context(Struct, frozen=True):
    """The context length, in tokens, of models whose names begin with `beginning`."""

    beginning: str
    tokens: int
    source: Source


class RelayedMaker(Struct, frozen=True, kw_only=True):
    """A maker whose refusals a host passes on, and how to recognise them.

    `prefix` is a pattern of the text before the maker's sentence; `codes` are the host's own error codes.
    """

    maker: str
    prefix: str = "(?!)"
    codes: frozenset[str] = frozenset()


class FailureCodes(Struct, frozen=True, kw_only=True):
    """Numbers that name the failure, in answers with status 200 too: `member` of the body's `holder`."""

    holder: str
    member: str
    kinds: dict[int, FailureKind]
    source: Source = UNVERIFIED


NO_MODELS = "(?!)"
"""A pattern that no name matches."""


class Door(Struct, frozen=True, kw_only=True):
    """Requests that are sent in another format than they arrived in, because that one can carry their reasoning.

    It applies to `models` except those that match `but`, which are older or different ones. `needs`: only requests with
    tools, or only those without a thinking setting. `is_refused`: with an effort, they are refused in the format they
    arrived in.
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
    """All facts about a provider. Members without a default must be given.

    `hosts` and `models` are patterns of addresses (of hosts, or of whole addresses if they contain a `/`) and of the
    names of the models it makes. `rows` are its contracts: the first match applies, the last is for all other models.
    `rules` says whose contracts hold for the models it serves, `dialect` where it keeps reasoning of any maker.
    `base_url` is the value for the provider's own SDK, empty if only settings can know it; `bases` are the addresses of
    formats that have another one, `paths` is appended where it differs from the format's own path. A row without
    `formats` is known but not listed.

    `wants_back`: whether a program that calls it should keep the reasoning of tool calls, and for which of its own
    `wanted_models`; `by contract`: where a model's contract accepts its own reasoning. `asks` is what such a program
    adds to a request with tools to get reasoning: members by the pattern of a model, the first match applies. `makes`
    names the reasoning that its models make. `is_lenient`: no refusal of it is known, so no filler is sent on a miss.
    `has_documented_field`: the reasoning member is documented; other providers show it in their answers.

    `responses_tools` are the tools it accepts in OpenAI's Responses format (None: the same as OpenAI); `messages_tools`
    in Anthropic's, where that depends on the host and not on its models. `owns`: formats in which its contracts hold at
    every host. `guests` are makers whose models it serves in one of their formats, and no other models in that format.
    `is_located`: its addresses contain a project and a location, which also determines the host (Vertex). `holds` is
    the state it keeps of a conversation for clients that send only new messages. `counts`: the formats in which it
    counts the tokens of a request for free. `tool_forms`: the tool names and schemas it accepts. `has_websocket`: its
    Responses API is also available over a WebSocket.

    `most_output`: how many tokens its older models write, by a part of their names. `failures` are words of its errors,
    in lower case, that blame the server and not the request; `failure_codes` are its numbers. `flags`: members of an
    error's `metadata` that say why input was flagged. `relays`: it passes on the makers' errors. `traced_as`: its name
    in OpenTelemetry, if different (registry of `gen_ai.provider.name`, read 2026-11-16). `template_at`: a self-hosted
    server, and the address of its chat template. `switches` are the members of a chat request that switch thinking
    here, for every model; if empty, the maker's are used. `knobs` are how a chat request sets thinking here. `doors`
    are formats for requests whose own format can't carry reasoning here. `key_variables`: the environment variables for
    its key, if not `NAME_API_KEY`. `key_prefixes`: the prefixes of its keys, by which they are recognised anywhere.
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
    knobs: tuple[Knob, ...] = ()
    key_variables: tuple[str, ...] = ()
    key_prefixes: tuple[str, ...] = ()
    source: Source = UNVERIFIED

    @property
    def makes_models(self) -> bool:
        """Whether it makes its own models; otherwise models are named by their makers."""
        return self.models != NO_MODELS

    def row_for(self, model: str, format: FormatName, *, is_maker: bool = True) -> Contract | None:
        """Return the contract for a model. At the maker, a model that no row names gets the last one."""
        for row in self.rows:
            if re.search(row.models, model):
                found = row.contract(format, is_maker=is_maker)
                if found is not None or not is_maker:
                    return found
        return None

    def obeys(self, contract: Contract) -> bool:
        """Whether a maker's contract holds here. Responses of a lenient host have OpenAI's shape for every maker."""
        return not (self.is_lenient and contract.format == "openai_responses" and contract.kind == "presence")

    def tools_for(self, contract: Contract) -> ToolRange:
        """Return the tools accepted under a contract: the host's own if the contract names none in particular."""
        if contract.format == "openai_responses" and contract.tools in (ALL_TOOLS, NOT_OPENAIS, UNTOLD):
            return self.responses_tools or contract.tools
        if contract.format == "anthropic_messages" and contract.tools == FUNCTIONS_ONLY:
            return self.messages_tools or contract.tools
        return contract.tools

    @property
    def contracts(self) -> tuple[Contract, ...]:
        """All its contracts, starting with those for most of its models."""
        return tuple(one for row in reversed(self.rows) for one in (*row.contracts, *(row.elsewhere or ())))
