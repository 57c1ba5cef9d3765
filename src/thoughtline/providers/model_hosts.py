"""Hosts that serve models of other makers in Chat Completions; only their address and field are known.

Where no reasoning member is known, the host's answers show which one it is. None of these hosts is known to demand
reasoning.
"""

from __future__ import annotations

from thoughtline.providers.shared import open_host
from thoughtline.providers.sources import seen, unverified

_LISTED = seen("https://models.dev", "2026-07-02", "its address")
_ARK = seen("the documentation of Ark", "2026-11", "its address and formats")

VOLCENGINE = open_host(
    "volcengine",
    r"(volces|bytepluses)\.com$",
    "https://ark.cn-beijing.volces.com/api/v3",
    formats=("openai_chat",),
    aliases=("ark", "doubao"),
    key_variables=("ARK_API_KEY",),
    source=_ARK,
)
# At the same host. The plan has its own keys, and also serves Messages.
VOLCENGINE_CODING = open_host(
    "volcengine-coding",
    r"^(?:[\w-]+\.)*(?:volces|bytepluses)\.com(?::\d+)?/api/coding(?:/.*)?$",
    "https://ark.cn-beijing.volces.com/api/coding/v3",
    formats=("openai_chat", "anthropic_messages"),
    bases={"anthropic_messages": "https://ark.cn-beijing.volces.com/api/coding"},
    aliases=("ark-coding",),
    key_variables=("ARK_API_KEY",),
    source=_ARK,
)
TENCENT = open_host(
    "tencent",
    r"(tencentmaas\.com|lkeap\.cloud\.tencent\.com)$",
    "https://tokenhub.tencentmaas.com/v1",
    formats=("openai_chat",),
    aliases=("tokenhub", "hunyuan"),
    source=_LISTED,
)
QIANFAN = open_host(
    "qianfan",
    r"baidubce\.com$",
    "https://qianfan.baidubce.com/v2",
    formats=("openai_chat",),
    aliases=("baidu",),
    source=seen("reports of users", "2026-11-18", "its address"),
)
STEPFUN = open_host(
    "stepfun",
    r"stepfun\.(com|ai)$",
    "https://api.stepfun.com/v1",
    formats=("openai_chat",),
    source=_LISTED,
)
LONGCAT = open_host(
    "longcat",
    r"longcat\.chat$",
    "https://api.longcat.chat/openai/v1",
    formats=("openai_chat", "anthropic_messages"),
    bases={"anthropic_messages": "https://api.longcat.chat/anthropic"},
    source=seen("reports of users", "2026-11-18", "its addresses and formats"),
)
NVIDIA = open_host(
    "nvidia",
    r"nvidia\.com$",
    "https://integrate.api.nvidia.com/v1",
    formats=("openai_chat",),
    source=_LISTED,
)
HUGGINGFACE = open_host(
    "huggingface",
    r"huggingface\.co$",
    "https://router.huggingface.co/v1",
    formats=("openai_chat",),
    key_variables=("HF_TOKEN",),
    source=_LISTED,
)
CLOUDFLARE = open_host(
    "cloudflare",
    r"cloudflare\.com$",
    "",  # https://api.cloudflare.com/client/v4/accounts/ID/ai/v1, with the customer's own account
    formats=("openai_chat",),
    aliases=("workers-ai",),
    key_variables=("CLOUDFLARE_API_TOKEN",),
    source=unverified("its addresses, as its gateway relays to others"),
)
NOVITA = open_host(
    "novita",
    r"novita\.ai$",
    "https://api.novita.ai/openai",
    formats=("openai_chat",),
    source=_LISTED,
)
CHUTES = open_host(
    "chutes",
    r"chutes\.ai$",
    "https://llm.chutes.ai/v1",
    formats=("openai_chat",),
    source=_LISTED,
)
BASETEN = open_host(
    "baseten",
    r"baseten\.co$",
    "https://inference.baseten.co/v1",
    formats=("openai_chat",),
    source=_LISTED,
)
GITHUB_MODELS = open_host(
    "github-models",
    r"models\.github\.ai$",
    "https://models.github.ai/inference",
    formats=("openai_chat",),
    key_variables=("GITHUB_TOKEN",),
    source=_LISTED,
)
POE = open_host(
    "poe",
    r"poe\.com$",
    "https://api.poe.com/v1",
    formats=("openai_chat",),
    source=_LISTED,
)
LLMGATEWAY = open_host(
    "llmgateway",
    r"llmgateway\.io$",
    "https://api.llmgateway.io/v1",
    formats=("openai_chat",),
    source=_LISTED,
)

ROWS = (
    *(VOLCENGINE_CODING, VOLCENGINE, TENCENT, QIANFAN, STEPFUN, LONGCAT, NVIDIA, HUGGINGFACE, CLOUDFLARE),
    *(NOVITA, CHUTES, BASETEN, GITHUB_MODELS, POE, LLMGATEWAY),
)
