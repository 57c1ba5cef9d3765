"""Ollama's own API: `/api/chat`, and `/api/generate` read as a conversation of one prompt.

Reasoning is `thinking` beside the content; a stream is one JSON object a line.
"""

from thoughtline.formats.ollama_chat.chat import decode_request, decode_response, encode_request, encode_response
from thoughtline.formats.ollama_chat.stream import StreamDecoder, StreamEncoder
from thoughtline.formats.ollama_chat.texts import TEXTS

__all__ = [
    "TEXTS",
    "StreamDecoder",
    "StreamEncoder",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
]
