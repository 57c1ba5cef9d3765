"""The audit trail: a log line for each admin request with its caller, action, origin and result.

Successful probes and metrics are left out; refusals are included. It holds no token, cookie or key, and nothing that
was read.
"""

from __future__ import annotations

from msgspec import Struct

from thoughtline.gateway.admin.access import who_asks
from thoughtline.gateway.admin.requests import AdminRequest, Stream, Whole

LONGEST = 500
"""Maximum length of text from outside: a query, an address that a proxy names, a change."""


class AdminLine(Struct, frozen=True, rename={"address": "from"}, omit_defaults=True):
    """`who` is `token`, `cookie` with a digest of it, `link`, `form`, a client key's name, or what was wrong.

    `forwarded` is the origin that a proxy claims. `done` is what was changed.
    """

    event: str
    at: float
    who: str
    method: str
    path: str
    address: str
    status: int
    query: str = ""
    forwarded: str = ""
    code: str = ""
    done: str = ""


def record(request: AdminRequest, path: str, answer: Whole | Stream, *, is_open: bool) -> None:
    """Write a line, unless the address was open to that caller and the request succeeded."""
    status = answer.status if isinstance(answer, Whole) else 200
    is_login = path == "/login"
    if is_open and not is_login and status < 400:
        return
    forwarded = request.header(b"forwarded") or request.header(b"x-forwarded-for")
    request.state.journal.note(
        AdminLine(
            event="admin",
            at=request.state.clock(),
            who=_login(request, status) if is_login else who_asks(request),
            method=request.method,
            path=path[:LONGEST],
            address=request.peer,
            status=status,
            query="" if is_login or status >= 400 else request.query[:LONGEST],  # of a refused one, anything
            forwarded=forwarded[:LONGEST],
            code=answer.code if isinstance(answer, Whole) else "",
            done=answer.done[:LONGEST] if isinstance(answer, Whole) else "",
        )
    )


def _login(request: AdminRequest, status: int) -> str:
    kind = "form" if request.method == "POST" else "link"
    return kind if status < 400 else f"wrong {kind}"
