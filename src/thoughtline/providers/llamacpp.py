"""llama.cpp: a self-hosted server that passes `reasoning_content` to the model's template."""

from thoughtline.providers.shared import open_host
from thoughtline.providers.sources import seen

ROW = open_host(
    "llamacpp",
    "(?!)",
    "http://127.0.0.1:8080/v1",
    formats=("openai_chat", "openai_responses", "anthropic_messages"),
    aliases=("llama.cpp", "llama-server"),
    wants_back="by model",
    is_lenient=False,
    template_at="apply-template",
    source=seen("ggml-org/llama.cpp, tools/server", "2026-11", "its address and formats, and `/apply-template`"),
)
