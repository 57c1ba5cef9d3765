"""The dashboard: static files that read the admin API, in a browser with the admin's cookie.

Views have their own addresses (`/memory`, `/requests/ID`), all answered with one page; files are under `/assets/`. The
page contains no secrets: it gets its data from the API. `vendor/lock.json` says where `vendor/` came from.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from thoughtline.gateway.admin.access import cookie_of, is_cookie_valid
from thoughtline.gateway.admin.requests import AdminRequest, Whole
from thoughtline.providers import canonical_name
from thoughtline.values.errors import Declined

VIEWS = frozenset(
    {"live", "requests", "sessions", "memory", "health", "connect", "contracts", "audit", "settings"},
)
HTML = "text/html; charset=utf-8"
_TYPES = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
_ICON = "favicon.svg"
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)


class Asset(NamedTuple):
    """A file and its content type."""

    content: bytes
    content_type: str


def is_view(scope: Mapping[str, Any], providers: Container[str]) -> bool:
    """Whether it is a view for a browser. A program's request to such an address may be for a default provider, and a
    provider of that name takes precedence."""
    first = scope["path"].lstrip("/").partition("/")[0]
    if first not in VIEWS or canonical_name(first) in providers:
        return False
    return any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])


def is_for_people(request: AdminRequest) -> bool:
    """Whether a browser wants a page to show."""
    return "text/html" in request.header(b"accept")


async def page(request: AdminRequest) -> Whole:
    """Return the page. Without a login it has a mark, so that it need not ask the API to find out."""
    text = _page()
    if not is_cookie_valid(request.state, cookie_of(request), request.header(b"host")):
        text = text.replace(b"<body>", b"<body data-logged-out>")
    return Whole(text, content_type=HTML, headers=((b"content-security-policy", _POLICY),))


async def asset(request: AdminRequest) -> Whole:
    found = _assets().get(request.names["file"])
    if found is None:
        raise Declined(404, "unknown_path", "Unknown address.", "The dashboard is at /.")
    return Whole(found.content, content_type=found.content_type)


async def icon(request: AdminRequest) -> Whole:
    """Return the icon that browsers request next to any address, such as one of the API."""
    found = _assets()[_ICON]
    return Whole(found.content, content_type=found.content_type)


@cache
def _page() -> bytes:
    return (files(__name__) / "index.html").read_bytes()


@cache
def _assets() -> dict[str, Asset]:
    """Return all files by name; there are few, and no other can be requested."""
    folders = (files(__name__), files(__name__) / "vendor")
    return {
        file.name: Asset(file.read_bytes(), _TYPES[kind])
        for folder in folders
        for file in folder.iterdir()
        if (kind := file.name.rpartition(".")[2]) in _TYPES
    }
