"""GitHub Copilot: text with an opaque part, from models of other makers."""

from thoughtline.providers import anthropic
from thoughtline.providers.contract import Contract
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.knobs import NO_KNOB
from thoughtline.providers.row import Door, ModelRow, ProviderRow, RelayedMaker
from thoughtline.providers.sources import seen
from thoughtline.values.items import COPILOT_V1

_CLIENT = seen(
    "vscode-copilot-chat, copilotChatEndpoint.ts",
    "2026-11-16",
    "VS Code's client: reasoning_text and reasoning_opaque go back on the last tool turn",
)

COPILOT = Dialect("copilot", "reasoning_text", COPILOT_V1, call_ids="short", source=_CLIENT)

_CHAT = Contract(
    "copilot",
    "authenticity",
    COPILOT,
    takes="own",
    source=_CLIENT,
    thinks_by_default=True,
    binds_model=True,
    knobs=(NO_KNOB,),
    answers=anthropic.ANSWERS,
)

ROW = ProviderRow(
    name="copilot",
    key_variables=("COPILOT_API_KEY",),
    aliases=("github-copilot",),
    hosts=r"githubcopilot\.com$",
    base_url="https://api.githubcopilot.com",
    formats=("openai_chat", "openai_responses", "anthropic_messages"),
    paths={"openai_chat": "/chat/completions", "openai_responses": "/responses"},
    rules="own",
    rows=(ModelRow(contracts=(_CHAT,)),),
    makes=(COPILOT_V1,),
    relays=RelayedMaker(maker="anthropic", codes=frozenset({"invalid_request_body"})),
    responses_tools=None,
    source=seen("vscode-copilot-chat", "2026-11-16", "its address and formats"),
    doors=(
        Door(
            comes_in="openai_chat",
            goes_up="openai_responses",
            models=r"codex|gpt-(5\.[4-9]|5\.\d\d|[6-9]|\d\d)",
            source=seen("copilot-api#113", "2026-11", "GPT-5.4 and newer and Codex are served in Responses alone"),
        ),
    ),
)
