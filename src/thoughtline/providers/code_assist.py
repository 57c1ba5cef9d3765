"""Google's Code Assist, used by Antigravity and by Gemini CLI after a login: Gemini's contracts, and Claude's for
Claude.

Both send `generateContent` in an envelope. There, Claude's thinking is a part with a signature that is base64-encoded
once more than Anthropic's, so no other API accepts it.
"""

from msgspec.structs import replace

from thoughtline.providers.anthropic import generations
from thoughtline.providers.contract import Contract, Source
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.gemini import GOOGLE_FORMS, MODELS_2, NATIVE, NATIVE_2
from thoughtline.providers.knobs import Knob
from thoughtline.providers.row import ModelRow, ProviderRow
from thoughtline.providers.sources import seen
from thoughtline.values.items import ANTIGRAVITY_CLAUDE_V1, GOOGLE_GEMINI_V1

_CLAUDE_SOURCE = Source(
    "https://github.com/router-for-me/CLIProxyAPI/pull/570",
    "2026-11-16",
    "Claude at Antigravity: signatures are checked, no sentinel passes, unsigned thinking is refused",
)
ANTIGRAVITY_CLAUDE = Dialect("antigravity_claude", "native", ANTIGRAVITY_CLAUDE_V1, source=_CLAUDE_SOURCE)


def _gemini(contract: Contract) -> Contract:
    return replace(contract, name=f"code-assist-{contract.name}", format="gemini_code_assist")


def _claude(contract: Contract) -> Contract:
    return replace(
        contract,
        name=f"antigravity-{contract.name}",
        format="gemini_code_assist",
        dialect=ANTIGRAVITY_CLAUDE,
        source=_CLAUDE_SOURCE,
        refuses_unsigned=True,
        knobs=(Knob("", "gemini_budget", budgets=(1_024, 64_000), can_be_off=contract.knobs[-1].can_be_off),),
    )


CODE_ASSIST = ProviderRow(
    name="code-assist",
    traced_as="gcp.gemini",
    aliases=("gemini-code-assist", "cloudcode"),
    hosts=r"^cloudcode-pa\.googleapis\.com$",
    base_url="https://cloudcode-pa.googleapis.com",
    formats=("gemini_code_assist",),
    tool_forms=GOOGLE_FORMS,
    owns=("gemini_code_assist",),
    rules="own",
    rows=(
        *generations(lambda claude: (_claude(claude),)),
        ModelRow(models=MODELS_2, contracts=(_gemini(NATIVE_2),), source=NATIVE_2.source),
        ModelRow(contracts=(_gemini(NATIVE),)),
    ),
    wants_back="always",
    makes=(GOOGLE_GEMINI_V1, ANTIGRAVITY_CLAUDE_V1),
    example_model="gemini-3-pro-preview",
    source=seen("google-gemini/gemini-cli, CLIProxyAPI", "2026-11-16", "the address that clients ask after a login"),
)
ANTIGRAVITY = replace(
    CODE_ASSIST,
    name="antigravity",
    aliases=(),
    hosts=r"cloudcode-pa\.(sandbox\.)?googleapis\.com$",
    base_url="https://daily-cloudcode-pa.googleapis.com",
    owns=(),
)
