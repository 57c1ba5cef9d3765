"""Cohere: thinking chunks in the content, never checked."""

from thoughtline.providers.contract import Contract, Source
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.knobs import Knob
from thoughtline.providers.row import ModelRow, ProviderRow
from thoughtline.providers.sources import seen
from thoughtline.values.items import COHERE_V2

_PAGE = "https://docs.cohere.com/docs/reasoning"

COHERE = Dialect("cohere", "cohere_chunks", COHERE_V2, source=seen(_PAGE, "2026-11-16"))

_CHAT = Contract(
    "cohere",
    "advisory",
    COHERE,
    source=Source(_PAGE, "2026-11-16", "thinking chunks, unvalidated"),
    thinks_by_default=True,
    knobs=(Knob("", "token_budget"),),
)

ROW = ProviderRow(
    name="cohere",
    key_variables=("COHERE_API_KEY", "CO_API_KEY"),
    hosts=r"cohere\.(ai|com)$",
    models="command-|c4ai",
    # Cohere's own SDK expects the host. OpenAI's SDK expects the compatibility API, whose answers OpenAI's clients can
    # read.
    base_url="https://api.cohere.com",
    formats=("openai_chat",),
    bases={"openai_chat": "https://api.cohere.ai/compatibility/v1"},
    rules="own",
    rows=(ModelRow(contracts=(_CHAT,)),),
    makes=(COHERE_V2,),
    source=seen("https://docs.cohere.com", "2026-11", "its address and formats"),
)
