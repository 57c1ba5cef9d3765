"""Providers as data: one file for each, which ends in its `ROW` and states every fact about it.

    name, host ──> ProviderRow      its address, the formats it speaks, whose contracts hold for the models it serves
    model ───────> its maker's row  the contract in each format, how thinking is switched, the wording of its refusals

To add a provider, add a file and a name in `PROVIDERS`. All other code reads the row.
"""

from __future__ import annotations

from msgspec.structs import replace

from thoughtline.providers import (
    anthropic,
    azure,
    bedrock,
    cerebras,
    code_assist,
    cohere,
    command_code,
    copilot,
    deepinfra,
    deepseek,
    fireworks,
    gemini,
    glm,
    groq,
    kimi,
    llamacpp,
    lmstudio,
    meta,
    mimo,
    minimax,
    mistral,
    model_hosts,
    nebius,
    ollama,
    openai,
    opencode_go,
    openrouter,
    perplexity,
    qwen,
    sambanova,
    siliconflow,
    together,
    vertex,
    vllm,
    xai,
)
from thoughtline.providers.anthropic import ANTHROPIC as ANTHROPIC
from thoughtline.providers.azure import AZURE_RESPONSES as AZURE_RESPONSES
from thoughtline.providers.bedrock import BEDROCK_CLAUDE as BEDROCK_CLAUDE
from thoughtline.providers.bedrock import BEDROCK_PLAIN as BEDROCK_PLAIN
from thoughtline.providers.code_assist import ANTIGRAVITY_CLAUDE as ANTIGRAVITY_CLAUDE
from thoughtline.providers.cohere import COHERE as COHERE
from thoughtline.providers.command_code import COMMAND_CODE as COMMAND_CODE
from thoughtline.providers.contract import Contract as Contract
from thoughtline.providers.contract import Kind as Kind
from thoughtline.providers.contract import Rung as Rung
from thoughtline.providers.contract import Scope as Scope
from thoughtline.providers.contract import Takes as Takes
from thoughtline.providers.contract import written_in as written_in
from thoughtline.providers.copilot import COPILOT as COPILOT
from thoughtline.providers.deepseek import DEEPSEEK as DEEPSEEK
from thoughtline.providers.deepseek import DEEPSEEK_ANTHROPIC as DEEPSEEK_ANTHROPIC
from thoughtline.providers.deepseek import DEEPSEEK_RESPONSES as DEEPSEEK_RESPONSES
from thoughtline.providers.dialects import NO_REASONING as NO_REASONING
from thoughtline.providers.dialects import REASONING as REASONING
from thoughtline.providers.dialects import REASONING_CONTENT as REASONING_CONTENT
from thoughtline.providers.dialects import REASONING_DETAILS as REASONING_DETAILS
from thoughtline.providers.dialects import THINK_TAGS as THINK_TAGS
from thoughtline.providers.dialects import Carrier as Carrier
from thoughtline.providers.dialects import Dialect as Dialect
from thoughtline.providers.gemini import GEMINI as GEMINI
from thoughtline.providers.gemini import GOOGLE_CHAT as GOOGLE_CHAT
from thoughtline.providers.gemini import INTERACTIONS as INTERACTIONS
from thoughtline.providers.glm import GLM as GLM
from thoughtline.providers.kimi import KIMI as KIMI
from thoughtline.providers.kimi import KIMI_ANTHROPIC as KIMI_ANTHROPIC
from thoughtline.providers.meta import META_ANTHROPIC as META_ANTHROPIC
from thoughtline.providers.meta import META_RESPONSES as META_RESPONSES
from thoughtline.providers.mimo import MIMO as MIMO
from thoughtline.providers.mimo import MIMO_ANTHROPIC as MIMO_ANTHROPIC
from thoughtline.providers.minimax import MINIMAX_ANTHROPIC as MINIMAX_ANTHROPIC
from thoughtline.providers.minimax import MINIMAX_SPLIT as MINIMAX_SPLIT
from thoughtline.providers.minimax import MINIMAX_TAGS as MINIMAX_TAGS
from thoughtline.providers.mistral import MISTRAL as MISTRAL
from thoughtline.providers.ollama import OLLAMA as OLLAMA
from thoughtline.providers.ollama import OLLAMA_TAGS as OLLAMA_TAGS
from thoughtline.providers.openai import OPENAI_RESPONSES as OPENAI_RESPONSES
from thoughtline.providers.qwen import QWEN as QWEN
from thoughtline.providers.refusals import RefusalTemplate as RefusalTemplate
from thoughtline.providers.row import UNTOLD
from thoughtline.providers.row import AuthStyle as AuthStyle
from thoughtline.providers.row import Held as Held
from thoughtline.providers.row import ModelRow as ModelRow
from thoughtline.providers.row import ProviderRow as ProviderRow
from thoughtline.providers.shared import UNKNOWN as UNKNOWN
from thoughtline.providers.shared import UNLISTED as UNLISTED
from thoughtline.providers.table import FactTable as FactTable
from thoughtline.providers.xai import XAI_RESPONSES as XAI_RESPONSES
from thoughtline.values.turns import FormatName

