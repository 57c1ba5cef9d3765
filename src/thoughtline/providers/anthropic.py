"""Anthropic's Claude: signed blocks, which are checked. The model's generation decides which turns must have them."""

from collections.abc import Callable

from msgspec.structs import replace

from thoughtline.providers.contract import Contract, PromptCache, Sampling, Source
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.knobs import CLAUDE_BUDGETS, CLAUDE_EFFORTS, Knob
from thoughtline.providers.refusals import says
from thoughtline.providers.row import ModelRow, ProviderRow
from thoughtline.providers.sources import seen
from thoughtline.providers.tool_forms import ToolForms
from thoughtline.values.items import ANTHROPIC_CLAUDE_V1
from thoughtline.values.options import ALL_TOOLS

_EXTENDED = "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
_PRESERVED = "https://platform.claude.com/docs/build-with-claude/preserved-thinking"

ANTHROPIC = Dialect("anthropic", "native", ANTHROPIC_CLAUDE_V1, source=seen(_EXTENDED, "2026-11"))

ATTRIBUTION = "x-anthropic-billing-header"
"""How the first line of Claude Code's system prompt begins. Anthropic strips that line."""

# Generations by version, for all spellings of names: `claude-opus-5-5`, `claude-opus-5-5[1m]`, `claude-5.5-opus`,
# `us.anthropic.claude-haiku-4-5-20251001-v1:0`, `claude-haiku-4-5@20251001`. Eight digits are a date, not a version.
# Each pattern matches the models of older generations. A name that matches none counts as the newest generation, even
# if it is not known yet: `claude-fable-5-3`, `claude-opus-6`.
_TIERS = "(?:opus|sonnet|haiku)"


def _versions(tiers: str, version: str) -> str:
    """Return a pattern for models of these tiers and versions, in either order."""
    return rf"{tiers}-?(?:{version})(?!\d)|claude-(?:{version})-{tiers}"


_NO_MINOR = r"(?![.-]\d{1,2}(?!\d))"

CLASSIC_MODELS = r"claude-(?:v?[12](?!\d)|instant|3(?!\d))|" + _versions(_TIERS, rf"4(?:[.-][0-5](?!\d)|{_NO_MINOR})")
"""Models with a thinking budget."""

ADAPTIVE_MODELS = _versions(_TIERS, r"4[.-][6-9]")
ASKED_MODELS = "claude-3[.-]7|" + _versions(_TIERS, rf"4(?:[.-]\d(?!\d)|{_NO_MINOR})")
"""Models that think only if asked to."""

_MILD_MODELS = _versions(_TIERS, rf"5(?:[.-][0-4](?!\d)|{_NO_MINOR})")
THINKING_MODELS = f"{_MILD_MODELS}|mythos-preview|" + _versions("(?:fable|mythos)", rf"5(?:[.-]0(?!\d)|{_NO_MINOR})")
"""Models that think unless thinking is switched off."""

_CLAUDES = "claude|fable|mythos"
_NEWEST = rf"^(?!.*(?:{CLASSIC_MODELS}|{ADAPTIVE_MODELS}|{THINKING_MODELS}))(?=.*(?:{_CLAUDES}))"
_HAIKU = _versions("haiku", r"5[.-]5")
_STORIES = "fable|mythos"
_FIRST_STORIES = _versions("(?:fable|mythos)", r"5[.-]1")
_FIRST_BOUND = _versions("fable", r"5[.-]1") + "|" + _versions(_TIERS, r"5[.-]5")
_LATER_STORIES = _versions("(?:fable|mythos)", r"5[.-][2-9]|[6-9]")
_UNREAD_BY_SONNET = f"{_STORIES}|" + _versions("opus", r"[5-9](?:[.-]\d)?")

