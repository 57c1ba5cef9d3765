"""One value per format: a new one gets routes, URLs, errors and translation from its own facts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

import thoughtline
from thoughtline import formats
from thoughtline.continuity.handover import inject
from thoughtline.destinations.addresses import address
from thoughtline.destinations.catalogue import Provider
from thoughtline.engine.audit import guess_format
from thoughtline.formats import FORMATS, Wire
from thoughtline.formats.paths import by_tail
from thoughtline.formats.wire import ErrorCodec, IdRule
from thoughtline.gateway.asgi import error_body
from thoughtline.gateway.estimating import count_body
from thoughtline.gateway.headers import translated_headers
from thoughtline.gateway.model_lists import format_for
from thoughtline.gateway.routing import route_of
from thoughtline.replay.detection import resolve
from thoughtline.replay.findings import place_of
from thoughtline.translation import translate_error, translate_request
from thoughtline.translation.calls import CallIds, rule_of
from thoughtline.translation.replies import ResponseTranslator
from thoughtline.translation.response_context import ResponseContext
from thoughtline.values.destination import Destination
from thoughtline.values.errors import Declined, ErrorReply
from thoughtline.values.events import Started
from thoughtline.values.items import Text
from thoughtline.values.turns import NOWHERE, SYSTEM_MEMBER, FormatName, Transcript, Turn

SOURCE = Path(thoughtline.__file__).parent
NEW = cast(FormatName, "morse_v1")


def _read_error(status: int, body: bytes) -> ErrorReply:
    return ErrorReply(status, json.loads(body)["dots"])


def _write_error(error: ErrorReply) -> bytes:
    return json.dumps({"dots": error.message, "status": error.status}).encode()


@pytest.fixture
def morse(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """A made-up format: its one value, and its line in the table."""
    chat = FORMATS["openai_chat"]
    wire = replace(
        chat,
        name=NEW,
        list_member="signals",
        item_member="taps",
        system="text",
        telling_members=("signals",),
        client_path=by_tail(("generate", "morse/send"), ("count_tokens", "morse/count")),
        upstream_path=lambda base, model, is_streaming: f"{base}/morse/{model}/{'stream' if is_streaming else 'whole'}",
        count_path=lambda base, model: f"{base}/morse/{model}/count",
        count_member="dots",
        headers=((b"x-morse", b"1844"),),
        models=chat.models._replace(header=b"x-morse", encode=lambda names: "/".join(names).encode()),
        errors=ErrorCodec(_read_error, lambda error: {"dots": error.message}, _write_error, failures={}),
        call_ids=IdRule(re.compile(r"[.-]{1,9}")),
        response_prefix="morse_",
    )
    monkeypatch.setitem(cast(dict[FormatName, Wire], FORMATS), NEW, wire)
    return wire


@pytest.mark.usefixtures("morse")
def test_a_new_format_is_routed_and_addressed() -> None:
    """Its client's path leads to it, and its requests to its upstream's path."""
    provider = Provider("station", "https://station.example", (NEW,))
    assert route_of("POST", "/v1/morse/send", ())[:2] == ("generate", NEW)
    assert route_of("POST", "/morse/count", ())[:2] == ("count_tokens", NEW)
    url = address(provider, NEW, "m", is_streaming=True, action="generate", query="")
    assert url == "https://station.example/morse/m/stream"
    assert address(provider, NEW, "m", is_streaming=False, action="count_tokens", query="").endswith("/morse/m/count")
    assert (b"x-morse", b"1844") in translated_headers([], NEW)


@pytest.mark.usefixtures("morse")
def test_a_new_format_has_its_own_errors_counts_and_lists() -> None:
    """The providers' and ours by the same pair."""
    assert json.loads(error_body(Declined(404, "gone", "No."), NEW, "")) == {"dots": "No.", "status": 404}
    assert json.loads(translate_error(400, b'{"dots":"No."}', NEW, "openai_chat")[1])["error"]["message"] == "No."
    assert "dots" in json.loads(count_body(7, NEW))
    assert format_for("/models", {b"x-morse": b"1"}).models.encode(("a", "b")) == b"a/b"


