"""Alibaba's Qwen, at Model Studio (DashScope), which also serves models of other makers: text, not enforced."""

from msgspec.structs import replace

from thoughtline.providers.contract import Contract, Source
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.knobs import Knob
from thoughtline.providers.row import ModelRow, ProviderRow
from thoughtline.providers.sources import seen
from thoughtline.values.items import QWEN_V1

_PAGE = "https://www.alibabacloud.com/help/en/model-studio/deep-thinking"

QWEN = Dialect("qwen", "reasoning_content", QWEN_V1, source=seen(_PAGE, "2026-11-16"))

_CHAT = Contract(
    "qwen",
    "advisory",
    QWEN,
    source=Source(
        _PAGE,
        "2026-11-16",
        "used with preserve_thinking, never enforced; from Qwen3.5 on it thinks by default "
        "(cloud.tencent.com/document/product/1823/132247), and so do open weights from Qwen3 on (qwen.readthedocs.io)",
    ),
    thinks_by_default=True,
    knobs=(
        Knob(
            r"qwen-?(3\.([6-9]|\d\d)|([4-9]|\d\d)(?![\db]))", "enable_thinking", keeps=((("preserve_thinking",), True),)
        ),
        Knob("", "enable_thinking"),
    ),
)

ROW = ProviderRow(
    name="qwen",
    key_variables=("DASHSCOPE_API_KEY", "QWEN_API_KEY"),
    aliases=("dashscope", "alibaba"),
    hosts=r"aliyuncs\.com$",
    models="qwq|qwen",
    base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    formats=("openai_chat", "anthropic_messages"),
    bases={"anthropic_messages": "https://dashscope-intl.aliyuncs.com/apps/anthropic"},
    rules="makers",
    rows=(
        ModelRow(
            models=r"qwen-?([12](?!\d)|3\.[0-4](?!\d)|3(?![\d.:]|-\d)|(max|plus|turbo|flash|long|vl)\b)|instruct|coder",
            contracts=(replace(_CHAT, thinks_by_default=False),),
            source=seen(_PAGE, "2026-11-19", "hosted models before Qwen3.5 think if asked"),
        ),
        ModelRow(contracts=(_CHAT,)),
    ),
    wanted_models="qwq|qwen.{0,80}think",
    makes=(QWEN_V1,),
    example_model="qwen3.7-max",
    source=seen(
        "help.aliyun.com/en/model-studio",
        "2026-11",
        "its address and formats; words of failures: error-code-start",
    ),
    failures=dict.fromkeys(
        ("throttling", "throttling.ratequota", "throttling.allocationquota", "limit_burst_rate"), "busy"
    ),
)
