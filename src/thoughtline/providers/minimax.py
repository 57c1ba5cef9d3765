"""MiniMax: text inside the content, or beside it if asked, never enforced."""

from msgspec.structs import replace

from thoughtline.providers.contract import Contract, unverified
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.knobs import ALWAYS_THINKS, Knob
from thoughtline.providers.row import Door, FailureCodes, ModelRow, ProviderRow
from thoughtline.providers.sources import seen
from thoughtline.values.items import MINIMAX_RESPONSE_V1

MINIMAX_TAGS = Dialect("minimax_tags", "think_tags", MINIMAX_RESPONSE_V1)
MINIMAX_SPLIT = Dialect("minimax_split", "reasoning_details", MINIMAX_RESPONSE_V1)
MINIMAX_ANTHROPIC = Dialect("minimax_anthropic", "native", MINIMAX_RESPONSE_V1)

_CHAT = Contract(
    "minimax",
    "advisory",
    MINIMAX_TAGS,
    source=unverified("M2 Tool Use & Interleaved Thinking: append the whole message; nothing is enforced"),
    thinks_by_default=True,
    knobs=(
        # M3.1 refuses `disabled` (openclaw, 2026-10).
        Knob(r"m(3\.[1-9]|[4-9]|\d\d)", "thinking_adaptive", can_be_off=False),
        Knob(r"m3", "thinking_adaptive"),
        ALWAYS_THINKS,
    ),
    when_split=MINIMAX_SPLIT,
)
_MESSAGES = replace(
    _CHAT,
    name="minimax-anthropic",
    dialect=MINIMAX_ANTHROPIC,
    source=unverified("the same in Anthropic's format"),
    format="anthropic_messages",
    when_split=None,
)

# It answers 200 and says there what is wrong (its error codes, 2026-11).
_FAILURE_CODES = FailureCodes(
    holder="base_resp",
    member="status_code",
    kinds={
        1001: "late",
        **dict.fromkeys((1000, 1013, 1024, 1033), "broken"),
        **dict.fromkeys((1002, 1039, 1041), "busy"),
        **dict.fromkeys((1004, 1008), "key_rejected"),
    },
)

ROW = ProviderRow(
    name="minimax",
    hosts=r"(minimax(i)?\.(chat|io|com))$",
    models="minimax|abab",
    base_url="https://api.minimax.io/v1",
    formats=("openai_chat", "anthropic_messages"),
    bases={"anthropic_messages": "https://api.minimax.io/anthropic"},
    rules="own",
    rows=(ModelRow(contracts=(_CHAT, _MESSAGES)),),
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
