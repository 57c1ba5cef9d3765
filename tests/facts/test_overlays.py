"""What overlays change, and what they may not."""

from __future__ import annotations

import pytest

from tests.facts.overlay_texts import ACME, KIMI_9, problems_of, table_with
from thoughtline.facts.overlays import (
    FETCHED_PROVIDER_MEMBERS,
    FETCHED_SETTINGS,
    LOCAL_PROVIDER_MEMBERS,
    MAX_BYTES,
    MAX_ENTRIES,
)
from thoughtline.facts.sheets import hints_of
from thoughtline.formats.request_settings import NOT_SETTINGS
from thoughtline.providers import BUILT_IN


def test_a_new_generation_goes_by_its_own_contract() -> None:
    """New rows of models are looked at first; the older ones stay as they were."""
    row = table_with(KIMI_9).host_named("kimi")
    assert row is not None
    new, old = row.row_for("kimi-k9", "openai_chat"), row.row_for("kimi-k2.6", "openai_chat")
    assert new is not None
    assert (new.scope, new.dialect.name, str(new.source)) == (
        "all_with_tools",
        "kimi",
        "https://docs.example/kimi-k9, 2026-11-18",
    )
    assert old == BUILT_IN.contracts["kimi"]


def test_a_new_refusal_is_known() -> None:
    """With the provider whose rule it is."""
    table = table_with(ACME, is_fetched=False)
    assert ("acme", "missing") in {(whose, one.rule) for whose, one in table.refusals}
    assert table.host_at("https://api.acme.example/v1/chat") is table.host_named("acme")


def test_a_member_of_a_fact_is_changed() -> None:
    """Nothing else of it, and what is like it follows."""
    table = table_with('[contracts.anthropic-bound]\nfiller = "-"\nunverified = true\n')
    before, after = BUILT_IN.contracts["anthropic-bound"], table.contracts["anthropic-bound"]
    assert (before.filler, after.filler) == (" ", "-")
    every = [one for row in table.rows for one in row.contracts if one.name == "anthropic-bound"]
    assert len(every) > 1
    assert {one.filler for one in every if one.format == "anthropic_messages"} == {"-"}


def test_a_later_overlay_goes_over_an_earlier_one() -> None:
    """Two in one document are refused by TOML itself."""
    again = problems_of(KIMI_9 + KIMI_9)
    assert len(again) == 1
    assert "not valid TOML" in again[0]


OK = "\nunverified = true"
_REFUSAL = "[refusals.new]\nprovider = 'kimi'\nrule = 'missing'\nremedy = 'restore'\n"
MISTAKES = {
    f"[contracts.kimi]\nfillr = '-'{OK}": "2: contracts.kimi.fillr: there is no such key (did you mean filler?)",
    "[contracts.kimi]\nfiller = '-'": "1: contracts.kimi: this fact does not say where it comes from",
    f"[contracts.kimi]\nfiller = 3{OK}": "2: contracts.kimi.filler: this does not fit",
    f"[contracts.kimi]\nscope = 'most'{OK}": "2: contracts.kimi.scope: this does not fit",
    "[contracts.kimi]\nsource = 'x'\nread = 'today'": "3: contracts.kimi.read: this is no day",
    f"[contracts.new]\nkind = 'presence'{OK}": "1: contracts.new.dialect: a new entry needs it",
    f"[contracts.new]\nlike = 'kimmi'{OK}": "2: contracts.new.like: there is no entry kimmi in contracts",
    f"[models.new]\nprovider = 'kimi'\ncontracts = ['kimmi']{OK}": "3: models.new.contracts: there is no entry kimmi",
    f"[models.new]\nprovider = 'kimmi'\ncontracts = ['kimi']{OK}": "2: models.new.provider: there is no entry kimmi in",
    f"[models.'a b']{OK}": "1: models.a b: this can't be a name",
    f"[modls.x]{OK}": "1: modls: there is no such sheet of facts (did you mean models?)",
    "contracts = 3": "1: contracts: this is no table",
    "contracts.kimi = 3": "1: contracts.kimi: this is no table",
    f"[models.new]\nprovider = 'kimi'\nmodels = '('\ncontracts = ['kimi']{OK}": "3: models.new.models: this is no",
    f"{_REFUSAL}template = '{{nothing}}'{OK}": "5: refusals.new.template: this template can't be read",
    "[": "1: : this is not valid TOML",
}


@pytest.mark.parametrize("text", MISTAKES, ids=MISTAKES.values())
def test_a_mistake_is_named_with_its_line_and_a_remedy(text: str) -> None:
    """One problem for one mistake."""
    found = problems_of(text)
    assert len(found) == 1
    assert found[0].startswith(f"overlay.toml:{MISTAKES[text]}")
    assert found[0].endswith(")")
    assert "()" not in found[0]


