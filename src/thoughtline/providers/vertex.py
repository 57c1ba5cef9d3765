"""Google's Vertex AI: Gemini under Gemini's contracts, Claude under Anthropic's, each in its maker's format.

It is a provider of its own because no documentation says whether signatures are valid across Vertex and the Gemini API.
"""

from thoughtline.providers.gemini import GOOGLE_FORMS
from thoughtline.providers.gemini import ROW as GEMINI
from thoughtline.providers.row import ProviderRow
from thoughtline.providers.sources import seen

HOST = "aiplatform.googleapis.com"
"""The host of `global`. The host of any other location follows from its name."""


def host_of(location: str) -> str:
    """Return the host of a location: https://cloud.google.com/vertex-ai/docs/reference/rest#rest_endpoints, and
    Google's own SDKs; read 2026-11."""
    if location == "global":
        return HOST
    return f"aiplatform.{location}.rep.googleapis.com" if location in ("us", "eu") else f"{location}-{HOST}"


ROW = ProviderRow(
    name="vertex",
    traced_as="gcp.vertex_ai",
    aliases=("vertex-ai", "vertexai", "google-vertex-ai"),
    hosts=r"(^|-|\.)aiplatform(\.\w+\.rep)?\.googleapis\.com$",
    base_url=f"https://{HOST}",
    formats=("gemini_generate", "anthropic_messages"),
    tool_forms=GOOGLE_FORMS,
    rules="makers",
    rows=(),
    asks=(GEMINI.asks[0], ("gemini", GEMINI.asks[-1][1])),
    guests={"anthropic": "anthropic_messages"},
    is_located=True,
    source=seen(
        "https://cloud.google.com/vertex-ai/docs/reference/rest",
        "2026-11",
        "its addresses, and who publishes a model; whether a signature of the Gemini API is good here is not said",
    ),
    example_model="gemini-3-pro-preview",
)
