"""OpenAI: encrypted items that refer to each other in Responses, and no place for reasoning in Chat Completions."""

from __future__ import annotations

from msgspec.structs import replace

from thoughtline.providers.contract import Contract, Sampling, Source, unverified
from thoughtline.providers.dialects import NO_REASONING, Dialect
from thoughtline.providers.knobs import EVERY_EFFORT, TO_HIGH, Knob, Style
from thoughtline.providers.refusals import says
from thoughtline.providers.row import Door, ModelRow, ProviderRow
from thoughtline.providers.shared import FIELD_CONTRACT
from thoughtline.providers.sources import seen
from thoughtline.values.items import BEDROCK_OPENAI_RESPONSES_V1, OPENAI_RESPONSES_V1
from thoughtline.values.options import ALL_TOOLS, Effort

_PAGE = "https://cookbook.openai.com/examples/responses_api/reasoning_items"

OPENAI_RESPONSES = Dialect("openai_responses", "native", OPENAI_RESPONSES_V1, source=seen(_PAGE, "2026-11-16"))

_UNPAIRED = says(
    "unpaired",
    "unpair",
    r"Item '{id}' of type '<reasoning|\w{1,40}>' was provided without its required <following item|'reasoning' item>….",
    field="id",
    scope="pairs",
    also=("misplaced",),
    source=seen("pydantic-ai's recording of a modified history, rig#751", "2026-11"),
)
_NOT_FOUND = says(
    "stale-id",
    "drop_item",
    "Item with id '<(?=rs_)>{id}' not found…. Items are not persisted when `store` is set to false. Try again with "
    "`store` set to true, or remove this item from your input.",
    field="id",
    statuses=(400, 404),
    source=seen("openai-agents-js#546, bifrost#5410", "2026-11"),
)
_UNVERIFIED = says(
    "foreign",
    "drop_item",
    "The encrypted content {whose}could not be verified…. Reason: Encrypted content could not be decrypted or parsed.",
    field="encrypted_content",
    also=("altered", "truncated"),
    source=seen("bifrost#5410, sub2api#3138", "2026-11"),
)
_DUPLICATE = says(
    "duplicated",
    "drop_item",
    "Duplicate item found with id ~{id}",
    field="id",
    source=seen("OpenRouter's SDK provider", "2026-11"),
)
_CODEX = seen("openai/codex", "2026-11", "`content` and `status` of reasoning items")
_OF_RESPONSES = (
    _UNPAIRED,
    _NOT_FOUND,
    says(
        "stale-id",
        "unpair",
        "Item with id '{id}' not found. Items are not persisted",
        field="id",
        statuses=(400, 404),
        source=seen("openai-agents-js#546, bifrost#5410", "2026-11"),
    ),
    says(
        "stale-id",
        "restore",
        "",
        field="previous_response_id",
        codes=frozenset({"previous_response_not_found"}),
        source=seen("Bamboo#64", "2026-11"),
    ),
    says(
        "misplaced",
        "drop_item",
        "The encrypted content {whose}could not be verified. Reason: Encrypted content item_id did not match",
        field="encrypted_content",
        source=seen("bifrost#5410", "2026-11"),
    ),
    _UNVERIFIED,
    says(
        "foreign",
        "drop_item",
        "",
        field="encrypted_content",
        codes=frozenset({"invalid_encrypted_content"}),
        source=seen("sub2api#3138, experiential PR#972", "2026-11", "the second is a relay that loses the code"),
    ),
    _DUPLICATE,
    says(
        "thinking-unsupported",
        "stop_asking",
        "Encrypted content is not supported with this model",
        field="encrypted_content",
        source=seen("pydantic-ai#3331", "2026-11"),
    ),
    says(
        "forbidden",
        "drop_member",
        "Unknown parameter: '{input}.<field:status|content|summary|encrypted_content|reasoning_content|phase>'",
        source=_CODEX,
    ),
    says(
        "forbidden",
        "drop_member",
        "Invalid '{input}.<field:content>': array too long. Expected an array with maximum length 0",
        source=_CODEX,
    ),
    says(
        "missing",
        "add_filler_text",
        "Missing required parameter: '{input}.<field:summary>'",
        source=seen("sub2api#3588", "2026-11-18", "`summary` is required, and may be empty"),
    ),
    says(
        "foreign",
        "unpair",
        "Invalid '{input}.<field:id>': <.{0,200}?>Expected an ID that begins with '<rs|fc|msg>",
        source=unverified("how it refuses an id that it did not make"),
    ),
    says(
        "forbidden",
        "strip_field",
        "{input}.type `reasoning` is not a valid input item type",
        field="items",
        source=seen("axonhub#1657", "2026-11-18", "some models of Copilot's Responses"),
    ),
)
_UNKNOWN = seen("openai-php#645", "2026-11", "how it refuses a parameter that it does not know")
_UNKNOWN_FIELD = says(
    "forbidden", "strip_field", "Unknown parameter: '{message_field}'….", family="openai-chat", source=_UNKNOWN
)
_BY_SCHEMA = unverified("how some of its deployments refuse a member that their schema does not have")
_UNEXPECTED = "Additional properties are not allowed ('%s'<(?:, '[^']{1,80}'){0,20}> w<as|ere> unexpected){on_message}"
_OF_CHAT = (
    _UNKNOWN_FIELD,
    says("forbidden", "strip_field", _UNEXPECTED % "{carrier}", family="openai-chat", source=_BY_SCHEMA),
    says("forbidden", "drop_member", "Unknown parameter: '{element_member}'", family="openai-chat", source=_UNKNOWN),
    says("forbidden", "drop_member", _UNEXPECTED % "{member}", family="openai-chat", source=_BY_SCHEMA),
)


