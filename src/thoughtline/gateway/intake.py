"""A request taken in: its body, unpacked where it will be looked at, and what it says of its session and model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from thoughtline.formats.weighing import check_weight
from thoughtline.gateway.asgi import Receive, read_body
from thoughtline.gateway.encodings import unpacked
from thoughtline.gateway.routing import Route
from thoughtline.replayer import Replayer, first_model, guess_model
from thoughtline.sessions import identity_of
from thoughtline.values.errors import LimitExceeded
from thoughtline.values.identity import Identity


class Taken(NamedTuple):
    """`encoding` is left where the body is passed on as it came."""

    identity: Identity
    body: bytes
    encoding: str
    model: str


async def take_in(
    receive: Receive, tenant: str, headers: Mapping[bytes, bytes], route: Route, replayer: Replayer, limit: int
) -> Taken:
    """Read a request to its end. What is large is worked on where it holds nobody up."""
    body = await read_body(receive, headers.get(b"content-length", b""), limit)
    encoding = headers.get(b"content-encoding", b"").decode("latin-1")
    if route.action == "passthrough" or route.format is None:
        return Taken(Identity(tenant), body, encoding, "")
    if encoding:
        body = await replayer.work_for(body)(partial(unpacked, body, encoding, limit))
    identity, model = await replayer.work_for(body)(partial(_peek, tenant, headers, body))
    return Taken(identity, body, "", model)


def _peek(tenant: str, headers: Mapping[bytes, bytes], body: bytes) -> tuple[Identity, str]:
    """The session and the model that a request names; of a body that is too much to read, only what is seen at once."""
    try:
        check_weight(body)
    except LimitExceeded:
        return identity_of(tenant, headers, b""), first_model(body)
    return identity_of(tenant, headers, body), guess_model(body)
