"""opencode's Go plan: open models of others, whoever serves them."""

from thoughtline.providers.shared import open_host

ROW = open_host(
    "opencode-go",
    r"opencode\.ai$",
    "https://opencode.ai/zen/go/v1",
    formats=("openai_chat", "anthropic_messages"),
    rows=(),
    key_variables=("OPENCODE_API_KEY",),
    may_seal=True,
    is_lenient=False,
)
