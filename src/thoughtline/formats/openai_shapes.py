"""What OpenAI's formats share, and other formats have from them: errors and lists of models."""

from __future__ import annotations

from thoughtline.formats.errors import read_error, word_for
from thoughtline.formats.json_text import encode
from thoughtline.formats.wire import ErrorCodec, ModelList
from thoughtline.values.errors import ErrorReply

_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def _error(error: ErrorReply) -> dict[str, object]:
    """A 404 is an `invalid_request_error` too."""
    kind = word_for(_TYPES, error.status, client="invalid_request_error", server="server_error")
    return {"message": error.message, "type": kind, "param": error.param, "code": error.code}


def _models(names: tuple[str, ...]) -> bytes:
    return encode({"object": "list", "data": [_model(name) for name in names]})


def _model(name: str) -> dict[str, object]:
    owner = name.partition("/")[0] if "/" in name else "thoughtline"
    return {"id": name, "object": "model", "created": 0, "owned_by": owner}


OPENAI_ERRORS = ErrorCodec(
    read_error,
    _error,
    lambda error: encode({"error": _error(error)}),
    failures={
        "server_is_overloaded": "overloaded",
        "server_overloaded": "overloaded",
        "rate_limit_error": "busy",
        "rate_limit_exceeded": "busy",
        "server_error": "broken",
    },
)
OPENAI_MODELS = ModelList(encode=_models, query="", path="", header=b"")
