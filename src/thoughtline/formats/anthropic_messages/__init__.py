"""The Messages API: Anthropic itself, Vertex, and the faces of this shape that DeepSeek, Kimi, MiMo and MiniMax have.

Reasoning is `thinking` and `redacted_thinking` blocks, in their place among the others. Other proxies write blocks of
type `reasoning`, which are read too.
"""

from thoughtline.formats.anthropic_messages.bodies import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from thoughtline.formats.anthropic_messages.stream import StreamDecoder
from thoughtline.formats.anthropic_messages.stream_encoder import StreamEncoder
from thoughtline.formats.anthropic_messages.texts import TEXTS

__all__ = [
    "TEXTS",
    "StreamDecoder",
    "StreamEncoder",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
]
