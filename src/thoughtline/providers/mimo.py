"""Xiaomi's MiMo: text, on every turn that calls a tool."""

from msgspec.structs import replace

from thoughtline.providers.contract import PRESENCE, Contract, Source
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.knobs import THINKING_TYPE
from thoughtline.providers.refusals import says
from thoughtline.providers.row import ModelRow, ProviderRow
from thoughtline.providers.sources import OWN_PAGES, seen
from thoughtline.values.items import MIMO_V1

_NOTICE = "https://juejin.cn/post/7638845791750864938"

MIMO = Dialect("mimo", "reasoning_content", MIMO_V1, source=seen(_NOTICE, "2026-11-16"))
MIMO_ANTHROPIC = Dialect(
    "mimo_anthropic",
    "native",
    MIMO_V1,
    source=seen("pi#4507", "2026-11-16", "`thinking` blocks that never have a signature of Anthropic's"),
)

_PASS_BACK = says(
    "missing",
    "restore",
    r"Param Incorrect: The ~<field:reasoning_content|content\[\]\.thinking|reasoning_text>~ in the thinking mode must "
    "be passed back to the API….",
    scope="all_with_tools",
    source=seen(
        "forgecode#3347, 9router#1321",
        "2026-11",
        "DeepSeek's sentence in `param`, which the reader of bodies joins to the message; that plain turns are checked "
        "too is reported, so it is about every turn",
    ),
)

_CHAT = Contract(
    "mimo",
    "presence",
    MIMO,
    scope="calls",
    source=Source(_NOTICE, "2026-11-16", "its notice to developers of 2026-05-12"),
    ladder=PRESENCE,
    thinks_by_default=True,
    knobs=(THINKING_TYPE,),
    answers=(_PASS_BACK,),
)
_MESSAGES = replace(
    _CHAT,
    name="mimo-anthropic",
    dialect=MIMO_ANTHROPIC,
    source=seen(_NOTICE, "2026-11-16", "the same rule in Anthropic's format"),
    format="anthropic_messages",
)

ROW = ProviderRow(
    name="mimo",
    key_variables=("MIMO_API_KEY", "XIAOMI_MIMO_API_KEY"),
    aliases=("xiaomi-mimo", "xiaomi"),
    hosts=r"(mimo\.mi\.com|xiaomimimo\.com)$",
    models=r"mimo[-.]?v?\d",
    base_url="https://api.xiaomimimo.com/v1",
    source=OWN_PAGES,
    formats=("openai_chat", "anthropic_messages"),
    bases={"anthropic_messages": "https://api.xiaomimimo.com/anthropic"},
    rules="own",
    rows=(
        ModelRow(
            models=r"v2-flash",
            contracts=tuple(replace(one, thinks_by_default=False) for one in (_CHAT, _MESSAGES)),
            source=seen("platform.xiaomimimo.com, Deep Thinking", "2026-11-16", "on by default but for v2-flash"),
        ),
        ModelRow(contracts=(_CHAT, _MESSAGES)),
    ),
    wants_back="always",
    wanted_models=r"(^|[/:])mimo[-.]?v\d|xiaomi/",
    makes=(MIMO_V1,),
    example_model="mimo-v2.5-pro",
    refusals=(_PASS_BACK,),
)
