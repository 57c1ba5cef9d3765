"""Stories of who gets which thought, told by clients that forget reasoning: the gateway and the library run them all.

Each story is a function of a `Stage`. `CASES` has one row for each story and each format that it can be told in.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

import pytest

from tests.identity_stages import Client, Reached, Stage, frame
from tests.written_exchanges import (
    CHAT,
    MESSAGES,
    SPEAKERS,
    Asked,
    Call,
    Frame,
    Instructed,
    Json,
    Results,
    Said,
    Speaker,
    messages_reply,
    thought,
)

Story: TypeAlias = Callable[[Stage], None]

FOR_ANNA, FOR_BERT, FOR_CARL = (
    "You work for Anna. Her PIN is 4711.",
    "You work for Bert, who sells boats.",
    "You work for Carl.",
)
ROUNDS = 10
"""Enough for a conversation to be remembered by its bytes."""


# --- the frame -------------------------------------------------------------------------------------------------------


def _told_apart(stage: Stage, frames: tuple[Frame, Frame, Frame], rule: str) -> None:
    """Two clients say and hear the same, each gets its own; a third one, without a record, gets nothing."""
    anna, bert = stage.client("Anna", frames[0]), stage.client("Bert", frames[1])
    for _ in range(ROUNDS):
        for one in (anna, bert):
            reached = one.ask("Hi", "Hello!")
            assert reached.marks == one.own(*range(1, len(one.talk) // 2))
            assert not reached.findings & {"other-frame", "other-user", "ambiguous"}
    carl = stage.client("Carl", frames[2])
    carl.talk = [Asked("Hi"), Said("Hello!")]
    reached = carl.ask("Hi")
    assert reached.marks == []
    assert reached.names(rule)


def other_system_prompt(stage: Stage) -> None:
    """Equal words under different system prompts are different conversations."""
    _told_apart(stage, (frame(FOR_ANNA), frame(FOR_BERT), frame(FOR_CARL)), "other-frame")


def other_system_prompt_in_the_other_place(stage: Stage) -> None:
    """So they are where the prompt stands in the format's other place."""
    one, two, three = (frame(words, is_other_spelling=True) for words in (FOR_ANNA, FOR_BERT, FOR_CARL))
    _told_apart(stage, (one, two, three), "other-frame")


def no_system_prompt(stage: Stage) -> None:
    """A conversation without a prompt is not one with a prompt."""
    _told_apart(stage, (frame(""), frame(FOR_BERT), frame(FOR_CARL)), "other-frame")


def longer_system_prompt(stage: Stage) -> None:
    """A prompt with one more sentence is another prompt."""
    prompts = (FOR_ANNA, FOR_ANNA + " She is in a hurry.", FOR_ANNA + " She has time.")
    one, two, three = map(frame, prompts)
    _told_apart(stage, (one, two, three), "other-frame")


def other_system_prompt_behind_the_first_message(stage: Stage) -> None:
    """A system prompt that the user's first message stands before is one, too."""
    anna, bert, carl = (stage.client(name, frame("")) for name in ("Anna", "Bert", "Carl"))
    for one, prompt in ((anna, FOR_ANNA), (bert, FOR_BERT), (carl, FOR_CARL)):
        one.talk = [Asked("Hello there"), Instructed(prompt)]
    for _ in range(ROUNDS):
        for one in (anna, bert):
            assert one.ask("Hi", "Hello!").marks == one.own(*range(1, one.count))
    carl.talk += [Asked("Hi"), Said("Hello!")]
    reached = carl.ask("Hi")
    assert reached.marks == []
    assert reached.names("other-frame")


def other_reference(stage: Stage) -> None:
    """So is what a request names and does not show: a stored prompt, a cached one, the conversation at its provider."""
    for member in stage.speaker.references:
        one, two, three = (frame("", members=member(name)) for name in ("anna", "bert", "carl"))
        _told_apart(stage.again(), (one, two, three), "other-frame")


