"""Nebius: open models of other makers."""

from thoughtline.providers.shared import open_host
from thoughtline.providers.sources import OWN_PAGES

ROW = open_host(
    "nebius",
    r"(nebius\.(ai|com))$",
    "https://api.tokenfactory.nebius.com/v1",
    formats=("openai_chat",),
    source=OWN_PAGES,
)
