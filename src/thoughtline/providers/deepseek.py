"""DeepSeek: text, in three formats; with tools, the reasoning of every turn comes back."""

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

DEEPSEEK = Dialect("deepseek", "reasoning_content", DEEPSEEK_V1)
DEEPSEEK_RESPONSES = Dialect("deepseek_responses", "native", DEEPSEEK_V1)
DEEPSEEK_ANTHROPIC = Dialect("deepseek_anthropic", "native", DEEPSEEK_V1)

_PAGE = "https://api-docs.deepseek.com/guides/thinking_mode"

# DeepSeek-V3#1053, opencode#24083, 9router#2397 (Messages), OmniRoute#10550 (Responses), rig's recording (tool_choice).
_PASS_BACK, _PASS_BACK_BLOCKS, _PASS_BACK_ITEMS = (
    says(
        "missing",
        "restore",
        f"The `<field:{field}>` in the thinking mode must be passed back to the API….",
        scope="all_with_tools",
    )
    for field in ("reasoning_content", r"content\[\]\.thinking", "reasoning_text")
)
_MISSING_AT = says(
    "missing",
    "restore",
    "Missing `<field:reasoning_content>` field in the assistant message at message index {index}…. For more "
    "information, please refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls",
    scope="calls_after_user",
)
_UNWORDED = says("forbidden", "strip_field", "")  # nobody has a body of R1's refusal

_CHAT = Contract(
    "deepseek",
    "presence",
    DEEPSEEK,
    scope="all_with_tools",
    source=Source(_PAGE, "2026-11-16", "with tools, every assistant message's reasoning comes back"),
    ladder=PRESENCE,
    thinks_by_default=True,
    knobs=(Knob("", "thinking_type", EVERY_EFFORT),),  # it makes low, high or max of them itself
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
    source=unverified("Reasoning Model, as of 2025: reasoning_content in the input is a 400"),
    thinks_by_default=True,
    knobs=(ALWAYS_THINKS,),
    answers=(_UNWORDED,),
)
_MESSAGES = replace(
    _CHAT,
    name="deepseek-anthropic",
    dialect=DEEPSEEK_ANTHROPIC,
    source=Source(_PAGE, "2026-11-16", "the same rule in Anthropic's format; signatures are not checked"),
    format="anthropic_messages",
    answers=(_PASS_BACK_BLOCKS,),
    tools=ToolRange(has=("web_search", "web_search_")),  # DeepSeek's own harness asks for web_search_20250305
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
    # "unknown variant `image_url`, expected `text`" (esengine/DeepSeek-Reasonix#7859). 2026-11.
    tool_forms=ToolForms(sees="(?!)"),
    formats=("openai_chat", "openai_responses", "anthropic_messages"),
    bases={"anthropic_messages": "https://api.deepseek.com/anthropic"},
    paths={"openai_chat": "/chat/completions", "openai_responses": "/responses"},
    rules="own",
    rows=(
        ModelRow(
            models=r"deepseek[-_ ]?r1|deepseek-reasoner-2025",
            contracts=(_R1,),
            elsewhere=(CONTENT_CONTRACT,),
        ),
        ModelRow(models=r"deepseek[-_ ]?v3[.p]?2", contracts=(_V32,)),
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
