"""SiliconFlow: open models of other makers."""

from thoughtline.providers.shared import open_host
from thoughtline.providers.sources import OWN_PAGES

ROW = open_host(
    "siliconflow",
    r"siliconflow\.(cn|com)$",
    "https://api.siliconflow.com/v1",
    formats=("openai_chat", "anthropic_messages"),
    source=OWN_PAGES,
)
