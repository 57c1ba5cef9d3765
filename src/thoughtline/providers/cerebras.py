"""Cerebras: `reasoning` on messages, and inside the content for GLM. It refuses `reasoning_content`."""

from msgspec.structs import replace

from thoughtline.providers.contract import Source
from thoughtline.providers.dialects import THINK_TAGS
from thoughtline.providers.knobs import NO_KNOB
from thoughtline.providers.refusals import says
from thoughtline.providers.row import ModelRow, ProviderRow
from thoughtline.providers.shared import FIELD_CONTRACT
from thoughtline.providers.sources import seen

_TAGS = replace(
    FIELD_CONTRACT,
    name="think-tags",
    dialect=THINK_TAGS,
    source=Source(
        "https://inference-docs.cerebras.ai/capabilities/reasoning", "2026-11-16", "GLM: <think> in the content"
    ),
    knobs=(NO_KNOB,),
)

_UNSUPPORTED = r"<(?:[\w.]+: )?>property '%s' is unsupported"
_REPORT = seen("kilocode#10375, free-claude-code#1136", "2026-11", "one violation per line")
_SETTING = "<setting:reasoning|thinking|enable_thinking|thinking_budget|clear_thinking|preserve_thinking>"

ROW = ProviderRow(
    name="cerebras",
    hosts=r"cerebras\.ai$",
    base_url="https://api.cerebras.ai/v1",
    key_prefixes=("csk-",),
    formats=("openai_chat",),
    rules="own",
    rows=(
        ModelRow(models="glm", contracts=(_TAGS,), source=_TAGS.source),
        ModelRow(contracts=(FIELD_CONTRACT,)),
    ),
    wants_back="never",
    source=seen("https://inference-docs.cerebras.ai", "2026-11", "its address and formats"),
    refusals=(
        says("forbidden", "strip_field", _UNSUPPORTED % "{message_field}", source=_REPORT),
        says("forbidden", "drop_member", _UNSUPPORTED % "{element_member}", source=_REPORT),
        says(
            "forbidden",
            "drop_member",
            _UNSUPPORTED % _SETTING,
            codes=frozenset({"wrong_api_format"}),
            source=_REPORT,
        ),
    ),
)
