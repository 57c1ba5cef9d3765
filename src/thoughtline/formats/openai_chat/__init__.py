"""Chat Completions and all that speak it: DeepSeek, Kimi, MiMo, GLM, Qwen, MiniMax, OpenRouter, Groq, Cerebras,
Mistral, Cohere, Copilot, xAI, local servers, and Gemini's compatible endpoint.

What differs between them, where reasoning stands, is a `Dialect`.
"""

from thoughtline.formats.openai_chat.requests import decode_request, encode_request
from thoughtline.formats.openai_chat.responses import decode_response, encode_response
from thoughtline.formats.openai_chat.stream import StreamDecoder
from thoughtline.formats.openai_chat.stream_encoder import StreamEncoder
from thoughtline.formats.openai_chat.texts import TEXTS

__all__ = [
    "TEXTS",
    "StreamDecoder",
    "StreamEncoder",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
]
