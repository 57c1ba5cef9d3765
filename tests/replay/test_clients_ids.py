"""What clients do to ids: group B of the catalogue of client behaviours, one or more tests per row."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.replay.dialogues import (
    Json,
    World,
    asked,
    bare,
    call,
    chat,
    chat_reply,
    fc,
    gemini,
    gemini_reply,
    ids,
    model,
    msg,
    output,
    ran,
    reasoning_of,
    responses,
    responses_reply,
    result,
    result_of,
    rs,
    runs,
    said,
    signatures,
    stripped,
    told,
    user,
)

KIMI = ("kimi", "kimi-k2.6")
GEMINI = ("gemini", "gemini-3-pro-preview")


def kimi_step(reasoning: str, number: int = 0, command: str = "ls") -> Json:
    return said(None, call(f"functions.bash:{number}", command), reasoning=reasoning)


def renamed(message: Json, rename: Callable[[str], str]) -> Json:
    """A chat message whose ids a client has rewritten, in calls and results."""
    changed = dict(message)
    if "tool_calls" in message:
        changed["tool_calls"] = [one | {"id": rename(one["id"])} for one in message["tool_calls"]]
    if "tool_call_id" in message:
        changed["tool_call_id"] = rename(message["tool_call_id"])
    return changed


# --- B1 --------------------------------------------------------------------------------------------------------------


def test_b1_equal_ids_and_arguments_in_two_conversations() -> None:
    """B1: `functions.bash:0` with equal arguments in two conversations: each gets its own, in either order."""
    world = World(*KIMI)
    one = told(world, user("How many files?"), kimi_step("Count them."), result("functions.bash:0"))
    two = told(world, user("Any secrets here?"), kimi_step("Look for keys."), result("functions.bash:0"))
    for history in (one, two, one):
        assert world.send(chat(*stripped(history))).messages == history


def test_b1_an_opening_rewritten_under_a_repeated_id() -> None:
    """B1: Gemini CLI, resumed, rewrites its first message and names no session: its turns are identified by their run,
    including the first call, whose id proves nothing. Another conversation with the same call does not interfere."""
    world = World(*KIMI)
    told(
        world,
        user("Elsewhere."),
        kimi_step("Other thoughts."),
        result("functions.bash:0"),
        said("Done.", reasoning="D"),
    )
    first, second = kimi_step("List it."), said("Now two.", call("functions.bash:1", "pwd"), reasoning="And where?")
    third = said("That is all.", reasoning="Done here.")
    history = told(
        *(world, user("Files: none."), first, result("functions.bash:0")),
        *(second, result("functions.bash:1", "/srv/reports/2026" * 20), third, user("Thanks.")),
    )
    sent = world.send(chat(user("Files: a b c."), *stripped(history[1:])))
    assert [reasoning_of(sent.messages[at]) for at in (1, 3, 5)] == ["List it.", "And where?", "Done here."]
    assert not sent.rules & {"missing", "ambiguous"}


def test_b1_a_next_turn_of_another_conversation_proves_nothing() -> None:
    """B1: the same call and result followed by an unknown turn: the owner of the first one is uncertain."""
    world = World(*KIMI)
    told(world, user("One."), kimi_step("List it."), result("functions.bash:0"), said("All there.", reasoning="Fine."))
    bare_turns = stripped([kimi_step("?"), result("functions.bash:0"), said("Never said so.")])
    sent = world.send(chat(user("Two."), *bare_turns, user("Go on.")))
    assert "List it." not in str(sent.body)


def test_b1_indistinguishable_turns_get_nothing() -> None:
    """B1: without the openings, the two are indistinguishable: neither gets reasoning, and a note gives the reason."""
    world = World(*KIMI)
    told(world, user("How many files?"), kimi_step("Count them."))
    told(world, user("Any secrets here?"), kimi_step("Look for keys."))
    sent = world.send(chat(user("(history cut)"), bare(kimi_step("")), result("functions.bash:0")))
    assert (reasoning_of(sent.messages[1]) or "").strip() == ""
    assert sent.plan.counts.restored == 0
    assert sent.plan.findings


def test_b1_an_id_that_repeats_in_one_conversation() -> None:
    """B1: a counter that restarts in every turn: the same id, name and arguments, two different thoughts."""
    world = World(*KIMI)
    history = told(
        world,
        *(user("Look."), kimi_step("First look."), result("functions.bash:0")),
        *(kimi_step("Look again, it may have changed."), result("functions.bash:0", "a b c d")),
    )
    assert world.send(chat(*stripped(history))).messages == history


def test_b1_never_across_tenants() -> None:
    """B1: the same conversation, ids, arguments and session under another credential: nothing is found."""
    world = World(*KIMI)
    ask, step = user("How many files?"), kimi_step("Count them.")
    world.answer(chat(ask), chat_reply(step), session="s", tenant="alice")
    history = [ask, bare(step), result_of(step)]
    assert reasoning_of(world.send(chat(*history), session="s", tenant="alice").messages[1]) == "Count them."
    other = world.send(chat(*history), session="s", tenant="bob")
    assert other.plan.counts.restored == 0
    assert "Count them." not in str(other.body)


# --- B2 to B5 --------------------------------------------------------------------------------------------------------

RENAMINGS: dict[str, Callable[[str], str]] = {
    "B2 sanitised": lambda name: name.replace(".", "_").replace(":", "_"),
    "B2 letters only": lambda name: name.replace(".", "").replace(":", ""),
    "B2 a global index": lambda name: f"functions.bash:{int(name[-1]) + 7}",
    "B2 shifted by one": lambda name: f"functions.bash:{1 - int(name[-1])}",
    "B3 regenerated": lambda name: f"k3J9x{ord(name[-1]):04d}",
    "B4 lengthened": lambda name: f"{name}:9b2f7c1e-5d0a-4c58-a7de-3f1f0e0c9a11",
    "B4 cut": lambda name: name[:12] + name[-1],
    "B5 with a signature inside": lambda name: f"{name}__thought__RXNpZw==",
}


def two_steps(world: World) -> list[Json]:
    return told(
        world,
        *(user("Look."), kimi_step("First the names."), result("functions.bash:0")),
        *(kimi_step("Now where we are.", 1, "pwd"), result("functions.bash:1", "/tmp")),
    )


@pytest.mark.parametrize("renaming", RENAMINGS)
def test_b2_to_b5_rewritten_ids_still_find_their_turn(renaming: str) -> None:
    """B2, B3, B4, B5: if the id misses, name, arguments and position find each turn's own record."""
    world = World(*KIMI)
    history = two_steps(world)
    sent = world.send(chat(*(renamed(bare(message), RENAMINGS[renaming]) for message in history)))
    assert [reasoning_of(sent.messages[1]), reasoning_of(sent.messages[3])] == ["First the names.", "Now where we are."]


