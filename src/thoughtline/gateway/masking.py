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


_QUOTED = re.compile(r"""(?P<mark>['"`\u2018\u201c])(?P<words>[^'"`\u2019\u201d]{1,200})['"`\u2019\u201d]""")
_RUN = 4
"""This many words in a row are a quotation; fewer occur by chance."""

MAX_COMPARED_BYTES = 2**20
MAX_COMPARED_WORDS = 300
"""Bytes of a request and characters of an error. Each word of the error is looked up in the request, on the event loop:
at most 50 ms."""


def without_quotes(words: str, body: bytes) -> str:
    """What a provider says about a request, without what it quotes of the words in it. Names of members, and values
    such as a model's name, stay."""
    if not words:
        return words
    if len(body) > MAX_COMPARED_BYTES:
        return "…"
    text, words = body.decode("utf-8", "replace"), words[:MAX_COMPARED_WORDS]
    words = _QUOTED.sub(
        lambda found: found[0] if _is_name(found["words"], text) else f"{found['mark']}…{found[0][-1]}", words
    )
    parts = words.split()
    quoted = [False] * len(parts)
    for at in range(len(parts) - _RUN + 1):
        if " ".join(parts[at : at + _RUN]) in text:
            quoted[at : at + _RUN] = [True] * _RUN
    kept: list[str] = []
    for part, is_quoted in zip(parts, quoted, strict=True):
        if not is_quoted:
            kept.append(part)
        elif kept[-1:] != ["…"]:
            kept.append("…")
    return " ".join(kept)


def _is_name(quoted: str, text: str) -> bool:
    """Whether it is not of the request's text, or a name or value of its own there."""
    quoted = quoted.rstrip(".… ")
    if quoted not in text:
        return True
    if " " in quoted or f'"{quoted}"' not in text:
        return False
    return re.search(rf'"(?:content|text|input)"\s*:\s*"{re.escape(quoted)}"', text) is None
