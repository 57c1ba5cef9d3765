"""SambaNova: open models of others."""

from thoughtline.providers.shared import open_host

ROW = open_host("sambanova", r"sambanova\.ai$", "https://api.sambanova.ai/v1", formats=("openai_chat",))
