"""Perplexity: its models' thinking is visible text."""

from thoughtline.providers.contract import Contract, unverified
from thoughtline.providers.dialects import NO_REASONING
from thoughtline.providers.knobs import NO_KNOB
from thoughtline.providers.row import ModelRow, ProviderRow
from thoughtline.providers.sources import OWN_PAGES

_CHAT = Contract(
    "no-reasoning",
    "forbidden",
    NO_REASONING,
    takes="nothing",
    source=unverified("Perplexity has no replay; <think> is visible text there"),
    knobs=(NO_KNOB,),
)

ROW = ProviderRow(
    name="perplexity",
    aliases=("perplexity-ai",),
    hosts=r"perplexity\.ai$",
    models="sonar",
    base_url="https://api.perplexity.ai",
    key_prefixes=("pplx-",),
    formats=("openai_chat",),
    paths={"openai_chat": "/chat/completions"},
    rules="own",
    rows=(ModelRow(contracts=(_CHAT,), elsewhere=()),),
    wants_back="never",
    source=OWN_PAGES,
)
