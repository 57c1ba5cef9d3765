"""LiteLLM's proxy, started as its users start it, with the callback named in its file."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients.upstreams import Upstream
from tests.examples import blocks
from tests.library.ten_turns import KEY, MODEL, OPENING, RESULT, TOOL, TURNS, check_refused, check_whole, deepseek

pytest.importorskip("litellm")
openai = pytest.importorskip("openai")


MASTER_KEY = "sk-" + secrets.token_hex(32)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture(scope="module")
def upstream() -> Upstream:
    return deepseek()


@pytest.fixture(scope="module")
def bare() -> Upstream:
    return deepseek()


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with listening(upstream, tmp_path_factory.mktemp("proxy"), blocks(language="yaml")["LiteLLM"]) as url:
        yield url


@pytest.fixture(scope="module")
def bare_proxy(bare: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with listening(bare, tmp_path_factory.mktemp("bare"), "") as url:
        yield url


@contextmanager
def listening(upstream: Upstream, folder: Path, settings: str) -> Iterator[str]:
    """The address of a proxy that listens."""
    models = [
        {
            "model_name": f"by-{prefix}",
            "litellm_params": {"model": f"{prefix}/{MODEL}", "api_base": f"{upstream.url}/v1", "api_key": KEY},
        }
        for prefix in ("openai", "deepseek")
    ]
    port = free_port()
    config = folder / "config.yaml"
    config.write_text(f"model_list: {json.dumps(models)}\n{settings}")
    program = [str(Path(sys.executable).parent / "litellm"), "--config", str(config), "--port", str(port)]
    environment = {
        **os.environ,
        "LITELLM_MASTER_KEY": MASTER_KEY,
        "THOUGHTLINE_STORE": f"sqlite:///{folder / 'thoughts.db'}",
    }
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "Uvicorn running" in line:
            break
    else:
        raise AssertionError("".join(lines[-20:]))
    drained = subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)
    yield f"http://127.0.0.1:{port}/v1"
    process.terminate()
    process.wait(30)
    drained.wait(30)


def ask(client: Any, model: str, history: list[Any], *, is_streamed: bool) -> Any:
    request: dict[str, Any] = {"model": model, "messages": history, "tools": [TOOL]}
    if not is_streamed:
        return client.chat.completions.create(**request).choices[0].message
    with client.chat.completions.stream(**request) as stream:
        return stream.get_final_completion().choices[0].message


@pytest.mark.parametrize("model", ["by-openai", "by-deepseek"])
@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_proxy(proxy: str, upstream: Upstream, model: str, is_streamed: bool) -> None:
    """A client of the proxy that forgets what was thought is answered ten times, and every thought comes back."""
    client = openai.OpenAI(base_url=proxy, api_key=MASTER_KEY, max_retries=0, timeout=60)
    opening = OPENING.replace("Weather", f"Weather, {model}, {is_streamed}", 1)
    history: list[Any] = [{"role": "user", "content": opening}]
    upstream.watched.seen.clear()
    for _ in range(TURNS):
        message = ask(client, model, history, is_streamed=is_streamed)
        calls = [call.model_dump(include={"id", "type", "function"}) for call in message.tool_calls or []]
        for call in calls:
            call["function"].pop("parsed_arguments", None)
        if not calls:
            check_whole(upstream, message.content)
            return
        history.append({"role": "assistant", "content": message.content or "", "tool_calls": calls})
        history += [{"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in calls]
    raise AssertionError("the model never answered")


def test_the_proxy_without_the_callback(bare_proxy: str, bare: Upstream) -> None:
    """What DeepSeek says to it."""
    client = openai.OpenAI(base_url=bare_proxy, api_key=MASTER_KEY, max_retries=0, timeout=60)
    call = ask(client, "by-openai", [{"role": "user", "content": OPENING}], is_streamed=False).tool_calls[0]
    history = [
        {"role": "user", "content": OPENING},
        {"role": "assistant", "content": "", "tool_calls": [call.model_dump(include={"id", "type", "function"})]},
        {"role": "tool", "tool_call_id": call.id, "content": RESULT},
    ]
    with pytest.raises(openai.BadRequestError):
        ask(client, "by-openai", history, is_streamed=False)
    check_refused(bare)
