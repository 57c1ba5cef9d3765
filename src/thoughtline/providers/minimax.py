"""MiniMax: text inside the content, or in a member of its own on request; not enforced."""

from msgspec.structs import replace

from thoughtline.providers.contract import Contract
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.knobs import ALWAYS_THINKS, Knob
from thoughtline.providers.row import Door, FailureCodes, ModelRow, ProviderRow
from thoughtline.providers.sources import OWN_PAGES, seen
from thoughtline.values.items import MINIMAX_RESPONSE_V1

_COMPATIBLE = seen("platform.minimax.io, OpenAI API compatible", "2026-11-16", "`reasoning_split` moves it")

MINIMAX_TAGS = Dialect("minimax_tags", "think_tags", MINIMAX_RESPONSE_V1, source=_COMPATIBLE)
MINIMAX_SPLIT = Dialect("minimax_split", "reasoning_details", MINIMAX_RESPONSE_V1, source=_COMPATIBLE)
MINIMAX_ANTHROPIC = Dialect(
    "minimax_anthropic",
    "native",
    MINIMAX_RESPONSE_V1,
    source=seen("platform.minimax.io, Anthropic API compatible", "2026-11-16", "`thinking` blocks"),
)

_CHAT = Contract(
    "minimax",
    "advisory",
    MINIMAX_TAGS,
    source=seen(
        "platform.minimax.io, M2 Tool Use & Interleaved Thinking",
        "2026-11-16",
        "append the whole message; nothing is enforced",
    ),
    thinks_by_default=True,
    knobs=(
        Knob(
            r"m(3\.[1-9]|[4-9]|\d\d)",
            "thinking_adaptive",
            can_be_off=False,
            source=seen("openclaw", "2026-10", "M3.1 refuses `disabled`"),
        ),
        Knob(r"m3", "thinking_adaptive"),
        ALWAYS_THINKS,
    ),
    when_split=MINIMAX_SPLIT,
)
_MESSAGES = replace(
    _CHAT,
    name="minimax-anthropic",
    dialect=MINIMAX_ANTHROPIC,
    source=seen("platform.minimax.io, M2 Tool Use & Interleaved Thinking", "2026-11-16", "the whole list of blocks"),
    format="anthropic_messages",
    when_split=None,
)

_FAILURE_CODES = FailureCodes(
    holder="base_resp",
    member="status_code",
    kinds={
        1001: "late",
        **dict.fromkeys((1000, 1013, 1024, 1033), "broken"),
        **dict.fromkeys((1002, 1039, 1041), "busy"),
        **dict.fromkeys((1004, 1008), "key_rejected"),
    },
    source=seen("platform.minimax.io, Error codes", "2026-11", "it answers 200 and says there what is wrong"),
)

ROW = ProviderRow(
    name="minimax",
    hosts=r"(minimax(i)?\.(chat|io|com))$",
    models="minimax|abab",
    base_url="https://api.minimax.io/v1",
    source=OWN_PAGES,
    formats=("openai_chat", "anthropic_messages"),
    bases={"anthropic_messages": "https://api.minimax.io/anthropic"},
    rules="own",
    rows=(
        ModelRow(
            models=r"m3(?![.\d])",
            contracts=(_CHAT, replace(_MESSAGES, thinks_by_default=False)),
            source=seen("openclaw", "2026-11", "M3 thinks by default in Chat Completions, and not in Messages"),
        ),
        ModelRow(contracts=(_CHAT, _MESSAGES)),
    ),
    doors=(
        Door(
            comes_in="anthropic_messages",
            goes_up="openai_chat",
            models=r"minimax-m",
            but=r"minimax-m[12](?!\d)",
            needs="unsaid",
            source=seen("openclaw", "2026-11", "M3 thinks by default in Chat Completions, and not in Messages"),
        ),
    ),
    makes=(MINIMAX_RESPONSE_V1,),
    example_model="MiniMax-M3",
    failure_codes=_FAILURE_CODES,
)
