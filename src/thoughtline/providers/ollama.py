"""Ollama: a self-hosted server. `thinking` in its own format, `reasoning` in OpenAI's; nothing is enforced."""

from thoughtline.providers.contract import Contract, Source
from thoughtline.providers.dialects import REASONING, Dialect
from thoughtline.providers.knobs import EVERY_EFFORT, TO_HIGH, Knob
from thoughtline.providers.refusals import says
from thoughtline.providers.row import ModelRow, ProviderRow
from thoughtline.providers.sources import seen
from thoughtline.providers.tool_forms import ToolForms

_PAGE = "https://ollama.com/blog/thinking"

OLLAMA = Dialect("ollama", "native", source=seen(_PAGE, "2026-11-16"))
OLLAMA_TAGS = Dialect("ollama_tags", "think_tags", source=seen(_PAGE, "2026-11-16", "of models that it does not know"))

_EFFORTS = seen(
    "ollama/ollama#14820, openai/openai.go", "2026-11-19", "chat reads `reasoning_effort` alone, of any maker"
)
_PLAIN = "^(llama|gemma2|gemma3|mistral|phi)"
_NATIVE = Contract(
    "ollama",
    "advisory",
    OLLAMA,
    source=Source(_PAGE, "2026-11-16", "thinking in and out, nothing enforced"),
    thinks_by_default=True,
    format="ollama_chat",
    knobs=(
        Knob(_PLAIN, "no_knob"),
        Knob("gpt-oss", "think_level", TO_HIGH, can_be_off=False),
        Knob("", "think"),
    ),
)

ROW = ProviderRow(
    name="ollama",
    hosts=r"(?!)",
    base_url="http://127.0.0.1:11434",
    source=seen("ollama/ollama, server", "2026-11-16", "its address and formats"),
    tool_forms=ToolForms(
        names=r".{1,256}",
        has_plain_top=False,
        source=seen("ollama/ollama, server", "2026-11-16", "it checks neither names nor schemas"),
    ),
    formats=("ollama_chat", "openai_chat", "openai_responses", "anthropic_messages"),
    auth="none",
    owns=("ollama_chat",),
    rules="makers",
    rows=(ModelRow(contracts=(_NATIVE,)),),
    dialect=REASONING,
    switches=("think", "reasoning_effort", "reasoning"),
    knobs=(
        Knob(_PLAIN, "no_knob"),
        Knob("gpt-oss", "reasoning_effort", TO_HIGH, can_be_off=False, source=_EFFORTS),
        Knob("", "reasoning_effort", EVERY_EFFORT, source=_EFFORTS),
    ),
    template_at="show",
    refusals=(
        says(
            "thinking-unsupported",
            "stop_asking",
            r"<(?:registry\.\S{1,100} )?><\\?[\"'`][^\"'`\\]{1,200}\\?[\"'`]> does not support <thinking|reasoning>",
            field="think",
            source=seen("ollama/ollama, server", "2026-11-16"),
        ),
    ),
)
