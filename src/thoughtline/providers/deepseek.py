"""DeepSeek: text, in three formats. With tools, the reasoning of every turn must come back."""

from msgspec.structs import replace

from thoughtline.providers.contract import PRESENCE, Contract, Source, unverified
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.knobs import ALWAYS_THINKS, EVERY_EFFORT, THINKING_TYPE, Knob
from thoughtline.providers.refusals import says
from thoughtline.providers.row import Context, ModelRow, ProviderRow
from thoughtline.providers.shared import CONTENT_CONTRACT
from thoughtline.providers.sources import seen
from thoughtline.providers.tool_forms import ToolForms
from thoughtline.values.items import DEEPSEEK_V1
from thoughtline.values.options import ToolRange

_PAGE = "https://api-docs.deepseek.com/guides/thinking_mode"

DEEPSEEK = Dialect("deepseek", "reasoning_content", DEEPSEEK_V1, source=seen(_PAGE, "2026-11-16"))
DEEPSEEK_RESPONSES = Dialect(
    "deepseek_responses",
    "native",
    DEEPSEEK_V1,
    source=seen("pydantic-ai's recordings", "2026-11-16", "`reasoning` items with `reasoning_text`"),
)
DEEPSEEK_ANTHROPIC = Dialect(
    "deepseek_anthropic", "native", DEEPSEEK_V1, source=seen(_PAGE, "2026-11-16", "`thinking` blocks")
)

_PASS_BACK, _PASS_BACK_BLOCKS, _PASS_BACK_ITEMS = (
    says(
        "missing",
        "restore",
        f"The `<field:{field}>` in the thinking mode must be passed back to the API….",
        scope="all_with_tools",
        source=seen(report, "2026-11"),
    )
    for field, report in (
        ("reasoning_content", "opencode#24083, oai-compatible-copilot#215"),
        (r"content\[\]\.thinking", "9router#2397, DeepSeek-Reasonix#8902"),
        ("reasoning_text", "OmniRoute#10550"),
    )
)
_MISSING_AT = says(
    "missing",
    "restore",
    "Missing `<field:reasoning_content>` field in the assistant message at message index {index}…. For more "
    "information, please refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls",
    scope="calls_after_user",
    source=seen("DeepSeek-V3#1053, rig#1266, lobehub#11288", "2026-11"),
)
_UNWORDED = says("forbidden", "strip_field", "", source=unverified("nobody has a body of R1's refusal"))

_CHAT = Contract(
    "deepseek",
    "presence",
    DEEPSEEK,
    scope="all_with_tools",
    source=Source(
        _PAGE,
        "2026-11-16",
        "with tools, every assistant message's reasoning comes back; it makes low, high or max of every effort itself, "
        "and forces no tool while it thinks (rig's recording)",
    ),
    ladder=PRESENCE,
    thinks_by_default=True,
    knobs=(Knob("", "thinking_type", EVERY_EFFORT),),
    answers=(_PASS_BACK,),
    forces_no_tool_while_thinking=True,
)
_V32 = replace(
    _CHAT,
    name="deepseek-v3.2",
    scope="calls_after_user",
    source=Source(_PAGE, "2026-11-16", "as of 2025-12; DeepSeek's own encoder in SGLang"),
    thinks_by_default=False,
    knobs=(THINKING_TYPE,),
    answers=(_MISSING_AT,),
)
_R1 = Contract(
    "deepseek-r1",
    "forbidden",
    DEEPSEEK,
    takes="nothing",
    source=seen(
        "https://api-docs.deepseek.com/guides/reasoning_model",
        "2026-11-16",
        "as of 2025: reasoning_content in the input is a 400",
    ),
    thinks_by_default=True,
    knobs=(ALWAYS_THINKS,),
    answers=(_UNWORDED,),
)
_MESSAGES = replace(
    _CHAT,
    name="deepseek-anthropic",
    dialect=DEEPSEEK_ANTHROPIC,
    source=Source(
        _PAGE,
        "2026-11-16",
        "the same rule in Anthropic's format; signatures are not checked; its own harness asks for web_search_20250305",
    ),
    format="anthropic_messages",
    answers=(_PASS_BACK_BLOCKS,),
    tools=ToolRange(has=("web_search", "web_search_")),
)
RESPONSES = replace(
    _CHAT,
    name="deepseek-responses",
    dialect=DEEPSEEK_RESPONSES,
    source=Source(_PAGE, "2026-11-16", "the same rule in the Responses format; ids and handles are not checked"),
    format="openai_responses",
    knobs=(Knob("", "responses", EVERY_EFFORT),),
    answers=(_PASS_BACK_ITEMS,),
)

ROW = ProviderRow(
    name="deepseek",
    hosts=r"deepseek\.com$",
    models="deepseek",
    base_url="https://api.deepseek.com",
    source=seen("https://api-docs.deepseek.com", "2026-11", "its address and formats"),
    tool_forms=ToolForms(
        sees="(?!)",
        source=seen(
            "esengine/DeepSeek-Reasonix#7859", "2026-11", '"unknown variant `image_url`, expected `text`": no pictures'
        ),
    ),
    formats=("openai_chat", "openai_responses", "anthropic_messages"),
    bases={"anthropic_messages": "https://api.deepseek.com/anthropic"},
    paths={"openai_chat": "/chat/completions", "openai_responses": "/responses"},
    rules="own",
    rows=(
        ModelRow(
            models=r"deepseek[-_ ]?r1|deepseek-reasoner-2025",
            contracts=(_R1,),
            elsewhere=(CONTENT_CONTRACT,),
            source=unverified("R1 of 2025, and its open weights at other hosts"),
        ),
        ModelRow(
            models=r"deepseek[-_ ]?v3[.p]?2",
            contracts=(_V32,),
            source=seen(_PAGE, "2026-11-16", "V3.2, as of 2025-12"),
        ),
        ModelRow(contracts=(_CHAT, _MESSAGES, RESPONSES)),
    ),
    wants_back="always",
    wanted_models="deepseek",
    makes=(DEEPSEEK_V1,),
    example_model="deepseek-v4-pro",
    contexts=(
        Context("deepseek-v4", 1_000_000, seen("https://api-docs.deepseek.com/quick_start/pricing", "2026-11-16")),
    ),
    refusals=(_PASS_BACK, _PASS_BACK_BLOCKS, _PASS_BACK_ITEMS, _MISSING_AT),
)
