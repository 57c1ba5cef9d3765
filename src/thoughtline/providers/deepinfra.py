"""DeepInfra: open models of other makers."""

from thoughtline.providers.shared import open_host
from thoughtline.providers.sources import OWN_PAGES

ROW = open_host(
    "deepinfra",
    r"deepinfra\.com$",
    "https://api.deepinfra.com/v1/openai",
    formats=("openai_chat", "anthropic_messages"),
    key_variables=("DEEPINFRA_API_KEY", "DEEPINFRA_TOKEN"),
    bases={"anthropic_messages": "https://api.deepinfra.com/anthropic"},
    source=OWN_PAGES,
)
