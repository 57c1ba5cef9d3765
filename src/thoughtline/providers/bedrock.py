"""AWS Bedrock: Anthropic's contracts for Claude, no demands by most other models; two models refuse reasoning.

InvokeModel is read for Claude only: a request in Anthropic's form is for Claude, whatever the model is called (an ARN
does not say).
"""

from __future__ import annotations

from msgspec.structs import replace

from thoughtline.providers.anthropic import CLAUDE, generations
from thoughtline.providers.contract import Contract, Source, unverified
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.knobs import ALWAYS_THINKS, TO_HIGH, Knob
from thoughtline.providers.refusals import says
from thoughtline.providers.row import ModelRow, ProviderRow, RelayedMaker
from thoughtline.providers.sources import seen
from thoughtline.values.items import ANTHROPIC_CLAUDE_V1
from thoughtline.values.options import FUNCTIONS_ONLY

_BLOCKS = "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ReasoningContentBlock.html"

BEDROCK_CLAUDE = Dialect("bedrock_claude", "native", ANTHROPIC_CLAUDE_V1, source=seen(_BLOCKS, "2026-11-16"))
BEDROCK_PLAIN = Dialect("bedrock_plain", "native", source=seen(_BLOCKS, "2026-11-16"))

_NO_REASONING = says(
    "forbidden",
    "drop_block",
    "User messages cannot contain reasoning content…. Please remove the reasoning content and try again.",
    field="reasoningContent",
    source=seen("langchain-aws#401", "2026-11"),
)
_REFUSALS = (
    _NO_REASONING,
    says(
        "forbidden",
        "drop_member",
        "This model doesn't support the reasoningContent.reasoningText.<field:signature> field",
        dropped="messages[].content[].reasoningContent.reasoningText.signature",
        source=seen("strands PR#682, pi#686", "2026-11"),
    ),
    says(
        "missing",
        "add_filler_text",
        r"<(?:\d{1,4} validation errors? detected: )?>Value <(?:null )?>at '<path:messages\.\w{1,6}\.member\.content"
        r"\.\w{1,6}\.member>.reasoningContent.reasoningText.<field:text>' failed to satisfy constraint: "
        "Member must not be null",
        counts_from=1,
        source=seen("LibreChat PR#13888", "2026-11", "AWS counts the members of a list from 1"),
    ),
    says(
        "thinking-last",
        "drop_block",
        "This model does not support assistant <(?:message )?>prefill",
        field="reasoningContent",
        source=seen(
            "hermes-agent#105780",
            "2026-11",
            "names no field: it is about reasoning only where the last turn is nothing else, and elsewhere there is no "
            "block to drop",
        ),
    ),
    says(
        "foreign",
        "strip_seal",
        "<[Ee]ncrypted[ _]content> <(?:is )?>missing recognized prefix",
        field="encrypted_content",
        source=seen("bifrost encryptedreasoning.go", "2026-11", "Mantle"),
    ),
    says(
        "forbidden",
        "drop_member",
        r"#/<path:messages/\d{1,6}(?:/content/\d{1,6})?>: extraneous key [{member}] is not permitted",
        source=unverified("how it refuses a member that its schema does not have"),
    ),
)

_PREFIX = (
    r"ValidationException: |The model returned the following errors: "
    r"|An error occurred \(ValidationException\) when calling the \w{1,60} operation(?: \([^)]{1,60}\))?: "
    r"|(?:\w{1,60}: )?operation error Bedrock Runtime: .{0,400}?ValidationException: "
)


def _on_invoke(claude: Contract) -> Contract:
    return replace(claude, format="bedrock_invoke")


def _on_converse(claude: Contract) -> Contract:
    return replace(claude, format="bedrock_converse", dialect=BEDROCK_CLAUDE, tools=FUNCTIONS_ONLY)


_CLAUDE = replace(
    _on_converse(CLAUDE),
    name="bedrock-claude",
    source=Source(_BLOCKS, "2026-11-16", "Anthropic's rules behind Converse"),
)


