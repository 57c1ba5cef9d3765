"""Shared shapes of a vendor's formats: errors, lists of models, URLs, token counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import quote

import msgspec

from thoughtline.formats.bodies import UsageMembers
from thoughtline.formats.errors import read_error, word_for
from thoughtline.formats.json_text import encode
from thoughtline.formats.paths import ClientPath, FindsPath
from thoughtline.formats.thinking import MemberEdit
from thoughtline.formats.wire import ErrorCodec, ModelList
from thoughtline.values.errors import ErrorReply
from thoughtline.values.turns import Usage

# --- OpenAI ----------------------------------------------------------------------------------------------------------

_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def _openai_error(error: ErrorReply) -> dict[str, object]:
    """A 404 is an `invalid_request_error` too."""
    kind = word_for(_OPENAI_TYPES, error.status, client="invalid_request_error", server="server_error")
    return {"message": error.message, "type": kind, "param": error.param, "code": error.code}


def _openai_models(names: tuple[str, ...]) -> bytes:
    return encode({"object": "list", "data": [_openai_model(name) for name in names]})


def _openai_model(name: str) -> dict[str, object]:
    owner = name.partition("/")[0] if "/" in name else "thoughtline"
    return {"id": name, "object": "model", "created": 0, "owned_by": owner}


OPENAI_ERRORS = ErrorCodec(
    read_error,
    _openai_error,
    lambda error: encode({"error": _openai_error(error)}),
    failures={
        "server_is_overloaded": "overloaded",
        "server_overloaded": "overloaded",
        "rate_limit_error": "busy",
        "rate_limit_exceeded": "busy",
        "server_error": "broken",
    },
)
OPENAI_MODELS = ModelList(encode=_openai_models, query="", path="", header=b"")


# --- Google ----------------------------------------------------------------------------------------------------------

_GOOGLE_METHODS = ["generateContent", "streamGenerateContent", "countTokens"]

# google.rpc.Code; 502 as gRPC maps it (grpc/grpc doc/http-grpc-status-mapping.md).
_GOOGLE_STATUSES = {
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


def _google_error(error: ErrorReply) -> dict[str, object]:
    status = word_for(_GOOGLE_STATUSES, error.status, client="INVALID_ARGUMENT", server="INTERNAL")
    written: dict[str, object] = {"code": error.status, "message": error.message, "status": status}
    if error.is_ours:
        kind = "type.googleapis.com/google.rpc.ErrorInfo"
        written["details"] = [{"@type": kind, "reason": error.code, "domain": "thoughtline"}]
    return written


def _google_models(names: tuple[str, ...]) -> bytes:
    shared = {"supportedGenerationMethods": _GOOGLE_METHODS}
    return encode({"models": [{"name": f"models/{name}", "displayName": name} | shared for name in names]})


GOOGLE_ERRORS = ErrorCodec(
    read_error,
    _google_error,
    lambda error: encode({"error": _google_error(error)}),
    failures={
        "unavailable": "overloaded",
        "resource_exhausted": "busy",
        "deadline_exceeded": "late",
        "internal": "broken",
    },
)
# 50 per page by default.
GOOGLE_MODELS = ModelList(encode=_google_models, query="pageSize=1000", path=r"/v1(beta|alpha)", header=b"")


class GoogleUsage(UsageMembers):
    """Google counts thoughts apart from the answer; here they are part of the output."""

    def __init__(self, place: str, *, input: str, output: str, thoughts: str, cached: str, total: str) -> None:
        super().__init__(place, input=input, output=f"{output} {thoughts}", reasoning=thoughts, cached=cached)
        self._names = (input, output, thoughts, cached, total)

    def encode(self, usage: Usage) -> bytes:
        answer, total = usage.output - usage.reasoning, usage.input + usage.output
        return encode(dict(zip(self._names, (usage.input, answer, usage.reasoning, usage.cached, total), strict=True)))


def without_settings(members: Sequence[str], names: Sequence[str]) -> Callable[[bytes], list[MemberEdit]]:
    """For requests that ask for thinking among other settings, which stay. `members` are the spellings
    of the member.
    """

    def unasked(body: bytes) -> list[MemberEdit]:
        request = msgspec.json.decode(body)
        for member in members:
            settings = request.get(member)
            if isinstance(settings, dict):
                kept = {name: value for name, value in settings.items() if name not in names}
                return [(member, msgspec.json.encode(kept))] if kept != settings else []
        return []

    return unasked


# --- Amazon ----------------------------------------------------------------------------------------------------------

# Amazon Bedrock API reference, Converse, Errors; 401 of the service's common errors.
_AMAZON_TYPES = {
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}


def amazon_paths(whole: str, streamed: str) -> tuple[FindsPath, Callable[[str, str, bool], str]]:
    """`/model/MODEL/METHOD`, recognized and built, for an API with these methods."""

    def find(segments: list[str]) -> ClientPath | None:
        match segments:
            case ["model", model, method] if model and method in (whole, streamed):
                return ClientPath(model=model, is_streaming=method == streamed)
            case _:
                return None

    def make(base: str, model: str, is_streaming: bool) -> str:
        return f"{base}/model/{quote(model, safe='')}/{streamed if is_streaming else whole}"

    return find, make


def _amazon_body(error: ErrorReply) -> bytes:
    """Amazon names the error in a header; without it, its SDKs read `__type`, JavaScript's `code` first: ours is the
    `reason`.
    """
    kind = word_for(_AMAZON_TYPES, error.status, client="ValidationException", server="InternalServerException")
    return encode({"__type": kind, "message": error.message} | ({"reason": error.code} if error.is_ours else {}))


AMAZON_ERRORS = ErrorCodec(
    read_error,
    lambda error: {"message": error.message},
    _amazon_body,
    failures={
        "serviceunavailableexception": "overloaded",
        "modelnotreadyexception": "overloaded",
        "throttlingexception": "busy",
        "modeltimeoutexception": "late",
        "internalserverexception": "broken",
        "modelstreamerrorexception": "broken",
    },
)