_EXPECTED = says(
    "missing",
    "restore",
    "{at_first}Expected `<field:thinking>` or `redacted_thinking`, but found… `{found}`. When `thinking` is enabled, a "
    "final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and "
    "`tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, "
    "disable `thinking`. Please consult our documentation at "
    "https://docs.claude.com/en/docs/build-with-claude/extended-thinking",
    scope="loop_head",
    source=seen("haystack-core#2146, pydantic-ai#2075, claude-code#11978", "2026-11"),
)
_MODIFIED = says(
    "altered",
    "restore_exact",
    "{at}`<field:thinking>` or `redacted_thinking` blocks in the latest assistant message cannot be modified…. These "
    "blocks must remain as they were in the original response.",
    also=("reordered", "duplicated"),
    source=seen(
        "claude-code#19539, #63412, openclaw#27752, bifrost encryptedreasoning.go",
        "2026-11",
        "something was changed or left out already; leaving out more can't heal it",
    ),
)
_SEAL = r"{at}Invalid `<field:signature|data>` in `<thinking|redacted_thinking>`< |\s+>block"
_BOUND_ELSEWHERE = says(
    "bound-prefix-changed",
    "drop_block",
    _SEAL + ". The block is bound to a different conversation…. Remove the block, or set "
    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block". That setting requires the '
    "`thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header.",
    source=seen(f"{_PRESERVED}, zed PR#63571", "2026-11"),
)
_INVALID = says(
    "foreign",
    "drop_block",
    _SEAL,
    also=("truncated",),
    source=seen("opencode#11546, claude-code#56708", "2026-11", "`signature` and `data`"),
)
_LAST = says(
    "thinking-last",
    "drop_block",
    "{at_message}The final block in an ~assistant~ message cannot be `<thinking|redacted_thinking>…`.",
    field="thinking",
    also=("misplaced",),
    source=seen("forgecode#2107", "2026-11"),
)
_EXTRA = seen("sub2api PR#6677", "2026-11", "how its check of schemas says it, of any member")
ANSWERS = (_EXPECTED, _MODIFIED, _BOUND_ELSEWHERE, _INVALID, _LAST)
_REFUSALS = (
    *ANSWERS,
    says(
        "missing",
        "restore",
        r"{block}.<field:signature|thinking|data><(?:\.str)?>: <Input should be a valid string|Field required>",
        scope="loop_head",
        source=seen("litellm common_utils.py", "2026-11"),
    ),
    says(
        "thinking-off",
        "bare_loop",
        "{at}When `<field:thinking>` is disabled, an `assistant` message in the final position cannot contain",
        source=seen("forgecode#1853", "2026-11"),
    ),
    says(
        "forbidden",
        "drop_member",
        r"<path:thinking\.\w{1,20}>.<field:block_binding>: Extra inputs are not permitted",
        dropped="thinking.block_binding",
        source=seen("sub2api PR#6677, opencode#46729", "2026-11", "without the beta header"),
    ),
    says("forbidden", "drop_member", r"{block}.<field:\w{1,40}>: Extra inputs are not permitted", source=_EXTRA),
    says("forbidden", "strip_field", "{location}Extra inputs are not permitted", source=_EXTRA),
    says("forbidden", "drop_member", "{element_member}: Extra inputs are not permitted", source=_EXTRA),
)

_TROUBLESHOOTING = seen(
    "platform.claude.com, Troubleshooting thinking", "2026-11-18", "its table of models and `thinking.type`"
)
_NEVER_THOUGHT = Knob(r"claude-(2|3-5|3-haiku|3-opus|3-sonnet|instant)", "no_knob")

_SAMPLING = Sampling(
    never=rf"^(?=.*(?:{_CLAUDES}))(?!.*(?:{CLASSIC_MODELS}|{_versions(_TIERS, '4[.-]6')}))",
    names=("temperature", "top_p", "top_k"),
    while_thinking=("top_k",),
    least_top_p=0.95,
    takes_both=r"claude-(2|3|instant|v\d)|(opus|sonnet)-4(-0|-20\d\d|@|$)",
    hottest=1.0,
    source=seen(
        "BerriAI/litellm#15097, UKGovernmentBEIS/inspect_ai#3721",
        "2026-11",
        "and Extended thinking; What's new in Claude 4.7: sampling parameters are gone",
    ),
)
CLAUDE = Contract(
    "anthropic",
    "authenticity",
    ANTHROPIC,
    scope="loop_head",
    takes="own",
    source=Source(
        _EXTENDED,
        "2026-11",
        "Extended thinking: a tool loop starts with its thinking, unmodified",
    ),
    ladder=("pause_thinking",),
    unread=_NEWEST,
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
    thinks_if_asked=ASKED_MODELS,
    cache=PromptCache(
        takes_marks=True,
        needs_marks="",
        source=seen(
            "https://platform.claude.com/docs/en/build-with-claude/prompt-caching",
            "2026-11",
            "nothing is cached without `cache_control`, on at most four blocks",
        ),
    ),
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
            source=_TROUBLESHOOTING,
        ),
        Knob(
            "mythos-preview",
            "claude_adaptive",
            CLAUDE_EFFORTS,
            can_be_off=False,
            modes=("adaptive", "enabled"),
            source=_TROUBLESHOOTING,
        ),
        Knob(
            "fable|mythos",
            "claude_adaptive",
            CLAUDE_EFFORTS,
            can_be_off=False,
            modes=("adaptive",),
            source=_TROUBLESHOOTING,
        ),
        Knob("", "claude_adaptive", CLAUDE_EFFORTS, modes=("adaptive", "disabled"), source=_TROUBLESHOOTING),
    ),
)
_UNORDERED = (_BOUND_ELSEWHERE, _INVALID)
"""From 5 on, thinking behind a call and thinking with its visible text edited are accepted (Opus 5, Opus 5.5 and
Sonnet 5.5, measured 2026-09-26)."""
THINKING = replace(ADAPTIVE, thinks_by_default=True, answers=_UNORDERED)
BOUND = replace(
    ADAPTIVE,
    name="anthropic-bound",
    source=Source(
        _PRESERVED,
        "2026-11-16",
        "Preserved thinking (Fable and Mythos from 5.1, Opus, Sonnet and Haiku from 5.5): a block is good behind the "
        "prefix and the thinking block that it was made behind. Accounts made before 2026-08-31 read it elsewhere too, "
        "on the first of them (recorded, 2026-10)",
    ),
    unread="",  # that of a model without a description
    thinks_by_default=True,
    binds_prefix=True,
    binds_chain=True,
    accounts_differ=_FIRST_BOUND,
    answers=_UNORDERED,
    knobs=(
        Knob(
            _HAIKU,
            "claude_adaptive",
            CLAUDE_EFFORTS,
            modes=("adaptive", "disabled"),
            source=seen("platform.claude.com, Haiku 5.5 migration guide", "2026-11-18"),
        ),
        Knob(
            _versions("sonnet", r"5[.-]5"),
            "claude_adaptive",
            CLAUDE_EFFORTS,
            can_be_off=False,
            modes=("adaptive", "between_tools"),
            source=seen("platform.claude.com, What's new in Claude Sonnet 5.5", "2026-11-18"),
        ),
        Knob("", "claude_adaptive", CLAUDE_EFFORTS, can_be_off=False, modes=("adaptive",), source=_TROUBLESHOOTING),
    ),
)


