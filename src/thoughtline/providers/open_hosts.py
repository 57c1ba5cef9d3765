"""Hosts that serve open models of others, and of whom little else is known: one row each."""

from __future__ import annotations

from msgspec.structs import replace

from thoughtline.providers.dialects import REASONING
from thoughtline.providers.refusals import says
from thoughtline.providers.row import ModelRow, ProviderRow
from thoughtline.providers.shared import CONTENT_CONTRACT, FIELD_CONTRACT
from thoughtline.values.turns import FormatName


def _open_host(
    name: str, hosts: str, base_url: str, *, formats: tuple[FormatName, ...], **facts: object
) -> ProviderRow:
    """A host of open models, of whom no refusal is known, with what else is true of it."""
    row = ProviderRow(
        name=name,
        hosts=hosts,
        base_url=base_url,
        formats=formats,
        rules="makers",
        rows=(ModelRow(contracts=(CONTENT_CONTRACT,)),),
        wants_back="always",
        has_documented_field=False,
        is_lenient=True,
    )
    return replace(row, **facts)


FIREWORKS = _open_host(
    "fireworks",
    r"fireworks\.ai$",
    "https://api.fireworks.ai/inference/v1",
    formats=("openai_chat", "openai_responses", "anthropic_messages"),
    key_prefixes=("fw_",),
    refusals=(says("forbidden", "drop_member", "Extra inputs are not permitted, field: '{element_member}'"),),
)
# Reasoning in `reasoning`.
TOGETHER = _open_host(
    "together",
    r"together\.(ai|xyz)$",
    "https://api.together.xyz/v1",
    formats=("openai_chat",),
    rows=(ModelRow(contracts=(FIELD_CONTRACT,)),),
    dialect=REASONING,
)
SILICONFLOW = _open_host(
    "siliconflow",
    r"siliconflow\.(cn|com)$",
    "https://api.siliconflow.com/v1",
    formats=("openai_chat", "anthropic_messages"),
)
NEBIUS = _open_host(
    "nebius", r"(nebius\.(ai|com))$", "https://api.tokenfactory.nebius.com/v1", formats=("openai_chat",)
)
DEEPINFRA = _open_host(
    "deepinfra",
    r"deepinfra\.com$",
    "https://api.deepinfra.com/v1/openai",
    formats=("openai_chat", "anthropic_messages"),
    key_variables=("DEEPINFRA_API_KEY", "DEEPINFRA_TOKEN"),
    bases={"anthropic_messages": "https://api.deepinfra.com/anthropic"},
)
SAMBANOVA = _open_host("sambanova", r"sambanova\.ai$", "https://api.sambanova.ai/v1", formats=("openai_chat",))
# A server of one's own, which hands `reasoning` to the model's template.
VLLM = _open_host(
    "vllm",
    "(?!)",
    "http://127.0.0.1:8000/v1",
    formats=("openai_chat", "openai_responses", "anthropic_messages"),
    rows=(ModelRow(contracts=(FIELD_CONTRACT,)),),
    dialect=REASONING,
    wants_back="by model",
    is_lenient=False,
)
# A server of one's own.
LMSTUDIO = _open_host(
    "lmstudio",
    "(?!)",
    "http://127.0.0.1:1234/v1",
    formats=("openai_chat", "openai_responses", "anthropic_messages"),
    wants_back="by model",
    is_lenient=False,
)
# Its Go plan: whoever serves them.
OPENCODE_GO = _open_host(
    "opencode-go",
    r"opencode\.ai$",
    "https://opencode.ai/zen/go/v1",
    formats=("openai_chat", "anthropic_messages"),
    rows=(),
    key_variables=("OPENCODE_API_KEY",),
    may_seal=True,
    is_lenient=False,
)
