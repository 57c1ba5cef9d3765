"""The ids of a Responses step: which of them are valid if some of it is gone."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from thoughtline.replay.pairing import name_of, named_as_shown, paired, unnamed, woven_in_pairs
from thoughtline.values.items import Item, ReasoningEncrypted, ReasoningSummary, ReasoningText, Text, ToolCall, Unknown


def rs(number: int, name: str | None = "own") -> ReasoningEncrypted:
    return ReasoningEncrypted(f"gA{number}", id=f"rs_{number}" if name == "own" else name)


def ws(number: int) -> Unknown:
    return Unknown("web_search_call", Raw(json.dumps({"type": "web_search_call", "id": f"ws_{number}"}).encode()))


def fc(number: int, name: str | None = "own") -> ToolCall:
    return ToolCall("bash", "{}", f"call_{number}", f"fc_{number}" if name == "own" else name)


MSG = Text("Done.", id="msg_1")
STEP: tuple[Item, ...] = (rs(1), ws(1), rs(2), fc(1), fc(2), rs(3), MSG)

CASES: dict[str, tuple[list[Item], list[str | None]]] = {
    "all there": ([*STEP], ["rs_1", "ws_1", "rs_2", "fc_1", "fc_2", "rs_3", "msg_1"]),
    "thoughts without names": (
        [rs(1, None), ws(1), rs(2, None), fc(1), fc(2), rs(3, None), MSG],
        ["rs_1", "ws_1", "rs_2", "fc_1", "fc_2", "rs_3", "msg_1"],
    ),
    "the search is gone": ([rs(1), rs(2), fc(1), fc(2), rs(3), MSG], [None, "rs_2", "fc_1", "fc_2", "rs_3", "msg_1"]),
    "one call without a name": (
        [rs(1), ws(1), rs(2), fc(1), fc(2, None), rs(3), MSG],
        ["rs_1", "ws_1", None, None, None, "rs_3", "msg_1"],
    ),
    "the first call is gone": (
        [rs(1), ws(1), rs(2), fc(2), rs(3), MSG],
        ["rs_1", "ws_1", None, None, "rs_3", "msg_1"],
    ),
    "a message under another name": (
        [rs(1), ws(1), rs(2), fc(1), fc(2), rs(3), Text("Done.", id="msg_9")],
        ["rs_1", "ws_1", "rs_2", "fc_1", "fc_2", None, None],
    ),
    "no thoughts at all": ([ws(1), fc(1), fc(2), MSG], ["ws_1", None, None, None]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_thought_keeps_its_name_with_what_came_of_it(name: str) -> None:
    """All ids of a pair or none; calls that the provider ran itself can't go without theirs."""
    items, names = CASES[name]
    assert [name_of(item) for item in paired(items, STEP)] == names


def test_a_thought_that_is_only_a_name_is_nothing_without_it() -> None:
    """An element whose content the provider stored can't be sent without its id: it would be empty."""
    assert unnamed((ReasoningSummary("", id="rs_1"), MSG)) == (Text("Done."),)
    assert unnamed((ReasoningSummary("So.", id="rs_1"),)) == (ReasoningSummary("So."),)


@pytest.mark.parametrize(
    ("is_bound", "shown", "kept"), [(True, None, None), (True, "rs_9", "rs_1"), (False, "rs_9", "rs_9")]
)
def test_the_clients_name_for_a_thought_is_no_loss(is_bound: bool, shown: str | None, kept: str | None) -> None:
    """Reasoning without an id is the same; with another id it is, if nothing is bound to ids."""
    made = (ReasoningText("So.", id="rs_1"),)
    assert named_as_shown(made, (ReasoningText("So.", id=shown),), is_bound=is_bound) == (
        ReasoningText("So.", id=kept),
    )


@pytest.mark.parametrize(
    ("is_bound", "shown", "woven"),
    [
        (True, (MSG,), (rs(1), MSG)),
        (True, (Text("Done."),), (rs(1, None), Text("Done."))),
        (True, (rs(1, None), Text("Done.")), (rs(1, None), Text("Done."))),
        (False, (Text("Done."),), (rs(1), Text("Done."))),
        (False, (rs(1, "rs_9"), Text("Done.")), (rs(1, "rs_9"), Text("Done."))),
    ],
)
def test_a_step_is_woven_with_the_names_that_hold(
    is_bound: bool, shown: tuple[Item, ...], woven: tuple[Item, ...]
) -> None:
    """Reasoning is restored with its id if its message has one, and a client's own id for it stays."""
    made = (rs(1), MSG)
    assert woven_in_pairs(made, shown, made, is_bound=is_bound) == woven


def ref(name: str) -> Unknown:
    return Unknown("item_reference", Raw(json.dumps({"type": "item_reference", "id": name}).encode()))


@pytest.mark.parametrize("is_bound", [True, False])
@pytest.mark.parametrize(
    "shown",
    [
        (ref("rs_1"), fc(1), rs(2), MSG),
        (ref("rs_1"), fc(1, None), ref("rs_2"), Text("Done.")),
    ],
    ids=["one of two", "both"],
)
def test_a_thought_that_is_referred_to_is_not_sent_twice(is_bound: bool, shown: tuple[Item, ...]) -> None:
    """`item_reference` stands for stored reasoning: a step that has all of it is unchanged."""
    made = (rs(1), fc(1), rs(2), MSG)
    assert woven_in_pairs(made, shown, made, is_bound=is_bound) == shown


def test_with_a_reference_only_the_lost_thought_comes_back() -> None:
    """The other reasoning of the step is restored. Pairs can't be determined then, so it has no ids."""
    made = (rs(1), fc(1), rs(2), MSG)
    woven = woven_in_pairs(made, (ref("rs_1"), fc(1), MSG), made, is_bound=True)
    assert woven == (ref("rs_1"), fc(1, None), rs(2, None), Text("Done."))
