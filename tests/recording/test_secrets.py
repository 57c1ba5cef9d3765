"""What in a text is taken for a secret, and what is not."""

from __future__ import annotations

import random
import string

import pytest

from tests.recording.planted_secrets import KEYS, QUERY_KEY
from thoughtline.recording.secrets import is_file, is_secret_member, looks_random, random_in, secrets_in

FOUND = [
    *((f"the key {key}, as it is", "key", key) for key in KEYS if "/" not in key and "9f86" not in key),
    (f"?key={QUERY_KEY}", "key", QUERY_KEY),
    ("line one\\nsk-abcdef123456 and on", "key", "sk-abcdef123456"),
    (
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
        "key",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n",
    ),
    ("PASSWORD=swordfish99", "key", "swordfish99"),
    ('{"api_key": "whatever-it-is"}', "key", "whatever-it-is"),
    ("Authorization: Bearer abc.def-123", "key", "abc.def-123"),
    ("https://joe:hunter2@host/x", "key", "joe:hunter2"),
    ("write to joe.doe+x@mail.example.org.", "mail", "joe.doe+x@mail.example.org"),
    ("cd /home/joe/src", "home", "joe"),
    ("/Users/Joe.Doe/x", "home", "Joe.Doe"),
    (r"C:\Users\Joe Doe\x", "home", "Joe Doe"),
    (r"C:\\Users\\joe\\x", "home", "joe"),
    ("arn:aws:bedrock:us-east-1:123456789012:x", "account", "123456789012"),
    ("/v1/projects/my-own-project/locations/eu", "account", "my-own-project"),
    ("data:image/png;base64,iVBORw0KGgoAAAANSUhEUg==", "file", "iVBORw0KGgoAAAANSUhEUg=="),
    ("id 550e8400-e29b-41d4-a716-446655440000", "id", "550e8400-e29b-41d4-a716-446655440000"),
]
PLAIN = [
    "basic arithmetic, and a bearer of bad news",
    "The token count is 17; max_tokens: 4096.",
    "import thoughtline.recording.secrets",
    "anthropic-beta: interleaved-thinking-2025-05-14,fine-grained-tool-streaming-2025-05-14",
    "toolUsePromptTokenCount and AgentRunResultEvent and providerApiModelId",
    "/usr/lib/python3.11/site-packages/thoughtline/gateway/http_client.py",
    "accounts/fireworks/models/kimi-k2-instruct-0905",
    "xai-responses-v1",
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "skill-based task-list",
]


@pytest.mark.parametrize(("text", "kind", "secret"), FOUND)
def test_what_is_recognized(text: str, kind: str, secret: str) -> None:
    found = [(one.kind, text[one.start : one.end]) for one in secrets_in(text)]
    assert any(kind == one and shown.startswith(secret) for one, shown in found), found


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_not(text: str) -> None:
    """Words, names, paths and models stay: a recording that hides them says nothing."""
    assert list(secrets_in(text)) == []
    assert list(random_in(text)) == []


@pytest.mark.parametrize(
    ("alphabet", "size"),
    [
        (string.ascii_letters + string.digits, 20),
        (string.ascii_letters + string.digits + "+/", 40),
        (string.ascii_letters + string.digits + "-_", 43),
        ("0123456789abcdef", 32),
        (string.ascii_lowercase + string.digits, 24),
    ],
)
def test_random_keys_of_no_known_kind(alphabet: str, size: int) -> None:
    """By their look alone: all but a few of a hundred."""
    chance = random.Random(7)
    keys = ["".join(chance.choices(alphabet, k=size)) for _ in range(1000)]
    missed = [key for key in keys if not any(True for _ in random_in(f"key {key} here"))]
    assert len(missed) <= 20, missed


def test_words_written_together_are_not_random() -> None:
    assert not looks_random("AgentRunResultEventHandlerFactory")
    assert not looks_random("version20250929")
    assert looks_random("9aB8cD7eF6gH5iJ4kL3m")


def test_members_that_hold_secrets() -> None:
    names = ("api_key", "apiKey", "password", "client_secret", "access_token", "authorization", "token", "private-key")
    assert all(map(is_secret_member, names))
    assert not any(map(is_secret_member, ("max_tokens", "key_points", "secretary", "tokens", "keyboard")))


def test_a_file_is_long_and_of_base64_alone() -> None:
    assert is_file("iVBORw0KGgo" * 30)
    assert not is_file("iVBORw0KGgo")
    assert not is_file("some words " * 30)