def prompt_that_changes_wholly(stage: Stage) -> None:
    """Words alone don't prove a turn under another prompt."""
    anna = stage.client("Anna", frame(FOR_ANNA))
    anna.ask("Hi", "Hello!")
    anna.frame = frame("You are on a boat now, and it is raining.")
    reached = anna.ask("And?")
    assert reached.marks == []
    assert reached.names("other-frame")


DATES = (
    ("2026-11-18", "2026-11-19"),
    ("Wednesday, November 18, 2026", "Thursday, November 19, 2026"),
    ("18 November 2026", "1 December 2026"),
    ("Nov 18, 2026", "Dec 1, 2026"),
    ("Wed Nov 18 2026", "Thu Nov 19 2026"),
    ("11/18/2026, 2:03:22 PM", "11/18/2026, 2:04:07 PM"),
    ("2026-11-18T14:03:22Z", "2026-11-18T14:03:59.120Z"),
    ("2026-11-18T14:03:22+01:00", "2026-11-19T09:00:00+01:00"),
    ("2026-11-18 14:03:22", "2026-11-18 23:59:01"),
    ("14:03", "14:04"),
)


def prompt_with_another_date(stage: Stage) -> None:
    """Usual dates and times don't make another prompt."""
    for number, (before, after) in enumerate(DATES):
        anna = stage.client("Anna", frame(f"You work for Anna. It is {before} now. Be brief."))
        anna.ask(f"Question {number}")
        anna.frame = frame(f"You work for Anna. It is {after} now. Be brief.")
        assert anna.ask("And?").marks == anna.own(1), (before, after)


def other_prompt_with_a_date(stage: Stage) -> None:
    """A date that is left out does not hide that the rest differs."""
    prompts = (f"{FOR_ANNA} 2026-11-18", f"{FOR_BERT} 2026-11-18", f"{FOR_CARL} 2026-11-18")
    one, two, three = map(frame, prompts)
    _told_apart(stage, (one, two, three), "other-frame")


def _attributed(token: str, prompt: str) -> Frame:
    line = f"x-anthropic-billing-header: cc_version=2.1.{len(token)}.{token}; cc_entrypoint=cli; cch={token};"
    blocks = [{"type": "text", "text": text} for text in (line, prompt)]
    return frame("", members={"system": blocks})


def attribution_line(stage: Stage) -> None:
    """Claude Code's attribution line, the first entry of `system`, changes from request to request."""
    anna = stage.client("Anna", _attributed("a1b2c", FOR_ANNA))
    anna.ask("Hi", "Hello!")
    for token, count in (("ffe03", 1), ("01234567", 2)):
        anna.frame = _attributed(token, FOR_ANNA)
        assert anna.ask("And?").marks == anna.own(*range(1, count + 1))


def attribution_line_before_other_prompts(stage: Stage) -> None:
    """It does not hide that the prompt behind it differs."""
    frames = (_attributed("a1b2c", FOR_ANNA), _attributed("a1b2c", FOR_BERT), _attributed("a1b2c", FOR_CARL))
    _told_apart(stage, frames, "other-frame")


# --- the end user ----------------------------------------------------------------------------------------------------


def other_end_user(stage: Stage) -> None:
    """Two end users never share, whichever member names them."""
    for member in stage.speaker.end_users:
        one, two, three = (frame(FOR_ANNA, members=member(name)) for name in ("u-anna", "u-bert", "u-carl"))
        _told_apart(stage.again(), (one, two, three), "other-user")


def other_end_user_with_unique_ids(stage: Stage) -> None:
    """Not even for what no stranger should have."""
    call = Call("call_9fQ2mZx81LkPq7Rt")
    for member in stage.speaker.end_users:
        anna = stage.again().client("Anna", frame(FOR_ANNA, members=member("u-anna")))
        anna.ask("Look", Said("", (call,)))
        anna.frame = frame(FOR_ANNA, members=member("u-bert"))
        reached = anna.ask(Results(((call, "up"),)))
        assert reached.marks == []
        assert reached.names("other-user")


