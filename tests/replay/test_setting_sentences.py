"""A sentence about a setting is read by its shape."""

from __future__ import annotations

import pytest

from thoughtline.replay.setting_sentences import read_sentence


@pytest.mark.parametrize(
    ("sentence", "shape", "legal"),
    [
        ("Supported values are: 'low', 'medium', and 'high'.", "values", ("low", "medium", "high")),
        ("expected one of `a`, `b` at line 1 column 3", "values", ("a", "b")),
        ("x must be one of none or default", "values", ("none", "default")),
        ("should be no_think/low/high", "values", ("no_think", "low", "high")),
        ("Use effort 'medium' or below.", "values", ("none", "minimal", "low", "medium")),
        ("invalid x: only 1 is allowed", "only", ()),
        ("`x` must be at least 3 or unset", "only", ()),
        ("`x` must be at least 3", "range", ()),
        ("cannot specify both 'a' and 'b'", "conflict", ()),
        ("only one of a and b may be set", "conflict", ()),
        ("`x` requires `y` to be enabled", "requires", ()),
        ("`x` must be the first strategy", "first", ()),
        ("x must be set to false", "must_be", ("false",)),
        ("'x' has moved to 'y.z'", "moved", ()),
        ("Reasoning is mandatory and cannot be disabled", "mandatory", ()),
        ('"thinking.type.disabled" is not supported. Use "thinking.type.adaptive".', "mode", ("adaptive",)),
        ("not supported in /v1/chat/completions. Use /v1/responses instead.", "door", ()),
        ("`x` is deprecated for this model.", "unsupported", ()),
    ],
)
def test_a_shape(sentence: str, shape: str, legal: tuple[str, ...]) -> None:
    """With the legal values that it names."""
    read = read_sentence(sentence)
    assert read is not None
    assert (read.shape, read.legal) == (shape, legal)


@pytest.mark.parametrize(
    "sentence",
    [
        "Rate limit reached for requests",
        "messages.3.content.0: Extra inputs are not permitted",
        "tools[0].name: not supported",
        "The server had an error while processing your request.",
        "",
    ],
)
def test_no_shape(sentence: str) -> None:
    """Sentences about the conversation, the tools and anything else have none."""
    assert read_sentence(sentence) is None


def test_endpoints_are_offered_or_closed() -> None:
    """By what comes before each of them."""
    read = read_sentence("This model is only supported in v1/responses and not in v1/chat/completions.")
    assert read is not None
    assert (read.doors, read.closed) == (("responses",), ("chat/completions",))
