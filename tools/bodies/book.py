"""What passed, digested under a name.

Replaced, since it is random by design: the ids of requests, and of responses that the gateway makes (`resp_` and 48
digits, numbered as they come). An envelope is replaced too: what it holds has a digest of its own.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx

from tools.bodies.servers import Sent, Upstream

_RESPONSE_ID = re.compile(rb"resp_[0-9a-f]{48}(?![0-9a-f])")
_ENVELOPE = re.compile(rb"TLT1[A-Za-z0-9+/_-]{40,}={0,2}")
_MARK_AND_TAG_BYTES = 3 + 16
_ACCIDENTS = ("host", "content-length", "authorization", "x-api-key", "x-goog-api-key", "api-key")


class Book:
    """Digests by name; the bytes themselves too, if there is a folder for them."""

    def __init__(self, folder: Path | None = None, only: str = "") -> None:
        self.digests: dict[str, str] = {}
        self.statuses: Counter[int] = Counter()
        self._folder = folder
        self._only = only

    def wants(self, title: str) -> bool:
        return self._only in title

    def write(self, name: str, data: bytes) -> None:
        self.digests[name] = hashlib.sha256(data).hexdigest()[:24]
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / quote(name, safe="")[-240:]).write_bytes(data)

    @contextlib.contextmanager
    def connected(self) -> Iterator[None]:
        """Connections of one gateway's own: the next may get its port."""
        with httpx.Client(timeout=120) as self._http:
            yield

    def post(self, name: str, url: str, body: bytes, *, key: str, upstream: Upstream) -> httpx.Response:
        """Ask the gateway; write down what it sent up, and what it answered."""
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json", "user-agent": "bodies"}
        response = self._http.post(url, content=body, headers=headers)
        self.statuses[response.status_code] += 1
        for number, one in enumerate(upstream.taken()):
            self.write(f"{name} up {number}", _plain(one.line.encode() + b"\n" + one.body))
            self.write(f"{name} up {number} headers", _plain(_headers(one)))
        down = f"{response.status_code} {response.headers.get('content-type')}\n".encode() + response.content
        request_id = response.headers.get("x-thoughtline-request", "-").encode()
        self.write(f"{name} down", _plain(down.replace(request_id, b"REQUEST")))
        self.write(f"{name} down headers", _own_headers(response))
        if held := [_opened(token) for token in _ENVELOPE.findall(response.content)]:
            self.write(f"{name} envelopes", _plain(b"\n".join(held)))
        return response


def _headers(sent: Sent) -> bytes:
    return "\n".join(f"{name}: {value}" for name, value in sent.headers if name not in _ACCIDENTS).encode()


def _own_headers(response: httpx.Response) -> bytes:
    own = [(name, value) for name, value in response.headers.items() if name.startswith("x-thoughtline-")]
    return "\n".join(f"{name}: {value}" for name, value in sorted(own) if name != "x-thoughtline-request").encode()


def _plain(data: bytes) -> bytes:
    """Without what is random: the ids are numbered in the order of their first appearance."""
    ids = list(dict.fromkeys(_RESPONSE_ID.findall(data)))
    data = _RESPONSE_ID.sub(lambda found: b"resp_%d" % ids.index(found[0]), data)
    return _ENVELOPE.sub(b"ENVELOPE", data)


def _opened(token: bytes) -> bytes:
    """The JSON in an envelope, whose layout clients hold for as long as a conversation lasts."""
    standard = token.translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=")
    data = base64.b64decode(standard + b"=" * (-len(standard) % 4))
    return zlib.decompress(data[_MARK_AND_TAG_BYTES:])
