"""opencode's Go plan: open models of other makers, from several hosts."""

from thoughtline.providers.shared import open_host
from thoughtline.providers.sources import seen

ROW = open_host(
    "opencode-go",
    r"opencode\.ai$",
    "https://opencode.ai/zen/go/v1",
    formats=("openai_chat", "anthropic_messages"),
    rows=(),
    key_variables=("OPENCODE_API_KEY",),
    may_seal=True,
    is_lenient=False,
    source=seen("https://opencode.ai/docs", "2026-11", "its address and formats"),
)
