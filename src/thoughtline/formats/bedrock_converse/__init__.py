"""Bedrock's Converse and ConverseStream, for every model that Bedrock serves.

A content block is an object with one member that says what it is; reasoning is `reasoningContent`, text with a
signature or a redacted blob.
"""

from thoughtline.formats.bedrock_converse.bodies import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from thoughtline.formats.bedrock_converse.stream import StreamDecoder
from thoughtline.formats.bedrock_converse.stream_encoder import StreamEncoder
from thoughtline.formats.bedrock_converse.texts import TEXTS

__all__ = [
    "TEXTS",
    "StreamDecoder",
    "StreamEncoder",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
]