@pytest.mark.usefixtures("morse")
def test_a_new_format_says_where_things_stand() -> None:
    """Findings point into its list, its system prompt is where it says, and its bodies are recognized
    by their members.
    """
    assert place_of(NEW, Turn("user", (), 3), 1) == "/signals/3/taps/1"
    assert guess_format(b'{"signals":[]}') == NEW
    asked = FORMATS[NEW].bodies.decode_request(b'{"messages":[{"role":"user","content":"hi"}]}', FORMATS[NEW].dialect)
    placed = inject(replace(asked, format=NEW), "Remember.")
    assert (placed.turns[0].role, placed.turns[0].at) == ("system", -1)


@pytest.mark.parametrize("wire", FORMATS.values(), ids=FORMATS)
def test_a_system_prompt_is_in_a_member_that_its_wire_names(wire: Wire) -> None:
    """Outside of the list, or at its head."""
    turn = Turn("system", (Text("Be brief."),), NOWHERE if wire.system == "messages" else SYSTEM_MEMBER, is_edited=True)
    body = wire.bodies.encode_request(Transcript(wire.name, (turn,), is_reshaped=True), wire.dialect)
    request = json.loads(body)[wire.inside] if wire.inside else json.loads(body)
    has = [name for name, value in request.items() if "Be brief." in json.dumps(value)]
    assert has == [wire.list_member if wire.system == "messages" else wire.system_members[0]]


def test_a_new_format_is_translated(morse: Wire) -> None:
    """From it and to it, by its own options, ids and prefix."""
    asked = morse.bodies.decode_request(b'{"messages":[{"role":"user","content":"hi"}],"seed":7}', morse.dialect)
    contract = resolve(Destination("anthropic", "", "claude-opus-4-5", "anthropic_messages"))
    sent = translate_request(replace(asked, format=NEW), "anthropic_messages", contract, "m")
    assert json.loads(sent.transcript.body)["messages"][0]["content"] == "hi"
    ids = CallIds(rule_of(NEW, morse.dialect), 0, frozenset(), "salt")
    assert ids.rule.pattern.fullmatch(".-.")
    way = ResponseContext("anthropic_messages", contract.dialect, NEW, morse.dialect, ids)
    assert ResponseTranslator(way).feed(Started("msg_1", "m")) == [Started("morse_msg_1", "m", 0)]


def test_a_fact_that_is_left_out_does_not_type_check(tmp_path: Path) -> None:
    """mypy names the missing fact, and rejects words that are not quirks."""
    whole = (SOURCE / "formats" / "ollama_chat" / "__init__.py").read_text()
    found = re.search(r"^    envelope_slot=.*\n", whole, re.MULTILINE)
    assert found is not None
    snippet = tmp_path / "snippet.py"
    snippet.write_text(whole.replace(found[0], "").replace('"one_text"', '"one_txt"'))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(snippet)],
        capture_output=True,
        text=True,
        check=False,
        cwd=SOURCE.parent.parent,
    )
    assert 'Missing named argument "envelope_slot" for "Wire"' in done.stdout
    assert "one_txt" in done.stdout


ALLOWED = {
    "values/turns.py": "the names themselves",
    "clients/row.py": "what each client speaks, as its rows say it",
    "clients/session_files.py": "what a client keeps is in the format that it speaks",
    "library/litellm.py": "LiteLLM's own names of providers, two of which read like ours of formats",
    "settings/example.py": "a file for people, which quotes names",
}


def test_no_other_module_knows_a_format_by_name() -> None:
    """A second table keyed by format has not drifted yet. Providers say which formats they speak."""
    words = re.compile("|".join(f'"{name}"' for name in FORMATS))
    naming = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if words.search(path.read_text())}
    outside = {name for name in naming if not name.startswith(("formats/", "providers/"))}
    assert outside == ALLOWED.keys()


def test_every_format_is_a_package_and_one_line() -> None:
    """What a new one takes: its package, its name in `FormatName`, its line in the table."""
    table = Path(formats.__file__ or "").read_text()
    for name in FORMATS:
        assert (SOURCE / "formats" / name / "__init__.py").exists()
        assert table.count(f"{name}.WIRE") == 1 + (name == formats.USUAL.name)
