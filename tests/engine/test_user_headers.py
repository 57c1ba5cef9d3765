"""Which end user the headers of a request name."""

from __future__ import annotations

import pytest

from thoughtline.engine.sessions import who_asks
from thoughtline.engine.user_headers import end_user_in

ANNA = end_user_in({b"x-openwebui-user-id": b"anna"})

OTHERS: list[dict[bytes, bytes]] = [
    {b"x-openwebui-user-id": b"bert"},
    {b"x-openwebui-user-id": b"anna", b"x-openwebui-user-email": b"bert@example.com"},
    {b"x-litellm-customer-id": b"app", b"x-openwebui-user-id": b"bert"},
    {b"helicone-user-id": b"anna"},
]
NOBODY: list[dict[bytes, bytes]] = [
    {},
    {b"x-openwebui-user-id": b"  "},
    {b"x-portkey-metadata": b"{"},
    {b"x-portkey-metadata": b'{"_user": 3}'},
    {b"x-portkey-metadata": b'{"environment": "test"}'},
    {b"x-portkey-metadata": b"[" * 100_000},
    {b"x-portkey-metadata": b'{"_user": "\xff"}'},
    {b"x-openwebui-user-role": b"admin"},
]


@pytest.mark.parametrize("headers", OTHERS, ids=str)
def test_users_that_differ_in_any_header_are_two(headers: dict[bytes, bytes]) -> None:
    """Whatever the other headers say."""
    assert end_user_in(headers) not in ("", ANNA)


@pytest.mark.parametrize("headers", NOBODY, ids=lambda headers: str(headers)[:60])
def test_headers_that_name_none(headers: dict[bytes, bytes]) -> None:
    """What can't be read names none, and is no error."""
    assert end_user_in(headers) == ""


def test_what_differs_with_every_request_is_not_the_user() -> None:
    """Beside a user, metadata may hold anything."""
    one, two = (b'{"_user": "anna", "request": "%d"}' % number for number in range(2))
    assert end_user_in({b"x-portkey-metadata": one}) == end_user_in({b"x-portkey-metadata": two}) != ""


def test_a_name_is_kept_as_a_digest() -> None:
    who, _ = who_asks("t", {b"x-openwebui-user-id": b"anna"}, b"{}")
    assert who.user == ANNA
    assert "anna" not in who.user
