"""What Google's formats share: errors and lists of models."""

from __future__ import annotations

from thoughtline.formats.errors import read_error, word_for
from thoughtline.formats.json_text import encode
from thoughtline.formats.wire import ErrorCodec, ModelList
from thoughtline.values.errors import ErrorReply

METHODS = ("generateContent", "streamGenerateContent", "countTokens")

# google.rpc.Code; 502 as gRPC maps it (grpc/grpc doc/http-grpc-status-mapping.md).
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def _error(error: ErrorReply) -> dict[str, object]:
    status = word_for(_STATUSES, error.status, client="INVALID_ARGUMENT", server="INTERNAL")
    written: dict[str, object] = {"code": error.status, "message": error.message, "status": status}
    if error.is_ours:
        kind = "type.googleapis.com/google.rpc.ErrorInfo"
        written["details"] = [{"@type": kind, "reason": error.code, "domain": "thoughtline"}]
    return written


def _models(names: tuple[str, ...]) -> bytes:
    methods = list(METHODS)
    models = [{"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods} for name in names]
    return encode({"models": models})


GOOGLE_ERRORS = ErrorCodec(
    read_error,
    _error,
    lambda error: encode({"error": _error(error)}),
    failures={
        "unavailable": "overloaded",
        "resource_exhausted": "busy",
        "deadline_exceeded": "late",
        "internal": "broken",
    },
)
# 50 a page if nothing is said.
GOOGLE_MODELS = ModelList(encode=_models, query="pageSize=1000", path=r"/v1(beta|alpha)", header=b"")
