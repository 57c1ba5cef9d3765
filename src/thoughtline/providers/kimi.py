"""Moonshot's Kimi: text, on every turn that calls a tool."""

from msgspec.structs import replace

from thoughtline.providers.contract import PRESENCE, Contract, Sampling, Source
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.knobs import THINKING_TYPE, Knob
from thoughtline.providers.refusals import says
from thoughtline.providers.row import Context, ModelRow, ProviderRow
from thoughtline.providers.sources import seen
from thoughtline.providers.tool_forms import LETTER_FIRST, ToolForms
from thoughtline.values.items import KIMI_V1

KIMI = Dialect(
    "kimi",
    "reasoning_content",
    KIMI_V1,
    call_ids="own",
    source=seen("platform.moonshot.ai, Using Thinking Models", "2026-11-16", "before the first `content`"),
)
KIMI_ANTHROPIC = Dialect(
    "kimi_anthropic",
    "native",
    KIMI_V1,
    source=seen("CLIProxyAPI, kimi_validation.go", "2026-11-16", "`thinking` blocks with a signature it never reads"),
)

_MISSING = "thinking is enabled but ~<field:reasoning_content>~ is missing in assistant tool call message"
_MISSING_AT = says(
    "missing",
    "restore",
    f"{_MISSING} at index {{index}}",
    source=seen("opencode#25758, nanobot#3939", "2026-11", "also at SiliconFlow, with code 20015 (QwenPaw#433)"),
)
_REFUSALS = (
    _MISSING_AT,
    says("missing", "restore", _MISSING, source=seen("opencode#25758", "2026-11", "relays lose the index")),
    says(
        "thinking-conflict",
        "pass_on",
        r"the <field:thinking> field in the request (expected type <\w{1,20}>) is illegal",
        source=seen("TeXRA PR#1905", "2026-11"),
    ),
)

_K3 = Knob(r"k([3-9]|\d\d)(?!\d)", "reasoning_effort", ("low", "high", "max"), can_be_off=False)
_THINKING = Knob(
    r"thinking|k2[.p]7.{0,8}code",
    "no_knob",
    can_be_off=False,
    source=seen(
        "live reports of users",
        "2026-11-18",
        'K2.7 Code, on chat and Messages: "invalid thinking: only type=enabled is allowed for this model"',
    ),
)
_KEEPS = Knob(r"k2[.p]([6-9]|\d\d)(?!.{0,8}code)", "thinking_type", keeps=((("thinking", "keep"), "all"),))

_CHAT = Contract(
    "kimi",
    "presence",
    KIMI,
    scope="calls",
    source=Source("https://github.com/MoonshotAI/kimi-agent-sdk/issues/169", "2026-11-16", "its 400 names the message"),
    ladder=PRESENCE,
    thinks_by_default=True,
    knobs=(_K3, _THINKING, _KEEPS, THINKING_TYPE),
    answers=(_MISSING_AT,),
    forces_no_tool_while_thinking=True,
    forces_any=r"k([3-9]|\d\d)",
    sampling=Sampling(
        names=("temperature", "top_p", "n", "presence_penalty", "frequency_penalty"),
        is_by_mode=True,
        source=seen(
            "live reports of users, kimi-code#686",
            "2026-11-18",
            "versioned models take a temperature of 1 while they think, and K2.5 and K2.6 one of 0.6 while they don't",
        ),
    ),
)
_MESSAGES = replace(
    _CHAT,
    name="kimi-anthropic",
    dialect=KIMI_ANTHROPIC,
    source=seen(
        "OmniRoute, claudeHelper.ts, and live reports of users",
        "2026-11-18",
        "the same rules in Anthropic's format, in the same words; `any` works on K3 there, too, and not on K2.x",
    ),
    format="anthropic_messages",
    knobs=(_K3, _THINKING, THINKING_TYPE),
)

ROW = ProviderRow(
    name="kimi",
    key_variables=("MOONSHOT_API_KEY", "KIMI_API_KEY"),
    traced_as="moonshot_ai",
    aliases=("moonshot", "moonshotai"),
    hosts=r"(moonshot\.(cn|ai)|kimi\.com)$",
    models="kimi",
    base_url="https://api.moonshot.ai/v1",
    source=seen("platform.moonshot.ai", "2026-11", "its address and formats"),
    tool_forms=ToolForms(
        names=LETTER_FIRST,
        has_bare_unions=True,
        has_bare_references=True,
        has_flags=False,
        source=seen(
            "MoonshotAI/kimi-cli#2531, #2061, can1357/oh-my-pi#5952, vercel/ai#18921",
            "2026-11",
            'names begin with a letter; "type should be defined in anyOf items instead of the parent schema", '
            '"conflicting keywords found after $ref expansion", "property schema must be an object"',
        ),
    ),
    formats=("openai_chat", "anthropic_messages"),
    bases={"anthropic_messages": "https://api.moonshot.ai/anthropic"},
    rules="own",
    rows=(ModelRow(contracts=(_CHAT, _MESSAGES)),),
    wants_back="always",
    wanted_models="kimi|moonshotai/",
    makes=(KIMI_V1,),
    example_model="kimi-k2.6",
    contexts=(Context("kimi-k2", 262_144, seen("https://docs.openclaw.ai/providers/moonshot", "2026-11-16")),),
    refusals=_REFUSALS,
    failures={"engine_overloaded_error": "overloaded", "rate_limit_reached_error": "busy"},
)
