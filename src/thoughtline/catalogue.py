"""The providers that are built in, as rows: where each is, how it is asked, which formats it speaks.

A row says where; what a provider demands is its contract (`replay.detection`), how its bytes look is a format. The
addresses are those of the providers' own documentation, the international ones where there are several, in 2026-11.
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from thoughtline.replay.detection import ALIASES
from thoughtline.values.turns import FormatName

ContinuityWord = Literal["off", "handoff", "always"]
TagWord = Literal["off", "markers", "lift"]
ContentWord = Literal["native", "plain"]
Held = Literal["threads", "conversations"]
AuthStyle = Literal["bearer", "x-api-key", "x-goog-api-key", "api-key", "query", "none"]


_SECRET_NAMES = re.compile(r"auth|key|token|secret|passw|pwd|credential|cookie|session|signature|jwt|bearer", re.I)
_SECRET_VALUES = re.compile(
    r"(bearer|basic|token|apikey) \S|(sk|pk|rk|gsk|key|xai|hf|ghp|gho|ghs|pat|nvapi|r8|fw|tgp|csk|pplx)[-_]\w|"
    r"github_pat_|AIza|AKIA|eyJ",
    re.I,
)
_RANDOM = re.compile(r"[A-Za-z0-9+/_=]{24,}")


def looks_secret(name: str, value: str) -> bool:
    """Whether a header holds a credential: by its name, by how credentials of providers begin, or by looking random."""
    if not value.strip():
        return False
    if _SECRET_NAMES.search(name) or _SECRET_VALUES.match(value.strip()):
        return True
    runs = _RANDOM.findall(value)
    return any(re.search(r"[0-9]", run) and re.search(r"[A-Za-z]", run) for run in runs)


class Timeouts(Struct, frozen=True):
    """In seconds. `first_byte` is until the status line, `read` between two pieces of a body, `total` for all of it."""

    connect: float = 10.0
    first_byte: float = 600.0
    read: float = 300.0
    total: float = 3600.0


class Provider(Struct, frozen=True):
    """A row.

    `base_url` is what the provider's own SDK takes, empty where only settings can know it; `bases` are the addresses of
    formats that live elsewhere, `paths` what is appended where it is not the format's own path. Without `api_keys` the
    caller's own credential goes up. `contract` names a row of `replay.contracts` that holds whatever the model,
    `dialect` one of `providers`; both are None where detection decides. `continuity`, `tags` and `content` stand over
    what is set for all. `keeps` is what it holds of a conversation for clients that send only what is new.
    """

    name: str
    base_url: str
    formats: tuple[FormatName, ...]
    bases: dict[FormatName, str] = {}
    auth: AuthStyle = "bearer"
    api_keys: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    timeouts: Timeouts = Timeouts()
    contract: str | None = None
    dialect: str | None = None
    streams_only: bool = False
    paths: dict[FormatName, str] = {}
    continuity: ContinuityWord | None = None
    tags: TagWord | None = None
    content: ContentWord | None = None
    keeps: tuple[Held, ...] = ()

    @property
    def has_secrets(self) -> bool:
        """Whether whoever may ask it spends a credential of the gateway's own."""
        return bool(self.api_keys) or any(looks_secret(name, value) for name, value in self.headers.items())

    @property
    def needs_callers_key(self) -> bool:
        """Whether it can be asked only with a key that a caller brings: the gateway has none for it."""
        return self.auth != "none" and not self.has_secrets

    def __repr__(self) -> str:
        """Without keys and headers, which are secrets."""
        return f"Provider({self.name!r}, {self.base_url!r}, {len(self.api_keys)} keys)"


_CHAT: tuple[FormatName, ...] = ("openai_chat",)
_OPENAI: tuple[FormatName, ...] = ("openai_chat", "openai_responses")
_CHAT_AND_MESSAGES: tuple[FormatName, ...] = ("openai_chat", "anthropic_messages")
_ALL_THREE: tuple[FormatName, ...] = ("openai_chat", "openai_responses", "anthropic_messages")
_WITHOUT_VERSION: dict[FormatName, str] = {"openai_chat": "/chat/completions", "openai_responses": "/responses"}

