"""The audit of one turn: its counts and its violations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from thoughtline.providers import PROVIDERS, UNLISTED
from thoughtline.replay.turn_audit import (
    EmptyCiphertext,
    MissingPairingId,
    MissingSignaturesForStrictProvider,
    MixedMakers,
    ReplayAudit,
    ReplayContract,
    ReplayViolation,
    UnreadableDetail,
    UnsignedFirstCall,
    UnsignedText,
    audit_replay,
    replay_contract_of,
)
from thoughtline.values import items as kinds
from thoughtline.values.items import (
    ANTHROPIC_CLAUDE_V1,
    AZURE_OPENAI_RESPONSES_V1,
    DEEPSEEK_V1,
    GLM_V1,
    GOOGLE_GEMINI_V1,
    KIMI_V1,
    MIMO_V1,
    OPENAI_RESPONSES_V1,
    QWEN_V1,
    UNKNOWN_FORMAT,
    XAI_RESPONSES_V1,
    Item,
    ReasoningEncrypted,
    ReasoningFormat,
    ReasoningServerToolCall,
    ReasoningSummary,
    ReasoningText,
    Seal,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)

STATELESS, WITH_TOOLS, ALWAYS = (
    ReplayContract.STATELESS,
    ReplayContract.REQUIRED_WITH_TOOLS,
    ReplayContract.ALWAYS_REQUIRED,
)

SIGNED = ReasoningText("why", "c2ln", ANTHROPIC_CLAUDE_V1)
UNSIGNED = ReasoningText("why", None, ANTHROPIC_CLAUDE_V1)
GEMINI_SEAL = Seal("c2ln", GOOGLE_GEMINI_V1)
GEMINI_THOUGHT = ReasoningText("hm", None, GOOGLE_GEMINI_V1)
CIPHER = ReasoningEncrypted("gAAAA", OPENAI_RESPONSES_V1, "rs_1")


CONTRACTS: dict[ReasoningFormat, ReplayContract] = {
    GOOGLE_GEMINI_V1: WITH_TOOLS,
    ANTHROPIC_CLAUDE_V1: WITH_TOOLS,
    OPENAI_RESPONSES_V1: WITH_TOOLS,
    AZURE_OPENAI_RESPONSES_V1: WITH_TOOLS,
    DEEPSEEK_V1: WITH_TOOLS,
    KIMI_V1: WITH_TOOLS,
    MIMO_V1: WITH_TOOLS,
    XAI_RESPONSES_V1: STATELESS,
    GLM_V1: STATELESS,
    QWEN_V1: STATELESS,
    UNKNOWN_FORMAT: STATELESS,
    ReasoningFormat("made-elsewhere-v9"): STATELESS,
}


@pytest.mark.parametrize("format", CONTRACTS)
def test_what_each_maker_demands(format: ReasoningFormat) -> None:
    """Makers that answer 400 are strict, those whose answers only get worse are not, and neither are unknown ones."""
    assert replay_contract_of(format) is CONTRACTS[format]


def test_every_named_maker_has_a_row() -> None:
    """A new maker needs a contract."""
    named = {value for name, value in vars(kinds).items() if name.endswith(("_V1", "_V2", "_FORMAT"))}
    assert named == {made for row in (*PROVIDERS, UNLISTED) for made in row.makes}


# --- the count -------------------------------------------------------------------------------------------------------

DUE: list[tuple[ReplayContract, bool, bool]] = [
    (STATELESS, False, False),
    (STATELESS, True, False),
    (WITH_TOOLS, False, False),
    (WITH_TOOLS, True, True),
    (ALWAYS, False, True),
    (ALWAYS, True, True),
]


@pytest.mark.parametrize(("contract", "carries_tools", "is_due"), DUE)
@pytest.mark.parametrize("items", [(), (UNSIGNED,), (ReasoningSummary("told"),)], ids=["none", "unsigned", "summary"])
def test_nothing_signed_violates_a_contract_that_is_due(
    items: tuple[Item, ...], contract: ReplayContract, carries_tools: bool, is_due: bool
) -> None:
    """Even without any items."""
    audit = audit_replay(items, contract, carries_tools)
    missing = [found for found in audit.violations if isinstance(found, MissingSignaturesForStrictProvider)]
    assert missing == ([MissingSignaturesForStrictProvider(contract, audit.formats)] if is_due else [])
    assert audit.is_clean is not is_due


COUNTS: list[tuple[tuple[Item, ...], int, int, tuple[ReasoningFormat, ...]]] = [
    ((), 0, 0, ()),
    ((SIGNED,), 1, 1, (ANTHROPIC_CLAUDE_V1,)),
    ((UNSIGNED,), 1, 0, (ANTHROPIC_CLAUDE_V1,)),
    ((ReasoningText("why", "", ANTHROPIC_CLAUDE_V1),), 1, 0, (ANTHROPIC_CLAUDE_V1,)),
    ((SIGNED, UNSIGNED, SIGNED), 3, 2, (ANTHROPIC_CLAUDE_V1,)),
    ((ReasoningSummary("told", OPENAI_RESPONSES_V1), CIPHER), 2, 1, (OPENAI_RESPONSES_V1,)),
    ((ReasoningEncrypted("", OPENAI_RESPONSES_V1),), 1, 0, (OPENAI_RESPONSES_V1,)),
    ((ReasoningServerToolCall("search"), Unknown("reasoning.image", Raw(b"{}"))), 2, 0, (UNKNOWN_FORMAT,)),
    ((Text("hi"), ToolCall("look", "{}"), ToolResult(Raw(b'""')), Unknown("image", Raw(b"{}"))), 0, 0, ()),
    ((ToolCall("look", "{}", seal=GEMINI_SEAL), ToolCall("look", "{}")), 1, 1, (GOOGLE_GEMINI_V1,)),
    ((SIGNED, CIPHER, GEMINI_THOUGHT), 3, 2, (ANTHROPIC_CLAUDE_V1, GOOGLE_GEMINI_V1, OPENAI_RESPONSES_V1)),
    ((ReasoningText("", None, DEEPSEEK_V1),), 1, 1, (DEEPSEEK_V1,)),
]


@pytest.mark.parametrize(("items", "item_count", "signed_count", "formats"), COUNTS)
@pytest.mark.parametrize("contract", ReplayContract)
def test_what_is_counted(
    contract: ReplayContract,
    items: tuple[Item, ...],
    item_count: int,
    signed_count: int,
    formats: tuple[ReasoningFormat, ...],
) -> None:
    """Reasoning and seals; what its maker would accept as proof; makers sorted, each once. Under any contract."""
    audit = audit_replay(items, contract, True)
    assert (audit.item_count, audit.signed_count, audit.formats) == (item_count, signed_count, formats)


@pytest.mark.parametrize("format", [DEEPSEEK_V1, KIMI_V1, MIMO_V1])
def test_text_is_proof_enough_where_only_its_presence_is_checked(format: ReasoningFormat) -> None:
    """A maker that signs nothing accepts its text, and nothing less."""
    contract = replay_contract_of(format)
    assert audit_replay((ReasoningText("why", None, format),), contract, True).is_clean
    assert not audit_replay((ToolCall("look", "{}"),), contract, True).is_clean


# --- the look --------------------------------------------------------------------------------------------------------

SEEN: dict[str, tuple[tuple[Item, ...], tuple[ReplayViolation, ...]]] = {
    "one signature does not cover unsigned text": (
        (SIGNED, Text("x"), UNSIGNED),
        (UnsignedText(2, ANTHROPIC_CLAUDE_V1),),
    ),
    "one signed sibling does not cover the first call": (
        (ToolCall("first", "{}"), ToolCall("second", "{}", seal=GEMINI_SEAL)),
        (UnsignedFirstCall(0, "first"),),
    ),
    "a signed first call covers its siblings": (
        (GEMINI_THOUGHT, ToolCall("first", "{}", seal=GEMINI_SEAL), ToolCall("second", "{}"), ToolCall("third", "{}")),
        (),
    ),
    "a signature on text does not cover a call": (
        (Text("hi", GEMINI_SEAL), ToolCall("first", "{}")),
        (UnsignedFirstCall(1, "first"),),
    ),
    "an entry with the call's id covers it": (
        (ReasoningEncrypted("c2ln", GOOGLE_GEMINI_V1, "call_1"), ToolCall("first", "{}", "call_1")),
        (),
    ),
    "an entry without an id covers the first call": (
        (ReasoningEncrypted("c2ln", GOOGLE_GEMINI_V1), ToolCall("first", "{}", "call_1")),
        (),
    ),
    "an entry of another call does not": (
        (ReasoningEncrypted("c2ln", GOOGLE_GEMINI_V1, "call_2"), ToolCall("first", "{}", "call_1")),
        (UnsignedFirstCall(1, "first"),),
    ),
    "calls of other makers need no signature": ((SIGNED, ToolCall("first", "{}")), ()),
    "unsigned Gemini thoughts are as they should be": ((GEMINI_THOUGHT, Text("hi", GEMINI_SEAL)), ()),
    "makers mixed": ((SIGNED, CIPHER), (MixedMakers((ANTHROPIC_CLAUDE_V1, OPENAI_RESPONSES_V1)),)),
    "a maker mixed in by a seal": (
        (SIGNED, ToolCall("first", "{}", seal=GEMINI_SEAL)),
        (MixedMakers((ANTHROPIC_CLAUDE_V1, GOOGLE_GEMINI_V1)),),
    ),
    "an unnamed maker is no other maker": ((SIGNED, ReasoningSummary("told")), ()),
    "an entry of a kind nobody knows": (
        (SIGNED, Unknown("reasoning.image", Raw(b"{}"))),
        (UnreadableDetail(1, "reasoning.image"),),
    ),
    "an unknown part that is no reasoning": ((SIGNED, Unknown("image", Raw(b"{}"))), ()),
    "empty ciphertext": (
        (CIPHER, ReasoningEncrypted("", OPENAI_RESPONSES_V1, "rs_2")),
        (EmptyCiphertext(1, OPENAI_RESPONSES_V1),),
    ),
    "the word that stands for ciphertext in a stream": (
        (CIPHER, ReasoningEncrypted("[REDACTED]", OPENAI_RESPONSES_V1, "rs_2")),
        (EmptyCiphertext(1, OPENAI_RESPONSES_V1),),
    ),
    "an empty seal on a call": (
        (Text("hi", GEMINI_SEAL), ToolCall("first", "{}", seal=Seal("", GOOGLE_GEMINI_V1))),
        (EmptyCiphertext(1, GOOGLE_GEMINI_V1),),
    ),
    "a call that names itself after reasoning that does not": (
        (ReasoningEncrypted("gAAAA", OPENAI_RESPONSES_V1), ToolCall("look", "{}", "call_1", "fc_1")),
        (MissingPairingId(0, OPENAI_RESPONSES_V1),),
    ),
    "a message that names itself after reasoning that does not": (
        (ReasoningEncrypted("gAAAA", AZURE_OPENAI_RESPONSES_V1), Text("hi", id="msg_1")),
        (MissingPairingId(0, AZURE_OPENAI_RESPONSES_V1),),
    ),
    "both named": ((CIPHER, ToolCall("look", "{}", "call_1", "fc_1")), ()),
    "neither named": ((ReasoningEncrypted("gAAAA", OPENAI_RESPONSES_V1), ToolCall("look", "{}", "call_1")), ()),
    "reasoning named, a chat call that can't be": ((CIPHER, ToolCall("look", "{}", "call_1")), ()),
    "a maker that does not pair": (
        (ReasoningEncrypted("abc", XAI_RESPONSES_V1), ToolCall("look", "{}", "call_1", "fc_1")),
        (),
    ),
}


@pytest.mark.parametrize("name", SEEN)
def test_what_is_seen_in_a_turn_that_has_a_signature(name: str) -> None:
    """The count alone would accept all of these."""
    items, expected = SEEN[name]
    audit = audit_replay(items, WITH_TOOLS, True)
    assert audit.signed_count > 0
    assert audit.violations == expected


@pytest.mark.parametrize("name", SEEN)
def test_nothing_is_reported_while_the_contract_is_not_due(name: str) -> None:
    """Stateless, or no tools where tools decide: clean."""
    items, _ = SEEN[name]
    assert audit_replay(items, STATELESS, True).violations == ()
    assert audit_replay(items, WITH_TOOLS, False).violations == ()


some_format = st.sampled_from([ANTHROPIC_CLAUDE_V1, GOOGLE_GEMINI_V1, OPENAI_RESPONSES_V1, DEEPSEEK_V1, UNKNOWN_FORMAT])
some_token = st.sampled_from([None, "", "c2ln"])
some_item: st.SearchStrategy[Item] = st.one_of(
    st.builds(ReasoningText, st.just("why"), some_token, some_format),
    st.builds(ReasoningEncrypted, st.sampled_from(["", "gAAAA", "[REDACTED]"]), some_format),
    st.builds(ReasoningSummary, st.just("told"), some_format),
    st.builds(ToolCall, st.just("look"), st.just("{}"), seal=st.sampled_from([None, GEMINI_SEAL])),
    st.builds(Unknown, st.sampled_from(["image", "reasoning.image"]), st.just(Raw(b"{}"))),
)


@given(
    items=st.lists(some_item, max_size=6),
    contract=st.sampled_from(ReplayContract),
    carries_tools=st.booleans(),
)
def test_missing_signatures_exactly_when_due_and_none_signed(
    items: list[Item], contract: ReplayContract, carries_tools: bool
) -> None:
    """Whatever else the turn has; and a contract that is not due gives no violation."""
    audit: ReplayAudit = audit_replay(items, contract, carries_tools)
    is_due = contract is ALWAYS or (contract is WITH_TOOLS and carries_tools)
    is_missing = MissingSignaturesForStrictProvider(contract, audit.formats) in audit.violations
    assert is_missing is (is_due and audit.signed_count == 0)
    assert is_due or audit.violations == ()
    assert audit.formats == tuple(sorted(set(audit.formats)))
    assert 0 <= audit.signed_count <= audit.item_count <= len(items)
