"""OpenRouter: reasoning of every maker in `reasoning_details`. It passes on its upstreams' refusals."""

from msgspec.structs import replace

from thoughtline.providers.anthropic import ASKED_MODELS
from thoughtline.providers.contract import Contract, PromptCache, Source
from thoughtline.providers.dialects import REASONING_DETAILS
from thoughtline.providers.knobs import REASONING_OBJECT
from thoughtline.providers.refusals import says
from thoughtline.providers.row import NOT_OPENAIS, SEARCHES, THINKING_TOKENS, ModelRow, ProviderRow
from thoughtline.providers.sources import seen, unverified

_CHAT = Contract(
    "openrouter",
    "advisory",
    REASONING_DETAILS,
    takes="own",
    source=Source("https://openrouter.ai/docs/use-cases/reasoning-tokens", "2026-11-16", "pass it back unmodified"),
    knobs=(REASONING_OBJECT,),
    thinks_if_asked=ASKED_MODELS,
    cache=PromptCache(
        takes_marks=True,
        needs_marks=r"^~?anthropic/|claude",
        source=seen(
            "https://openrouter.ai/docs/guides/features/prompt-caching",
            "2026-11",
            "`cache_control` on parts; Anthropic's models need it, most others cache by themselves",
        ),
    ),
)

ROW = ProviderRow(
    name="openrouter",
    hosts=r"openrouter\.ai$",
    base_url="https://openrouter.ai/api/v1",
    formats=("openai_chat", "openai_responses", "anthropic_messages"),
    rules="strict makers",
    rows=(ModelRow(contracts=(_CHAT,)),),
    dialect=REASONING_DETAILS,
    asks=(("", {"reasoning": {"max_tokens": THINKING_TOKENS, "exclude": False}}),),
    responses_tools=SEARCHES,
    example_model="deepseek/deepseek-v4-pro",
    flags=("flagged_input", "reasons"),  # with 403: about the request, not about the key
    source=seen("https://openrouter.ai/docs", "2026-11", "its address and formats"),
    refusals=(
        says(
            "missing",
            "restore",
            "Gemini models require OpenRouter reasoning details to be preserved in each request",
            field="reasoning_details",
            scope="first_call_of_step",
            source=seen("MassGen#624, gptel#1190", "2026-11", "before Gemini's own error"),
        ),
    ),
)

VERCEL = replace(
    ROW,
    name="vercel-gateway",
    aliases=("vercel", "ai-gateway"),
    hosts=r"ai-gateway\.vercel\.sh$",
    base_url="https://ai-gateway.vercel.sh/v1",
    key_variables=("AI_GATEWAY_API_KEY",),
    responses_tools=NOT_OPENAIS,
    example_model="",
    refusals=(),
    source=unverified("Vercel's gateway keeps reasoning as OpenRouter does"),
)
