"""Meta's Muse: encrypted items in Responses, hidden blocks in Messages, and no place for reasoning in chat."""

from msgspec.structs import replace

from thoughtline.providers.contract import Contract
from thoughtline.providers.dialects import NO_REASONING, Dialect
from thoughtline.providers.knobs import ALWAYS_THINKS, TO_HIGH, Knob
from thoughtline.providers.row import Door, ModelRow, ProviderRow
from thoughtline.providers.sources import seen
from thoughtline.values.items import META_RESPONSES_V1

_USERS = "reports of users"

META_RESPONSES = Dialect(
    "meta_responses", "native", META_RESPONSES_V1, source=seen(_USERS, "2026-09", "ciphertext with store:false")
)
META_ANTHROPIC = Dialect(
    "meta_anthropic", "native", META_RESPONSES_V1, source=seen(_USERS, "2026-09", "redacted_thinking")
)

_RESPONSES = Contract(
    "meta-responses",
    "authenticity",
    META_RESPONSES,
    takes="own",
    source=seen(_USERS, "2026-09", "Muse Spark always reasons, and forces no tool; ciphertext with store:false"),
    thinks_by_default=True,
    only_when_thinking=False,
    format="openai_responses",
    knobs=(Knob("", "responses", TO_HIGH, can_be_off=False),),
    forces_no_tool_while_thinking=True,
)
_MESSAGES = replace(
    _RESPONSES,
    name="meta-anthropic",
    dialect=META_ANTHROPIC,
    source=seen(_USERS, "2026-09", "the same in Anthropic's format: redacted_thinking"),
    format="anthropic_messages",
    knobs=(ALWAYS_THINKS,),
)
_CHAT = replace(
    _RESPONSES,
    name="meta-chat",
    kind="advisory",
    dialect=NO_REASONING,
    takes="nothing",
    source=seen(_USERS, "2026-09", "the same in Chat Completions: nothing comes, nothing goes back"),
    format="openai_chat",
    knobs=(Knob("", "reasoning_effort", TO_HIGH, can_be_off=False),),
)

ROW = ProviderRow(
    name="meta",
    hosts=r"(^|\.)meta\.ai$",
    models=r"muse-",
    base_url="https://api.meta.ai/v1",
    formats=("openai_responses", "openai_chat", "anthropic_messages"),
    rules="own",
    rows=(ModelRow(contracts=(_RESPONSES, _CHAT, _MESSAGES), elsewhere=()),),
    makes=(META_RESPONSES_V1,),
    doors=(
        Door(
            comes_in="openai_chat",
            goes_up="openai_responses",
            models="muse-",
            needs="tools",
            source=seen(_USERS, "2026-09", "chat can't carry its reasoning"),
        ),
    ),
    example_model="muse-spark",
    source=seen(_USERS, "2026-09", "its address and formats"),
)
