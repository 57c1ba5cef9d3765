"""The Responses API: OpenAI, Azure, xAI, and the faces of this shape that DeepSeek, OpenRouter and local servers have.

A conversation is a flat list of elements. Reasoning is an element of its own, before what it led to, and pairs with it
by ids.
"""

from thoughtline.formats.openai_responses.bodies import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from thoughtline.formats.openai_responses.stream import StreamDecoder
from thoughtline.formats.openai_responses.stream_encoder import StreamEncoder
from thoughtline.formats.openai_responses.texts import TEXTS

__all__ = [
    "TEXTS",
    "StreamDecoder",
    "StreamEncoder",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
]
