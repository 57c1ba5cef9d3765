"""Zhipu's GLM, at Z.ai: text, not enforced."""

from thoughtline.providers.contract import Contract, Source
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.knobs import EVERY_EFFORT, Knob, Setting
from thoughtline.providers.row import Context, ModelRow, ProviderRow
from thoughtline.providers.sources import seen
from thoughtline.providers.tool_forms import ToolForms
from thoughtline.values.items import GLM_V1

_PAGE = "https://docs.z.ai/guides/capabilities/thinking-mode"

GLM = Dialect("glm", "reasoning_content", GLM_V1, source=seen(_PAGE, "2026-11-16"))

_KEEPS: tuple[Setting, ...] = ((("thinking", "clear_thinking"), False),)
_CHAT = Contract(
    "glm",
    "advisory",
    GLM,
    source=Source(_PAGE, "2026-11-16", "return it unmodified; unenforced"),
    thinks_by_default=True,
    knobs=(
        Knob(
            r"glm-(5\.([3-9]|\d\d)|[6-9]|\d\d)",
            "thinking_type",
            ("low", "high", "max"),
            can_be_off=False,
            keeps=_KEEPS,
            source=seen(
                "https://docs.z.ai/guides/capabilities/thinking", "2026-11", "from 5.3 on thinking can't be off"
            ),
        ),
        Knob(r"glm-5\.2", "thinking_type", EVERY_EFFORT, keeps=_KEEPS),
        Knob("", "thinking_type", keeps=_KEEPS),
    ),
)

ROW = ProviderRow(
    name="glm",
    key_variables=("ZAI_API_KEY", "ZHIPUAI_API_KEY", "GLM_API_KEY"),
    aliases=("zai", "zhipu", "z-ai"),
    hosts=r"(bigmodel\.cn|z\.ai)$",
    models="glm",
    base_url="https://api.z.ai/api/paas/v4",
    source=seen("https://docs.z.ai", "2026-11", "its address and formats"),
    tool_forms=ToolForms(
        sees=r"glm-\d+(\.\d+)?v",
        source=seen("https://docs.z.ai/guides/vlm", "2026-11", "pictures are for models whose names end in V"),
    ),
    formats=("openai_chat", "anthropic_messages"),
    bases={"anthropic_messages": "https://api.z.ai/api/anthropic"},
    rules="own",
    rows=(ModelRow(contracts=(_CHAT,)),),
    wanted_models="glm.{0,80}think",
    makes=(GLM_V1,),
    example_model="glm-5",
    contexts=(
        Context("glm-5.2", 1_048_576, seen("https://openrouter.ai/z-ai/glm-5.2", "2026-11-16")),
        Context("glm-5", 200_000, seen("https://vercel.com/ai-gateway/models/glm-5", "2026-11-16")),
    ),
)
