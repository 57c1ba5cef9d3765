"""Hosts that serve models of others in Chat Completions, of which only address and field are known.

Addresses and the member for reasoning are those of models.dev, of 2026-07-02, unless a row says otherwise. Where it
names no member, the host's answers say which it is. No host is known to demand reasoning by itself.
"""

from __future__ import annotations

from thoughtline.providers.shared import open_host

# docs of Ark, 2026-11.
VOLCENGINE = open_host(
    "volcengine",
    r"(volces|bytepluses)\.com$",
    "https://ark.cn-beijing.volces.com/api/v3",
    formats=("openai_chat",),
    aliases=("ark", "doubao"),
    key_variables=("ARK_API_KEY",),
)
# At the same host; the plan has keys of its own, and Messages besides.
VOLCENGINE_CODING = open_host(
    "volcengine-coding",
    r"^(?:[\w-]+\.)*(?:volces|bytepluses)\.com(?::\d+)?/api/coding(?:/.*)?$",
    "https://ark.cn-beijing.volces.com/api/coding/v3",
    formats=("openai_chat", "anthropic_messages"),
    bases={"anthropic_messages": "https://ark.cn-beijing.volces.com/api/coding"},
    aliases=("ark-coding",),
    key_variables=("ARK_API_KEY",),
)
TENCENT = open_host(
    "tencent",
    r"(tencentmaas\.com|lkeap\.cloud\.tencent\.com)$",
    "https://tokenhub.tencentmaas.com/v1",
    formats=("openai_chat",),
    aliases=("tokenhub", "hunyuan"),
)
QIANFAN = open_host(
    "qianfan",
    r"baidubce\.com$",
    "https://qianfan.baidubce.com/v2",
    formats=("openai_chat",),
    aliases=("baidu",),
)
STEPFUN = open_host("stepfun", r"stepfun\.(com|ai)$", "https://api.stepfun.com/v1", formats=("openai_chat",))
LONGCAT = open_host(
    "longcat",
    r"longcat\.chat$",
    "https://api.longcat.chat/openai/v1",
    formats=("openai_chat", "anthropic_messages"),
    bases={"anthropic_messages": "https://api.longcat.chat/anthropic"},
)
NVIDIA = open_host("nvidia", r"nvidia\.com$", "https://integrate.api.nvidia.com/v1", formats=("openai_chat",))
HUGGINGFACE = open_host(
    "huggingface",
    r"huggingface\.co$",
    "https://router.huggingface.co/v1",
    formats=("openai_chat",),
    key_variables=("HF_TOKEN",),
)
CLOUDFLARE = open_host(
    "cloudflare",
    r"cloudflare\.com$",
    "",  # https://api.cloudflare.com/client/v4/accounts/ID/ai/v1: the account is the customer's own.
    formats=("openai_chat",),
    aliases=("workers-ai",),
    key_variables=("CLOUDFLARE_API_TOKEN",),
)
NOVITA = open_host("novita", r"novita\.ai$", "https://api.novita.ai/openai", formats=("openai_chat",))
CHUTES = open_host("chutes", r"chutes\.ai$", "https://llm.chutes.ai/v1", formats=("openai_chat",))
BASETEN = open_host("baseten", r"baseten\.co$", "https://inference.baseten.co/v1", formats=("openai_chat",))
GITHUB_MODELS = open_host(
    "github-models",
    r"models\.github\.ai$",
    "https://models.github.ai/inference",
    formats=("openai_chat",),
    key_variables=("GITHUB_TOKEN",),
)
POE = open_host("poe", r"poe\.com$", "https://api.poe.com/v1", formats=("openai_chat",))
LLMGATEWAY = open_host("llmgateway", r"llmgateway\.io$", "https://api.llmgateway.io/v1", formats=("openai_chat",))

ROWS = (
    *(VOLCENGINE_CODING, VOLCENGINE, TENCENT, QIANFAN, STEPFUN, LONGCAT, NVIDIA, HUGGINGFACE, CLOUDFLARE),
    *(NOVITA, CHUTES, BASETEN, GITHUB_MODELS, POE, LLMGATEWAY),
)