_TO_XHIGH: tuple[Effort, ...] = (*TO_HIGH, "xhigh")


def _knobs(style: Style, newest: tuple[Effort, ...]) -> tuple[Knob, ...]:
    """Thinking controls with the efforts of each generation."""
    return (
        Knob(r"gpt-(3|4)", "no_knob"),
        Knob(r"(^|/)o\d", style, TO_HIGH, can_be_off=False),
        Knob(r"gpt-5\.1(?!\d)", style, TO_HIGH),
        Knob(r"gpt-5\.[0-5](?!\d)", style, _TO_XHIGH),
        Knob(
            r"gpt-(5\.|6(?![.\d]|-astra))",
            style,
            newest,
            source=seen("recorded refusals", "2026-11", "`max` is known in Responses alone, from GPT-5.6 on"),
        ),
        Knob(r"gpt-5", style, ("minimal", *TO_HIGH), can_be_off=False),
        Knob(
            r"gpt-\d",
            style,
            newest,
            can_be_off=False,
            source=seen("inspect_ai#5254, onyx#15008", "2026-09", "from GPT-6 Astra on thinking can't be off"),
        ),
        Knob("", style, EVERY_EFFORT),
    )


_SAMPLING = Sampling(
    never=r"(^|/)(o\d|gpt-([5-9]|[12]\d)(?!\d))",
    names=("temperature", "top_p", "frequency_penalty", "presence_penalty"),
)
RESPONSES = Contract(
    "openai-responses",
    "authenticity",
    OPENAI_RESPONSES,
    scope="pairs",
    takes="own",
    source=Source(
        _PAGE,
        "2026-11-16",
        "Reasoning models: items are paired by id; ciphertext is bound to item, organisation, endpoint",
    ),
    ladder=("unpair",),
    thinks_by_default=True,
    only_when_thinking=False,
    format="openai_responses",
    tools=ALL_TOOLS,
    knobs=_knobs("responses", (*_TO_XHIGH, "max")),
    answers=(_UNPAIRED, _NOT_FOUND, _UNVERIFIED, _DUPLICATE),
    sampling=_SAMPLING,
)
UNASKED = replace(
    RESPONSES,
    thinks_by_default=False,
    sampling=Sampling(
        while_thinking=("temperature", "top_p"),
        source=seen("vercel/ai#10932", "2026-11-19", "without an effort they are taken"),
    ),
)
PRESERVED = replace(
    RESPONSES,
    name="openai-preserved",
    source=Source(
        "https://developers.openai.com/api/docs/guides/preserved-reasoning",
        "2026-11-18",
        "Preserved reasoning: what stands behind an edited message is dropped without an error. The page names no "
        "models; from GPT-6 on, as far as we believe",
    ),
    binds_prefix=True,
    binds_silently=True,
)
CHAT = Contract(
    "openai-chat",
    "forbidden",
    NO_REASONING,
    takes="nothing",
    source=unverified("Chat Completions knows no reasoning in messages: unknown parameters are refused"),
    tools=ALL_TOOLS,
    knobs=_knobs("reasoning_effort", _TO_XHIGH),
    answers=(_UNKNOWN_FIELD,),
    sampling=_SAMPLING,
)

