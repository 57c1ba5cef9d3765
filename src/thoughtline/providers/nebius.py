"""Nebius: open models of others."""

from thoughtline.providers.shared import open_host

ROW = open_host("nebius", r"(nebius\.(ai|com))$", "https://api.tokenfactory.nebius.com/v1", formats=("openai_chat",))
