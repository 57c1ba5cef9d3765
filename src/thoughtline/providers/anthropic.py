"""Anthropic's Claude: signed blocks, checked; which turns must have them depends on the model's generation."""

from msgspec.structs import replace

from thoughtline.providers.contract import Contract, Sampling, Source
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.knobs import CLAUDE_BUDGETS, CLAUDE_EFFORTS, Knob
from thoughtline.providers.refusals import says
from thoughtline.providers.row import ModelRow, ProviderRow
from thoughtline.values.items import ANTHROPIC_CLAUDE_V1
from thoughtline.values.options import ALL_TOOLS

ANTHROPIC = Dialect("anthropic", "native", ANTHROPIC_CLAUDE_V1)

BOUND_MODELS = r"fable-?5[.-]1|(opus|sonnet|haiku)-?5[.-]5|5[.-]5-(opus|sonnet|haiku)"
ADAPTIVE_MODELS = r"(opus|sonnet|haiku)-?(4[.-][6-9]|[5-9])|fable|mythos"
CLASSIC_MODELS = r"claude-3[.-]7|(opus|sonnet|haiku)-4([.@-]|$)"
"""Models that think by a budget: "adaptive thinking is not supported on this model" (pensarai/apex#890)."""

_THINKING_MODELS = r"(opus|sonnet|haiku)-?5|fable|mythos"
"""Models that think unless told not to: recorded answers of Sonnet 5 have thinking nobody asked for."""

# haystack-core#2146, claude-code#19539, #56708, #63412, opencode#11546, forgecode#1853, #2107, zed PR#63571, sub2api
# PR#6677, litellm `common_utils.py`, openclaw#27752, Anthropic's page on Opus 5.5. 2026-11.
_EXPECTED = says(
    "missing",
    "restore",
    "{at_first}Expected `<field:thinking>` or `redacted_thinking`, but found… `{found}`. When `thinking` is enabled, a "
    "final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and "
    "`tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, "
    "disable `thinking`. Please consult our documentation at "
    "https://docs.claude.com/en/docs/build-with-claude/extended-thinking",
    scope="loop_head",
)
# Something was changed or left out already; leaving out more can't heal it (bifrost core/encryptedreasoning.go).
_MODIFIED = says(
    "altered",
    "restore_exact",
    "{at}`<field:thinking>` or `redacted_thinking` blocks in the latest assistant message cannot be modified…. These "
    "blocks must remain as they were in the original response.",
    also=("reordered", "duplicated"),
)
_SEAL = r"{at}Invalid `<field:signature|data>` in `<thinking|redacted_thinking>`< |\s+>block"
_BOUND_ELSEWHERE = says(
    "bound-prefix-changed",
    "drop_block",
    _SEAL + ". The block is bound to a different conversation…. Remove the block, or set "
    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block". That setting requires the '
    "`thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header.",
)
_INVALID = says("foreign", "drop_block", _SEAL, also=("truncated",))
_LAST = says(
    "thinking-last",
    "drop_block",
    "{at_message}The final block in an ~assistant~ message cannot be `<thinking|redacted_thinking>…`.",
    field="thinking",
    also=("misplaced",),
)
ANSWERS = (_EXPECTED, _MODIFIED, _BOUND_ELSEWHERE, _INVALID, _LAST)
_REFUSALS = (
    *ANSWERS,
    says(
        "missing",
        "restore",
        r"{block}.<field:signature|thinking|data><(?:\.str)?>: <Input should be a valid string|Field required>",
        scope="loop_head",
    ),
    says(
        "thinking-off",
        "bare_loop",
        "{at}When `<field:thinking>` is disabled, an `assistant` message in the final position cannot contain",
    ),
    says(
        "forbidden",
        "drop_member",
        r"<path:thinking\.\w{1,20}>.<field:block_binding>: Extra inputs are not permitted",
        dropped="thinking.block_binding",
    ),
    says("forbidden", "drop_member", r"{block}.<field:\w{1,40}>: Extra inputs are not permitted"),
    says(
        "thinking-mode",
        "adapt_thinking",
        "{at}`thinking.type.<field:disabled|enabled|adaptive>` is not supported for this model",
    ),
    says("thinking-mode", "adapt_thinking", "{at}<field:adaptive> thinking is not supported on this model"),
    says(
        "thinking-conflict",
        "pause_thinking",
        "{at}Thinking may not be enabled when `<field:tool_choice>` forces tool use",
    ),
    says(
        "thinking-conflict",
        "pass_on",
        "{at}`<field:temperature|top_p|top_k>` <may only be set|must be><[^.]{0,80}> when `thinking` is enabled",
    ),
    says("forbidden", "strip_field", "{location}Extra inputs are not permitted"),
    says("forbidden", "drop_member", "{element_member}: Extra inputs are not permitted"),
)

