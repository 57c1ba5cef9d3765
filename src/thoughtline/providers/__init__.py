"""Providers as data: one file for each, which ends in its `ROW` and says everything that is true of it.

    name, host ──> ProviderRow      where it is, which formats it speaks, whose rules hold for what it serves
    model ───────> its maker's row  the contract in each format, how thinking is switched, what it says to a refusal

A new provider is a new file and a name in `ROWS`; whatever else asks, asks the row.
"""

from __future__ import annotations

import re

from thoughtline.providers import (
    anthropic,
    azure,
    bedrock,
    cerebras,
    cohere,
    copilot,
    deepinfra,
    deepseek,
    fireworks,
    gemini,
    glm,
    groq,
    kimi,
    lmstudio,
    mimo,
    minimax,
    mistral,
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
    vllm,
    xai,
)
from thoughtline.providers.anthropic import ANTHROPIC
from thoughtline.providers.azure import AZURE_RESPONSES
from thoughtline.providers.bedrock import BEDROCK_CLAUDE, BEDROCK_PLAIN
from thoughtline.providers.cohere import COHERE
from thoughtline.providers.contract import Contract, Kind, Rung, Scope, Source, Takes
from thoughtline.providers.copilot import COPILOT
from thoughtline.providers.deepseek import DEEPSEEK, DEEPSEEK_ANTHROPIC, DEEPSEEK_RESPONSES
from thoughtline.providers.dialects import (
    AI_SDK,
    NO_REASONING,
    REASONING,
    REASONING_CONTENT,
    REASONING_DETAILS,
    THINK_TAGS,
    Carrier,
    Dialect,
    written_in,
)
from thoughtline.providers.gemini import GEMINI, GOOGLE_CHAT
from thoughtline.providers.glm import GLM
from thoughtline.providers.kimi import KIMI, KIMI_ANTHROPIC
from thoughtline.providers.mimo import MIMO, MIMO_ANTHROPIC
from thoughtline.providers.minimax import MINIMAX_ANTHROPIC, MINIMAX_SPLIT, MINIMAX_TAGS
from thoughtline.providers.mistral import MISTRAL
from thoughtline.providers.ollama import OLLAMA, OLLAMA_TAGS
from thoughtline.providers.openai import OPENAI_RESPONSES
from thoughtline.providers.qwen import QWEN
from thoughtline.providers.refusals import RefusalTemplate
from thoughtline.providers.row import AuthStyle, Held, ModelRow, ProviderRow
from thoughtline.providers.shared import UNKNOWN, UNLISTED
from thoughtline.providers.xai import XAI_RESPONSES

__all__ = [
    "AI_SDK",
    "ANTHROPIC",
    "AZURE_RESPONSES",
    "BEDROCK_CLAUDE",
    "BEDROCK_PLAIN",
    "COHERE",
    "CONTRACTS",
    "COPILOT",
    "DEEPSEEK",
    "DEEPSEEK_ANTHROPIC",
    "DEEPSEEK_RESPONSES",
    "DIALECTS",
    "GEMINI",
    "GLM",
    "GOOGLE_CHAT",
    "KIMI",
    "KIMI_ANTHROPIC",
    "MIMO",
    "MIMO_ANTHROPIC",
    "MINIMAX_ANTHROPIC",
    "MINIMAX_SPLIT",
    "MINIMAX_TAGS",
    "MISTRAL",
    "NO_REASONING",
    "OLLAMA",
    "OLLAMA_TAGS",
    "OPENAI_RESPONSES",
    "QWEN",
    "REASONING",
    "REASONING_CONTENT",
    "REASONING_DETAILS",
    "ROWS",
    "THINK_TAGS",
    "UNKNOWN",
    "UNLISTED",
    "XAI_RESPONSES",
    "AuthStyle",
    "Carrier",
    "Contract",
    "Dialect",
    "Held",
    "Kind",
    "ModelRow",
    "ProviderRow",
    "Rung",
    "Scope",
    "Source",
    "Takes",
    "canonical_name",
    "host_at",
    "host_named",
    "is_wanted_back",
    "maker_of",
    "refusals",
    "written_in",
]

# A format that serves only some of a provider's models, or of which no contract is known, is not listed: requests in it
# are translated to one that serves them all. So Responses of Kimi, MiMo, MiniMax and Qwen. Addresses are those of the
# providers' own documentation, the international ones where there are several, in 2026-11.
ROWS: tuple[ProviderRow, ...] = (
    deepseek.ROW,
    kimi.ROW,
    mimo.ROW,
    glm.ROW,
    minimax.ROW,
    qwen.ROW,
    anthropic.ROW,
    openai.ROW,
    azure.ROW,
    gemini.ROW,
    xai.ROW,
    openrouter.ROW,
    openrouter.VERCEL,
    mistral.ROW,
    groq.ROW,
    cerebras.ROW,
    fireworks.ROW,
    together.ROW,
    siliconflow.ROW,
    nebius.ROW,
    deepinfra.ROW,
    sambanova.ROW,
    cohere.ROW,
    perplexity.ROW,
    bedrock.ROW,
    ollama.ROW,
    vllm.ROW,
    lmstudio.ROW,
    copilot.ROW,
    opencode_go.ROW,
)


def host_named(name: str) -> ProviderRow | None:
    """The row of a provider, by its name or another that it goes by."""
    lowered = name.lower()
    return next((row for row in ROWS if lowered == row.name or lowered in row.aliases), None)


def host_at(address: str) -> ProviderRow | None:
    """The row of the provider that is at an address."""
    host = re.sub(r"^\w+://", "", address).split("/")[0].split(":")[0].lower()
    return next((row for row in ROWS if re.search(row.hosts, host)), None)


def maker_of(model: str) -> ProviderRow | None:
    """The row of whoever makes a model, by its name."""
    lowered = model.lower()
    return next((row for row in ROWS if re.search(row.models, lowered)), None)


def is_wanted_back(model: str) -> bool:
    """Whether some maker wants the reasoning of this model's tool calls back."""
    lowered = model.lower()
    return any(row.wanted_models and re.search(row.wanted_models, lowered) for row in ROWS)


def canonical_name(name: str) -> str:
    """A provider's name as its row has it: `moonshot` is `kimi`. A name that nobody knows stays as it is."""
    row = host_named(name)
    return row.name if row is not None else name.lower()


def refusals() -> list[tuple[str, RefusalTemplate]]:
    """Every refusal that is known, and whose it is: those that want a code beside their sentence first."""
    every = [(one.family or row.name, one) for row in (*ROWS, UNLISTED) for one in row.refusals]
    return sorted(every, key=lambda pair: not (pair[1].codes and pair[1].template))


def _contracts() -> dict[str, Contract]:
    found: dict[str, Contract] = {}
    for contract in (*(one for row in ROWS for one in row.contracts), UNKNOWN):
        found.setdefault(contract.name, contract)
    return found


DIALECTS: dict[str, Dialect] = {one.name: one for one in tuple(globals().values()) if isinstance(one, Dialect)}
CONTRACTS: dict[str, Contract] = _contracts()
"""Every contract, by its name. Detection makes some of them fit the host: `replay.detection`."""
