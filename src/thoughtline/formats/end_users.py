"""The end user that a request names, for applications that serve many people with one key.

OpenAI has `user` and `safety_identifier`, Anthropic `metadata.user_id`, GLM `user_id`. They are kept as one digest: two
requests have the same end user if all of these members agree.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import NULL, as_text
from thoughtline.values.records import digest


class NamesUser(Struct, gc=False):
    """The members of a request that name its end user. Raw: the provider rejects malformed ones."""

    user: Raw = NULL
    user_id: Raw = NULL
    safety_identifier: Raw = NULL
    metadata: Raw = NULL


_text = msgspec.json.Decoder(str)
_object = msgspec.json.Decoder(dict[str, Raw])
_SESSION = re.compile(r"_session_[0-9a-fA-F-]{36}\Z")


def end_user_of(request: NamesUser, *metadata: Raw) -> str:
    """A digest of the end user; empty if the request names none. `metadata` are further objects with a `user_id`."""
    words = (request.user, request.user_id, request.safety_identifier)
    if not metadata and request.metadata is NULL and words == _NO_WORDS:
        return ""
    names = [_string(raw) for raw in words]
    names += [_without_session(_string(member_of(raw, "user_id"))) for raw in (request.metadata, *metadata)]
    return digest("\0".join(names).encode("utf-8", "replace")).hex() if any(names) else ""


_NO_WORDS = (NULL, NULL, NULL)


def member_of(raw: Raw, name: str) -> Raw:
    """A member of an object; null if it is missing or the value is no object."""
    return members_of(raw).get(name, NULL)


def members_of(raw: Raw) -> dict[str, Raw]:
    """The members of an object; none if the value is no object."""
    try:
        return _object.decode(raw) if bytes(raw)[:1] == b"{" else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def _string(raw: Raw) -> str:
    text = bytes(raw)
    try:
        return _text.decode(text) if text[:1] == b'"' else ""
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def _without_session(user: str) -> str:
    """Claude Code writes its session into the user's id, as JSON or after `_session_`: a resumed
    session has another.
    """
    if not user.startswith("{"):
        return _SESSION.sub("", user)
    try:
        members = _object.decode(user)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return user
    members.pop("session_id", None)
    return "".join(f"{name}:{as_text(value)}" for name, value in sorted(members.items()))
