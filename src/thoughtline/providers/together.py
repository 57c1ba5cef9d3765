"""Together: open models of other makers, with reasoning in `reasoning`."""

from thoughtline.providers.dialects import REASONING
from thoughtline.providers.row import ModelRow
from thoughtline.providers.shared import FIELD_CONTRACT, open_host
from thoughtline.providers.sources import OWN_PAGES

ROW = open_host(
    "together",
    r"together\.(ai|xyz)$",
    "https://api.together.xyz/v1",
    formats=("openai_chat",),
    rows=(ModelRow(contracts=(FIELD_CONTRACT,)),),
    dialect=REASONING,
    source=OWN_PAGES,
)