_request_numbers = itertools.count()
NAMING_USERS: dict[str, Callable[[str], str]] = {
    "x-thoughtline-user": str,
    "x-openwebui-user-id": str,
    "x-openwebui-user-email": "{}@example.com".format,
    "x-litellm-customer-id": str,
    "x-litellm-end-user-id": str,
    "helicone-user-id": str,
    "x-portkey-metadata": lambda name: json.dumps({"_user": name, "request": next(_request_numbers)}),
}
"""Headers that name an end user."""


def other_end_user_in_headers(stage: Stage) -> None:
    """Nor where a header names them: not for equal words, and not for an id that is unique."""
    call = Call("call_9fQ2mZx81LkPq7Rt")
    for header, named in NAMING_USERS.items():
        here = stage.again()
        anna, bert, carl = (here.client(name, frame(FOR_ANNA)) for name in ("Anna", "Bert", "Carl"))
        for number, turn in enumerate(("Hi", "Go on", "Look")):
            for one in (anna, bert):
                one.headers = {header: named(one.own(1)[0])}
                assert one.ask(turn, Said("", (call,)) if number == 2 else "Fine.").marks == one.own(
                    *range(1, number + 1)
                )
        carl.headers, carl.talk = {header: named("Carl")}, list(anna.talk)
        reached = carl.ask(Results(((call, "up"),)))
        assert reached.marks == []
        assert reached.names("other-user")


def other_speaker(stage: Stage) -> None:
    """The `name` of a message is part of what is said."""
    anna, bert, carl = (stage.client(name, frame(FOR_ANNA)) for name in ("Anna", "Bert", "Carl"))
    for one in (anna, bert):
        one.talk = [Asked("Hi", name=one.own(1)[0])]
        one.ask("How are you?", "Fine.")
    for one, marks in ((anna, anna.own(1)), (bert, bert.own(1)), (carl, [])):
        one.talk = one.talk or [Asked("Hi", name="Carl"), *anna.talk[1:]]
        assert one.ask("And now?").marks == marks


def chat_of_open_webui(stage: Stage) -> None:
    """Its chat is a session: it tells equal words apart, whatever the prompt says now."""
    anna = stage.client("Anna", x_openwebui_chat_id="chat-1", x_openwebui_user_id="u-1")
    bert = stage.client("Bert", x_openwebui_chat_id="chat-2", x_openwebui_user_id="u-1")
    for count, prompt in enumerate(_prompts()):
        for one in (anna, bert):
            one.frame = prompt
            assert one.ask("Go on", "Done.").marks == one.own(*range(1, count + 1))


HASH_OF_ANNA, HASH_OF_BERT = "a" * 64, "b" * 64
ACCOUNT = "1c9a4f0e-0000-4000-8000-000000000001"
SESSIONS = ("5f2f3b60-0000-4000-8000-00000000000a", "77777777-0000-4000-8000-00000000000b")


def _claude_code(person: str, session: str, *, is_json: bool) -> Frame:
    as_json = f'{{"device_id":"{person}","account_uuid":"{ACCOUNT}","session_id":"{session}"}}'
    user_id = as_json if is_json else f"user_{person}_account_{ACCOUNT}_session_{session}"
    return frame(FOR_ANNA, members={"metadata": {"user_id": user_id}})


def resumed_session_of_claude_code(stage: Stage) -> None:
    """Its user's id contains the session: a resumed session is a new one of the same end user."""
    for is_json in (False, True):
        anna = stage.again().client("Anna", _claude_code(HASH_OF_ANNA, SESSIONS[0], is_json=is_json))
        anna.ask("Hi", "Hello!")
        anna.ask("One", "Two.")
        anna.frame = _claude_code(HASH_OF_ANNA, SESSIONS[1], is_json=is_json)
        reached = anna.ask("And?")
        assert reached.marks == anna.own(1, 2)
        assert "other-user" not in reached.findings


def other_person_of_claude_code(stage: Stage) -> None:
    """Another device or person is another end user, with the same session, too."""
    for is_json in (False, True):
        anna = stage.again().client("Anna", _claude_code(HASH_OF_ANNA, SESSIONS[0], is_json=is_json))
        anna.ask("Hi", "Hello!")
        anna.frame = _claude_code(HASH_OF_BERT, SESSIONS[0], is_json=is_json)
        reached = anna.ask("And?")
        assert reached.marks == []
        assert reached.names("other-user")


