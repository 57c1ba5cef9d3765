"""Access to the admin API: with the admin token, by header or by the dashboard's cookie.

Browsers also send cookies for other sites' requests, so requests with a cookie must come from our own pages. The cookie
holds its expiry and a code made from the token, the store and the host it was made for, never the token itself: every
worker and replica on that store can check it, no other gateway can, and a new token ends them all.
"""

from __future__ import annotations

import hashlib
import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from thoughtline.destinations.credentials import credential_of
from thoughtline.gateway.access import is_direct, is_website
from thoughtline.gateway.admin.requests import AdminRequest
from thoughtline.gateway.headers import ADMIN_COOKIE
from thoughtline.gateway.state import State
from thoughtline.values.digests import secret_digest
from thoughtline.values.errors import Declined

COOKIE = ADMIN_COOKIE
COOKIE_SECONDS = 30 * 86400
_HARMLESS = frozenset({"GET", "HEAD", "OPTIONS"})


async def require_admin(request: AdminRequest) -> None:
    """Raise 401 without a reason, or 403 for a key that is valid for something else."""
    credential = credential_of(request.headers)
    if credential:
        await _require_token(request, credential)
        return
    if not is_cookie_valid(request.state, cookie_of(request), request.header(b"host")):
        raise unauthorized()
    is_change = request.method not in _HARMLESS
    if is_website(request.headers) or (is_change and not is_same_origin(request)):
        raise Declined(
            403,
            "cross_site",
            "Requests with the cookie must come from the dashboard itself.",
            "Send `Authorization: Bearer <admin token>` instead.",
        )


async def require_metrics_reader(request: AdminRequest) -> None:
    """Allow the admin, or a program on this machine, but no web page, and no caller behind a reverse proxy on it."""
    is_local = is_direct(request.headers, request.peer, request.http_version) and not is_website(request.headers)
    if is_local or request.state.settings.server.open_metrics:
        return
    await require_admin(request)


async def follow_link(request: AdminRequest, token: str) -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers that log a browser in, for a link that is valid once. Raises for any other."""
    state = request.state
    if is_website(request.headers):
        raise Declined(
            403, "cross_site", "This request comes from another web page.", "Paste the link into the address bar."
        )
    is_code = bool(state.admin.token) and hmac.compare_digest(
        secret_digest(token), secret_digest(state.admin.guard.code)
    )
    is_right = is_code or is_token_right(state, token)
    await state.admin.guard.judge(request.peer, is_right=is_right)
    if not is_right:
        raise unauthorized()
    if not state.admin.guard.use_link(token):
        raise Declined(401, "link_used", "This link has been used.", "Log in at / with the admin token.")
    return logged_in(request)


async def log_in(request: AdminRequest, token: str) -> tuple[tuple[bytes, bytes], ...]:
    """The same for the admin token from the form on our own page, which can be used any number of times."""
    if is_website(request.headers):
        raise Declined(403, "cross_site", "This request comes from another web page.", "Log in at / instead.")
    is_right = is_token_right(request.state, token)
    await request.state.admin.guard.judge(request.peer, is_right=is_right)
    if not is_right:
        raise unauthorized()
    return logged_in(request)


def logged_in(request: AdminRequest) -> tuple[tuple[bytes, bytes], ...]:
    secure = "; Secure" if request.scheme == "https" else ""
    value = make_cookie(request.state, request.header(b"host"))
    cookie = f"{COOKIE}={value}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Strict{secure}"
    return (b"set-cookie", cookie.encode()), (b"location", b"/")


def log_out(request: AdminRequest) -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers that remove the cookie. Other sites can't ask for it."""
    if is_website(request.headers) or not is_same_origin(request):
        raise Declined(403, "cross_site", "This request comes from another web page.", "Log out in the dashboard.")
    secure = "; Secure" if request.scheme == "https" else ""
    cookie = f"{COOKIE}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict{secure}"
    return (b"set-cookie", cookie.encode()), (b"location", b"/")


def unauthorized() -> Declined:
    return Declined(401, "unauthorized", "Unauthorized.")


def is_token_right(state: State, credential: str) -> bool:
    token = state.admin.token
    return bool(token) and hmac.compare_digest(secret_digest(credential), secret_digest(token or ""))


def make_cookie(state: State, host: str) -> str:
    ends = int(state.clock()) + COOKIE_SECONDS
    return f"{ends}.{_code(state, ends, host)}"


def is_cookie_valid(state: State, cookie: str, host: str) -> bool:
    ends, _, code = cookie.partition(".")
    if not state.admin.token or not (ends.isascii() and ends.isdecimal() and len(ends) < 16):
        return False
    is_right = hmac.compare_digest(code.encode("utf-8", "replace"), _code(state, int(ends), host).encode())
    return is_right and int(ends) > state.clock()


def is_same_origin(request: AdminRequest) -> bool:
    """Whether a browser reports our own origin: by `Sec-Fetch-Site`, or in older ones `Origin` compared with `Host`."""
    site = request.header(b"sec-fetch-site")
    if site:
        return site == "same-origin"
    try:
        origin = urlsplit(request.header(b"origin")).netloc
    except ValueError:
        return False
    return bool(origin) and origin.lower() == request.header(b"host").lower()


def who_asks(request: AdminRequest) -> str:
    """Return how the caller is known, for the log, without its credential."""
    state, credential = request.state, credential_of(request.headers)
    cookie = cookie_of(request)
    if credential and is_token_right(state, credential):
        return "token"
    if credential:
        key = state.keys.find(credential)
        return f"client key {key.name}" if key else "wrong token"
    if is_cookie_valid(state, cookie, request.header(b"host")):
        return f"cookie {hashlib.sha256(cookie.encode()).hexdigest()[:8]}"
    return "wrong cookie" if cookie else "no token"


async def _require_token(request: AdminRequest, credential: str) -> None:
    state = request.state
    is_right = is_token_right(state, credential)
    is_client_key = not is_right and state.keys.find(credential) is not None
    await state.admin.guard.judge(request.peer, is_right=is_right or is_client_key)
    if is_client_key:
        raise Declined(403, "not_admin", "A client key can't manage the gateway.", "Use the admin token.")
    if not is_right:
        raise unauthorized()


def cookie_of(request: AdminRequest) -> str:
    try:
        found = SimpleCookie(request.header(b"cookie")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _code(state: State, ends: int, host: str) -> str:
    place = state.services.envelope_key if state.durable is not None else state.admin.guard.code.encode()
    message = f"cookie {ends} {host.lower()} ".encode("latin-1", "replace") + place
    return hmac.new(secret_digest(state.admin.token or ""), message, hashlib.sha256).hexdigest()
