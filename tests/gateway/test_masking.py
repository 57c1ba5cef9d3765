"""What people may see of values with secrets."""

from __future__ import annotations

import pytest

from thoughtline.gateway.masking import masked, masked_body, masked_url, masked_words


def test_of_a_secret_only_that_it_is_there() -> None:
    assert [masked(secret) for secret in ("hunter2", "", None)] == ["***", None, None]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("memory://", "memory://"),
        ("sqlite:////var/lib/kept.db?synchronous=full", "sqlite:////var/lib/kept.db?synchronous=full"),
        ("redis://:hunter2@host:6379/0", "redis://***@host:6379/0"),
        ("postgresql://me:p@ss@host/db?password=hunter2", "postgresql://***@host/db?password=***"),
        ("https://api.deepseek.com", "https://api.deepseek.com"),
        ("https://host/v1#hunter2", "https://host/v1"),
        ("", ""),
        ("hunter2", "***"),
    ],
)
def test_addresses_without_their_secrets(url: str, shown: str) -> None:
    """User, password and query values are masked; the rest is not."""
    assert masked_url(url) == shown


def words_of(text: str) -> str:
    return masked_words(text, 300)


SECRETS = [
    "sk-proj-abcdefgh12345678",
    "Bearer eyJhbGciOiJIUzI1NiJ9.e30.x",
    "gAAAAABmR1Zk9cXo3l2kq0Tn6pVb8sYw",
    "EqQBCkYIARgCKkDXk0QyT5/9rQ1v8mWb2cN4hJ7uLpSd6fGzXa3eKi",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_keys_and_seals_that_a_provider_quotes_are_masked(secret: str) -> None:
    """Some providers repeat what they refused."""
    told = words_of(f"Incorrect value: {secret}.")
    assert secret[10:] not in told
    assert "***" in told


def test_sentences_stay_readable() -> None:
    """Members, models and places are not secret; long text is cut."""
    said = "messages.1.content.0: Expected `thinking`, but found `tool_use` (claude-opus-5-5, deepseek-v4-pro)"
    assert words_of(said) == said
    assert len(words_of("word " * 1000)) == 300
    assert words_of("two\n lines") == "two lines"


def test_a_body_without_its_keys() -> None:
    """The rest is unchanged, including lines; bytes that are not text don't fail."""
    body = b'{\n  "key": "tl-abcdefgh12345678",\n  "auth": "Bearer abcdef123456",\n  "said": "\xff sky"\n}'
    assert masked_body(body) == '{\n  "key": "tl-***",\n  "auth": "Bearer ***",\n  "said": "\ufffd sky"\n}'