# --- model and tools rank --------------------------------------------------------------------------------------------


def other_tools(stage: Stage) -> None:
    """Of two equal turns, the one with the request's own tools is chosen."""
    anna, bert = stage.client("Anna", Frame(tools=("look",))), stage.client("Bert", Frame(tools=("look", "listen")))
    for one in (anna, bert):
        one.ask("Hi", "Hello!")
    for one in (anna, bert):
        assert one.ask("And?").marks == one.own(1)


def other_model(stage: Stage) -> None:
    """Of two equal turns, the one of the request's own model is chosen."""
    anna, bert = (stage.client(*pair) for pair in zip(("Anna", "Bert"), _models(stage), strict=True))
    for one in (anna, bert):
        one.ask("Hi", "Hello!")
    for one in (anna, bert):
        assert one.ask("And?").marks == one.own(1)


def _models(stage: Stage) -> list[Frame]:
    return [Frame(model=model) for model in stage.speaker.models]


# --- twins -----------------------------------------------------------------------------------------------------------


def twins_that_interleave(stage: Stage) -> None:
    """A chain that is settled stays whole when a twin begins as it did."""
    anna, bert = stage.client("Anna"), stage.client("Bert")
    anna.ask("Hi", "Hello!")
    assert anna.ask("One", "Two.").marks == anna.own(1)
    bert.ask("Hi", "Hello!")
    reached = anna.ask("Three", "Four.")
    assert reached.marks == anna.own(1, 2)
    assert "ambiguous" not in reached.findings
    assert bert.has_only_own(bert.ask("Uno", "Due."))
    assert anna.ask("Five").marks == anna.own(1, 2, 3)
    assert bert.has_only_own(bert.ask("Tre"))


def twins_that_call_with_counted_ids(stage: Stage) -> None:
    """The same for tool loops whose ids are counted."""
    anna, bert = stage.client("Anna"), stage.client("Bert")
    first, second = Call("call_1"), Call("call_2", "roof")
    anna.ask("Look", Said("", (first,)))
    assert anna.ask(Results(((first, "up"),)), Said("", (second,))).marks == anna.own(1)
    bert.ask("Look", Said("", (first,)))
    assert anna.ask(Results(((second, "down"),))).marks == anna.own(1, 2)
    assert bert.has_only_own(bert.ask(Results(((first, "left"),)), Said("", (second,))))
    assert bert.has_only_own(bert.ask(Results(((second, "right"),))))
    assert anna.ask("And?").marks == anna.own(1, 2, 3)


def twins_that_nothing_tells_apart(stage: Stage) -> None:
    """What may be either's is not restored, and a finding says so."""
    anna, bert = stage.client("Anna"), stage.client("Bert")
    for one in (anna, bert):
        one.ask("Hi", "Hello!")
    for one in (anna, bert):
        reached = one.ask("And?", "Fine.")
        assert one.has_only_own(reached)
        assert reached.names("ambiguous")


def twins_in_any_order(stage: Stage) -> None:
    """Four equal conversations, whose turns come in any order: own thoughts or none, never a mixed chain."""
    chance = random.Random(27)
    clients = [stage.client(name) for name in ("Anna", "Bert", "Carl", "Dora")]
    for _ in range(24):
        one = chance.choice(clients)
        assert one.has_only_own(one.ask("Go on", chance.choice(("Done.", "Ok.")))), one.talk


def twins_whose_ids_are_rewritten(stage: Stage) -> None:
    """Sub-agents with one opening, whose client writes ids of its own: a settled chain stays whole."""
    anna, bert = stage.client("Anna"), stage.client("Bert")
    made = {anna: Call("call_9fQ2mZx81LkPq7Rt"), bert: Call("call_Yh3Tn65VbW0cXs8d")}
    shown = Call("000000001")
    for one, result in ((anna, "up"), (bert, "down")):
        one.ask("Look", Said("", (made[one],)))
        one.talk[-1] = Said("", (shown,))
        assert one.has_only_own(one.ask(Results(((shown, result),)), f"It is {result}."))
    assert anna.ask("And?").marks == anna.own(1, 2)
    assert bert.has_only_own(bert.ask("And?"))


