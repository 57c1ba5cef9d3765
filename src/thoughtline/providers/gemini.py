"""Google's Gemini: a signature on the first call of each step, checked from Gemini 3 on."""

from msgspec.structs import replace

from thoughtline.providers.contract import Contract, Source, unverified
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.knobs import ALWAYS_THINKS, TO_HIGH, Knob
from thoughtline.providers.refusals import says
from thoughtline.providers.row import THINKING_TOKENS, ModelRow, ProviderRow
from thoughtline.providers.sources import seen
from thoughtline.providers.tool_forms import LETTER_FIRST, ToolForms
from thoughtline.values.items import GOOGLE_GEMINI_V1, GOOGLE_INTERACTIONS_V1
from thoughtline.values.options import ALL_TOOLS, FUNCTIONS_ONLY, Effort

_PAGE = "https://ai.google.dev/gemini-api/docs/thought-signatures"
_STEPS = seen(
    "ai.google.dev, Interactions API",
    "2026-11-16",
    "without state, a thought goes back before the call that it led to; no refusal is known",
)

GEMINI = Dialect("gemini", "native", GOOGLE_GEMINI_V1, source=seen(_PAGE, "2026-11-16", "`thoughtSignature` of parts"))
INTERACTIONS = Dialect("gemini_interactions", "native", GOOGLE_INTERACTIONS_V1, source=_STEPS)
GOOGLE_CHAT = Dialect("google_chat", "google_extra", GOOGLE_GEMINI_V1, source=seen(_PAGE, "2026-11-16"))

MODELS_2 = r"gemini-[12]\b|gemini-(1|2)\.|gemini-(pro|ultra)$"

_MISSING = "Function call is missing a ~<field:thought_signature>~ in functionCall parts"
_MISSING_AT = says(
    "missing",
    "restore",
    f"{_MISSING}<. This is required for tools to work correctly, and missing thought_signature may lead to degraded "
    "model performance. Additional data, function call `default_api:{name}` |.{0,400}?>, position {position}…. Please "
    "refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
    scope="first_call_of_step",
    also=("misplaced",),
    source=seen("continue#8785", "2026-11", "that `position` counts from 1 fits every sample; no page says it"),
)
_CORRUPTED = says(
    "foreign",
    "strip_seal",
    r"<Corrupted thought signature\.|(?:Unable to submit request because )?"
    r"(?:(?:Corrupted|Invalid) [Tt]hought[ _]signature\b|Thought signature is not valid)>",
    field="thought_signature",
    also=("truncated", "altered"),
    source=seen("gemini-cli#13467, Antigravity-Manager PR#3342, 9router#301", "2026-11"),
)
_UNABLE = "<(?:Unable to submit request because )?>"
_REFUSALS = (
    _MISSING_AT,
    says("missing", "restore", _MISSING, scope="first_call_of_step", source=seen("continue#8785", "2026-11")),
    says(
        "missing",
        "restore",
        _UNABLE
        + "<[Ff]unction> call {name} in the `{position}.` content block is missing a `<field:thought_signature>",
        scope="first_call_of_step",
        source=seen(_PAGE, "2026-11-16", "its second wording; inspect_ai#2838 has it of Vertex"),
    ),
    _CORRUPTED,
    says(
        "forbidden",
        "drop_member",
        r"<(?:Invalid JSON payload received\. )?>Unknown name <\\?\">{member}<\\?\"> at '{element}': Cannot find field",
        source=unverified("how Google refuses a member that its schema does not have"),
    ),
    says(
        "thinking-unsupported",
        "stop_asking",
        f"{_UNABLE}<[Tt]hinking> is not <supported|enabled> <for|by|on> ",
        field="thinkingConfig",
        source=unverified("models that never think"),
    ),
)

_NEVER_THOUGHT = Knob(r"gemini-(1(?!\d)|2\.0|2-0)", "no_knob")
_EFFORTS: tuple[Effort, ...] = ("minimal", "low", "medium", "high")

_MINIMAL = seen("measured by users", "2026-09", "`minimal` is refused from 3.7 Flash on, and taken by Flash-Lite")