# Formats that serve only some of a provider's models, or have no known contract, are not listed: requests in them are
# translated to a format that serves all models. This applies to Responses of Kimi, MiMo, MiniMax and Qwen.
PROVIDERS: tuple[ProviderRow, ...] = (
    *(deepseek.ROW, kimi.ROW, mimo.ROW, glm.ROW, minimax.ROW, qwen.ROW),
    *(
        anthropic.ROW,
        openai.ROW,
        azure.ROW,
        vertex.ROW,
        code_assist.CODE_ASSIST,
        code_assist.ANTIGRAVITY,
        gemini.ROW,
        xai.ROW,
        openrouter.ROW,
        openrouter.VERCEL,
    ),
    *(mistral.ROW, groq.ROW, cerebras.ROW, fireworks.ROW, together.ROW, siliconflow.ROW),
    *(nebius.ROW, deepinfra.ROW, sambanova.ROW, cohere.ROW, perplexity.ROW, bedrock.ROW),
    *(ollama.ROW, llamacpp.ROW, vllm.ROW, lmstudio.ROW, copilot.ROW, opencode_go.ROW, command_code.ROW),
    *(meta.ROW, azure.FOUNDRY, bedrock.MANTLE),
    *model_hosts.ROWS,
)


def host_named(name: str) -> ProviderRow | None:
    """Return the row of a provider, found by name or alias."""
    return _InUse.table.host_named(name)


def host_at(address: str) -> ProviderRow | None:
    """Return the row of the provider at an address."""
    return _InUse.table.host_at(address)


def maker_of(model: str) -> ProviderRow | None:
    """Return the row of the provider that makes a model, found by the model's name."""
    return _InUse.table.maker_of(model)


def is_wanted_back(model: str) -> bool:
    """Whether any maker wants the reasoning of this model's tool calls back."""
    return _InUse.table.is_wanted_back(model)


def canonical_name(name: str) -> str:
    """Return the name that a provider's row uses: `moonshot` becomes `kimi`. An unknown name stays as it is."""
    row = host_named(name)
    return row.name if row is not None else name.lower()


def refusals() -> list[tuple[str, RefusalTemplate]]:
    """All known refusals, each with the provider whose rule it is."""
    return _InUse.table.refusals


UNKNOWN_IN: dict[FormatName, Contract] = {
    "anthropic_messages": replace(UNKNOWN, format="anthropic_messages", dialect=ANTHROPIC),
    "openai_responses": replace(UNKNOWN, format="openai_responses", dialect=OPENAI_RESPONSES, tools=UNTOLD),
}
"""Contracts for unknown models, in formats whose servers all keep reasoning in the same place."""

DIALECTS: dict[str, Dialect] = {one.name: one for one in tuple(globals().values()) if isinstance(one, Dialect)}
BUILT_IN = FactTable(PROVIDERS, UNLISTED, further=(UNKNOWN,), dialects=DIALECTS)
"""The built-in facts."""

CONTRACTS: dict[str, Contract] = BUILT_IN.contracts
"""All built-in contracts by name. `replay.detection` adapts some of them to the host."""


class _InUse:
    """The fact table that this process uses. Facts are the same for everything it serves."""

    table = BUILT_IN


def facts() -> FactTable:
    """Return the fact table in use."""
    return _InUse.table


def use(table: FactTable) -> None:
    """Use another fact table from now on."""
    _InUse.table = table
