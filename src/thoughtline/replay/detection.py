"""Which contract holds for a provider, host, model and format.

The provider decides where it is the maker of its models; an aggregator or an unknown host serves models whose makers
are strict, so there the model's name decides. A model that nobody knows gets the contract that leaves everything alone.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from thoughtline import providers as dialects
from thoughtline.providers import Dialect
from thoughtline.replay.contracts import BY_NAME, UNKNOWN, Contract
from thoughtline.values.destination import Destination
from thoughtline.values.options import ALL_TOOLS, FUNCTIONS_ONLY, ToolRange
from thoughtline.values.turns import FormatName

ALIASES = {
    "moonshot": "kimi",
    "moonshotai": "kimi",
    "xiaomi-mimo": "mimo",
    "xiaomi": "mimo",
    "zai": "glm",
    "zhipu": "glm",
    "z-ai": "glm",
    "dashscope": "qwen",
    "alibaba": "qwen",
    "google": "gemini",
    "vertex": "gemini",
    "claude": "anthropic",
    "x-ai": "xai",
    "aws-bedrock": "bedrock",
    "github-copilot": "copilot",
}

HOSTS = (
    (r"deepseek\.com$", "deepseek"),
    (r"(moonshot\.(cn|ai)|kimi\.com)$", "kimi"),
    (r"(mimo\.mi\.com|xiaomimimo\.com)$", "mimo"),
    (r"(bigmodel\.cn|z\.ai)$", "glm"),
    (r"(minimax(i)?\.(chat|io|com))$", "minimax"),
    (r"aliyuncs\.com$", "qwen"),
    (r"anthropic\.com$", "anthropic"),
    (r"(openai\.azure\.com|cognitiveservices\.azure\.com)$", "azure"),
    (r"(openai\.com|chatgpt\.com)$", "openai"),
    (r"(googleapis\.com|google\.dev)$", "gemini"),
    (r"x\.ai$", "xai"),
    (r"openrouter\.ai$", "openrouter"),
    (r"mistral\.ai$", "mistral"),
    (r"groq\.com$", "groq"),
    (r"cerebras\.ai$", "cerebras"),
    (r"fireworks\.ai$", "fireworks"),
    (r"together\.(ai|xyz)$", "together"),
    (r"siliconflow\.(cn|com)$", "siliconflow"),
    (r"(nebius\.(ai|com))$", "nebius"),
    (r"deepinfra\.com$", "deepinfra"),
    (r"sambanova\.ai$", "sambanova"),
    (r"cohere\.(ai|com)$", "cohere"),
    (r"perplexity\.ai$", "perplexity"),
    (r"amazonaws\.com$", "bedrock"),
    (r"githubcopilot\.com$", "copilot"),
    (r"opencode\.ai$", "opencode-go"),
)

MODELS = (
    (r"deepseek[-_ ]?r1|deepseek-reasoner-2025", "deepseek-r1"),
    (r"deepseek[-_ ]?v3[.p]?2", "deepseek-v3.2"),
    (r"deepseek", "deepseek"),
    (r"kimi", "kimi"),
    (r"mimo[-.]?v?\d", "mimo"),
    (r"gpt-oss", "gpt-oss"),
    (r"glm", "glm"),
    (r"minimax|abab", "minimax"),
    (r"qwq|qwen", "qwen"),
    (r"claude|fable|mythos", "claude"),
    (r"gemini-[12]\b|gemini-(1|2)\.|gemini-(pro|ultra)$", "gemini-2.5"),
    (r"gemini", "gemini"),
    (r"grok", "grok"),
    (r"magistral|mistral|ministral|codestral|devstral|pixtral", "mistral"),
    (r"command-|c4ai", "cohere"),
    (r"sonar", "perplexity"),
    (r"amazon\.nova|nova-(2|pro|lite|micro|premier)", "nova"),
    (r"(^|/)(gpt|o\d|chatgpt|codex|computer-use)", "gpt"),
)

BOUND = re.compile(r"fable-?5[.-]1|(opus|sonnet|haiku)-?5[.-]5|5[.-]5-(opus|sonnet|haiku)")
_ADAPTIVE = re.compile(r"(opus|sonnet|haiku)-?(4[.-][6-9]|[5-9])|fable|mythos")

_THINKS = re.compile(r"(opus|sonnet|haiku)-?5|fable|mythos")
"""Claude models that think unless told not to: recorded answers of Sonnet 5 have thinking nobody asked for."""

LENIENT = frozenset({"fireworks", "together", "siliconflow", "nebius", "deepinfra", "sambanova"})
"""Aggregators of whom no refusal is known: reasoning is restored there, and nothing is made up on a miss."""

_CARRIERS: dict[str, Dialect] = {
    "groq": dialects.REASONING,
    "cerebras": dialects.REASONING,
    "together": dialects.REASONING,
    "vllm": dialects.REASONING,
    "ollama": dialects.REASONING,
    "openrouter": dialects.REASONING_DETAILS,
    "vercel-gateway": dialects.REASONING_DETAILS,
    "mistral": dialects.MISTRAL,
    "cohere": dialects.COHERE,
}
_OWN_FIELDS = frozenset({"groq", "cerebras", "mistral", "cohere"})
_MAKERS = frozenset({"kimi", "mimo", "glm", "minimax", "perplexity"})
_KNOWN_FIELDS = frozenset({*_OWN_FIELDS, *_MAKERS, "qwen", "ollama"})
"""Providers whose member for reasoning is documented. The others say in their answers what they use."""

_OWN: dict[str, str] = {
    "kimi": "kimi",
    "mimo": "mimo",
    "glm": "glm",
    "minimax": "minimax",
    "qwen": "qwen",
    "mistral": "mistral",
    "groq": "reasoning-field",
    "cohere": "cohere",
    "perplexity": "no-reasoning",
    "lmstudio": "reasoning-content",
    "vllm": "reasoning-field",
    "together": "reasoning-field",
    "fireworks": "reasoning-content",
    "siliconflow": "reasoning-content",
    "nebius": "reasoning-content",
    "deepinfra": "reasoning-content",
    "sambanova": "reasoning-content",
}


def resolve(target: Destination) -> Contract:
    """The built-in contract for a target."""
    provider = provider_of(target)
    family = family_of(target.model)
    found = with_tools(_by_format(target.format, provider, family, target.model.lower()), provider)
    if provider in LENIENT and found.kind == "presence":
        return replace(found, kind="advisory", ladder=())
    return found


_NOT_OPENAIS = ToolRange(
    lacks=(
        *("namespace", "custom", "tool_search", "web_search", "image_generation"),
        *("local_shell", "shell", "apply_patch", "computer", "computer_use_preview"),
    )
)
"""A Responses server that is not OpenAI's: none takes a namespace (openai/codex#32318, coder/coder#28656)."""

