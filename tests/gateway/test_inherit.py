"""`[replay] on_miss = "inherit"`: one word for every chat provider."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from tests.gateway.test_healing import acme, told
from tests.gateway.test_unlisted import CALL, CHAT, LOST, asked, step
from tests.gateway.upstreams import Got, Out, upstream
from thoughtline.settings import Flags, ReplaySettings, load_settings


async def answer(got: Got, out: Out) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}
    await out.whole(200, json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode())


@pytest.mark.parametrize("model", ["novel-9", "glm-5", "gpt-oss-120b", "kimi-k2.6"])
def test_a_lost_turn_borrows_the_latest_reasoning_before_it(model: str) -> None:
    """Also at an unlisted provider without demands; what a client sent is unchanged."""
    own = ({**step(CALL)[0], "reasoning_content": "Look first."}, step(CALL)[1])
    with upstream(answer) as up, acme(up.url, "openai_chat", ReplaySettings(miss="inherit")) as gateway:
        response = httpx.post(gateway.url + CHAT, json=asked(model, own, step(LOST)))
        assert (told(response, "inherited"), told(response, "blank")) == (1, 0)
        messages = json.loads(up.got[-1].body)["messages"]
        assert messages[1] == own[0]
        assert "Look first." in messages[3].values()


def test_by_default_nothing_is_borrowed() -> None:
    """The default is still the blank, and without demands nothing."""
    own = ({**step(CALL)[0], "reasoning_content": "Look first."}, step(CALL)[1])
    with upstream(answer) as up, acme(up.url, "openai_chat") as gateway:
        assert told(httpx.post(gateway.url + CHAT, json=asked("novel-9", own, step(LOST))), "inherited") == 0
        assert "reasoning_content" not in json.loads(up.got[-1].body)["messages"][3]


@pytest.mark.parametrize("from_file", [True, False], ids=["file", "environment"])
def test_the_word_is_read(tmp_path: Path, *, from_file: bool) -> None:
    """In a file or in the environment."""
    file = tmp_path / "thoughtline.toml"
    file.write_text('[replay]\non_miss = "inherit"\n' if from_file else "")
    environment = {} if from_file else {"THOUGHTLINE_REPLAY__ON_MISS": "inherit"}
    assert load_settings(file, environment, Flags(), tmp_path).replay.miss == "inherit"
