"""Azure OpenAI: OpenAI's rules, and ciphertext that is bound to the resource."""

from msgspec.structs import replace

from thoughtline.providers import deepseek, openai
from thoughtline.providers.contract import unverified
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.row import ModelRow, ProviderRow
from thoughtline.values.items import AZURE_OPENAI_RESPONSES_V1

AZURE_RESPONSES = Dialect("azure_responses", "native", AZURE_OPENAI_RESPONSES_V1)

_RESPONSES = replace(
    openai.RESPONSES,
    name="azure-responses",
    dialect=AZURE_RESPONSES,
    source=unverified("as OpenAI, ciphertext bound to the resource: load balancing across resources is refused"),
)

ROW = ProviderRow(
    name="azure",
    hosts=r"(openai\.azure\.com|cognitiveservices\.azure\.com)$",
    models=r"(?!)",
    base_url="",  # https://RESOURCE.openai.azure.com/openai/v1: the resource is the customer's own.
    formats=("openai_responses", "openai_chat"),
    auth="api-key",
    rules="own",
    rows=(
        ModelRow(
            models=openai.NEVER_REASONS,
            contracts={"openai_responses": openai.unreasoning(_RESPONSES), "openai_chat": openai.CHAT},
        ),
        ModelRow(
            models=r"deepseek(?![-_ ]?(r1|v3[.p]?2))",
            contracts={"openai_responses": deepseek.RESPONSES, "openai_chat": openai.CHAT},
        ),
        ModelRow(models="", contracts={"openai_responses": _RESPONSES, "openai_chat": openai.CHAT}),
    ),
    wants_back="always",
    has_documented_field=True,
    makes=(AZURE_OPENAI_RESPONSES_V1,),
    responses_tools=None,
    holds=("conversations",),
    refusals=(),
)
