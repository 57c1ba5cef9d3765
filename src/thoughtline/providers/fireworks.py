"""Fireworks: open models of other makers."""

from thoughtline.providers.refusals import says
from thoughtline.providers.shared import open_host
from thoughtline.providers.sources import OWN_PAGES, unverified

ROW = open_host(
    "fireworks",
    r"fireworks\.ai$",
    "https://api.fireworks.ai/inference/v1",
    formats=("openai_chat", "openai_responses", "anthropic_messages"),
    key_prefixes=("fw_",),
    refusals=(
        says(
            "forbidden",
            "drop_member",
            "Extra inputs are not permitted, field: '{element_member}'",
            source=unverified("how it refuses a member that its schema does not have"),
        ),
    ),
    source=OWN_PAGES,
)
