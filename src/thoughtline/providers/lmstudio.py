"""LM Studio: a self-hosted server."""

from thoughtline.providers.shared import open_host
from thoughtline.providers.sources import seen

ROW = open_host(
    "lmstudio",
    "(?!)",
    "http://127.0.0.1:1234/v1",
    formats=("openai_chat", "openai_responses", "anthropic_messages"),
    wants_back="by model",
    is_lenient=False,
    source=seen("https://lmstudio.ai/docs", "2026-11", "its address and formats"),
)
