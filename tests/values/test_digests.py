"""Digests: what they give is kept in stores and must never change."""

from __future__ import annotations

from thoughtline.values.digests import joined, named_digest, secret_digest
from thoughtline.values.records import digest, digest_of


def test_what_digests_give() -> None:
    """The very bytes that older stores hold."""
    assert digest(b"words").hex() == "dba36bffa5cab0f922d087a3aeb179f9"
    assert digest_of(b"a", b"", b"bc").hex() == "ed4155066cc5e4ccadca022867774cfe"
    assert secret_digest("sk-é").hex() == "858615f199fafc7004d309ed5e1deb0d992b0be98c39f35fb047eee75f1d4db5"
    assert named_digest("sk-é", b"tenant").hex() == "781c48588b07e4fc791703562402afd6"
    assert named_digest("x", b"", 8).hex() == "4adf4367f96e584f"


def test_parts_are_distinguished() -> None:
    """No other parts give the same bytes; one part alone is framed too."""
    assert len({joined(), joined(b""), joined(b"", b""), joined(b"ab"), joined(b"a", b"b"), joined(b"1:a")}) == 6
    assert digest_of(b"words") != digest(b"words")


def test_any_text_has_a_digest() -> None:
    """Lone surrogates too."""
    assert len(secret_digest("\ud83d")) == 32
    assert named_digest("\ud83d", b"a") != named_digest("\ud83d", b"b")