# --- results and blanks ----------------------------------------------------------------------------------------------


def _other_results(stage: Stage, calls: tuple[Call, ...], ups: Iterable[str], downs: Iterable[str]) -> None:
    anna, bert, carl = stage.client("Anna"), stage.client("Bert"), stage.client("Carl")
    for one, outputs in ((anna, ups), (bert, downs)):
        one.ask("Look", Said("", calls))
        one.ask(Results(tuple(zip(calls, outputs, strict=True))), "Done.")
    assert anna.ask("Next").marks == anna.own(1, 2)
    reached = bert.ask("Next")
    assert bert.has_only_own(reached)
    assert "Bert02" in reached.marks
    carl.talk = [Asked("Look"), Said("", calls), Results(tuple((call, "sideways") for call in calls)), Said("Done.")]
    assert not {"Anna02", "Bert02"} & set(carl.ask("Next").marks)


def swapped_results(stage: Stage) -> None:
    """A result belongs to its call: `a=up, b=down` is not `a=down, b=up`."""
    _other_results(stage, (Call("call_1", "a"), Call("call_2", "b")), ("up", "down"), ("down", "up"))


def repeated_results(stage: Stage) -> None:
    """How many results say the same matters: `up, up, down` is not `up, down, down`."""
    calls = (Call("call_1", "a"), Call("call_2", "b"), Call("call_3", "c"))
    _other_results(stage, calls, ("up", "up", "down"), ("up", "down", "down"))


def swapped_results_without_ids(stage: Stage) -> None:
    """Without ids, a result belongs to the call at its place."""
    _other_results(stage, (Call("", "a"), Call("", "b")), ("up", "down"), ("down", "up"))


def fewer_results(stage: Stage) -> None:
    """One result less is another history."""
    anna, bert = stage.client("Anna"), stage.client("Bert")
    calls = (Call("call_1", "a"), Call("call_2", "b"))
    anna.ask("Look", Said("", calls))
    anna.ask(Results(tuple((call, "up") for call in calls)), "Done.")
    bert.talk = [Asked("Look"), Said("", calls), Results(((calls[0], "up"),)), Said("Done.")]
    assert "Anna02" not in bert.ask("Next").marks


def _other_blanks(stage: Stage, one_text: str, other_text: str, *, in_question: bool) -> None:
    anna, bert = stage.client("Anna"), stage.client("Bert")
    texts = {anna: one_text, bert: other_text}
    for one in (anna, bert):
        one.ask(*((texts[one], "Seen.") if in_question else ("Write it", texts[one])))
    for one in (anna, bert):
        assert one.ask("And?", "Done.").marks == one.own(1)
    for one in (anna, bert):
        assert one.ask("Next").marks == one.own(1, 2)


def other_indentation(stage: Stage) -> None:
    """Among answers that differ in blanks alone, exact bytes decide."""
    _other_blanks(stage, "if x:\n  y()\nz()", "if x:\n  y()\n  z()", in_question=False)


def other_line_ends(stage: Stage) -> None:
    """CRLF is not LF."""
    _other_blanks(stage, "one\r\ntwo", "one\ntwo", in_question=False)


def other_indentation_of_a_question(stage: Stage) -> None:
    """The same for what the user said."""
    _other_blanks(stage, "if x:\n  y()\nz()", "if x:\n  y()\n  z()", in_question=True)


# --- weak evidence ---------------------------------------------------------------------------------------------------


def more_records_than_a_page(stage: Stage) -> None:
    """Where more records have a weak key than are looked at, the own one may be among the rest: none is chosen."""
    anna, bert = stage.client("Anna"), stage.client("Bert")
    others = [stage.client("Carl", x_session_id=f"session-{number}") for number in range(20)]
    for number, one in enumerate((anna, *others, bert)):
        one.ask(f"Task {number}", "Ok.")
        one.ask("Go on", "Done.")
        one.ask("Go on", "Done.")
    anna.talk[0] = Asked("Task 0 (asked at noon)")
    anna.headers["x-session-id"] = "session-of-anna"
    assert anna.has_only_own(anna.ask("Next"))