# A face that serves only some of a provider's models, or of which no contract is known, is not listed: requests in that
# format are translated to one that serves them all. So Responses of Kimi, MiMo, MiniMax and Qwen. xAI calls its
# Messages face deprecated, and Responses carries its encrypted reasoning (docs.x.ai, Legacy & Deprecated).
_ROWS = (
    Provider(
        "deepseek",
        "https://api.deepseek.com",
        _ALL_THREE,
        bases={"anthropic_messages": "https://api.deepseek.com/anthropic"},
        paths=_WITHOUT_VERSION,
    ),
    Provider(
        "kimi",
        "https://api.moonshot.ai/v1",
        _CHAT_AND_MESSAGES,
        bases={"anthropic_messages": "https://api.moonshot.ai/anthropic"},
    ),
    Provider(
        "mimo",
        "https://api.xiaomimimo.com/v1",
        _CHAT_AND_MESSAGES,
        bases={"anthropic_messages": "https://api.xiaomimimo.com/anthropic"},
    ),
    Provider(
        "glm",
        "https://api.z.ai/api/paas/v4",
        _CHAT_AND_MESSAGES,
        bases={"anthropic_messages": "https://api.z.ai/api/anthropic"},
    ),
    Provider(
        "minimax",
        "https://api.minimax.io/v1",
        _CHAT_AND_MESSAGES,
        bases={"anthropic_messages": "https://api.minimax.io/anthropic"},
    ),
    Provider(
        "qwen",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        _CHAT_AND_MESSAGES,
        bases={"anthropic_messages": "https://dashscope-intl.aliyuncs.com/apps/anthropic"},
    ),
    # Beta `message-threads-2026-08-12`.
    Provider("anthropic", "https://api.anthropic.com", ("anthropic_messages",), auth="x-api-key", keeps=("threads",)),
    Provider("openai", "https://api.openai.com/v1", ("openai_responses", "openai_chat"), keeps=("conversations",)),
    # https://RESOURCE.openai.azure.com/openai/v1: the resource is the customer's own.
    Provider("azure", "", ("openai_responses", "openai_chat"), auth="api-key", keeps=("conversations",)),
    Provider(
        "gemini",
        "https://generativelanguage.googleapis.com",
        ("gemini_generate", "openai_chat"),
        bases={"openai_chat": "https://generativelanguage.googleapis.com/v1beta/openai"},
        auth="x-goog-api-key",
    ),
    Provider("xai", "https://api.x.ai/v1", ("openai_responses", "openai_chat")),
    Provider("openrouter", "https://openrouter.ai/api/v1", _ALL_THREE),
    Provider("mistral", "https://api.mistral.ai/v1", _CHAT),
    Provider("groq", "https://api.groq.com/openai/v1", _OPENAI),
    Provider("cerebras", "https://api.cerebras.ai/v1", _CHAT),
    Provider("fireworks", "https://api.fireworks.ai/inference/v1", _ALL_THREE),
    Provider("together", "https://api.together.xyz/v1", _CHAT),
    Provider("siliconflow", "https://api.siliconflow.com/v1", _CHAT_AND_MESSAGES),
    Provider("nebius", "https://api.tokenfactory.nebius.com/v1", _CHAT),
    Provider(
        "deepinfra",
        "https://api.deepinfra.com/v1/openai",
        _CHAT_AND_MESSAGES,
        bases={"anthropic_messages": "https://api.deepinfra.com/anthropic"},
    ),
    Provider("sambanova", "https://api.sambanova.ai/v1", _CHAT),
    # Cohere's own SDK takes the host; OpenAI's takes the compatibility face, whose answers OpenAI's clients can read.
    Provider(
        "cohere",
        "https://api.cohere.com",
        _CHAT,
        bases={"openai_chat": "https://api.cohere.ai/compatibility/v1"},
    ),
    Provider("perplexity", "https://api.perplexity.ai", _CHAT, paths=_WITHOUT_VERSION),
    # With a Bedrock API key: a request signed for another host can't be passed on. Another region: another base_url.
    Provider("bedrock", "https://bedrock-runtime.us-east-1.amazonaws.com", ("bedrock_converse",)),
    Provider("ollama", "http://127.0.0.1:11434", ("ollama_chat", *_ALL_THREE), auth="none"),
    Provider("vllm", "http://127.0.0.1:8000/v1", _ALL_THREE),
    Provider("lmstudio", "http://127.0.0.1:1234/v1", _ALL_THREE),
    Provider("copilot", "https://api.githubcopilot.com", _ALL_THREE, paths=_WITHOUT_VERSION),
    Provider("opencode-go", "https://opencode.ai/zen/go/v1", _CHAT_AND_MESSAGES),
)

PROVIDERS: dict[str, Provider] = {row.name: row for row in _ROWS}


def canonical_name(name: str) -> str:
    """A provider's name as its row has it: `moonshot` is `kimi`. A name that nobody knows stays as it is."""
    lowered = name.lower()
    return ALIASES.get(lowered, lowered)


def auth_for(provider: Provider, format: FormatName) -> AuthStyle:
    """How a provider wants to be shown its key in a format: the OpenAI faces of Google take a bearer token."""
    is_openai = format in _OPENAI
    return "bearer" if is_openai and provider.auth in ("x-goog-api-key", "x-api-key") else provider.auth
