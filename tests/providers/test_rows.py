"""A provider is one row: whoever asks about it asks there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from thoughtline import providers
from thoughtline.destinations import catalogue
from thoughtline.engine.audit import audit
from thoughtline.engine.heal import Sent, heal
from thoughtline.library.codecs import FormatReasoningCodec, codec_for
from thoughtline.library.preserver import requires_reasoning_preservation
from thoughtline.providers import CONTRACTS, PROVIDERS, Dialect, FactTable, canonical_name, refusals
from thoughtline.providers.contract import PRESENCE, Contract, unverified
from thoughtline.providers.knobs import Knob
from thoughtline.providers.refusals import says
from thoughtline.providers.row import ModelRow, ProviderRow
from thoughtline.providers.thinking import settle
from thoughtline.replay.detection import resolve
from thoughtline.replay.plans import Policy
from thoughtline.replay.refusals import classify
from thoughtline.replay.turn_audit import ReplayContract, replay_contract_of
from thoughtline.values.destination import Destination
from thoughtline.values.items import ReasoningFormat
from thoughtline.values.options import Thinking

ACME_V1 = ReasoningFormat("acme-v1")
FORGOTTEN = says("missing", "restore", "you forgot the `<field:reasoning>` of message {index}…, dear caller")
CHAT = Contract(
    "acme",
    "presence",
    Dialect("acme", "reasoning", ACME_V1),
    scope="calls",
    source=unverified("made up"),
    ladder=PRESENCE,
    thinks_by_default=True,
    knobs=(Knob("", "enable_thinking"),),
    answers=(FORGOTTEN,),
)
ACME = ProviderRow(
    name="acme",
    aliases=("acme-corp",),
    hosts=r"acme\.example$",
    models="roadrunner",
    base_url="https://api.acme.example/v1",
    formats=("openai_chat",),
    rules="own",
    rows=(ModelRow(contracts=(CHAT,)),),
    wants_back="always",
    makes=(ACME_V1,),
    refusals=(FORGOTTEN,),
)
BODY = (
    b'{"model":"roadrunner-1","messages":[{"role":"user","content":"hi"},'
    b'{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f",'
    b'"arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"ok"}],"tools":[{"type":"function",'
    b'"function":{"name":"f","parameters":{}}}]}'
)
REFUSED = b'{"error":{"message":"you forgot the `reasoning` of message 1, dear caller"}}'
TARGET = Destination("acme", "", "roadrunner-1", "openai_chat")


@pytest.fixture(autouse=True)
def acme() -> Iterator[None]:
    built_in = providers.BUILT_IN
    table = FactTable((*PROVIDERS, ACME), built_in.unlisted, further=built_in.further, dialects=built_in.dialects)
    providers.use(table)
    yield
    providers.use(built_in)


def test_the_gateway_knows_a_new_row() -> None:
    """By its name, by another, by its host, and by its model elsewhere; the catalogue lists it."""
    known = replace(CHAT, switches=("enable_thinking", "chat_template_kwargs"))
    assert resolve(TARGET) == resolve(Destination("acme-corp", "", "any", "openai_chat")) == known
    assert resolve(Destination("", "https://api.acme.example/v1", "any", "openai_chat")) == known
    assert resolve(Destination("vllm", "", "acme/roadrunner-2", "openai_chat")).name == "acme"
    assert canonical_name("Acme-Corp") == "acme"
    assert catalogue.built_in(ACME).base_url == "https://api.acme.example/v1"


def test_the_library_knows_a_new_row() -> None:
    """Codec, preserver and the audit of a turn ask the same row."""
    assert codec_for("acme-corp") == FormatReasoningCodec("openai_chat", CHAT.dialect)
    assert requires_reasoning_preservation("any", "acme")
    assert replay_contract_of(ACME_V1) is ReplayContract.REQUIRED_WITH_TOOLS


def test_thinking_is_switched_as_the_row_says() -> None:
    """On and off."""
    assert settle(Thinking("off"), resolve(TARGET), "roadrunner-1", None).members == ((("enable_thinking",), False),)
    assert settle(Thinking("on"), resolve(TARGET), "roadrunner-1", None).members == ((("enable_thinking",), True),)


def test_a_refusal_is_read_and_written_from_one_template() -> None:
    """The auditor says what the provider would, and the classifier knows it again."""
    [finding] = audit(BODY, provider="acme")
    assert finding.answer == "you forgot the `reasoning` of message 1, dear caller"
    refusal = classify(400, REFUSED)
    assert refusal is not None
    assert (refusal.family, refusal.rule, refusal.field, refusal.place) == (
        "acme",
        "missing",
        "reasoning",
        "/messages/1",
    )


def test_a_refusal_of_a_new_row_is_healed() -> None:
    """What was wanted is wanted from then on."""
    advisory = resolve(Destination("", "", "nobody's", "openai_chat"))
    healed = heal(400, REFUSED, Sent(BODY, TARGET, advisory, Policy(), None), 0.0)
    assert healed is not None
    assert (healed.contract.kind, healed.contract.scope) == ("presence", "calls")


SNIPPET = """
from thoughtline.providers.row import ProviderRow
ROW = ProviderRow(name="acme", base_url="https://acme.example", formats=("openai_chat",), rules="own", rows=())
"""


def test_a_row_without_a_fact_does_not_type_check(tmp_path: Path) -> None:
    """A new provider can't forget to say where it is."""
    (tmp_path / "acme.py").write_text(SNIPPET)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--no-incremental", str(tmp_path / "acme.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert 'Missing named argument "hosts" for "ProviderRow"' in done.stdout


# --- the rows themselves ---------------------------------------------------------------------------------------------


def test_names_are_of_one_provider() -> None:
    """No name or alias is of two, and no contract of a name differs but for its host's place and default."""
    names = [name for row in PROVIDERS for name in (row.name, *row.aliases)]
    assert len(set(names)) == len(names)
    assert set(catalogue.PROVIDERS) == {row.name for row in PROVIDERS if row.formats}


@pytest.mark.parametrize("contract", CONTRACTS.values(), ids=CONTRACTS)
def test_what_the_auditor_quotes_is_read_again(contract: Contract) -> None:
    """Every sentence that is written from a template is recognised by it."""
    facts = {"index": 3, "item": 1, "id": "rs_0123", "name": "f", "position": 4, "found": "text"}
    known = [template for _, template in refusals()]
    for template in contract.answers:
        names_field = "{carrier}" in template.template or "{message_field}" in template.template
        sentence = template.text(**facts, **({"field": "reasoning_content"} if names_field else {}))
        assert not set("{}<>") & set(sentence)
        if template in known and not template.codes:
            assert template.sentence.match(sentence), sentence
