"""Removes secrets from values that people see."""

from __future__ import annotations

import functools
import re

from thoughtline.destinations.catalogue import looks_secret
from thoughtline.providers import FactTable, facts

MASK = "***"
_URL = re.compile(r"(?P<scheme>[\w+.-]+:(?://)?)(?:(?P<who>[^/?#]*)@)?(?P<place>[^?#]*)(?:\?(?P<query>[^#]*))?.*", re.S)
_PLAIN_OPTIONS = frozenset({"synchronous"})


def masked(secret: str | None) -> str | None:
    """Return a mask if there is a secret, and nothing else about it."""
    return MASK if secret else None


def masked_url(url: str) -> str:
    """Return an address without its user and password, and without the values of its query: they may be secret."""
    found = _URL.fullmatch(url)
    if found is None:
        return MASK if url else ""
    who = f"{MASK}@" if found["who"] else ""
    query = "&".join(map(_masked_option, filter(None, (found["query"] or "").split("&"))))
    return f"{found['scheme']}{who}{found['place']}{'?' if query else ''}{query}"


def _masked_option(option: str) -> str:
    name = option.partition("=")[0]
    return option if name in _PLAIN_OPTIONS else f"{name}={MASK}"


@functools.lru_cache(2)
def _keys_in(table: FactTable) -> re.Pattern[str]:
    """Return a pattern of provider keys and our own by their prefixes, and of bearer tokens."""
    prefixes = ("tl-", *(prefix for row in table.every_row for prefix in row.key_prefixes))
    return re.compile(rf"(?i)(bearer\s+|\b(?:{'|'.join(map(re.escape, prefixes))}))[\w.*+/=-]{{6,}}")


_WORD = re.compile(r"[\w.*+/=-]{8,}")


def masked_words(text: str, most: int) -> str:
    """Return the beginning of a text, on one line, without keys and seals that it may quote."""
    words = _keys_in(facts()).sub(rf"\1{MASK}", " ".join(text[: 4 * most].split()))
    words = _WORD.sub(lambda word: word[0][:4] + MASK if looks_secret("", word[0]) else word[0], words)
    return words if len(words) <= most else f"{words[: most - 1]}…"


def masked_body(body: bytes) -> str:
    """Return a body without anything that looks like a key."""
    return _keys_in(facts()).sub(rf"\1{MASK}", body.decode("utf-8", "replace"))