def test_b2_ids_that_were_exchanged_do_not_exchange_reasoning() -> None:
    """B2: equal calls whose ids a client swapped: lineage is stronger than an id."""
    world = World(*KIMI)
    history = told(
        world,
        *(user("Look."), kimi_step("First look.", 0), result("functions.bash:0")),
        *(kimi_step("Second look.", 1), result("functions.bash:1", "a b c d")),
    )
    swapped = [renamed(bare(message), RENAMINGS["B2 shifted by one"]) for message in history]
    sent = world.send(chat(*swapped))
    assert [reasoning_of(sent.messages[1]), reasoning_of(sent.messages[3])] == ["First look.", "Second look."]


def test_b2_kimi_gets_its_own_ids_back() -> None:
    """B2: Kimi works best with its own form of id: the call and its result are sent with it."""
    world = World(*KIMI)
    history = two_steps(world)
    sent = world.send(chat(*(renamed(bare(message), RENAMINGS["B2 sanitised"]) for message in history)))
    assert sent.messages == history


def test_b3_ids_regenerated_on_every_turn() -> None:
    """B3: new random ids in every request: the same reasoning, at the same place, every time."""
    world = World("deepseek", "deepseek-v4-pro")
    history = two_steps(world)
    for salt in "abc":
        # A default that binds the loop's variable has no type.
        new = [renamed(bare(message), lambda name, salt=salt: f"{salt}9Qx{name[-1]}zzzz") for message in history]  # type: ignore[misc]
        sent = world.send(chat(*new))
        assert [reasoning_of(sent.messages[at]) for at in (1, 3)] == ["First the names.", "Now where we are."]


def test_b4_cut_ids_that_fall_together() -> None:
    """B4: two ids that differ only after the cut become one; content still tells the calls apart."""
    world = World("deepseek", "deepseek-v4-pro")
    long = "call_00_" + "x" * 60
    history = told(
        world,
        *(user("Look."), said(None, call(long + "A"), reasoning="Names."), result(long + "A")),
        *(said(None, call(long + "B", "pwd"), reasoning="Where?"), result(long + "B", "/")),
    )
    sent = world.send(chat(*(renamed(bare(message), lambda name: name[:64]) for message in history)))
    assert [reasoning_of(sent.messages[1]), reasoning_of(sent.messages[3])] == ["Names.", "Where?"]


