"""Facts that belong to no single provider: contracts of hosts of other makers' models, and of unknown servers."""

from __future__ import annotations

from msgspec.structs import replace

from thoughtline.providers.contract import Contract, Source, unverified
from thoughtline.providers.dialects import REASONING, REASONING_CONTENT
from thoughtline.providers.knobs import ANY_EFFORT, TO_HIGH, Knob
from thoughtline.providers.refusals import says
from thoughtline.providers.row import ModelRow, ProviderRow
from thoughtline.providers.sources import seen
from thoughtline.values.errors import FailureKind
from thoughtline.values.items import UNKNOWN_FORMAT
from thoughtline.values.options import ALL_TOOLS
from thoughtline.values.turns import FormatName

_VIOLATION = (
    r"<'messages.{index}' : for 'role:assistant' the following must be satisfied\[\(|(?='messages\.\d).{0,1500}?>"
    "'{message}' : property '%s' is unsupported…)]"
)
_VIOLATIONS = seen("jan#8136", "2026-11", "Groq says every violation, each in its brackets")
UNSUPPORTED_FIELD = says("forbidden", "strip_field", _VIOLATION % "{carrier}", source=_VIOLATIONS)
UNSUPPORTED_MEMBER = says("forbidden", "drop_member", _VIOLATION % "{member}", source=_VIOLATIONS)

CONTENT_CONTRACT = Contract(
    "reasoning-content",
    "advisory",
    REASONING_CONTENT,
    source=Source(
        "https://docs.fireworks.ai/guides/reasoning", "2026-11-16", "also SiliconFlow, DeepInfra, llama.cpp …"
    ),
    thinks_by_default=True,
    knobs=(ANY_EFFORT,),
)
FIELD_CONTRACT = replace(
    CONTENT_CONTRACT,
    name="reasoning-field",
    dialect=REASONING,
    source=Source(
        "https://inference-docs.cerebras.ai/capabilities/reasoning", "2026-11-16", "also Groq, Together, vLLM"
    ),
    knobs=(Knob("gpt-oss", "reasoning_effort", TO_HIGH, can_be_off=False), ANY_EFFORT),
    answers=(UNSUPPORTED_FIELD,),
    refuses_other_fields=True,
)
UNKNOWN = Contract(
    "unknown",
    "advisory",
    REASONING_CONTENT,
    source=unverified("a model we don't know: what the client sends is left alone"),
    follows_answers=True,
    may_seal=True,
)

_OTHERS = (
    says(
        "missing",
        "restore",
        "{at}assistant message with tool_calls must include `<field:reasoning_content>`",
        family="openai-chat",
        source=seen("Reasonix#6173", "2026-11", "a relay's own check"),
    ),
    says(
        "missing",
        "restore",
        "ThinkingMode: thinking, invalid message without <field:reasoning_content>/tool_calls",
        family="sglang",
        scope="calls_after_user",
        source=seen("sglang encoding_dsv32.py", "2026-11"),
    ),
    says(
        "thinking-last",
        "add_filler_text",
        "Expected '<field:content>' or 'tool_calls' (ref: <.{0,200}?>8367 & <.{0,200}?>12279)",
        family="llama.cpp",
        source=seen("llama.cpp common/chat.cpp", "2026-11"),
    ),
    says(
        "thinking-unsupported",
        "stop_asking",
        r"<[Tt]his model|(?:[Tt]he )?[Mm]odel \S{1,200}> does< not|n't> support <(?:extended )?><thinking|reasoning>"
        r"<(?! (?:effort|level|budget|summar))\b>",
        family="openai-chat",
        field="thinking",
        source=unverified("relays, of models that never think"),
    ),
    says(
        "foreign",
        "drop_item",
        "<(?:reasoning |The )?>`<field:encrypted_content>` {whose}was not issued to this caller",
        family="meta",
        source=seen("opencode#48741", "2026-11", "Meta's check of the caller, as seen through opencode zen"),
    ),
)

_FAILURES: dict[str, FailureKind] = {
    "overloaded": "overloaded",
    "engine_overloaded": "overloaded",
    "model_overloaded": "overloaded",
    "capacity_exceeded": "overloaded",
    "no_capacity": "overloaded",
    "service_unavailable": "overloaded",
    "model_not_ready": "overloaded",
    "too_many_requests": "busy",
    "internal_error": "broken",
    "internal_server_error": "broken",
    "provider_error": "broken",
}

UNLISTED = ProviderRow(
    name="",
    hosts="(?!)",
    base_url="",
    formats=(),
    rules="makers",
    rows=(),
    has_documented_field=False,
    may_seal=True,
    responses_tools=None,
    messages_tools=ALL_TOOLS,
    makes=(UNKNOWN_FORMAT,),
    refusals=_OTHERS,
    failures=_FAILURES,
    key_prefixes=("nvapi-", "hf_"),
    source=unverified("nothing is known of it; its words of failures are those of several servers and relays"),
)
"""An unlisted host."""


def open_host(name: str, hosts: str, base_url: str, *, formats: tuple[FormatName, ...], **facts: object) -> ProviderRow:
    """Return the row of a host of open models without known refusals; `facts` are its other members."""
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