def _contracts(claude: Contract) -> tuple[Contract, ...]:
    return _CLAUDE if claude is CLAUDE else _on_converse(claude), _on_invoke(claude)


_PLAIN = Contract(
    "bedrock-plain",
    "advisory",
    BEDROCK_PLAIN,
    source=seen(
        "strands PR#682, pi#686",
        "2026-11-16",
        "gpt-oss on Converse: text is taken, a signature is refused; so we believe of Qwen, Kimi and MiniMax",
    ),
    format="bedrock_converse",
    knobs=(ALWAYS_THINKS,),
)
_FORBIDDEN = replace(
    _PLAIN,
    name="bedrock-forbidden",
    kind="forbidden",
    takes="nothing",
    source=Source("https://github.com/langchain-ai/langchain-aws/issues/401", "2026-11-16", "Nova likewise; a 400"),
    knobs=(Knob("nova", "nova", TO_HIGH), ALWAYS_THINKS),
    answers=(_NO_REASONING,),
)

SIGNED_SERVICE = "bedrock"
"""The service that a signature names, and the region it names. A host without a region is in the default one."""
REGION_IN_HOST = r"(?:^|\.)bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\."
USUAL_REGION = "us-east-1"

MANTLE = ProviderRow(
    name="bedrock-mantle",
    aliases=("mantle",),
    key_variables=("AWS_BEARER_TOKEN_BEDROCK",),
    traced_as="aws.bedrock",
    hosts=r"(^|\.)bedrock-mantle\.[\w-]+\.api\.aws$",
    base_url=f"https://bedrock-mantle.{USUAL_REGION}.api.aws/v1",
    formats=("anthropic_messages", "openai_responses"),
    bases={"anthropic_messages": f"https://bedrock-mantle.{USUAL_REGION}.api.aws/anthropic"},
    rules="makers",
    rows=(),
    wants_back="by contract",
    has_documented_field=False,
    source=seen("https://docs.aws.amazon.com/bedrock", "2026-11", "its address and formats"),
)
"""Bedrock in the makers' own formats, with a Bedrock API key. For another region, set another base_url and other bases.
"""

ROW = ProviderRow(
    name="bedrock",
    key_variables=("AWS_BEARER_TOKEN_BEDROCK",),
    traced_as="aws.bedrock",
    aliases=("aws-bedrock",),
    hosts=r"amazonaws\.com$",
    models=r"amazon\.nova|nova-(\d|pro|lite|micro|premier)",
    # With a Bedrock API key: a request signed for another host can't be passed on. For another region, set another
    # base_url.
    base_url=f"https://bedrock-runtime.{USUAL_REGION}.amazonaws.com",
    formats=("bedrock_converse", "bedrock_invoke"),
    owns=("bedrock_converse", "bedrock_invoke"),
    rules="makers",
    rows=(
        *generations(_contracts),
        ModelRow(
            models=r"nova|deepseek[-_. ]?r1",
            contracts=(_FORBIDDEN,),
            source=seen("langchain-aws#401, oh-my-pi PR#9086", "2026-11-16", "DeepSeek-R1, and Nova"),
        ),
        ModelRow(
            models="gpt-oss",
            contracts=(replace(_PLAIN, thinks_by_default=True), _on_invoke(CLAUDE)),
            source=seen("https://inference-docs.cerebras.ai/capabilities/reasoning", "2026-11-16", "it always thinks"),
        ),
        ModelRow(contracts=(_PLAIN, _on_invoke(CLAUDE))),
    ),
    wants_back="by contract",  # Nova and DeepSeek refuse reasoning there, Claude demands it
    has_documented_field=False,
    source=seen("https://docs.aws.amazon.com/bedrock", "2026-11", "its address and formats"),
    refusals=_REFUSALS,
    relays=RelayedMaker(maker="anthropic", prefix=_PREFIX),
)
