"""Which contract applies where."""

from __future__ import annotations

import pytest

from thoughtline.providers import CONTRACTS, PROVIDERS, maker_of
from thoughtline.replay.detection import host_of, resolve
from thoughtline.values.destination import Destination
from thoughtline.values.turns import FormatName

CHAT: FormatName = "openai_chat"
MESSAGES: FormatName = "anthropic_messages"
RESPONSES: FormatName = "openai_responses"

TABLE: list[tuple[str, str, str, FormatName, str]] = [
    ("deepseek", "", "deepseek-v4-pro", CHAT, "deepseek"),
    ("deepseek", "", "deepseek-reasoner", CHAT, "deepseek"),
    ("deepseek", "", "deepseek-chat", CHAT, "deepseek"),
    ("deepseek", "", "deepseek-v3.2", CHAT, "deepseek-v3.2"),
    ("deepseek", "", "deepseek-r1", CHAT, "deepseek-r1"),
    ("deepseek", "", "deepseek-flash", MESSAGES, "deepseek-anthropic"),
    ("deepseek", "", "deepseek-v4-pro", RESPONSES, "deepseek-responses"),
    ("kimi", "", "kimi-k2.6", CHAT, "kimi"),
    ("moonshot", "", "kimi-k3", CHAT, "kimi"),
    ("kimi", "", "kimi-for-coding", MESSAGES, "kimi-anthropic"),
    ("xiaomi-mimo", "", "mimo-v2.5-pro", CHAT, "mimo"),
    ("mimo", "", "mimo-v2.5", MESSAGES, "mimo-anthropic"),
    ("zai", "", "glm-5.2", CHAT, "glm"),
    ("minimax", "", "MiniMax-M3", CHAT, "minimax"),
    ("dashscope", "", "qwen3.7-max", CHAT, "qwen"),
    ("dashscope", "", "kimi-k2.6", CHAT, "kimi"),
    ("anthropic", "", "claude-opus-4-1", MESSAGES, "anthropic"),
    ("anthropic", "", "claude-sonnet-4-5-20250929", MESSAGES, "anthropic"),
    ("anthropic", "", "claude-opus-4-6", MESSAGES, "anthropic-adaptive"),
    ("anthropic", "", "claude-opus-5", MESSAGES, "anthropic-adaptive"),
    ("anthropic", "", "claude-opus-5-5", MESSAGES, "anthropic-bound"),
    ("anthropic", "", "claude-fable-5-1", MESSAGES, "anthropic-bound"),
    ("bedrock", "", "anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock_converse", "bedrock-claude"),
    ("bedrock", "", "us.deepseek.r1-v1:0", "bedrock_converse", "bedrock-forbidden"),
    ("bedrock", "", "us.amazon.nova-pro-v1:0", "bedrock_converse", "bedrock-forbidden"),
    ("bedrock", "", "openai.gpt-oss-120b-1:0", "bedrock_converse", "bedrock-plain"),
    ("google", "", "gemini-3-pro-preview", "gemini_generate", "gemini"),
    ("google", "", "gemini-2.5-flash", "gemini_generate", "gemini-2.5"),
    ("google", "", "gemini-3-flash", CHAT, "gemini-chat"),
    ("openai", "", "gpt-5.6", RESPONSES, "openai-responses"),
    ("openai", "", "o4-mini", RESPONSES, "openai-responses"),
    ("azure", "", "gpt-5", RESPONSES, "azure-responses"),
    ("xai", "", "grok-4.7", RESPONSES, "xai-responses"),
    ("xai", "", "grok-3-mini", CHAT, "xai-chat"),
    ("openai", "", "gpt-5", CHAT, "openai-chat"),
    ("openrouter", "", "google/gemini-3-pro", CHAT, "openrouter"),
    ("openrouter", "", "anthropic/claude-opus-5", CHAT, "openrouter"),
    ("openrouter", "", "deepseek/deepseek-v4", CHAT, "deepseek"),
    ("openrouter", "", "moonshotai/kimi-k2.6", CHAT, "kimi"),
    ("mistral", "", "magistral-medium", CHAT, "mistral"),
    ("groq", "", "openai/gpt-oss-120b", CHAT, "reasoning-field"),
    ("groq", "", "qwen/qwen3-32b", CHAT, "reasoning-field"),
    ("cerebras", "", "zai-glm-4.7", CHAT, "think-tags"),
    ("cerebras", "", "gpt-oss-120b", CHAT, "reasoning-field"),
    ("cohere", "", "command-a-reasoning", CHAT, "cohere"),
    ("perplexity", "", "sonar-reasoning", CHAT, "no-reasoning"),
    ("ollama", "", "qwen3:4b", "ollama_chat", "ollama"),
    ("copilot", "", "gemini-3-pro", CHAT, "copilot"),
    ("opencode-go", "", "kimi-k2.6", CHAT, "kimi"),
    ("siliconflow", "", "deepseek-ai/DeepSeek-V4", CHAT, "deepseek"),
    ("my-own", "https://api.deepseek.com/v1", "whatever", CHAT, "deepseek"),
    ("my-own", "https://llm.example.com", "kimi-k2-thinking", CHAT, "kimi"),
    ("my-own", "https://llm.example.com", "qwq-32b", CHAT, "qwen"),
    ("my-own", "https://llm.example.com", "qwen3-235b-a22b-thinking", CHAT, "qwen"),
    ("my-own", "https://llm.example.com", "glm-4.6-thinking", CHAT, "glm"),
    ("my-own", "https://llm.example.com", "mimo-v2-flash", CHAT, "mimo"),
    ("my-own", "https://llm.example.com", "somebody/new-model", CHAT, "unknown"),
    ("my-own", "https://llm.example.com", "somebody/new-model", MESSAGES, "unknown"),
    ("my-own", "https://llm.example.com", "somebody/new-model", RESPONSES, "unknown"),
]


