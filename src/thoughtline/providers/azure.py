"""Azure OpenAI: OpenAI's contracts, and ciphertext that is bound to the resource."""

from msgspec.structs import replace

from thoughtline.providers import deepseek, openai
from thoughtline.providers.contract import Source, unverified
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.row import ModelRow, ProviderRow
from thoughtline.providers.sources import seen
from thoughtline.values.items import AZURE_OPENAI_RESPONSES_V1

AZURE_RESPONSES = Dialect(
    "azure_responses",
    "native",
    AZURE_OPENAI_RESPONSES_V1,
    source=seen("https://github.com/openai/codex/issues/3573", "2026-11-16"),
)

_RESPONSES = replace(
    openai.RESPONSES,
    name="azure-responses",
    dialect=AZURE_RESPONSES,
    source=Source(
        "https://github.com/openai/codex/issues/3573", "2026-11-16", "as OpenAI, ciphertext bound to the resource"
    ),
)

FOUNDRY = ProviderRow(
    name="azure-foundry",
    aliases=("foundry",),
    key_variables=("ANTHROPIC_FOUNDRY_API_KEY",),
    hosts=r"services\.ai\.azure\.com$",
    base_url="",  # https://RESOURCE.services.ai.azure.com/anthropic, with the customer's own resource
    formats=("anthropic_messages",),
    auth="x-api-key",
    rules="makers",
    rows=(),
    wants_back="always",
    has_documented_field=False,
    source=seen("windmill#9908", "2026-11-18", "Anthropic's API, names and rules"),
)
"""Claude in Microsoft's Foundry."""

ROW = ProviderRow(
    name="azure",
    aliases=("azure-openai",),
    key_variables=("AZURE_OPENAI_API_KEY",),
    traced_as="azure.ai.openai",
    hosts=r"^[\w.-]*(openai|cognitiveservices)\.azure\.com(?::\d+)?(?:/.*)?$"
    r"|^[\w.-]*services\.ai\.azure\.com(?::\d+)?/(openai|models)(?:/.*)?$",
    base_url="",  # https://RESOURCE.openai.azure.com/openai/v1, with the customer's own resource
    formats=("openai_responses", "openai_chat"),
    auth="api-key",
    rules="own",
    rows=(
        ModelRow(
            models=openai.NEVER_REASONS,
            contracts=(openai.unreasoning(_RESPONSES), openai.CHAT),
            source=openai.UNREASONING,
        ),
        ModelRow(
            models=r"deepseek(?![-_ ]?(r1|v3[.p]?2))",
            contracts=(deepseek.RESPONSES, openai.CHAT),
            source=unverified("DeepSeek's own rule, served by Azure"),
        ),
        ModelRow(contracts=(_RESPONSES, openai.CHAT)),
    ),
    wants_back="always",
    makes=(AZURE_OPENAI_RESPONSES_V1,),
    responses_tools=None,
    failures={"ratelimitreached": "busy"},
    holds=("conversations",),
    doors=openai.DOORS,
    has_websocket=True,
    source=seen(
        "https://learn.microsoft.com/azure/foundry/openai/how-to/websockets",
        "2026-11-16",
        "its address and formats, and that Responses can be asked over a WebSocket",
    ),
)