_SEARCHES = replace(_NOT_OPENAIS, lacks=tuple(kind for kind in _NOT_OPENAIS.lacks if kind != "web_search"))
_OPENAI_BEHIND = ("", "openai", "azure", "copilot")
_DEEPSEEK_SEARCHES = ToolRange(has=("web_search", "web_search_"))
"""DeepSeek's own harness asks its Messages API for web_search_20250305."""


def with_tools(contract: Contract, provider: str) -> Contract:
    """The contract with the tools that this server takes."""
    return replace(contract, tools=_tools(contract, provider))


def _tools(contract: Contract, provider: str) -> ToolRange:
    match contract.format:
        case "openai_responses" if contract.name in ("openai-responses", "azure-responses"):
            if provider in _OPENAI_BEHIND:
                return ALL_TOOLS
            return _SEARCHES if provider == "openrouter" else _NOT_OPENAIS
        case "openai_responses":
            if contract.name == "deepseek-responses":
                return FUNCTIONS_ONLY
            return _SEARCHES if contract.name == "xai-responses" or provider == "openrouter" else _NOT_OPENAIS
        case "anthropic_messages":
            if contract.name == "deepseek-anthropic":
                return _DEEPSEEK_SEARCHES
            return ALL_TOOLS if contract.name.startswith("anthropic") or not provider else FUNCTIONS_ONLY
        case "gemini_generate":
            return ALL_TOOLS
        case _:
            return ALL_TOOLS if contract.name == "openai-chat" else FUNCTIONS_ONLY


_SPLITS = re.compile(rb'"reasoning_split"\s*:\s*true')


def as_asked(contract: Contract, body: bytes) -> Contract:
    """The contract in the dialect that a request asks for: MiniMax splits reasoning from text if told to."""
    if contract.dialect is dialects.MINIMAX_TAGS and _SPLITS.search(body):
        return replace(contract, dialect=dialects.MINIMAX_SPLIT)
    return contract


def provider_of(target: Destination) -> str:
    """The provider by name, or by the host of its endpoint; empty if neither is known."""
    name = target.provider.lower()
    name = ALIASES.get(name, name)
    if name in _KNOWN:
        return name
    host = re.sub(r"^\w+://", "", target.endpoint).split("/")[0].split(":")[0].lower()
    return next((known for pattern, known in HOSTS if re.search(pattern, host)), "")


def family_of(model: str) -> str:
    """Who makes a model, by its name; empty if nobody knows."""
    lowered = model.lower()
    return next((family for pattern, family in MODELS if re.search(pattern, lowered)), "")


def _by_format(format: FormatName, provider: str, family: str, model: str) -> Contract:
    match format:
        case "anthropic_messages":
            return _anthropic(provider, family, model)
        case "openai_responses":
            return _responses(provider, family, model)
        case "gemini_generate":
            return BY_NAME["gemini-2.5" if family == "gemini-2.5" else "gemini"]
        case "bedrock_converse":
            return _bedrock(family, model)
        case "ollama_chat":
            return BY_NAME["ollama"]
        case "openai_chat" | "ai_sdk_ui":
            return _chat(provider, family)


