"""Values without their secrets, for people to look at."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

MASK = "***"
_PLAIN_OPTIONS = frozenset({"synchronous"})


def masked(secret: str | None) -> str | None:
    """Whether there is a secret, and nothing else about it."""
    return MASK if secret else None


def masked_url(url: str) -> str:
    """An address without its password, and without the values of its query, which may be one."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return MASK
    who, at, place = parts.netloc.rpartition("@")
    name = who.partition(":")[0] + ":" + MASK if ":" in who else MASK if parts.scheme.startswith("http") else who
    query = "&".join(_masked_option(option) for option in parts.query.split("&") if option)
    return urlunsplit((parts.scheme, f"{name}@{place}" if at else place, parts.path, query, ""))


def _masked_option(option: str) -> str:
    name, _, _ = option.partition("=")
    return option if name in _PLAIN_OPTIONS else f"{name}={MASK}"
