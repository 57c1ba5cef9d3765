"""Signature Version 4, as AWS checks it: with the key of its own documentation's examples, and no other.

AWS, "Create a signed AWS API request" (read 2026-11). A request without a signature shows a bearer key: any will do.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator
from hashlib import sha256
from urllib.parse import quote

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.refusals import bedrock_error
from thoughtline_sim.values import HttpRequest, Rejection

KEY_ID = "AKIAIOSFODNN7EXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
_METHOD = "AWS4-HMAC-SHA256"
_SIGNED = re.compile(
    _METHOD + r" Credential=(\w+)/(\d{8}/[\w-]+/bedrock/aws4_request), *SignedHeaders=([\w;-]+), *Signature=(\w+)"
)
_UNKNOWN = "The security token included in the request is invalid."
_WRONG = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key "
    "and signing method. Consult the service documentation for details."
)


def signature_holds(exchange: SimExchange) -> Iterator[Rejection]:
    shown = exchange.request.headers.get("authorization", "")
    if not shown.startswith("AWS4-"):
        return
    found = _SIGNED.fullmatch(shown)
    if found is None or found[1] != KEY_ID:
        yield bedrock_error(_UNKNOWN, 403, "UnrecognizedClientException")
    elif not hmac.compare_digest(signature_of(exchange.request, found[2], found[3].split(";")), found[4]):
        yield bedrock_error(_WRONG, 403, "InvalidSignatureException")


def signature_of(request: HttpRequest, scope: str, names: list[str]) -> str:
    """What the signature of a request has to be."""
    key = b"AWS4" + SECRET.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    lines = (_METHOD, request.headers.get("x-amz-date", ""), scope, _digest(_canonical(request, names).encode()))
    return hmac.digest(key, "\n".join(lines).encode(), "sha256").hex()


def _canonical(request: HttpRequest, names: list[str]) -> str:
    query = "&".join(
        f"{quote(name, safe='~')}={quote(value, safe='~')}" for name, value in sorted(request.query.items())
    )
    headers = "".join(f"{name}:{' '.join(request.headers.get(name, '').split())}\n" for name in names)
    path = quote(request.raw_path, safe="/~")
    return "\n".join((request.method, path, query, headers, ";".join(names), _digest(request.body)))


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()