NATIVE = Contract(
    "gemini",
    "authenticity",
    GEMINI,
    scope="first_call_of_step",
    takes="own",
    source=Source(_PAGE, "2026-11-16", "Thought signatures: the first call of each step of the current turn"),
    ladder=("sentinel",),
    thinks_by_default=True,
    only_when_thinking=False,
    binds_model=True,
    format="gemini_generate",
    tools=ALL_TOOLS,
    knobs=(
        _NEVER_THOUGHT,
        Knob(r"lite|gemini-3(\.[0-6])?-flash", "gemini_level", _EFFORTS, can_be_off=False, source=_MINIMAL),
        Knob("flash", "gemini_level", TO_HIGH, can_be_off=False, source=_MINIMAL),
        Knob("", "gemini_level", ("low", "high"), can_be_off=False),
    ),
    answers=(_MISSING_AT, _CORRUPTED),
)
NATIVE_2 = replace(
    NATIVE,
    name="gemini-2.5",
    kind="advisory",
    scope="nowhere",
    source=Source(_PAGE, "2026-11-16", "Thought signatures: not validated before Gemini 3"),
    ladder=(),
    only_when_thinking=True,
    knobs=(
        _NEVER_THOUGHT,
        Knob("pro", "gemini_budget", can_be_off=False, budgets=(128, 32_768)),
        Knob("lite", "gemini_budget", budgets=(512, 24_576)),
        Knob("", "gemini_budget", budgets=(1, 24_576)),
    ),
    answers=(),
)
_CHAT = replace(
    NATIVE,
    name="gemini-chat",
    dialect=GOOGLE_CHAT,
    source=Source(_PAGE, "2026-11-16", "extra_content.google.thought_signature on the first call"),
    format="openai_chat",
    tools=FUNCTIONS_ONLY,
    knobs=(_NEVER_THOUGHT, Knob("", "reasoning_effort", _EFFORTS)),
)
_INTERACTIONS = replace(
    NATIVE,
    name="gemini-interactions",
    dialect=INTERACTIONS,
    scope="calls_after_user",
    source=_STEPS,
    ladder=(),
    format="gemini_interactions",
    knobs=(ALWAYS_THINKS,),
    answers=(),
)
_INTERACTIONS_2 = replace(_INTERACTIONS, name="gemini-2.5-interactions", kind="advisory", scope="nowhere")
_CHAT_2 = replace(_CHAT, kind="advisory", scope="nowhere", ladder=())

GOOGLE_FORMS = ToolForms(
    names=LETTER_FIRST,
    source=seen(
        "wonderwhy-er/DesktopCommanderMCP#79",
        "2026-11",
        '"Must start with a letter or an underscore. Must be a-z, A-Z, 0-9, or contain underscores, dots and dashes, '
        'with a maximum length of 64"; Claude on Vertex takes no dots',
    ),
)

ROW = ProviderRow(
    name="gemini",
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    traced_as="gcp.gemini",
    aliases=("google", "google-ai-studio"),
    hosts=r"(googleapis\.com|google\.dev)$",
    models="gemini",
    base_url="https://generativelanguage.googleapis.com",
    key_prefixes=("AIza",),
    tool_forms=GOOGLE_FORMS,
    formats=("gemini_generate", "openai_chat", "gemini_interactions"),
    bases={"openai_chat": "https://generativelanguage.googleapis.com/v1beta/openai"},
    auth="x-goog-api-key",
    owns=("gemini_generate",),
    rules="own",
    rows=(
        ModelRow(
            models=MODELS_2,
            contracts=(NATIVE_2, _CHAT_2, _INTERACTIONS_2),
            elsewhere=(_INTERACTIONS_2,),
            source=seen(_PAGE, "2026-11-16", "not validated before Gemini 3; a name without a number is an older one"),
        ),
        ModelRow(
            contracts=(NATIVE, _CHAT, _INTERACTIONS),
            elsewhere=(_CHAT, _INTERACTIONS),
        ),
    ),
    wants_back="always",
    wanted_models="gemini|google/",
    source=seen(
        "https://ai.google.dev/gemini-api/docs",
        "2026-11",
        "its address and formats; Gemini 3 and later take a level, and a name without a number may be either: both "
        "take a budget",
    ),
    asks=(
        (r"gemini-([3-9]|[1-9]\d)", {"thinkingLevel": "high"}),
        ("", {"thinkingBudget": THINKING_TOKENS}),
    ),
    makes=(GOOGLE_GEMINI_V1, GOOGLE_INTERACTIONS_V1),
    counts=("gemini_generate",),
    holds=("interactions",),
    example_model="gemini-3-pro-preview",
    refusals=_REFUSALS,
)
