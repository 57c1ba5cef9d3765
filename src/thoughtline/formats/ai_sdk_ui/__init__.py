"""The AI SDK's UI message stream, version 1: what a browser gets. Stream only; there is no request of this shape.

Seals travel in `providerMetadata`, on any part. Shapes: vercel/ai `ui-message-chunks.ts`, read 2026-11.
"""

from thoughtline.formats.ai_sdk_ui.stream import StreamDecoder
from thoughtline.formats.ai_sdk_ui.stream_encoder import StreamEncoder
from thoughtline.formats.wire import StreamWire
from thoughtline.providers import AI_SDK

WIRE = StreamWire(name="ai_sdk_ui", dialect=AI_SDK, stream_decoder=StreamDecoder, stream_encoder=StreamEncoder)