def record_with_words_for_a_turn_without(stage: Stage) -> None:
    """A turn that shows a call alone is not one that said something beside it."""
    anna, bert, call = stage.client("Anna"), stage.client("Bert"), Call("call_1")
    anna.ask("Look at the door", Said("Let me look.", (call,)))
    bert.talk = [Asked("Look at the roof"), Said("", (call,))]
    assert bert.ask(Results(((call, "up"),))).marks == []


def record_with_a_call_for_a_turn_without(stage: Stage) -> None:
    """A turn that shows words alone is not one that called a tool, with the same opening, too."""
    for number, opening in enumerate(("Look at the door", "Look at the roof")):
        anna, bert = stage.client("Anna"), stage.client("Bert")
        anna.ask(f"Look at the door {number}", Said("Let me look.", (Call("call_1"),)))
        bert.talk = [Asked(f"{opening} {number}"), Said("Let me look.")]
        assert bert.ask("Well?").marks == []


def shared_session(stage: Stage) -> None:
    """A session header that several conversations share does not outweigh a record of the own one."""
    for header in ("x-session-id", "session-id", "x-session-affinity"):
        some = stage.again()
        anna, bert = some.client("Anna"), some.client("Bert")
        for one, opening in ((anna, "Sort the list"), (bert, "Paint the door")):
            one.headers[header] = "app"
            one.ask(opening, "Ok.")
            one.ask("Go on", "Done.")
        for one, opening in ((anna, "Sort the list, at noon"), (bert, "Paint the door, at noon")):
            one.talk[0] = Asked(opening)
            assert one.has_only_own(one.ask("Next"))


def session_that_came_later(stage: Stage) -> None:
    """A record of the own conversation, from before its client named a session, is not outweighed either."""
    anna, bert = stage.client("Anna"), stage.client("Bert", x_session_id="app")
    for one, opening in ((anna, "Sort the list"), (bert, "Paint the door")):
        one.ask(opening, "Ok.")
        one.ask("Go on", "Done.")
    anna.headers["x-session-id"] = "app"
    anna.talk[0] = Asked("Sort the list, at noon")
    assert anna.has_only_own(anna.ask("Next"))


def session_that_came_after_equal_turns(stage: Stage) -> None:
    """A turn of a session is not taken for equal turns of the same conversation from before it had a name."""
    anna = stage.client("Anna")
    anna.ask("Task 1", "Ok.")
    for _ in range(3):
        anna.ask("Go on", "Done.")
    anna.headers["x-session-id"] = "session-of-anna"
    for _ in range(2):
        anna.ask("Go on", "Done.")
        anna.talk[0] = Asked(f"Task 1 (asked {len(anna.talk)} seconds ago)")
        assert anna.has_only_own(anna.ask("Go on", "Done."))


# --- what no stranger has --------------------------------------------------------------------------------------------


def _prompts() -> Iterable[Frame]:
    for word in ("harbour", "kitchen", "garden", "attic", "cellar"):
        yield frame(f"You work in the {word}. Nothing else is known of the {word}.")


def unique_ids_under_changing_prompts(stage: Stage) -> None:
    """An id that is one in the world proves a turn, whatever the prompt says now."""
    anna = stage.client("Anna")
    calls = [Call(f"call_9fQ2mZx81LkPq7R{letter}", at=letter) for letter in "abcd"]
    turn: Any = "Look"
    for count, prompt in enumerate(_prompts()):
        anna.frame = prompt
        if count == len(calls):
            break
        assert anna.ask(turn, Said("", (calls[count],))).marks == anna.own(*range(1, count + 1))
        turn = Results(((calls[count], f"result {count}"),))
    assert anna.ask(turn).marks == anna.own(1, 2, 3, 4)


