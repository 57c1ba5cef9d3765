"""Which contract applies with settings: they change what they name, and nothing else."""

from __future__ import annotations

from msgspec.structs import replace

from thoughtline import providers as dialects
from thoughtline.engine.contracts import ContractBook
from thoughtline.engine.learned import Lessons
from thoughtline.providers import CONTRACTS, Contract
from thoughtline.providers.contract import Source
from thoughtline.replay.detection import resolve
from thoughtline.stores import MemoryStore, StoreSettings
from thoughtline.values.destination import Destination
from thoughtline.values.turns import FormatName

LESSONS = Lessons(MemoryStore(StoreSettings(), lambda: 0.0), lambda: 0.0)

SETTINGS = Source("", "", "settings")


def target(provider: str, model: str = "m", format: FormatName = "openai_chat") -> Destination:
    return Destination(provider, "https://here.example", model, format)


def test_an_override_changes_what_it_says_and_no_more() -> None:
    """Kimi through OpenRouter keeps OpenRouter's place for reasoning when only Kimi's ladder is changed."""
    ladder: Contract = replace(CONTRACTS["kimi"], ladder=("inherit",), source=SETTINGS)
    book = ContractBook(LESSONS, {"kimi": ladder})
    through = target("openrouter", "moonshotai/kimi-k3")
    found = book.contract_for(through)
    assert (found.name, found.ladder, found.source) == ("kimi", ("inherit",), SETTINGS)
    assert found.dialect == resolve(through).dialect != CONTRACTS["kimi"].dialect
    assert book.contract_for(target("deepseek", "deepseek-v4")) == resolve(target("deepseek", "deepseek-v4"))


def test_a_contract_that_settings_name_holds_in_its_own_format() -> None:
    """A chat contract says nothing about a provider's Anthropic endpoint."""
    book = ContractBook(LESSONS, fixed={"mine": CONTRACTS["deepseek"]})
    assert book.contract_for(target("mine")) == CONTRACTS["deepseek"]
    messages = target("mine", format="anthropic_messages")
    assert book.contract_for(messages) == resolve(messages)


def test_an_override_holds_for_a_contract_that_settings_name() -> None:
    """Both apply to the same row."""
    changed = replace(CONTRACTS["deepseek"], filler=".")
    book = ContractBook(LESSONS, {"deepseek": changed}, {"mine": CONTRACTS["deepseek"]})
    assert book.contract_for(target("mine")).filler == "."


def test_a_dialect_that_settings_name_is_where_chat_keeps_reasoning() -> None:
    """With or without a contract, and only in chat: the other formats have one place."""
    book = ContractBook(LESSONS, dialects={"mine": dialects.REASONING})
    assert book.contract_for(target("mine", "kimi-k3")) == replace(CONTRACTS["kimi"], dialect=dialects.REASONING)
    messages = target("mine", "kimi-k3", "anthropic_messages")
    assert book.contract_for(messages).dialect == dialects.KIMI_ANTHROPIC