@pytest.mark.parametrize(("provider", "endpoint", "model", "wire", "expected"), TABLE)
def test_contract_of(provider: str, endpoint: str, model: str, wire: FormatName, expected: str) -> None:
    """Provider, host, model and format determine the contract."""
    assert resolve(Destination(provider, endpoint, model, wire)).name == expected


@pytest.mark.parametrize("provider", ["siliconflow", "nebius", "deepinfra", "sambanova", "fireworks", "together"])
def test_aggregators_restore_and_make_nothing_up(provider: str) -> None:
    """These have no known refusals: a strict model's reasoning is restored there, and a miss gets no filler."""
    contract = resolve(Destination(provider, "", "deepseek-v4", CHAT))
    assert contract.kind == "advisory"
    assert contract.takes == "text"
    assert contract.ladder == ()


def test_an_unknown_model_is_left_alone() -> None:
    """Nothing is required or forbidden for it."""
    contract = resolve(Destination("", "", "brand-new", CHAT))
    assert (contract.kind, contract.scope, contract.takes, contract.ladder) == ("advisory", "nowhere", "text", ())


@pytest.mark.parametrize(("alias", "name"), [(alias, row.name) for row in PROVIDERS for alias in row.aliases])
def test_aliases(alias: str, name: str) -> None:
    """A provider has several names."""
    assert host_of(Destination(alias, "", "", CHAT)).name == name


def test_a_host_is_matched_at_its_end_only() -> None:
    """A host that only contains another's name does not match."""
    assert host_of(Destination("", "https://api.deepseek.com.evil.example/v1", "", CHAT)).name == ""
    assert host_of(Destination("", "https://API.DeepSeek.com:443/v1", "", CHAT)).name == "deepseek"
    assert host_of(Destination("", "https://evil.example/volces.com/api/coding", "", CHAT)).name == ""
    assert (
        host_of(Destination("", "https://ark.cn-beijing.volces.com/api/coding/v3", "", CHAT)).name
        == "volcengine-coding"
    )
    assert all(row.hosts.endswith("$") or row.hosts == "(?!)" for row in PROVIDERS)


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://r.services.ai.azure.com/anthropic", "azure-foundry"),
        ("https://r.services.ai.azure.com/openai/v1", "azure"),
        ("https://r.openai.azure.com/openai/v1", "azure"),
        ("https://r.openai.azure.com", "azure"),
        ("https://evil.example/r.openai.azure.com/openai", ""),
        ("https://gateway.ai.cloudflare.com/v1/account/gateway/anthropic", "anthropic"),
        ("https://gateway.ai.cloudflare.com/v1/account/gateway/grok/v1", "xai"),
        ("https://gateway.ai.cloudflare.com/v1/account/gateway/google-ai-studio", "gemini"),
        ("https://gateway.ai.cloudflare.com/v1/account/gateway/workers-ai", "cloudflare"),
        ("https://gateway.ai.cloudflare.com/v1/account/gateway/compat", "cloudflare"),
        ("https://ark.ap-southeast.bytepluses.com/api/v3", "volcengine"),
    ],
)
def test_an_address_that_several_share(address: str, name: str) -> None:
    """Its path decides."""
    assert host_of(Destination("", address, "", CHAT)).name == name


def test_every_row_has_its_source_and_its_format() -> None:
    """Every row needs a source."""
    assert all(contract.source.says for contract in CONTRACTS.values())
    assert all(bool(contract.source.link) == bool(contract.source.day) for contract in CONTRACTS.values())
    assert maker_of("") is None


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        *((name, "anthropic") for name in ("claude-2.1", "claude-3-7-sonnet@20250219", "claude-opus-4-20250514")),
        *((name, "anthropic") for name in ("claude-4-sonnet", "claude-haiku-4-5@20251001", "claude-sonnet-4.5")),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic"),
        *((name, "anthropic-adaptive") for name in ("claude-opus-4-6[1m]", "claude-opus-4.8", "claude-opus-5")),
        *((name, "anthropic-adaptive") for name in ("claude-sonnet-5-20260629", "claude-fable-5", "claude-mythos-5")),
        *((name, "anthropic-bound") for name in ("claude-fable-5-1", "claude-mythos-5-1", "claude-opus-5-5[1m]")),
        *((name, "anthropic-bound") for name in ("claude-5.5-opus", "global.anthropic.claude-haiku-5-5-v1:0")),
        *((name, "anthropic-bound") for name in ("claude-fable-5-3", "claude-opus-6", "claude-sonnet-6-20270301")),
        *((name, "anthropic-bound") for name in ("claude-opus-5-10", "claude-lyric-1", "claude-haiku-5-6@20270101")),
    ],
)
def test_generations_of_claude(model: str, expected: str) -> None:
    """Versions decide, in every spelling of a name; an unknown one is of the newest generation."""
    found = resolve(Destination("anthropic", "https://api.anthropic.com", model, "anthropic_messages"))
    assert found.name == expected
    if expected == "anthropic-bound":
        assert resolve(Destination("bedrock", "", model, "bedrock_invoke")).binds_chain
