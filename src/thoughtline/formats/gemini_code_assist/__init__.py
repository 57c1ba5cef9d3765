"""Code Assist's `v1internal`, used by Gemini CLI after a login and by Antigravity: `generateContent` in an envelope.

    {"model": …, "project": …, "request": {"contents": …}}      {"response": {"candidates": …}, "traceId": …}

The content is Gemini's own, decoded and encoded by its codec. Errors have no envelope.
"""

from msgspec.structs import replace

from thoughtline.formats import gemini_generate
from thoughtline.formats.gemini_code_assist import envelopes
from thoughtline.formats.gemini_generate import METHODS
from thoughtline.formats.paths import ClientPath, is_lead
from thoughtline.formats.wire import MessagePlace, body_codec

_VERSION = "v1internal"
_GENERATE = gemini_generate.WIRE


def _client_path(segments: list[str]) -> ClientPath | None:
    """`/v1internal:METHOD`: the model is in the body."""
    version, _, method = segments[-1].partition(":") if segments else ("", "", "")
    if version != _VERSION or method not in METHODS or not is_lead(segments[:-1]):
        return None
    action, is_streaming = METHODS[method]
    return ClientPath(segments[:-1], action, is_streaming=is_streaming)


def _upstream_path(base: str, method: str) -> str:
    return f"{base.removesuffix(f'/{_VERSION}')}/{_VERSION}:{method}"


WIRE = replace(
    _GENERATE,
    name="gemini_code_assist",
    family="gemini-code-assist",
    bodies=body_codec(envelopes),
    stream_decoder=envelopes.StreamDecoder,
    stream_encoder=envelopes.StreamEncoder,
    inside="request",
    message=MessagePlace(("response", *_GENERATE.message.path), _GENERATE.message.role, _GENERATE.message.content),
    telling_members=("request",),
    client_path=_client_path,
    upstream_path=lambda base, model, is_streaming: _upstream_path(
        base, "streamGenerateContent" if is_streaming else "generateContent"
    ),
    published=None,
    count_path=lambda base, model: _upstream_path(base, "countTokens"),
    version=_VERSION,
    models=_GENERATE.models._replace(path="(?!)"),
    texts=envelopes.TEXTS,
    quirks=(_GENERATE.quirks - {"key_in_query"}) | {"models_elsewhere"},
)
