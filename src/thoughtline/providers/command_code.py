"""Command Code: a CLI with a subscription to models of many makers, and its provider API.

`/provider/v1` accepts Chat Completions, and Messages for Claude. `/alpha/generate` is the CLI's own address: it answers
with the AI SDK's stream parts, requires `x-command-code-version`, and serves no other client. So requests are
translated to the first. The second is for the CLI itself, and for a `[providers.command-code]` that names its format.
"""

from thoughtline.providers.contract import Contract, Source
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.knobs import CLAUDE_EFFORTS, Knob
from thoughtline.providers.row import ModelRow
from thoughtline.providers.shared import CONTENT_CONTRACT, open_host
from thoughtline.providers.sources import seen
from thoughtline.values.items import COMMAND_CODE_V1

_REPORT = "https://github.com/CommandCodeAI/command-code/issues/754"

COMMAND_CODE = Dialect("command_code", "native", COMMAND_CODE_V1, source=seen(_REPORT, "2026-11-18"))

_GENERATE = Contract(
    "command-code",
    "advisory",
    COMMAND_CODE,
    source=Source(
        _REPORT,
        "2026-11-18",
        "takes `reasoning` parts back and refuses none that is missing",
    ),
    thinks_by_default=True,
    may_seal=True,
    format="command_code_generate",
    knobs=(Knob("", "reasoning_effort", CLAUDE_EFFORTS, can_be_off=False),),
)

ROW = open_host(
    "command-code",
    r"commandcode\.ai$",
    "https://api.commandcode.ai/provider/v1",
    formats=("openai_chat", "anthropic_messages", "command_code_generate"),
    rows=(ModelRow(contracts=(CONTENT_CONTRACT, _GENERATE)),),
    aliases=("commandcode", "cmc"),
    bases={"command_code_generate": "https://api.commandcode.ai"},
    guests={"anthropic": "anthropic_messages"},
    owns=("command_code_generate",),
    may_seal=True,
    makes=(COMMAND_CODE_V1,),
    source=seen("OmniRoute#10265", "2026-11-18", '"Proxy use detected. This endpoint only serves CLI."'),
    key_variables=("COMMAND_CODE_API_KEY", "COMMANDCODE_API_KEY", "CMD_API_KEY"),
)
