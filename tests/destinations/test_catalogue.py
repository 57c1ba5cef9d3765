"""The built-in providers: every name of the design, addresses that detection knows, faces that contracts know."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from thoughtline import providers
from thoughtline.destinations.catalogue import PROVIDERS, Provider, auth_for, looks_secret
from thoughtline.formats import FORMATS
from thoughtline.providers import canonical_name
from thoughtline.replay.detection import host_of, resolve
from thoughtline.values.destination import Destination

NAMES = (
    "deepseek kimi mimo glm minimax qwen anthropic openai azure vertex code-assist antigravity gemini xai openrouter "
    "vercel-gateway mistral groq cerebras fireworks together siliconflow nebius deepinfra sambanova cohere perplexity "
    "bedrock ollama llamacpp vllm lmstudio copilot opencode-go command-code meta azure-foundry bedrock-mantle "
    "volcengine-coding volcengine tencent qianfan "
    "stepfun longcat nvidia huggingface cloudflare novita chutes baseten github-models poe llmgateway"
)
LOCAL = {"ollama", "llamacpp", "vllm", "lmstudio"}
PUBLIC = [row for row in PROVIDERS.values() if row.name not in LOCAL and row.base_url]


def test_every_provider_is_built_in() -> None:
    """With no file at all, each of these names works."""
    assert " ".join(PROVIDERS) == NAMES


@pytest.mark.parametrize("row", PUBLIC, ids=lambda row: row.name)
def test_a_public_provider_is_known_by_its_host_too(row: Provider) -> None:
    """A row's URL under an unknown name is detected as that row: rows and detection agree."""
    for base in (row.base_url, *row.bases.values()):
        assert host_of(Destination("", base, "", "openai_chat")).name == row.name


@pytest.mark.parametrize("row", PROVIDERS.values(), ids=lambda row: row.name)
def test_addresses_are_encrypted_or_local(row: Provider) -> None:
    """A credential goes over TLS, or no further than this machine; no address has a trailing slash or a query."""
    for base in (row.base_url, *row.bases.values()):
        parts = urlsplit(base)
        assert (parts.scheme == "https") is (row.name not in LOCAL) or not base
        assert parts.hostname == "127.0.0.1" or row.name not in LOCAL
        assert not base.endswith("/")
        assert not parts.query


@pytest.mark.parametrize("row", PROVIDERS.values(), ids=lambda row: row.name)
def test_every_face_is_one_we_speak(row: Provider) -> None:
    """A listed format is one that can be read and written, listed once, and other addresses are of listed formats."""
    assert row.formats
    assert len(set(row.formats)) == len(row.formats)
    assert all(name in FORMATS for name in row.formats)
    assert set(row.bases) <= set(row.formats)


@pytest.mark.parametrize("name", ["deepseek", "kimi", "mimo"])
def test_strict_providers_are_strict_in_every_face(name: str) -> None:
    """No face of a provider that refuses is listed without a contract that says so."""
    for api in PROVIDERS[name].formats:
        contract = resolve(Destination(name, PROVIDERS[name].base_url, f"{name}-v4", api))
        assert contract.is_strict, api


@pytest.mark.parametrize(("alias", "name"), [(alias, row.name) for row in providers.PROVIDERS for alias in row.aliases])
def test_aliases(alias: str, name: str) -> None:
    """Another name of a provider, in any case, is its own name, and that one has a row."""
    assert canonical_name(alias.upper()) == name
    assert name in PROVIDERS


def test_an_unknown_name_stays() -> None:
    """Providers that settings add keep their names."""
    assert canonical_name("my-vllm") == "my-vllm"


def test_the_key_goes_where_the_face_wants_it() -> None:
    """Google's OpenAI face takes a bearer token, its own face Google's header."""
    gemini, anthropic = PROVIDERS["gemini"], PROVIDERS["anthropic"]
    assert auth_for(gemini, "gemini_generate") == "x-goog-api-key"
    assert auth_for(gemini, "openai_chat") == "bearer"
    assert auth_for(anthropic, "anthropic_messages") == "x-api-key"
    assert auth_for(PROVIDERS["azure"], "openai_responses") == "api-key"


SECRETS = [
    ("authorization", "Bearer x"),
    ("Authorization", "x"),
    ("x-api-key", "x"),
    ("ocp-apim-subscription-key", "x"),
    ("cf-access-client-secret", "x"),
    ("x-auth", "x"),
    ("cookie", "a=b"),
    ("x-custom", "Bearer x"),
    ("x-custom", "Basic dTpw"),
    ("x-custom", "sk-1"),
    ("x-custom", "ghp_abc"),
    ("x-custom", "eyJhbGciOiJIUzI1NiJ9.e30.x"),
    ("x-custom", "0123456789abcdef0123456789abcdef"),
    ("helicone-property", "AbCdEf0123456789AbCdEf0123456789"),
]
PLAIN = [
    ("x-team", "blue"),
    ("http-referer", "https://example.com/a/path/that/is/rather/long"),
    ("x-title", "My application of the year 2026"),
    ("user-agent", "claude-cli/2.0.14 (external, cli)"),
    ("anthropic-beta", "interleaved-thinking-2025-05-14,context-1m-2025-08-07"),
    ("anthropic-version", "2023-06-01"),
    ("x-region", "eu-central-1"),
    ("authorization", ""),
    ("x-request-id", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
]


@pytest.mark.parametrize(("name", "value"), SECRETS)
def test_headers_that_hold_a_credential(name: str, value: str) -> None:
    """By name, by how credentials begin, or by looking random: then there is something to protect."""
    assert looks_secret(name, value)
    assert Provider("p", "https://p.example", ("openai_chat",), headers={name: value}).has_secrets


@pytest.mark.parametrize(("name", "value"), PLAIN)
def test_headers_that_hold_none(name: str, value: str) -> None:
    """What programs say of themselves."""
    assert not looks_secret(name, value)
    assert not Provider("p", "https://p.example", ("openai_chat",), headers={name: value}).has_secrets


def test_no_built_in_provider_has_secrets() -> None:
    """They come with settings alone."""
    assert not any(row.has_secrets for row in PROVIDERS.values())


OTHER_ADDRESSES = {
    "volcengine": "ark.cn-beijing.volces.com/api/v3",
    "volcengine-coding": "ark.cn-beijing.volces.com/api/coding/v1",
    "tencent": "api.lkeap.cloud.tencent.com/coding/v3",
    "stepfun": "api.stepfun.ai/step_plan/v1",
    "longcat": "api.longcat.chat/anthropic/v1",
    "cloudflare": "gateway.ai.cloudflare.com/v1/ACCOUNT/GATEWAY/PROVIDER",
    "azure-foundry": "RESOURCE.services.ai.azure.com/anthropic",
    "bedrock-mantle": "bedrock-mantle.eu-west-1.api.aws/anthropic",
}


@pytest.mark.parametrize("name", OTHER_ADDRESSES)
def test_a_provider_is_known_at_its_other_addresses(name: str) -> None:
    """Plans, regions and resources of customers have addresses of their own."""
    assert host_of(Destination("", f"https://{OTHER_ADDRESSES[name]}", "", "openai_chat")).name == name