NEVER_REASONS = r"(^|/)(gpt-3|gpt-4|chatgpt-4|gpt-5(\.\d)?-chat)"
"""Models that don't reason."""

UNREASONING = seen(
    "pydantic-ai#3331",
    "2026-11",
    "asked for encrypted reasoning they refuse, and so they do where it is sent to them",
)


def unreasoning(contract: Contract) -> Contract:
    """Return the contract of a model that does not reason."""
    return replace(contract, kind="forbidden", scope="nowhere", takes="nothing", ladder=())


DOORS = (
    Door(
        comes_in="openai_chat",
        goes_up="openai_responses",
        models=r"(^|/)(gpt-\d|o\d|codex)",
        but=r"gpt-(3|4|5(\.[0-3])?(?![.\d]))|(^|/)o[134]|-chat|audio|realtime|search|image|transcribe|tts",
        needs="tools",
        is_refused=True,
        source=seen("onyx#15008, litellm", "2026-09", "Function tools are refused in Chat Completions from GPT-5.4 on"),
    ),
    Door(
        comes_in="openai_chat",
        goes_up="openai_responses",
        models=r"(^|/)((gpt-\d.*|o\d)-pro|(gpt-\d.*-)?codex)",
        but=r"codex-mini-latest$|gpt-4",
        source=seen(
            "reports of users", "2026-09", "-pro and codex models are served in Responses alone: 404 elsewhere"
        ),
    ),
)

ROW = ProviderRow(
    name="openai",
    hosts=r"(openai\.com|chatgpt\.com)$",
    models=r"gpt-oss|(^|/)(gpt|o\d|chatgpt|codex|computer-use)",
    base_url="https://api.openai.com/v1",
    key_prefixes=("sk-",),  # many other providers use this prefix, too
    formats=("openai_responses", "openai_chat"),
    rules="own",
    rows=(
        ModelRow(
            models="gpt-oss",
            contracts=(CHAT, RESPONSES),
            elsewhere=(FIELD_CONTRACT,),
            source=seen(
                "https://inference-docs.cerebras.ai/capabilities/reasoning", "2026-11-16", "open weights: `reasoning`"
            ),
        ),
        ModelRow(
            models=NEVER_REASONS,
            contracts=(CHAT, unreasoning(RESPONSES)),
            elsewhere=(unreasoning(RESPONSES),),
            source=UNREASONING,
        ),
        ModelRow(
            models=r"gpt-5\.[1-4](?!\d)(?!.*-(codex|pro))",
            contracts=(UNASKED, CHAT),
            elsewhere=(UNASKED,),
            source=seen(
                "Microsoft's reference of its SDK for AI projects, and recorded answers",
                "2026-11-19",
                "GPT-5.1 and 5.4 have the effort `none` where a request names none; 5, 5.5 and 5.6 have `medium`",
            ),
        ),
        ModelRow(
            models=r"gpt-([6-9]|\d\d)",
            contracts=(PRESERVED, CHAT),
            elsewhere=(PRESERVED,),
            source=unverified("the page on preserved reasoning names no models: from GPT-6 on, as far as we believe"),
        ),
        ModelRow(
            contracts=(RESPONSES, CHAT),
            elsewhere=(RESPONSES,),
        ),
    ),
    wanted_models=r"(^|/)(o[1-9]|gpt-([5-9]|[12]\d)|gpt-oss|codex)",
    makes=(OPENAI_RESPONSES_V1, BEDROCK_OPENAI_RESPONSES_V1),
    responses_tools=None,
    counts=("openai_responses",),
    holds=("conversations",),
    doors=DOORS,
    has_websocket=True,
    source=seen("https://developers.openai.com", "2026-11-16", "its address and formats; guide: WebSocket mode"),
    example_model="gpt-5.5",
    refusals=(*_OF_RESPONSES, *_OF_CHAT),
)