def test_b5_a_signature_inside_an_id_is_taken_out() -> None:
    """B5: an id with a signature in it is read, and sent without it: on the call and on its result."""
    world = World(*GEMINI)
    world.answer(chat(user("Look.")), chat_reply(said(None, call("fc-1", "ls", "EsigA"))))
    smuggled = "fc-1__thought__RXNpZ0E="
    sent = world.send(chat(user("Look."), said(None, call(smuggled)), result(smuggled)))
    assert sent.messages[1]["tool_calls"] == [call("fc-1", "ls", "EsigA")]
    assert sent.messages[2]["tool_call_id"] == "fc-1"


# --- B6 --------------------------------------------------------------------------------------------------------------

INVENTED: dict[str, dict[str, str]] = {
    "no ids": {},
    "Gemini CLI's": {"id": "bash_1763200000000_0"},
    "the AI SDK's": {"id": "aZ3kQ9mX0pL2vB7n"},
}


@pytest.mark.parametrize("invented", INVENTED)
def test_b6_calls_without_ids(invented: str) -> None:
    """B6: Gemini gave no id; whatever the client invents, position, name and arguments find the signature's place."""
    world = World(*GEMINI, "gemini_generate")
    ask, names = asked({"text": "Look."}), INVENTED[invented]
    world.answer(gemini(ask), gemini_reply(runs("ls", "EsigA")))
    first = [ask, model(runs("ls", "EsigA")), asked(ran())]
    world.answer(gemini(*first), gemini_reply(runs("ls", "EsigB")))
    lost = [ask, model(runs("ls", **names)), asked(ran(**names)), model(runs("ls", **names)), asked(ran("d", **names))]
    sent = world.send(gemini(*lost))
    assert [signatures(sent.messages[1]), signatures(sent.messages[3])] == [["EsigA"], ["EsigB"]]


def test_b6_twin_calls_of_one_turn() -> None:
    """B6: two calls with equal name and arguments: the first carries the signature, the second none."""
    world = World(*GEMINI, "gemini_generate")
    ask = asked({"text": "Look twice."})
    world.answer(gemini(ask), gemini_reply(runs("ls", "EsigA"), runs("ls")))
    sent = world.send(gemini(ask, model(runs("ls"), runs("ls")), asked(ran(), ran())))
    assert signatures(sent.messages[1]) == ["EsigA", None]


# --- B7 --------------------------------------------------------------------------------------------------------------

STEP = [rs("rs_1", "gAAAAone", "Listing."), msg("msg_1", "Let me look."), fc("fc_1", "call_a1B2c3D4")]
ITEMS: dict[str, list[Json]] = {
    "all ids dropped": [rs(None, "gAAAAone", "Listing."), msg(None, "Let me look."), fc(None, "call_a1B2c3D4")],
    "the message's dropped": [STEP[0], msg(None, "Let me look."), STEP[2]],
    "the call's dropped": [STEP[0], STEP[1], fc(None, "call_a1B2c3D4")],
    "rewritten": [STEP[0], msg("msg_new", "Let me look."), fc("fc_call_a1B2c3D4", "call_a1B2c3D4")],
    "reasoning lost": STEP[1:],
    "reasoning lost, the rest rewritten": [msg("msg_9", "Let me look."), fc("fc_9", "call_a1B2c3D4")],
    "reasoning lost and all ids": [msg(None, "Let me look."), fc(None, "call_a1B2c3D4")],
}


@pytest.mark.parametrize("habit", ITEMS)
def test_b7_all_ids_of_a_step_or_none(habit: str) -> None:
    """B7: stored reasoning and its followers are sent with all their own ids, or with none: never with half, never
    invented."""
    world = World("openai", "gpt-5.4", "openai_responses")
    ask = user("How many files?")
    world.answer(responses(ask), responses_reply(*STEP))
    sent = world.send(responses(ask, *ITEMS[habit], output("call_a1B2c3D4"), store=True))
    step = sent.messages[1:-1]
    assert [item["type"] for item in step] == ["reasoning", "message", "function_call"]
    assert step[0]["encrypted_content"] == "gAAAAone"
    assert ids(step) in ([None, None, None], ["rs_1", "msg_1", "fc_1"])


