"""vLLM: a self-hosted server that passes `reasoning` to the model's template."""

from thoughtline.providers.dialects import REASONING
from thoughtline.providers.row import ModelRow
from thoughtline.providers.shared import FIELD_CONTRACT, open_host
from thoughtline.providers.sources import seen

ROW = open_host(
    "vllm",
    "(?!)",
    "http://127.0.0.1:8000/v1",
    formats=("openai_chat", "openai_responses", "anthropic_messages"),
    rows=(ModelRow(contracts=(FIELD_CONTRACT,)),),
    dialect=REASONING,
    wants_back="by model",
    is_lenient=False,
    template_at="tokenize",
    source=seen("https://docs.vllm.ai", "2026-11", "its address and formats, and `/tokenize`"),
)