def named_session_under_changing_prompts(stage: Stage) -> None:
    """So does a session that the client named, for each conversation of equal words."""
    anna = stage.client("Anna", x_thoughtline_session="task-1")
    bert = stage.client("Bert", x_thoughtline_session="task-2")
    for count, prompt in enumerate(_prompts()):
        for one in (anna, bert):
            one.frame = prompt
            reached = one.ask("Go on", "Done.")
            assert reached.marks == one.own(*range(1, count + 1))


def proven_chain_under_changing_prompts(stage: Stage) -> None:
    """Words are proven by the turn before them, if that is."""
    anna, call = stage.client("Anna"), Call("call_9fQ2mZx81LkPq7Rt")
    turns: list[tuple[Any, Said]] = [
        ("Look", Said("", (call,))),
        (Results(((call, "up"),)), Said("It is up.")),
        ("And now?", Said("Still up.")),
        ("And now?", Said("Still up.")),
    ]
    for count, (prompt, (turn, said)) in enumerate(zip(_prompts(), turns, strict=False)):
        anna.frame = prompt
        assert anna.ask(turn, said).marks == anna.own(*range(1, count + 1))


# --- turns of their own ----------------------------------------------------------------------------------------------


def empty_turn_beside_a_retry(stage: Stage) -> None:
    """An empty message with an explicit `""` is a turn without reasoning: it keeps its `""`, and the retried answer
    gets its thought."""
    call = Call("call_1")
    empty = Said("", more={"reasoning_content": ""})
    for retried, after in ((Said("Hello!"), "And?"), (Said("", (call,)), Results(((call, "up"),)))):
        anna = stage.again().client("Anna")
        anna.ask("Hi", retried)
        anna.talk.insert(1, empty)
        for turn in (after, "More?"):
            _check_empty_turn(anna.ask(turn))


def _check_empty_turn(reached: Reached) -> None:
    first, second = [one for one in reached.body["messages"] if one["role"] == "assistant"][:2]
    assert first == {"role": "assistant", "content": "", "reasoning_content": ""}
    assert second["reasoning_content"] == thought("Anna", 1)