@pytest.mark.parametrize("habit", ["all ids dropped", "the message's dropped", "the call's dropped"])
def test_b7_items_that_are_not_stored_keep_the_ids_they_have(habit: str) -> None:
    """B7: with `store: false` no partner is checked: a client's own items are sent unchanged."""
    world = World("openai", "gpt-5.4", "openai_responses")
    ask = user("How many files?")
    world.answer(responses(ask), responses_reply(*STEP))
    assert world.send(responses(ask, *ITEMS[habit], output("call_a1B2c3D4"))).plan.edits == ()


def test_b7_one_id_on_two_messages() -> None:
    """B7: if a client gives two messages the same id, no two elements are sent with it."""
    world = World("openai", "gpt-5.4", "openai_responses")
    ask, more = user("How many files?"), user("Sure?")
    world.answer(responses(ask), responses_reply(rs("rs_1", "gAAAAone"), msg("msg_1", "Three.")))
    first = [ask, rs("rs_1", "gAAAAone"), msg("msg_1", "Three."), more]
    world.answer(responses(*first), responses_reply(rs("rs_2", "gAAAAtwo"), msg("msg_2", "Yes.")))
    sent = world.send(responses(*first, rs("rs_2", "gAAAAtwo"), msg("msg_1", "Yes."), user("Thanks.")))
    names = [name for name in ids(sent.messages) if name is not None]
    assert len(names) == len(set(names))
    assert [item["encrypted_content"] for item in sent.messages if item.get("type") == "reasoning"] == [
        "gAAAAone",
        "gAAAAtwo",
    ]


def test_b7_half_of_an_unknown_pair() -> None:
    """B7: a call without its partner is sent without its id, so that no partner is checked. With `store: false`, no
    partner is checked: it is sent unchanged."""
    world = World("openai", "gpt-5.4", "openai_responses")
    items = user("Look."), fc("fc_7", "call_zZ9yY8xX"), output("call_zZ9yY8xX")
    sent = world.send(responses(*items, store=True))
    assert ids(sent.messages) == [None]
    assert sent.messages[1]["call_id"] == "call_zZ9yY8xX"
    assert world.send(responses(*items, store=False)).plan.edits == ()


@pytest.mark.parametrize("is_remembered", [True, False])
@pytest.mark.parametrize("name", ["fc_1", None])
def test_b7_a_reference_to_stored_reasoning_stands_for_it(name: str | None, is_remembered: bool) -> None:
    """B7: a client may send `item_reference` in place of stored reasoning. Nothing is missing then: the request stays
    unchanged, whether the call next to it has its own id or none (recorded without: accepted)."""
    world = World("openai", "gpt-5.2", "openai_responses")
    ask = user("How many files?")
    if is_remembered:
        world.answer(responses(ask), responses_reply(*STEP))
    reference = {"type": "item_reference", "id": "rs_1"}
    sent = world.send(responses(ask, reference, fc(name, "call_a1B2c3D4"), output("call_a1B2c3D4"), store=True))
    assert sent.plan.edits == ()
    assert not sent.rules


# --- B8 --------------------------------------------------------------------------------------------------------------


def resumed(world: World) -> list[Json]:
    """A conversation resumed by Gemini CLI: each result occurs twice."""
    ask = asked({"text": "Look."})
    world.answer(gemini(ask), gemini_reply(runs("ls", "EsigA")))
    first = [ask, model(runs("ls", "EsigA")), asked(ran())]
    world.answer(gemini(*first), gemini_reply(runs("pwd", "EsigB")))
    return [ask, model(runs("ls")), asked(ran(), ran()), model(runs("pwd")), asked(ran("/"), ran("/"))]


def test_b8_repeated_results_do_not_hide_a_turn() -> None:
    """B8: a repeated result counts once: the turns after it are found."""
    world = World(*GEMINI, "gemini_generate")
    sent = world.send(gemini(*resumed(world)))
    assert [signatures(sent.messages[1]), signatures(sent.messages[3])] == [["EsigA"], ["EsigB"]]


def test_b8_repeated_results_go_out_once() -> None:
    """B8: results are deduplicated: as many as there are calls."""
    world = World(*GEMINI, "gemini_generate")
    sent = world.send(gemini(*resumed(world)))
    assert [len(content["parts"]) for content in sent.messages] == [1, 1, 1, 1, 1]


def test_b8_equal_reasoning_of_two_turns_is_no_duplicate() -> None:
    """B8: two turns with equal reasoning both get it back."""
    world = World(*KIMI)
    history = told(
        world,
        *(user("Look."), kimi_step("Look.", 0), result("functions.bash:0")),
        *(kimi_step("Look.", 1), result("functions.bash:1")),
    )
    assert world.send(chat(*stripped(history))).messages == history
