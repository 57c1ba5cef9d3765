"""Groq: `reasoning` on messages. It refuses `reasoning_content`."""

from thoughtline.providers.row import ModelRow, ProviderRow
from thoughtline.providers.shared import FIELD_CONTRACT, UNSUPPORTED_FIELD, UNSUPPORTED_MEMBER
from thoughtline.providers.sources import OWN_PAGES

ROW = ProviderRow(
    name="groq",
    hosts=r"groq\.com$",
    base_url="https://api.groq.com/openai/v1",
    key_prefixes=("gsk_",),
    formats=("openai_chat", "openai_responses"),
    rules="own",
    rows=(ModelRow(contracts=(FIELD_CONTRACT,)),),
    wants_back="never",
    source=OWN_PAGES,
    refusals=(UNSUPPORTED_FIELD, UNSUPPORTED_MEMBER),
)
