"""Who may manage: the holder of the admin token, by header or by the dashboard's cookie.

A cookie is sent by browsers for whoever asks, so what changes something by cookie must come from our own pages. It
holds when it ends and a code made with the token, never the token itself: every worker and replica can check it, and
with a new token all of them end.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from thoughtline.errors import Declined
from thoughtline.gateway.admin.requests import Request
from thoughtline.gateway.headers import ADMIN_COOKIE, credential_of
from thoughtline.gateway.state import State

COOKIE = ADMIN_COOKIE
COOKIE_SECONDS = 30 * 86400
_HARMLESS = frozenset({"GET", "HEAD", "OPTIONS"})
_FORWARDED = (b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"forwarded", b"via")


def require_admin(request: Request) -> None:
    """Raises 401 without saying why, or 403 for a key that is good for something else."""
    credential = credential_of(request.headers, "")
    if credential:
        _require_token(request.state, credential)
        return
    if not is_cookie_valid(request.state, _cookie(request)):
        raise unauthorized()
    if request.method not in _HARMLESS and not is_same_origin(request):
        raise Declined(
            403,
            "cross_site",
            "A change by cookie must come from the dashboard itself.",
            "Send `Authorization: Bearer <admin token>` instead.",
        )


def require_metrics_reader(request: Request) -> None:
    """The admin, or a program of this machine: not somebody for whom a reverse proxy on it asks."""
    if is_loopback(request.peer) and not any(name in request.headers for name in _FORWARDED):
        return
    require_admin(request)


def login(state: State, token: str, scheme: str) -> tuple[tuple[bytes, bytes], ...]:
    """The headers that make a browser the admin's. Raises for a wrong token."""
    if not is_token_right(state, token):
        raise unauthorized()
    secure = "; Secure" if scheme == "https" else ""
    cookie = f"{COOKIE}={make_cookie(state)}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Strict{secure}"
    return (b"set-cookie", cookie.encode()), (b"location", b"/")


def unauthorized() -> Declined:
    return Declined(401, "unauthorized", "Unauthorized.")


def is_token_right(state: State, told: str) -> bool:
    token = state.admin_token
    return bool(token) and hmac.compare_digest(_digest(told), _digest(token or ""))


def make_cookie(state: State) -> str:
    ends = int(state.clock()) + COOKIE_SECONDS
    return f"{ends}.{_code(state, ends)}"


def is_cookie_valid(state: State, cookie: str) -> bool:
    ends, _, code = cookie.partition(".")
    if not state.admin_token or not (ends.isascii() and ends.isdecimal() and len(ends) < 16):
        return False
    is_right = hmac.compare_digest(code.encode("utf-8", "replace"), _code(state, int(ends)).encode())
    return is_right and int(ends) > state.clock()


def is_same_origin(request: Request) -> bool:
    """By what browsers say and pages can't: `Sec-Fetch-Site`, or for older ones `Origin` against `Host`."""
    site = request.header(b"sec-fetch-site")
    if site:
        return site == "same-origin"
    try:
        origin = urlsplit(request.header(b"origin")).netloc
    except ValueError:
        return False
    return bool(origin) and origin.lower() == request.header(b"host").lower()


def is_loopback(peer: str) -> bool:
    try:
        return ipaddress.ip_address(peer).is_loopback
    except ValueError:
        return False


def _require_token(state: State, credential: str) -> None:
    if is_token_right(state, credential):
        return
    if state.keys.find(credential) is not None:
        raise Declined(403, "not_admin", "A client key can't manage the gateway.", "Use the admin token.")
    raise unauthorized()


def _cookie(request: Request) -> str:
    try:
        found = SimpleCookie(request.header(b"cookie")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _code(state: State, ends: int) -> str:
    token = state.admin_token or ""
    return hmac.new(_digest(token), f"cookie {ends}".encode(), hashlib.sha256).hexdigest()


def _digest(text: str) -> bytes:
    """Of one length, so that comparing takes one time."""
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()
