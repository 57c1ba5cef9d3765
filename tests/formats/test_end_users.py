"""The end user that a request names, in every format."""

from __future__ import annotations

import json

import pytest

from thoughtline.formats import FORMATS
from thoughtline.values.turns import FormatName

LISTS: dict[FormatName, dict[str, object]] = {
    "openai_chat": {"messages": []},
    "openai_responses": {"input": []},
    "anthropic_messages": {"messages": []},
    "gemini_generate": {"contents": []},
    "ollama_chat": {"messages": []},
    "bedrock_converse": {"messages": []},
    "command_code_generate": {"messages": []},
    "gemini_interactions": {"input": []},
}
ACCOUNT = "1c9a4f0e-0000-4000-8000-000000000001"


def user_in(format: FormatName, **more: object) -> str:
    wire = FORMATS[format]
    return wire.bodies.decode_request(json.dumps(LISTS[format] | more).encode(), wire.dialect).user


@pytest.mark.parametrize("format", LISTS)
def test_members_that_name_an_end_user(format: FormatName) -> None:
    """Each of them counts, and none of them is kept in words."""
    assert user_in(format) == ""
    named = [
        user_in(format, user="ann"),
        user_in(format, user="bob"),
        user_in(format, user_id="ann"),
        user_in(format, safety_identifier="ann"),
        user_in(format, metadata={"user_id": "ann"}),
        user_in(format, user="ann", safety_identifier="bob"),
    ]
    assert len(set(named)) == len(named)
    assert all(len(name) == 32 for name in named)
    assert user_in(format, user="ann") == named[0]


def test_members_of_clouds() -> None:
    """Converse has two places for metadata, Gemini has labels."""
    assert user_in("bedrock_converse", requestMetadata={"user_id": "ann"})
    assert user_in("bedrock_converse", additionalModelRequestFields={"metadata": {"user_id": "ann"}})
    assert user_in("gemini_generate", labels={"user_id": "ann"})


@pytest.mark.parametrize("is_json", [False, True])
def test_the_session_in_claude_codes_user_id(is_json: bool) -> None:
    """It is no part of the end user; the device and the account are."""

    def named(device: str, session: str) -> str:
        as_json = json.dumps({"device_id": device, "account_uuid": ACCOUNT, "session_id": session})
        user_id = as_json if is_json else f"user_{device}_account_{ACCOUNT}_session_{session}"
        return user_in("anthropic_messages", metadata={"user_id": user_id})

    first, second = "5f2f3b60-0000-4000-8000-00000000000a", "77777777-0000-4000-8000-00000000000b"
    assert named("a" * 64, first) == named("a" * 64, second)
    assert named("a" * 64, first) != named("b" * 64, first)


@pytest.mark.parametrize("value", [None, 7, ["ann"], {"id": "ann"}])
def test_a_value_that_is_no_text_names_no_user(value: object) -> None:
    """It is the provider's to refuse."""
    assert user_in("openai_chat", user=value, metadata=value) == ""
