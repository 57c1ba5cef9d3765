"""What Bedrock's APIs have in common: a model in the address, and Amazon's errors."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from thoughtline.formats.errors import read_error, word_for
from thoughtline.formats.json_text import encode
from thoughtline.formats.paths import ClientPath, FindsPath
from thoughtline.formats.wire import ErrorCodec
from thoughtline.values.errors import ErrorReply

# Amazon Bedrock API reference, Converse, Errors; 401 of the service's common errors.
_TYPES = {
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}


def model_paths(whole: str, streamed: str) -> tuple[FindsPath, Callable[[str, str, bool], str]]:
    """`/model/MODEL/METHOD`, recognised and made, of an API whose methods are these."""

    def find(segments: list[str]) -> ClientPath | None:
        match segments:
            case ["model", model, method] if model and method in (whole, streamed):
                return ClientPath(model=model, is_streaming=method == streamed)
            case _:
                return None

    def make(base: str, model: str, is_streaming: bool) -> str:
        return f"{base}/model/{quote(model, safe='')}/{streamed if is_streaming else whole}"

    return find, make


def _write(error: ErrorReply) -> bytes:
    """Amazon names the error in a header; its SDKs look for `__type` where that is missing, JavaScript's for `code`
    before that: ours is the `reason`."""
    kind = word_for(_TYPES, error.status, client="ValidationException", server="InternalServerException")
    return encode({"__type": kind, "message": error.message} | ({"reason": error.code} if error.is_ours else {}))


AMAZON_ERRORS = ErrorCodec(
    read_error,
    lambda error: {"message": error.message},
    _write,
    failures={
        "serviceunavailableexception": "overloaded",
        "modelnotreadyexception": "overloaded",
        "throttlingexception": "busy",
        "modeltimeoutexception": "late",
        "internalserverexception": "broken",
        "modelstreamerrorexception": "broken",
    },
)
