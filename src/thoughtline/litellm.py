"""The callback for LiteLLM: `callbacks: ["thoughtline.litellm.callback"]`. The code is in `library.litellm`."""

from __future__ import annotations

from thoughtline.library.litellm import Callback as Callback
from thoughtline.library.litellm import callback as callback