KEY_THIEVES = {
    "an address": "[providers.kimi]\nbase_url = 'https://evil.example'\nunverified = true",
    "an address of one format": "[providers.kimi]\nbases = { openai_chat = 'https://evil.example' }\nunverified = true",
    "a path": "[providers.kimi]\npaths = { openai_chat = '@evil.example' }\nunverified = true",
    "hosts": "[providers.kimi]\nhosts = 'evil'\nunverified = true",
    "an alias": "[providers.kimi]\naliases = ['deepseek']\nunverified = true",
    "how it is asked": "[providers.kimi]\nauth = 'query'\nunverified = true",
    "whose key": "[providers.kimi]\nkey_variables = ['HOME']\nunverified = true",
    "which models are whose": "[providers.kimi]\nmodels = '.'\nunverified = true",
    "formats": "[providers.kimi]\nformats = ['openai_responses']\nunverified = true",
}


@pytest.mark.parametrize("is_fetched", [True, False])
@pytest.mark.parametrize("text", KEY_THIEVES.values(), ids=KEY_THIEVES)
def test_no_overlay_changes_where_a_key_goes(text: str, *, is_fetched: bool) -> None:
    """Neither one that was fetched nor one that settings name."""
    found = problems_of(text, is_fetched=is_fetched)
    assert len(found) == 1
    assert "may decide where a key goes" in found[0]


def test_only_a_file_of_the_users_own_adds_a_provider() -> None:
    """A fetched overlay would decide where a key goes."""
    assert any("can't add a provider" in one for one in problems_of(ACME))
    assert not problems_of(ACME, is_fetched=False)


@pytest.mark.parametrize("name", ["moonshot", "v1", "unlisted", "api"])
def test_a_new_provider_takes_no_name_that_exists(name: str) -> None:
    """Neither another's alias nor the first segment of an address of the gateway's own."""
    found = problems_of(ACME.replace("[providers.acme]", f"[providers.{name}]"), is_fetched=False)
    assert any("of this name or alias exists" in one or "may decide where" in one for one in found)
    found = problems_of(
        ACME.replace("unverified = true", f"aliases = ['{name}']\nunverified = true", 1), is_fetched=False
    )
    assert any("of this name or alias exists" in one for one in found)


WRITTEN = {
    "settings = [{ path = 'tools', do = 'set', values = ['[]'] }]": "tools",
    "settings = [{ path = 'temperature', do = 'move', values = ['\"mcp_servers\"'] }]": "mcp_servers",
    "settings = [{ path = 'webhook', do = 'default', values = ['1'] }]": "webhook",
    "keeping = [{ path = 'metadata.user_id', do = 'set', values = ['1'] }]": "metadata",
    "knobs = [{ models = '', style = 'thinking_type', keeps = [[['model'], 'x']] }]": "model",
}


@pytest.mark.parametrize("member", WRITTEN)
def test_a_fetched_overlay_writes_nothing_but_settings_of_thinking_and_sampling(member: str) -> None:
    """A tool or an address that it brought could lead a conversation elsewhere."""
    found = problems_of(f"[contracts.kimi]\n{member}\nunverified = true")
    assert len(found) == 1
    assert "set in requests" in found[0]
    assert not problems_of(f"[contracts.kimi]\n{member}\nunverified = true", is_fetched=False)


def test_what_a_fetched_overlay_may_have_set_says_nothing_of_what_to_do() -> None:
    """The two lists are apart, and the one of providers has no member that decides where a key goes."""
    assert not FETCHED_SETTINGS & NOT_SETTINGS
    asked_where = {"base_url", "bases", "paths", "hosts", "auth", "aliases", "formats", "models", "key_variables"}
    asked_where |= {"key_prefixes", "guests", "relays", "is_located", "owns"}
    assert asked_where <= set(hints_of("providers"))
    assert not asked_where & (FETCHED_PROVIDER_MEMBERS | LOCAL_PROVIDER_MEMBERS)


def test_bounds() -> None:
    """Huge, deep and many: each is refused with a sentence."""
    assert "at most 1 MiB" in problems_of("#" * (MAX_BYTES + 1))[0]
    assert "not valid TOML" in problems_of("a = " + "[" * 100_000)[0]
    deep = "filler = " + "{ a = " * 300 + "1" + " }" * 300
    assert problems_of(f"[contracts.kimi]\n{deep}\nunverified = true")
    many = "".join(f"[contexts.n{number}]\nunverified = true\n" for number in range(MAX_ENTRIES + 1))
    assert any("at most 2,000 entries" in one for one in problems_of(many))


def test_no_variable_of_the_environment_is_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an overlay says may go up in requests."""
    monkeypatch.setenv("SECRET", "hunter2")
    table = table_with("[contracts.kimi]\nfiller = '${SECRET}'\nunverified = true")
    assert table.contracts["kimi"].filler == "${SECRET}"
