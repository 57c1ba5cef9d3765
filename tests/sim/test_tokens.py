"""Tokens: what opens them, and what does not."""

from __future__ import annotations

import base64
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline_sim.tokens import ANTHROPIC, ANTHROPIC_BOUND, GEMINI, GEMINI_2_5, OPENAI, XAI, Mint, Spelling

MINT = Mint(b"secret", random.Random(1).randbytes)
CLAIMS = {"text": "a thought", "item": "rs_1"}
BOUND = ("openai", "account")

spellings = pytest.mark.parametrize(
    ("spelling", "begins"),
    [(ANTHROPIC, "E"), (ANTHROPIC_BOUND, "C"), (GEMINI, "E"), (GEMINI_2_5, "C"), (OPENAI, "gAAAA"), (XAI, "")],
)


@spellings
def test_opens_where_it_was_made(spelling: Spelling, begins: str) -> None:
    """With what it is bound to, it gives its claims; it looks as its family's do."""
    token = MINT.seal(CLAIMS, BOUND, spelling)
    assert token.startswith(begins)
    assert MINT.open(token, BOUND, spelling) == CLAIMS
    assert spelling.is_padded or not token.endswith("=")


@spellings
def test_every_changed_character_is_noticed(spelling: Spelling, begins: str) -> None:
    """The last one too, whose spare bits decode to nothing."""
    token = MINT.seal(CLAIMS, BOUND, spelling)
    for place, letter in enumerate(token):
        if letter != "=":
            changed = token[:place] + ("A" if letter != "A" else "B") + token[place + 1 :]
            assert MINT.open(changed, BOUND, spelling) is None, place


@pytest.mark.parametrize("bound", [(), ("openai",), ("openai", "other"), ("openaiaccount",), ("account", "openai")])
def test_bound_to_something_else(bound: tuple[str, ...]) -> None:
    """Another account, another provider, or the same letters divided otherwise."""
    assert MINT.open(MINT.seal(CLAIMS, BOUND, OPENAI), bound, OPENAI) is None


def test_made_elsewhere() -> None:
    """Another secret, another spelling."""
    token = MINT.seal(CLAIMS, BOUND, OPENAI)
    assert Mint(b"other", random.Random(1).randbytes).open(token, BOUND, OPENAI) is None
    assert MINT.open(token, BOUND, ANTHROPIC) is None


def test_shows_nothing_of_its_claims() -> None:
    """The thought can't be read off the token."""
    token = MINT.seal({"text": "a" * 64}, BOUND, OPENAI)
    assert b"aaaa" not in base64.urlsafe_b64decode(token)
    assert token != MINT.seal({"text": "a" * 64}, BOUND, OPENAI)


@given(st.text())
def test_any_text_is_answered(token: str) -> None:
    """What is no token opens nothing and breaks nothing."""
    for spelling in (ANTHROPIC, OPENAI, XAI):
        assert MINT.open(token, BOUND, spelling) is None
