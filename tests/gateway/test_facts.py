"""A running gateway whose table of facts changes."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest

from tests.facts.overlay_texts import ACME
from tests.gateway.test_serving import WAIT_SECONDS, Serving, serving
from thoughtline.facts.files import overlays_folder
from thoughtline.facts.updating import check, install, undo

Json = Any

FORGOTTEN = "you forgot the `reasoning_content` of message 1, dear caller"
MILD = """
[contracts.acme-mild]
like = "reasoning-content"
kind = "forbidden"
takes = "nothing"
unverified = true

[models.acme-mild]
provider = "acme"
models = "coyote"
contracts = ["acme-mild"]
unverified = true
"""
"""A model without reasoning, as far as known: only its refusal shows otherwise."""


class Acme(BaseHTTPRequestHandler):
    """Thinks, calls a tool, and refuses a turn without its reasoning. `seen` has the bodies."""

    seen: ClassVar[list[Json]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.seen.append(body)
        turns = [one for one in body["messages"] if one["role"] == "assistant"]
        if any(not one.get("reasoning_content") for one in turns):
            self._answer(400, {"error": {"message": FORGOTTEN}})
            return
        call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        message = {"role": "assistant", "content": None, "reasoning_content": "deep down", "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        self._answer(200, {"id": "x", "object": "chat.completion", "model": body["model"], "choices": [choice]})

    def _answer(self, status: int, value: Json) -> None:
        raw = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def acme() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Acme)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Acme.seen = []
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def forgetful(gateway: Serving, model: str) -> httpx.Response:
    """Two requests of a client that drops reasoning; return the second answer."""
    url, tools = f"{gateway.url}/acme/v1/chat/completions", [{"type": "function", "function": {"name": "f"}}]
    headers = {"authorization": "Bearer key"}
    history: list[Json] = [{"role": "user", "content": "hello"}]
    body = {"model": model, "messages": history, "tools": tools}
    first = httpx.post(url, json=body, headers=headers, timeout=WAIT_SECONDS)
    if first.status_code != 200:
        return first
    message = first.json()["choices"][0]["message"]
    del message["reasoning_content"]
    history += [message, {"role": "tool", "tool_call_id": "1", "content": "ok"}]
    return httpx.post(url, json=body, headers=headers, timeout=WAIT_SECONDS)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_overlay_alone_adds_a_provider_a_generation_and_a_refusal(tmp_path: Path, acme: str, workers: str) -> None:
    """Applied at a reload: the address, the contract of its models, and the wording of its refusal."""
    settings, overlay = tmp_path / "thoughtline.toml", tmp_path / "acme.toml"
    overlay.write_text(MILD + ACME.replace("https://api.acme.example/v1", acme))
    settings.write_text("")
    with serving(tmp_path, "--config", str(settings), "--workers", workers) as gateway:
        assert forgetful(gateway, "roadrunner-1").status_code == 404
        settings.write_text(f"[facts]\nfiles = ['{overlay}']\n")
        gateway.say(signal.SIGHUP)
        gateway.wait_for(lambda line: "settings reloaded" in line)
        known = forgetful(gateway, "roadrunner-1")
        assert known.status_code == 200, known.text
        assert Acme.seen[-1]["messages"][1]["reasoning_content"] == "deep down"
        assert "restored=1" in known.headers["x-thoughtline-replay"]
        asked = len(Acme.seen)
        healed = forgetful(gateway, "coyote-1")
        assert healed.status_code == 200, healed.text
        assert len(Acme.seen) == asked + 3
        assert "healed" in healed.headers["x-thoughtline-replay"]
        assert Acme.seen[-1]["messages"][1]["reasoning_content"] == "deep down"


def test_a_mistake_in_an_overlay_changes_nothing(tmp_path: Path, acme: str) -> None:
    """The reload is refused with the overlay's line; the current table stays."""
    settings, overlay = tmp_path / "thoughtline.toml", tmp_path / "acme.toml"
    overlay.write_text(ACME.replace("https://api.acme.example/v1", acme))
    settings.write_text(f"[facts]\nfiles = ['{overlay}']\n")
    with serving(tmp_path, "--config", str(settings)) as gateway:
        assert forgetful(gateway, "roadrunner-1").status_code == 200
        overlay.write_text(overlay.read_text() + "[contracts.kimi]\nfillr = ''\n")
        gateway.say(signal.SIGHUP)
        line = gateway.wait_for(lambda line: "not reloaded" in line)
        assert "contracts.kimi.fillr" in line
        assert "did you mean filler?" in line
        assert forgetful(gateway, "roadrunner-1").status_code == 200


def test_a_fetched_overlay_is_applied_and_removed(tmp_path: Path) -> None:
    """A provider's contract before, with it, and after `undo`: at a reload each time."""
    folder = overlays_folder(tmp_path / "data" / "thoughtline")
    overlay = b"[contracts.kimi]\nscope = 'all_with_tools'\nsource = 'https://docs.example'\nread = 2026-11-18\n"
    with serving(tmp_path) as gateway:

        def scope() -> str:
            token = (tmp_path / "data" / "thoughtline" / "admin-token").read_text().strip()
            answer = httpx.get(f"{gateway.url}/api/contracts", headers={"authorization": f"Bearer {token}"})
            [row] = [one for one in answer.json()["contracts"] if one["name"] == "kimi"]
            return str(row["scope"])

        assert scope() == "calls"
        install(check(overlay, "https://example.com/new facts.toml", folder), folder)
        gateway.say(signal.SIGHUP)
        gateway.wait_for(lambda line: "settings reloaded" in line)
        assert scope() == "all_with_tools"
        gateway.forget()
        undo(folder)
        gateway.say(signal.SIGHUP)
        gateway.wait_for(lambda line: "settings reloaded" in line)
        assert scope() == "calls"