_NEVER_THOUGHT = Knob(r"claude-(2|3-5|3-haiku|3-opus|3-sonnet|instant)", "no_knob")

# Extended thinking, and What's new in Claude 4.7 (sampling parameters removed); refusals as users report them
# (BerriAI/litellm#15097, UKGovernmentBEIS/inspect_ai#3721). 2026-11.
_SAMPLING = Sampling(
    never=r"(opus|sonnet|haiku)-?(4[.-][7-9]|[5-9])|fable|mythos",
    names=("temperature", "top_p", "top_k"),
    while_thinking=("top_k",),
    least_top_p=0.95,
    takes_both=r"claude-(2|3|instant|v\d)|(opus|sonnet)-4(-0|-20\d\d|@|$)",
    hottest=1.0,
)
CLAUDE = Contract(
    "anthropic",
    "authenticity",
    ANTHROPIC,
    scope="loop_head",
    takes="own",
    source=Source(
        "https://docs.claude.com/en/docs/build-with-claude/extended-thinking",
        "2026-11",
        "Extended thinking: a tool loop starts with its thinking, unmodified",
    ),
    ladder=("pause_thinking",),
    binds_model=True,
    format="anthropic_messages",
    tools=ALL_TOOLS,
    knobs=(
        _NEVER_THOUGHT,
        Knob(CLASSIC_MODELS, "claude_budget", budgets=CLAUDE_BUDGETS, modes=("enabled", "disabled")),
        Knob("", "claude_budget", budgets=CLAUDE_BUDGETS),
    ),
    answers=ANSWERS,
    sampling=_SAMPLING,
    forces_no_tool_while_thinking=True,
)
ADAPTIVE = replace(
    CLAUDE,
    name="anthropic-adaptive",
    scope="nowhere",
    source=Source(
        "https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-adaptive-thinking.html",
        "2026-11-16",
        "Adaptive thinking (4.6 and later): a tool turn may have none; what is sent is checked",
    ),
    ladder=(),
    knobs=(
        _NEVER_THOUGHT,
        Knob(
            r"4[.-]6",
            "claude_adaptive",
            ("low", "medium", "high", "max"),
            modes=("enabled", "adaptive", "disabled"),
        ),
        Knob("", "claude_adaptive", CLAUDE_EFFORTS, modes=("adaptive", "disabled")),
    ),
)
BOUND = replace(
    ADAPTIVE,
    name="anthropic-bound",
    source=Source(
        "https://platform.claude.com/docs/build-with-claude/preserved-thinking",
        "2026-11-16",
        "Preserved thinking (Fable 5.1, Opus 5.5, Sonnet 5.5, Haiku 5.5; from 2026-08-31)",
    ),
    thinks_by_default=True,
    binds_prefix=True,
    knobs=(_NEVER_THOUGHT, Knob("", "claude_adaptive", CLAUDE_EFFORTS, can_be_off=False, modes=("adaptive",))),
)

ROW = ProviderRow(
    name="anthropic",
    aliases=("claude",),
    hosts=r"anthropic\.com$",
    models="claude|fable|mythos",
    base_url="https://api.anthropic.com",
    formats=("anthropic_messages",),
    auth="x-api-key",
    rules="makers",  # others copy its API, and some point its name at theirs
    rows=(
        ModelRow(models=BOUND_MODELS, contracts=(BOUND,)),
        ModelRow(models=_THINKING_MODELS, contracts=(replace(ADAPTIVE, thinks_by_default=True),)),
        ModelRow(models=ADAPTIVE_MODELS, contracts=(ADAPTIVE,)),
        ModelRow(contracts=(CLAUDE,)),
    ),
    wants_back="always",
    wanted_models="claude|anthropic/",
    has_documented_field=False,
    makes=(ANTHROPIC_CLAUDE_V1,),
    counts=("anthropic_messages",),
    holds=("threads",),  # Beta `message-threads-2026-08-12`.
    example_model="claude-opus-5-5",
    most_output=(("claude-3-5", 8_192), ("claude-3-7", 32_000), ("claude-3", 4_096), ("claude-2", 4_096)),
    refusals=_REFUSALS,
)
