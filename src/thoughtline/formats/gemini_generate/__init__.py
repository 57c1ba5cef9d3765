"""Gemini's `generateContent`, on the Gemini API and on Vertex.

Reasoning is a part with `thought: true`, or a signature beside the payload of any other part. Calls may lack ids.
"""

from thoughtline.formats.gemini_generate.bodies import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from thoughtline.formats.gemini_generate.stream import StreamDecoder
from thoughtline.formats.gemini_generate.stream_encoder import StreamEncoder
from thoughtline.formats.gemini_generate.texts import TEXTS

__all__ = [
    "TEXTS",
    "StreamDecoder",
    "StreamEncoder",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
]
