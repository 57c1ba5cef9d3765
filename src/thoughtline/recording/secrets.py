"""Finds secrets in a text, with their places and kinds. Pure.

Keys are recognised by the prefixes of providers and hosts, by the name in front of them, and by looking random.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal, NamedTuple

SecretKind = Literal["key", "file", "mail", "home", "id", "account"]

_START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))"
"""The beginning of a word, also after a line break that is written as an escape."""

_KEYS = re.compile(
    rf"""{_START}(?:
        (?:sk|pk|rk|gsk|xai|hf|ghp|gho|ghs|ghu|pat|nvapi|r8|fw|tgp|csk|pplx|glpat|xox[abps]|shpat|dop_v1|npm|pypi) [-_]
            (?=[\w.-]*[0-9]) [\w.-]{{16,}}
      | (?:sk|pk|rk)-[\w-]{{8,}}
      | github_pat_ \w{{8,}}
      | AIza [\w-]{{16,}}
      | ya29\. [\w.-]{{8,}}
      | (?:AKIA|ASIA|ABSK) [A-Za-z0-9+/=]{{12,}}
      | eyJ [\w-]{{8,}} (?:\.[\w-]+)*
    )""",
    re.VERBOSE,
)
_PEM = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_NAMES = r"api[-_ ]?key|passw(?:or)?d|passphrase|pwd|secret|authorization|credentials?|cookie|token|private[-_]?key"
_NAMED = re.compile(
    rf"(?:{_NAMES})s?[\"']?\s{{0,3}}(?:[:=]|=>)\s{{0,3}}[\"']?(?:(?:bearer|basic|token)\s+)?"
    r"(?P<value>[^\s\"'&,;(){}<>$\\]{6,})",
    re.I,
)
_BEARER = re.compile(r"\b(?:bearer|basic)\s+(?P<value>(?=[\w.~+/-]*(?:[0-9=]|(?-i:[a-z][A-Z])))[\w.~+/-]{8,}=*)", re.I)
_USERINFO = re.compile(r"://(?P<value>[^\s/:@\"'<>]*:[^\s/@\"'<>]+)@")
_MEMBER = re.compile(
    r"(?:(?:api[-_]?key|passw(?:or)?d|passphrase|pwd|secret|authorization|credential|cookie|private[-_]?key"
    r"|(?:access|secret)[-_]?key)s?|token)\Z",
    re.I,
)
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.)+[A-Za-z]{2,24}(?![\w-])")
_HOME = re.compile(
    r"(?:/home/|/Users/|[A-Za-z]:(?P<slash>\\{1,2}|/)Users(?P=slash))"
    r"(?P<value>[^\\/:*?\"'`<>|\s]{1,40}(?: [^\\/:*?\"'`<>|\s]{1,40}){0,2}(?=\\)|[^\s/\\\"'`<>|:;,()\[\]{}*?]+)"
)
_ARN = re.compile(r"arn:[a-z-]+:[a-z0-9-]*:[a-z0-9-]*:(?P<value>[0-9]{12})(?![0-9])")
_PROJECT = re.compile(r"projects/(?P<value>[a-z][a-z0-9:.-]{4,60}|[0-9]{6,})(?=/|\Z)")
_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+(?:;[\w=.+-]+)*;base64,(?P<value>[A-Za-z0-9+/=_-]{16,})")
_UUID = re.compile(r"(?<![A-Za-z0-9])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![A-Za-z0-9])")
_TOKEN = re.compile(r"[A-Za-z0-9+/=_-]{16,}")
_RUN = re.compile(r"[A-Za-z0-9]{16,}")
_UNSPEAKABLE = re.compile(r"[bcdfghjklmnpqrstvwxz]{6}")
_PATH_WORD = re.compile(r"[A-Z]?[a-z]{3,}(?:(?:[_-][A-Z]?|[A-Z])[a-z]+)*[_-]?[0-9]{0,4}|[A-Z]{4,}")

PLACEHOLDER = re.compile(r"KEY_REDACTED_[0-9]+|SIGREDACTED[0-9]{5,}|FILE[0-9]{8}|user[0-9]+@example\.com")
"""Placeholders for a key, a signature, a file and an address: never replaced again."""

LEAST_FILE_CHARS = 200
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}\Z")


class Secret(NamedTuple):
    """A part of a text that must not be shown."""

    start: int
    end: int
    kind: SecretKind


def secrets_in(text: str) -> Iterator[Secret]:
    """Yield secrets recognised by their form. They may overlap: the first ones are the most certain."""
    for pattern in (_PEM, _KEYS):
        yield from (Secret(*found.span(), "key") for found in pattern.finditer(text))
    yield from (Secret(*found.span("value"), "file") for found in _DATA_URL.finditer(text))
    for pattern in (_USERINFO, _BEARER, _NAMED):
        yield from (Secret(*found.span("value"), "key") for found in pattern.finditer(text))
    yield from (Secret(*found.span(), "mail") for found in _MAIL.finditer(text))
    yield from (Secret(*found.span("value"), "home") for found in _HOME.finditer(text))
    for pattern in (_ARN, _PROJECT):
        yield from (Secret(*found.span("value"), "account") for found in pattern.finditer(text))
    yield from (Secret(*found.span(), "id") for found in _UUID.finditer(text))


def random_in(text: str) -> Iterator[tuple[int, int]]:
    """Yield ranges that look random; of paths and addresses, which contain words, only such parts."""
    for found in _TOKEN.finditer(text):
        token, start = found[0], found.start()
        parts = list(re.finditer(r"[^/]+", token))
        plain = re.sub(r"[^A-Za-z0-9]", "", token)
        if not any(_PATH_WORD.fullmatch(part[0]) for part in parts) and _is_mixed(plain):
            yield found.span()
            continue
        for part in parts:
            if any(looks_random(run[0]) for run in _RUN.finditer(part[0])):
                yield start + part.start(), start + part.end()


def is_secret_member(name: str) -> bool:
    """Whether a member of this name holds a key or a password."""
    return _MEMBER.search(name) is not None


def is_file(text: str) -> bool:
    """Whether a whole text is a file in base64: an image, a document, audio."""
    return len(text) >= LEAST_FILE_CHARS and _BASE64.match("".join(text.split("\n"))) is not None


def looks_random(run: str) -> bool:
    """Whether a run mixes letters and digits too often for words with numbers, or for joined words."""
    if not any(char.isdigit() for char in run):
        return len(run) >= 20 and _change_rate(run) >= 0.4
    return len(run) >= 16 and (_change_rate(run) >= 0.2 or _UNSPEAKABLE.search(run) is not None)


def _is_mixed(plain: str) -> bool:
    """The same for a longer run without its punctuation, which may separate words."""
    return len(plain) >= 24 and _change_rate(plain) >= 0.35


def _change_rate(run: str) -> float:
    """Return the share of neighbouring characters of different classes: lower case, upper case, digit."""
    classes = ["d" if char.isdigit() else "u" if char.isupper() else "l" for char in run]
    return sum(one != other for one, other in pairwise(classes)) / (len(run) - 1)
