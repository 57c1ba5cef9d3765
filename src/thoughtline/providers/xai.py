"""xAI's Grok: encrypted items that are checked but never required."""

from thoughtline.providers.contract import Contract, Source
from thoughtline.providers.dialects import REASONING_CONTENT, Dialect
from thoughtline.providers.knobs import ALWAYS_THINKS, TO_HIGH, Knob
from thoughtline.providers.refusals import says
from thoughtline.providers.row import SEARCHES, Door, ModelRow, ProviderRow
from thoughtline.providers.sources import seen
from thoughtline.values.items import BEDROCK_XAI_RESPONSES_V1, XAI_RESPONSES_V1

_PAGE = "https://docs.x.ai/developers/model-capabilities/text/best-practices"

XAI_RESPONSES = Dialect("xai_responses", "native", XAI_RESPONSES_V1, source=seen(_PAGE, "2026-11-16"))

_UNDECIPHERED = says(
    "foreign",
    "strip_seal",
    "Could not decrypt the provided ~<field:encrypted_content>~…. Ensure the value is the unmodified encrypted_content "
    "from a previous response.",
    also=("altered", "truncated"),
    source=seen("sub2api#4535", "2026-11"),
)

_MEASURED = seen(
    "measured by users",
    "2026-09-30",
    "the 4.20 line, Grok 4, its fast ones and those for code refuse an effort; 4.3 has `none`",
)
_NO_EFFORT = Knob(r"grok-([123]\b|4\.20|4(?!\.)|code|build)", "no_knob", can_be_off=False, source=_MEASURED)

_RESPONSES = Contract(
    "xai-responses",
    "authenticity",
    XAI_RESPONSES,
    takes="own",
    source=Source(
        _PAGE, "2026-11-16", "never required; ciphertext is verified, summary must be there; Context compaction"
    ),
    thinks_by_default=True,
    only_when_thinking=False,
    format="openai_responses",
    tools=SEARCHES.having("compaction"),
    knobs=(
        _NO_EFFORT,
        Knob(r"grok-4\.3(?!\d)", "responses", (*TO_HIGH, "xhigh"), source=_MEASURED),
        Knob("", "responses", (*TO_HIGH, "xhigh"), can_be_off=False),
    ),
    answers=(_UNDECIPHERED,),
)
_CHAT = Contract(
    "xai-chat",
    "advisory",
    REASONING_CONTENT,
    source=Source(_PAGE, "2026-11-16", "gives reasoning_content and demands nothing; deprecated"),
    thinks_by_default=True,
    knobs=(Knob("grok-3-mini", "reasoning_effort", ("low", "high"), can_be_off=False), _NO_EFFORT, ALWAYS_THINKS),
)

ROW = ProviderRow(
    name="xai",
    traced_as="x_ai",
    aliases=("x-ai", "grok"),
    hosts=r"x\.ai$",
    models="grok",
    base_url="https://api.x.ai/v1",
    key_prefixes=("xai-",),
    formats=("openai_responses", "openai_chat"),
    rules="own",
    rows=(
        ModelRow(
            contracts=(_RESPONSES, _CHAT),
            elsewhere=(_RESPONSES,),
        ),
    ),
    makes=(XAI_RESPONSES_V1, BEDROCK_XAI_RESPONSES_V1),
    doors=(
        Door(
            comes_in="openai_chat",
            goes_up="openai_responses",
            models="grok",
            but=r"grok-(beta|vision|image|imagine|[123]\b)|non-reasoning",
            needs="tools",
            source=seen(_PAGE, "2026-11", "Chat has no field for encrypted reasoning"),
        ),
    ),
    has_websocket=True,
    source=seen(
        "https://docs.x.ai",
        "2026-11-16",
        "its address and formats; WebSocket Mode; its Messages API is deprecated (Legacy & Deprecated)",
    ),
    example_model="grok-4.7",
    refusals=(
        _UNDECIPHERED,
        says(
            "missing",
            "add_filler_text",
            "Could not decode the compaction blob",
            field="summary",
            source=seen("grok2api PR#689", "2026-11"),
        ),
    ),
)