_WHO_READS_WHOSE = seen(
    _PRESERVED, "2026-11-18", "who reads whose blocks: what a model does not read it drops, and answers 200"
)


def generations(adapt: Callable[[Contract], tuple[Contract, ...]]) -> tuple[ModelRow, ...]:
    """Return the rows of all Claude models for a host that serves them in formats of its own. The last row is for the
    newest generation."""
    return (
        ModelRow(
            models=CLASSIC_MODELS,
            contracts=adapt(CLAUDE),
            source=seen("pensarai/apex#890", "2026-11", '"adaptive thinking is not supported on this model"'),
        ),
        ModelRow(models=ADAPTIVE_MODELS, contracts=adapt(ADAPTIVE), source=_TROUBLESHOOTING),
        ModelRow(
            models=_MILD_MODELS,
            contracts=adapt(replace(THINKING, forces_no_tool_while_thinking=False)),
            source=seen(
                "platform.claude.com, Troubleshooting thinking, and recorded answers",
                "2026-11-18",
                "Sonnet 5 thinks unless told not to, and takes a forced tool",
            ),
        ),
        ModelRow(models=THINKING_MODELS, contracts=adapt(THINKING), source=_TROUBLESHOOTING),
        ModelRow(
            models=_HAIKU,
            contracts=adapt(replace(BOUND, forces_no_tool_while_thinking=False)),
            source=seen(
                "platform.claude.com, Haiku 5.5 migration guide",
                "2026-11-18",
                "takes a forced tool, and does not think then; whose blocks it reads is not said",
            ),
        ),
        ModelRow(
            models=_FIRST_STORIES, contracts=adapt(replace(BOUND, unread=_LATER_STORIES)), source=_WHO_READS_WHOSE
        ),
        ModelRow(
            models=_versions("opus", r"5[.-]5"),
            contracts=adapt(replace(BOUND, unread=_STORIES)),
            source=_WHO_READS_WHOSE,
        ),
        ModelRow(
            models=_versions("sonnet", r"5[.-]5"),
            contracts=adapt(replace(BOUND, unread=_UNREAD_BY_SONNET)),
            source=_WHO_READS_WHOSE,
        ),
        ModelRow(
            models=_CLAUDES,
            contracts=adapt(BOUND),
            source=seen(
                "hermes PR#106426, jcode", "2026-11", "names of no older generation: two agents ship the same floor"
            ),
        ),
    )


ROW = ProviderRow(
    name="anthropic",
    aliases=("claude",),
    hosts=r"anthropic\.com$",
    models=_CLAUDES,
    base_url="https://api.anthropic.com",
    source=seen(
        "https://platform.claude.com/docs",
        "2026-11",
        "its address and format; threads are beta `message-threads-2026-08-12`",
    ),
    tool_forms=ToolForms(
        names=r"[a-zA-Z0-9_-]{1,128}",
        source=seen(
            "refusals of users' requests", "2026-11", "\"String should match pattern '^[a-zA-Z0-9_-]{1,128}$'\""
        ),
    ),
    formats=("anthropic_messages",),
    auth="x-api-key",
    key_prefixes=("sk-ant-api",),  # login tokens begin with `sk-ant-oat`, and are bearer tokens
    rules="makers",  # other servers copy its API, and some users point its name at those
    rows=(*generations(lambda claude: (claude,)), ModelRow(contracts=(CLAUDE,))),
    wants_back="always",
    wanted_models="claude|anthropic/",
    has_documented_field=False,
    makes=(ANTHROPIC_CLAUDE_V1,),
    counts=("anthropic_messages",),
    holds=("threads",),
    example_model="claude-opus-5-5",
    most_output=(("claude-3-5", 8_192), ("claude-3-7", 32_000), ("claude-3", 4_096), ("claude-2", 4_096)),
    refusals=_REFUSALS,
)
