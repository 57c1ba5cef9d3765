"""SambaNova: open models of other makers."""

from thoughtline.providers.shared import open_host
from thoughtline.providers.sources import OWN_PAGES

ROW = open_host(
    "sambanova",
    r"sambanova\.ai$",
    "https://api.sambanova.ai/v1",
    formats=("openai_chat",),
    source=OWN_PAGES,
)
