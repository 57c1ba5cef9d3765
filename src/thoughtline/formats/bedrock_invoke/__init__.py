"""Bedrock's InvokeModel for Claude: the Messages API with the model in the URL, in Amazon's framing.

The body is that of the Messages API without `model` and `stream`, and with `anthropic_version`; other makers' models
have bodies of their own, which are not supported. A message of the stream holds one Messages event in base64, and
padding.
"""

from __future__ import annotations

from msgspec.structs import replace

from thoughtline.formats import anthropic_messages
from thoughtline.formats.anthropic_messages import options as messages_options
from thoughtline.formats.aws_event_stream import CONTENT_TYPE
from thoughtline.formats.bedrock_invoke.stream import StreamDecoder, StreamEncoder
from thoughtline.formats.vendor_shapes import AMAZON_ERRORS, OPENAI_MODELS, amazon_paths
from thoughtline.formats.wire import BodyCodec
from thoughtline.providers import Dialect
from thoughtline.values.options import Options, WrittenOptions
from thoughtline.values.turns import Reply, Transcript

VERSION = "bedrock-2023-05-31"

_MESSAGES = anthropic_messages.WIRE
_CLIENT_PATH, _UPSTREAM_PATH = amazon_paths("invoke", "invoke-with-response-stream")
_IN_ADDRESS = ("model", "stream")


def _decode_request(body: bytes, dialect: Dialect) -> Transcript:
    return replace(_MESSAGES.bodies.decode_request(body, dialect), format="bedrock_invoke")


def _decode_response(body: bytes, dialect: Dialect) -> Reply:
    return replace(_MESSAGES.bodies.decode_response(body, dialect), format="bedrock_invoke")


class _Options:
    """The options of the Messages API, except those in the URL."""

    decode_options = staticmethod(messages_options.decode_options)
    decode_media = staticmethod(messages_options.decode_media)
    encode_media = staticmethod(messages_options.encode_media)
    decode_result = staticmethod(messages_options.decode_result)
    encode_result = staticmethod(messages_options.encode_result)

    def encode_options(self, options: Options, dialect: Dialect, /) -> WrittenOptions:
        written = messages_options.encode_options(options, dialect)
        kept = tuple(pair for pair in written.members if pair[0] not in _IN_ADDRESS)
        return written._replace(members=(("anthropic_version", b'"' + VERSION.encode() + b'"'), *kept))


WIRE = replace(
    _MESSAGES,
    name="bedrock_invoke",
    family="bedrock-invoke",
    bodies=BodyCodec(
        _decode_request, _MESSAGES.bodies.encode_request, _decode_response, _MESSAGES.bodies.encode_response
    ),
    stream_decoder=StreamDecoder,
    stream_encoder=StreamEncoder,
    stream_type=CONTENT_TYPE.encode(),
    telling_members=("anthropic_version",),
    telling_words=(),
    client_path=_CLIENT_PATH,
    upstream_path=_UPSTREAM_PATH,
    published=None,
    count_path=None,
    headers=(),
    models=OPENAI_MODELS,
    errors=AMAZON_ERRORS,
    options=_Options(),
    texts=_MESSAGES.texts._replace(framing=None),  # binary, with checksums: encoded again
    response_prefix="msg_bdrk_",
    held=None,
    quirks=_MESSAGES.quirks | {"models_elsewhere", "shared_address", "signed_requests", "streamed_by_address"},
)