def _anthropic(provider: str, family: str, model: str) -> Contract:
    own = {"deepseek": "deepseek-anthropic", "kimi": "kimi-anthropic", "mimo": "mimo-anthropic"}
    own |= {"minimax": "minimax-anthropic"}
    maker = provider if provider in own else family
    if maker in own:
        return BY_NAME[own[maker]]
    if family == "claude" or provider == "anthropic":
        found = BY_NAME[_claude(model)]
        return replace(found, thinks_by_default=True) if _THINKS.search(model) else found
    return replace(UNKNOWN, format="anthropic_messages", dialect=dialects.ANTHROPIC)


def _claude(model: str) -> str:
    if BOUND.search(model):
        return "anthropic-bound"
    return "anthropic-adaptive" if _ADAPTIVE.search(model) else "anthropic"


_NEVER_REASONS = re.compile(r"(^|/)(gpt-3|gpt-4|chatgpt-4|gpt-5(\.\d)?-chat)")
"""OpenAI's models that don't reason: asked for encrypted reasoning, they refuse ("Encrypted content is not supported
with this model"), and so they do where it is sent to them."""


def _responses(provider: str, family: str, model: str) -> Contract:
    found = _responses_row(provider, family)
    if found.name not in ("openai-responses", "azure-responses") or not _NEVER_REASONS.search(model):
        return found
    return replace(found, kind="forbidden", scope="nowhere", takes="nothing", ladder=())


def _responses_row(provider: str, family: str) -> Contract:
    if provider == "deepseek" or (family == "deepseek" and provider not in LENIENT):
        return BY_NAME["deepseek-responses"]
    if provider == "azure":
        return BY_NAME["azure-responses"]
    if provider == "xai" or family == "grok":
        return BY_NAME["xai-responses"]
    if provider == "openai" or family == "gpt":
        return BY_NAME["openai-responses"]
    return replace(UNKNOWN, format="openai_responses", dialect=dialects.OPENAI_RESPONSES)


def _bedrock(family: str, model: str) -> Contract:
    if family == "claude":
        claude = BY_NAME[_claude(model)]
        if claude.name == "anthropic":
            return BY_NAME["bedrock-claude"]
        return replace(claude, format="bedrock_converse", dialect=dialects.BEDROCK_CLAUDE)
    return BY_NAME["bedrock-forbidden" if family in ("nova", "deepseek-r1") else "bedrock-plain"]


def _chat(provider: str, family: str) -> Contract:
    match provider:
        case "deepseek":
            return BY_NAME[family if family in ("deepseek-r1", "deepseek-v3.2") else "deepseek"]
        case "gemini":
            return _gemini_chat(family)
        case "openai" | "azure":
            return BY_NAME["openai-chat"]
        case "xai":
            return BY_NAME["xai-chat"]
        case "cerebras":
            return BY_NAME["think-tags" if family == "glm" else "reasoning-field"]
        case "copilot":
            return BY_NAME["copilot"]
        case "openrouter" | "vercel-gateway":
            return _through_openrouter(family)
        case _:
            return _by_family(provider, family)


def _gemini_chat(family: str) -> Contract:
    chat = BY_NAME["gemini-chat"]
    return replace(chat, kind="advisory", scope="nowhere", ladder=()) if family == "gemini-2.5" else chat


def _through_openrouter(family: str) -> Contract:
    """OpenRouter passes its upstream's refusals on, and keeps every maker's reasoning in `reasoning_details`."""
    own = BY_NAME["openrouter"]
    strict = {"deepseek": "deepseek", "deepseek-v3.2": "deepseek-v3.2", "kimi": "kimi", "mimo": "mimo"}
    if family in strict:
        return replace(BY_NAME[strict[family]], dialect=own.dialect)
    return own


_FAMILY_ROWS = {
    "deepseek-v3.2": "deepseek-v3.2",
    "deepseek": "deepseek",
    "kimi": "kimi",
    "mimo": "mimo",
    "glm": "glm",
    "minimax": "minimax",
    "qwen": "qwen",
    "mistral": "mistral",
    "cohere": "cohere",
    "deepseek-r1": "reasoning-content",
    "gpt-oss": "reasoning-field",
    "gemini": "gemini-chat",
}


def _by_family(provider: str, family: str) -> Contract:
    """A provider that makes its models, one whose own rule is its field, an aggregator, or a host nobody knows."""
    row = _FAMILY_ROWS.get(family) if provider not in _OWN_FIELDS | _MAKERS else None
    found = BY_NAME[row or _OWN.get(provider, "unknown")]
    carrier = _CARRIERS.get(provider)
    if carrier is not None and found.name not in ("no-reasoning", "gemini-chat"):
        found = replace(found, dialect=carrier)
    if provider in _KNOWN_FIELDS:
        return found
    return replace(found, follows_answers=True, may_seal=provider in ("", "opencode-go"))


_KNOWN = frozenset(
    {
        *_OWN,
        *ALIASES.values(),
        *(name for _, name in HOSTS),
        "deepseek",
        "cerebras",
        "ollama",
        "openrouter",
        "opencode-go",
        "vercel-gateway",
    }
)