def _searched(number: int) -> list[Json]:
    use = {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": "web_search", "input": {"query": "boats"}}
    page = {"type": "web_search_result", "url": "https://boats.example", "title": "Boats", "encrypted_content": "x"}
    return [use, {"type": "web_search_tool_result", "tool_use_id": f"srvtoolu_{number}", "content": [page]}]


def paused_turn_joined_with_its_continuation(stage: Stage) -> None:
    """Claude paused, the client asked it to go on, and keeps both answers as one message: both thoughts come back,
    each before the words that it led to."""
    first = [*_thinking(1), {"type": "text", "text": "I search."}, *_searched(1)]
    second = [*_thinking(2), {"type": "text", "text": "Here they are."}]
    client, body = stage.client("Anna"), _asking()
    _send(stage, client, body, messages_reply(first, 1, "pause_turn"))
    body["messages"].append({"role": "assistant", "content": first[1:]})
    reached = _send(stage, client, body, messages_reply(second, 2, "end_turn"))
    assert reached.body["messages"][1]["content"] == first
    body["messages"][1] = {"role": "assistant", "content": [*first[1:], *second[1:]]}
    body["messages"].append({"role": "user", "content": "And?"})
    reached = _send(stage, client, body, messages_reply([{"type": "text", "text": "Fine."}], 3, "end_turn"))
    assert reached.body["messages"][1]["content"] == [*first, *second]


def _thinking(number: int) -> list[Json]:
    words = thought("Anna", number)
    return [{"type": "thinking", "thinking": words, "signature": f"{words}A=="}]


def _asking() -> Json:
    return MESSAGES.body([Asked("Find boats")], Frame(), is_streaming=False)


def _send(stage: Stage, client: Client, body: Json, answer: Json) -> Reached:
    return stage.exchange({**body, "stream": stage.is_streaming}, answer, client.frame, client.headers)


# --- the table -------------------------------------------------------------------------------------------------------


class _Row(NamedTuple):
    story: Story
    speakers: tuple[Speaker, ...] = tuple(SPEAKERS.values())


_WITH_REFERENCES = tuple(speaker for speaker in SPEAKERS.values() if speaker.references)
_WITH_SYSTEM_MESSAGES = tuple(speaker for speaker in SPEAKERS.values() if speaker.provider != "bedrock")
_WITHOUT_IDS = (SPEAKERS["gemini_generate"], SPEAKERS["ollama_chat"])
_EMPTY_TURNS = (
    CHAT,
    CHAT._replace(provider="kimi", models=("kimi-k2.6", "kimi-k2-thinking")),
    CHAT._replace(provider="glm", models=("glm-5", "glm-4.6")),
    CHAT._replace(provider="mimo", models=("mimo-v2.5-pro", "mimo-v2-flash")),
)

TRANSLATED = CHAT._replace(
    provider=MESSAGES.provider,
    models=MESSAGES.models,
    request=lambda talk, around: CHAT.request(talk, around) | {"reasoning_effort": "high"},
    answer=MESSAGES.answer,
    frames=MESSAGES.frames,
    spellings=MESSAGES.spellings,
)
"""A client of Chat Completions whose requests are translated for Messages: for the gateway alone."""

ROWS = (
    _Row(other_system_prompt),
    _Row(other_system_prompt_in_the_other_place),
    _Row(no_system_prompt),
    _Row(longer_system_prompt),
    _Row(other_system_prompt_behind_the_first_message, _WITH_SYSTEM_MESSAGES),
    _Row(other_reference, _WITH_REFERENCES),
    _Row(prompt_that_changes_wholly),
    _Row(prompt_with_another_date),
    _Row(other_prompt_with_a_date),
    _Row(attribution_line, (MESSAGES,)),
    _Row(attribution_line_before_other_prompts, (MESSAGES,)),
    _Row(other_end_user),
    _Row(other_end_user_with_unique_ids),
    _Row(other_end_user_in_headers),
    _Row(other_speaker, (CHAT,)),
    _Row(chat_of_open_webui),
    _Row(resumed_session_of_claude_code, (MESSAGES,)),
    _Row(other_person_of_claude_code, (MESSAGES,)),
    _Row(other_tools),
    _Row(other_model),
    _Row(twins_that_interleave),
    _Row(twins_that_call_with_counted_ids),
    _Row(twins_that_nothing_tells_apart),
    _Row(twins_in_any_order),
    _Row(twins_whose_ids_are_rewritten),
    _Row(swapped_results),
    _Row(repeated_results),
    _Row(swapped_results_without_ids, _WITHOUT_IDS),
    _Row(fewer_results),
    _Row(other_indentation),
    _Row(other_line_ends),
    _Row(other_indentation_of_a_question),
    _Row(more_records_than_a_page),
    _Row(record_with_words_for_a_turn_without),
    _Row(record_with_a_call_for_a_turn_without),
    _Row(shared_session),
    _Row(session_that_came_later),
    _Row(session_that_came_after_equal_turns),
    _Row(unique_ids_under_changing_prompts),
    _Row(named_session_under_changing_prompts),
    _Row(proven_chain_under_changing_prompts),
    _Row(empty_turn_beside_a_retry, _EMPTY_TURNS),
    _Row(paused_turn_joined_with_its_continuation, (MESSAGES,)),
)
PROVIDERS = sorted({speaker.provider for row in ROWS for speaker in row.speakers})
TOLD_TRANSLATED: tuple[Story, ...] = (
    other_system_prompt,
    other_end_user,
    other_end_user_in_headers,
    prompt_that_changes_wholly,
    prompt_with_another_date,
    twins_that_interleave,
    twins_that_call_with_counted_ids,
    twins_that_nothing_tells_apart,
    twins_in_any_order,
    swapped_results,
    repeated_results,
    unique_ids_under_changing_prompts,
)
CASES = [
    pytest.param(row.story, speaker, id=f"{row.story.__name__}-{speaker.provider}")
    for row in ROWS
    for speaker in row.speakers
]
