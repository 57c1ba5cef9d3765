"""`thoughtline facts` as a person meets it."""

from __future__ import annotations

import hashlib
import json
import os
import ssl
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.facts.overlay_texts import ACME, KIMI_9
from tests.gateway.tls_front import certify
from thoughtline.engine.learned import Lessons
from thoughtline.facts.overlays import MAX_BYTES
from thoughtline.facts.sheets import assembled
from thoughtline.providers import BUILT_IN
from thoughtline.replay.refusals import Correction, Evidence
from thoughtline.stores import open_store


def facts(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "thoughtline.cli", "facts", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
        input="",
        env={**os.environ, "HOME": str(home), "XDG_DATA_HOME": str(home / "data"), **environment},
    )


def test_list(tmp_path: Path) -> None:
    """By kind, provider and age, as a table or as JSON."""
    rows = json.loads(facts(tmp_path, "list", "--provider", "moonshot", "--json").stdout)
    assert {"contracts", "models", "providers", "refusals"} <= {row["kind"] for row in rows}
    assert all("kimi" in row["name"] for row in rows)
    [context] = json.loads(facts(tmp_path, "list", "--provider", "kimi", "--kind", "contexts", "--json").stdout)
    assert (context["source"], context["read"]) == ("https://docs.openclaw.ai/providers/moonshot", "2026-11-16")
    old = facts(tmp_path, "list", "--old")
    assert old.returncode == 0
    assert "unverified" in old.stdout
    assert facts(tmp_path, "list", "--provider", "nobody").returncode == 1


def test_show_a_model(tmp_path: Path) -> None:
    """The facts and their sources, in each format of its maker, or of the named provider."""
    shown = facts(tmp_path, "show", "gpt-6-astra")
    assert "gpt-6-astra at openai, openai_responses" in shown.stdout
    assert "goes up as                   openai_responses if it has tools" in shown.stdout
    assert "because: " in shown.stdout
    relayed = json.loads(facts(tmp_path, "show", "openrouter/moonshotai/kimi-k2.6", "--json").stdout)
    assert (relayed["provider"], relayed["model"]) == ("openrouter", "moonshotai/kimi-k2.6")
    unknown = facts(tmp_path, "show", "nobodys-model")
    assert unknown.returncode == 2
    assert "--provider" in unknown.stderr


def test_show_a_fact(tmp_path: Path) -> None:
    """As TOML that an overlay can begin with."""
    assert tomllib.loads(facts(tmp_path, "show", "contracts.kimi").stdout)["contracts"]["kimi"]["scope"] == "calls"


def test_export(tmp_path: Path) -> None:
    """The whole table; it can be read back."""
    assert assembled(tomllib.loads(facts(tmp_path, "export").stdout)).rows == BUILT_IN.rows


def test_update_and_undo(tmp_path: Path) -> None:
    """The change is shown before it is made; it is believed from then on, until it is taken back."""
    overlay = tmp_path / "k9.toml"
    overlay.write_text(KIMI_9)
    asked = facts(tmp_path, "update", str(overlay))
    assert 'contracts.kimi-9.scope: → "all_with_tools"' in asked.stdout
    assert asked.returncode == 1  # not confirmed
    assert "every turn with calls" in facts(tmp_path, "show", "kimi-k9", "--format", "openai_chat").stdout
    assert "kill -HUP" in facts(tmp_path, "update", str(overlay), "--yes").stdout
    assert "every turn, if the" in facts(tmp_path, "show", "kimi-k9", "--format", "openai_chat").stdout
    assert "changes nothing" in facts(tmp_path, "update", str(overlay), "--yes").stdout
    assert "0 overlays left" in facts(tmp_path, "undo").stdout
    assert "every turn with calls" in facts(tmp_path, "show", "kimi-k9", "--format", "openai_chat").stdout
    assert facts(tmp_path, "undo").returncode == 1


def test_a_file_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """Every mistake with its line, and nothing is installed."""
    overlay = tmp_path / "bad.toml"
    overlay.write_text(ACME + "[contracts.kimi]\nfillr = ''\n")
    refused = facts(tmp_path, "update", str(overlay), "--yes")
    assert refused.returncode == 2
    assert "can't add a provider" in refused.stderr
    assert "did you mean filler?" in refused.stderr
    assert not (tmp_path / "data" / "thoughtline" / "facts").exists()
    assert "can't be read" in facts(tmp_path, "update", str(tmp_path / "none.toml")).stderr


class Overlays(BaseHTTPRequestHandler):
    """Overlays over https: one that fits, one that is huge, one that is elsewhere."""

    def do_GET(self) -> None:
        pages = {"/k9.toml": KIMI_9.encode(), "/huge.toml": b"#" * (MAX_BYTES + 2)}
        body = pages.get(self.path, b"")
        self.send_response(200 if body else 302)
        if not body:
            self.send_header("location", "http://169.254.169.254/latest")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def overlays(tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Their address, and the environment in which its certificate is trusted."""
    certify(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Overlays)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"https://127.0.0.1:{server.server_port}", {"SSL_CERT_FILE": str(tmp_path / "authority.pem")}
    server.shutdown()
    server.server_close()


def test_update_from_an_address(tmp_path: Path, overlays: tuple[str, dict[str, str]]) -> None:
    """Over https alone, within bounds, where it was named, and with the digest that was pinned."""
    url, trusted = overlays
    digest = hashlib.sha256(KIMI_9.encode()).hexdigest()
    other = facts(tmp_path, "update", f"{url}/k9.toml", "--sha256", "0" * 64, "--yes", **trusted)
    assert (other.returncode, digest in other.stderr) == (2, True)
    assert "1 MiB" in facts(tmp_path, "update", f"{url}/huge.toml", "--yes", **trusted).stderr
    moved = facts(tmp_path, "update", f"{url}/moved.toml", "--yes", **trusted).stderr
    assert "answers 302" in moved
    assert "169.254" in moved
    untrusted = facts(tmp_path, "update", f"{url}/k9.toml", "--yes")
    assert (untrusted.returncode, "can't be fetched" in untrusted.stderr) == (2, True)
    plain = facts(tmp_path, "update", url.replace("https", "http") + "/k9.toml", "--yes", **trusted)
    assert "over https only" in plain.stderr
    taken = facts(tmp_path, "update", f"{url}/k9.toml", "--sha256", digest, "--yes", **trusted)
    assert taken.returncode == 0, taken.stderr


async def test_learned(tmp_path: Path) -> None:
    """What a gateway's store has of refusals, as an overlay that can be installed."""
    address = f"sqlite:///{tmp_path}/turns.db"
    assert facts(tmp_path, "learned", THOUGHTLINE_STORE=address).returncode == 1
    store = await open_store(address)
    now = time.time()
    evidence = Evidence(400, "", "0123456789abcdef", False)
    lesson = Correction("kimi", "", "kimi-k2.6", "insists", "", evidence, learned_at=now, expires_at=now + 600)
    await Lessons(store, time.time).keep((lesson,), frozenset())
    await store.close()
    printed = facts(tmp_path, "learned", THOUGHTLINE_STORE=address)
    assert printed.returncode == 0, printed.stderr
    overlay = tmp_path / "learned.toml"
    overlay.write_text(printed.stdout)
    assert "insists: → true" in facts(tmp_path, "update", str(overlay), "--yes").stdout
