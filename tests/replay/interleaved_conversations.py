"""Generated conversations that interleave: clients that lose reasoning, and the reasoning that each of their turns
gets.

    counts = play(KINDS["different frames"], speaker, seed=1, line=line)     turns, wrong, not restored, restored

All conversations of a world belong to one tenant, so only the rule of identity separates them. Clients send request
after request, in any order, over a real `Line`. Every model turn of every request counts. A turn is *wrong* if it has
reasoning that was not made for exactly that turn of that conversation; *equal* if the reasoning was made for a turn of
another conversation with the same frame, end user, words, calls and results so far, and *misplaced* if it was made for
another turn of the same conversation with the same words: both can happen only if its own was never captured. It is
*not restored* if it lacks its own.

If conversations are visibly equal, or become equal by an edit, there may be no evidence left: then nothing may be
restored. An edit never makes a history that another conversation had word for word, because openings are unique unless
a kind has twins: so no kind has a turn for which another conversation's evidence is better than its own.
"""

from __future__ import annotations

import asyncio
import random
import string
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import count
from operator import itemgetter
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple, TypeAlias, get_args

import msgspec

from tests.written_exchanges import (
    CHAT,
    MESSAGES,
    NOTHING,
    SPEAKERS,
    Asked,
    Call,
    Frame,
    Json,
    Results,
    Said,
    Speaker,
    Turn,
    marks_in,
    thought,
)
from thoughtline import Line
from thoughtline.stores import Filter, open_store

WORDS = ("go on", "list the files", "fix the test", "why?", "thanks", "again please", "is it done?", "and now?")
ANSWERS = ("Done.", "Let me look.", "It is fixed now.")
BLANKS = ("if x:\n  y()\nz()", "if x:\n  y()\n  z()", "if x:\r\n  y()\r\nz()")
PLACES = ("home", "roof")
OUTPUTS = ("up", "down")
PLAYED = (CHAT, MESSAGES, SPEAKERS["openai_responses"], SPEAKERS["gemini_generate"])
"""Ways to answer: readable reasoning, signed, as ciphertext, and as a signature."""

WORLD = 24
"""Conversations of one tenant."""
REQUESTS, MANY_REQUESTS = 9, 16
"""Per conversation; and for one that is long enough to be remembered by its bytes."""
MAX_ROUNDS = 3
"""Messages that a sliding window keeps."""
RESTARTS = 0.01
"""How often one of two lines is opened again before a request."""

Ids = Literal["none", "counted", "unique"]
Prompt = Literal["one", "own", "dated", "rewritten"]
Session = Literal["none", "own", "shared", "late", "late shared"]
EditName = Literal[
    "nothing",
    "results cleared",
    "clock in the first message",
    "first message rewritten",
    "sliding window",
    "one turn edited",
    "one turn deleted",
    "turns merged",
    "ids rewritten",
    "texts trimmed",
    "no text beside calls",
]


class Kind(NamedTuple):
    """The common properties of a world's conversations, and what their clients do.

    `twins` conversations begin with the same words. `ids` of calls: with none, the model only writes text. `calls` is
    how many it makes at once. `repeats_words`: users repeat the same words. `loses_records`: a third of the answers is
    never captured, as if another gateway had served them or the store had lost them. `are_many`: there are two lines on
    one store, which are closed and opened again, and everything that is remembered is deleted once.
    """

    twins: int = 1
    ids: Ids = "counted"
    prompt: Prompt = "one"
    session: Session = "none"
    edit: EditName = "nothing"
    has_end_users: bool = False
    has_own_model: bool = False
    has_own_tools: bool = False
    calls: int = 1
    has_blanks: bool = False
    repeats_words: bool = True
    loses_records: bool = False
    requests: int = REQUESTS
    are_many: bool = False


EDITS_OF_HISTORY: tuple[EditName, ...] = (
    "results cleared",
    "clock in the first message",
    "sliding window",
    "one turn edited",
    "one turn deleted",
    "turns merged",
    "ids rewritten",
    "texts trimmed",
)
NAMINGS: dict[str, Session] = {
    "": "none",
    ", shared session": "shared",
    ", session named late": "late",
    ", shared session named late": "late shared",
}
"""How clients name sessions, apart from one name per conversation."""


def _kinds() -> Iterator[tuple[str, Kind]]:
    yield "different frames", Kind(twins=WORLD, prompt="own")
    yield "different frames, text only", Kind(twins=WORLD, prompt="own", ids="none")
    yield "different frames, another date each time", Kind(prompt="dated", repeats_words=False)
    yield "different end users", Kind(twins=WORLD, has_end_users=True)
    yield "different end users, text only", Kind(twins=WORLD, has_end_users=True, ids="none")
    yield "different models", Kind(twins=2, has_own_model=True)
    yield "different tools", Kind(twins=4, has_own_tools=True)
    yield "twins, text only", Kind(twins=4, ids="none")
    yield "twins, counted ids", Kind(twins=4)
    yield "twins, unique ids", Kind(twins=4, ids="unique")
    yield "twins, named sessions", Kind(twins=4, session="own")
    yield "twins, rewritten ids", Kind(twins=4, ids="unique", edit="ids rewritten")
    yield "parallel results, swapped", Kind(twins=4, calls=2)
    yield "parallel results, repeated", Kind(twins=4, calls=3)
    yield "parallel results, unique ids", Kind(twins=4, calls=3, ids="unique")
    yield "blanks", Kind(twins=4, ids="none", has_blanks=True)
    for name, session in NAMINGS.items():
        yield f"unedited{name}, counted ids", Kind(session=session)
        yield f"unedited{name}, text only", Kind(session=session, ids="none")
        yield f"first message rewritten{name}, counted ids", Kind(edit="first message rewritten", session=session)
        yield (
            f"first message rewritten{name}, text only",
            Kind(edit="first message rewritten", session=session, ids="none"),
        )
    yield "first message rewritten, unique ids", Kind(edit="first message rewritten", ids="unique")
    yield "first message rewritten, named sessions", Kind(edit="first message rewritten", session="own")
    for edit in EDITS_OF_HISTORY:
        yield f"{edit}, counted ids", Kind(edit=edit, repeats_words=False)
        yield f"{edit}, text only", Kind(edit=edit, repeats_words=False, ids="none")
        yield f"{edit}, unique ids", Kind(edit=edit, repeats_words=False, ids="unique")
        yield f"{edit}, named sessions", Kind(edit=edit, repeats_words=False, session="own")
    yield "no text beside calls, counted ids", Kind(edit="no text beside calls")
    yield "no text beside calls, shared session named late", Kind(edit="no text beside calls", session="late shared")
    yield "no text beside calls, unique ids", Kind(edit="no text beside calls", ids="unique")
    yield "no text beside calls, named sessions", Kind(edit="no text beside calls", session="own", repeats_words=False)
    yield "prompt rewritten, unique ids", Kind(prompt="rewritten", ids="unique")
    yield "prompt rewritten, counted ids", Kind(prompt="rewritten")
    yield "prompt rewritten, text only", Kind(prompt="rewritten", ids="none")
    yield "prompt rewritten, named sessions", Kind(prompt="rewritten", session="own", repeats_words=False)
    yield "prompt rewritten, twins, unique ids", Kind(twins=4, prompt="rewritten", ids="unique")
    yield "records lost, different frames", Kind(twins=WORLD, prompt="own", loses_records=True)
    yield "records lost, different end users", Kind(twins=WORLD, has_end_users=True, loses_records=True)
    yield "records lost, twins, text only", Kind(twins=4, ids="none", loses_records=True)
    yield "records lost, twins, unique ids", Kind(twins=4, ids="unique", loses_records=True)
    yield "records lost, twins, named sessions", Kind(twins=4, session="own", loses_records=True)
    for edit in (*EDITS_OF_HISTORY, "first message rewritten", "no text beside calls"):
        yield f"records lost, {edit}, counted ids", Kind(edit=edit, loses_records=True)
        yield f"records lost, {edit}, unique ids", Kind(edit=edit, ids="unique", loses_records=True)
    for are_many in (False, True):
        long = Kind(requests=MANY_REQUESTS, are_many=are_many, ids="unique")
        name = "long, two lines" if are_many else "long"
        yield f"{name}, different frames", long._replace(twins=WORLD, prompt="own", ids="counted")
        yield f"{name}, different end users", long._replace(twins=WORLD, has_end_users=True, ids="none")
        yield f"{name}, twins, unique ids", long._replace(twins=4)
        yield f"{name}, twins, records lost", long._replace(twins=4, ids="counted", loses_records=True)
        yield f"{name}, first message rewritten, unique ids", long._replace(edit="first message rewritten")
        yield f"{name}, results cleared, unique ids", long._replace(edit="results cleared", loses_records=True)
    for number in range(MIXED):
        yield f"mixed {number}", _mixed(random.Random(number))


MIXED = 24
"""Randomly drawn kinds, so that every pair of habits occurs somewhere."""


def _mixed(chance: random.Random) -> Kind:
    sessions: tuple[Session, ...] = ("none", "none", "own", "late")
    return Kind(
        twins=chance.choice((1, 4, WORLD)),
        ids=chance.choice(get_args(Ids)),
        prompt=chance.choice(get_args(Prompt)),
        session=chance.choice(sessions),
        edit=chance.choice(get_args(EditName)),
        has_end_users=chance.random() < 0.4,
        has_own_model=chance.random() < 0.3,
        has_own_tools=chance.random() < 0.3,
        calls=chance.choice((1, 2, 3)),
        has_blanks=chance.random() < 0.3,
        repeats_words=chance.random() < 0.7,
        loses_records=chance.random() < 0.6,
    )


KINDS = dict(_kinds())


class Counts(NamedTuple):
    turns: int = 0
    wrong: int = 0
    not_restored: int = 0
    restored: int = 0
    equal: int = 0
    misplaced: int = 0

    def plus(self, other: Counts) -> Counts:
        return Counts(*(one + two for one, two in zip(self, other, strict=True)))


class Shown(NamedTuple):
    """A turn as a client shows it. `numbers` are those of the reasoning that led to it."""

    turn: Turn
    numbers: tuple[int, ...] = ()


View: TypeAlias = list[Shown]
_tenants = count(1)
_clock = count(1)


# --- one conversation ------------------------------------------------------------------------------------------------


class Conversation:
    """The knowledge of one client, and how it shows it."""

    def __init__(self, number: int, kind: Kind, speaker: Speaker, chance: random.Random) -> None:
        self.owner = _name_of(number)
        self._number, self._kind, self._speaker, self._chance = number, kind, speaker, chance
        self._turns: View = []
        self._words = chance.sample(WORDS, len(WORDS))
        self._thoughts = self._calls = 0
        self._edited: int | None = None

    def go_on(self) -> View:
        """Add a user message or the results of calls; return what the client then shows."""
        last = self._turns[-1].turn if self._turns else None
        if isinstance(last, Said) and last.calls:
            self._turns.append(Shown(Results(tuple((call, self._chance.choice(OUTPUTS)) for call in last.calls))))
        else:
            self._turns.append(Shown(Asked(self._next_words())))
        return EDITS[self._kind.edit](self, list(self._turns))

    def _next_words(self) -> str:
        if not self._turns:
            return f"Task {self._number // self._kind.twins}"
        if self._kind.repeats_words or not self._words:
            return self._chance.choice(WORDS)
        return self._words.pop()

    def answer(self) -> tuple[Said, str]:
        """Return the model's next answer with its reasoning."""
        is_result = isinstance(self._turns[-1].turn, Results)
        said = Said(self._chance.choice(BLANKS if self._kind.has_blanks else ANSWERS))
        if self._kind.ids != "none" and (not is_result or self._chance.random() < 0.5):
            text = said.text if self._chance.random() < 0.3 else ""
            said = Said(text, tuple(self._call() for _ in range(self._kind.calls)))
        self._thoughts += 1
        self._turns.append(Shown(said, (self._thoughts,)))
        return said, thought(self.owner, self._thoughts)

    def _call(self) -> Call:
        self._calls += 1
        name = f"call_{self._calls}"
        if self._kind.ids == "unique":
            name = "call_" + "".join(self._chance.choices(string.ascii_letters + string.digits, k=24))
        return Call(name, self._chance.choice(PLACES))

    def frame(self) -> Frame:
        """The frame of this request."""
        kind, number = self._kind, self._number
        prompts: dict[Prompt, str] = {
            "one": "You help.",
            "own": f"You help customer {number}. The PIN is {number * 7919 % 10007}.",
            "dated": f"You help. Today is 2026-11-{next(_clock) % 28 + 1:02d}, {next(_clock) % 24:02d}:15.",
            "rewritten": f"You help. On branch main, {next(_clock)} files changed: to do, {next(_clock)} things.",
        }
        members = self._speaker.end_users[0](f"user-{number}") if kind.has_end_users else NOTHING
        tools = ("look", *(f"tool_{number % kind.twins}" for _ in range(kind.has_own_tools)))
        model = self._speaker.models[number % 2 if kind.has_own_model else 0]
        return Frame(prompts[kind.prompt], members, tools=tools, model=model)

    def history(self, number: int) -> tuple[object, ...]:
        """Everything visible up to a turn, with frame and end user, but without what clients change: ids, white space,
        and text next to calls where they drop it. Calls in one turn have no order, nor have those that a client merged
        into one: there, those of a loop are identified by their text and results."""
        kind, seen = self._kind, list[object]()
        is_merged, words, results = kind.edit == "turns merged", "", list[tuple[str, str]]()
        for one in self._turns:
            match one.turn:
                case Said(text=text, calls=calls):
                    text = "" if calls and kind.edit == "no text beside calls" else "".join(text.split())
                    if is_merged and calls and number not in one.numbers:
                        words += text
                    else:
                        seen += [words, results, text, sorted(call.at for call in calls)]
                        words, results = "", []
                case Results():
                    results = sorted([*results, *((call.at, text) for call, text in one.turn.of)], key=itemgetter(0))
                    if not is_merged:
                        seen.append(results)
                        results = []
                case Asked():
                    seen += [words, results, one.turn.text]
                    words, results = "", []
            if number in one.numbers:
                break
        own = (kind.has_end_users, kind.prompt == "own")
        return (*seen, self._number if any(own) else 0)

    def headers(self) -> dict[str, str]:
        """The headers that name its session. `late`: only from some request on, and only in half of the
        conversations."""
        is_late = self._thoughts >= REQUESTS // 2
        match self._kind.session:
            case "own":
                return {"x-thoughtline-session": f"session-{self._number}"}
            case "late" if is_late and self._number % 2:
                return {"x-session-id": f"session-{self._number}"}
            case "late shared" if is_late or self._number % 2:
                return {"x-session-id": f"application-{self._number // 4}"}
            case "shared":
                return {"x-session-id": "the-application"}
            case _:
                return {}

    def loses_this(self) -> bool:
        """Whether the last answer leaves no record."""
        return self._kind.loses_records and self._chance.random() < 1 / 3

    def round_to_edit(self, rounds: int) -> int | None:
        """The one round that the user edited or deleted, once there are enough: neither the first nor the last."""
        if self._edited is None and rounds > 3:
            self._edited = self._chance.randrange(1, rounds - 2)
        return self._edited


def _name_of(number: int) -> str:
    """A name of letters."""
    letters = ""
    for _ in range(4):
        number, digit = divmod(number, 26)
        letters += chr(ord("a") + digit)
    return "O" + letters


# --- what clients do -------------------------------------------------------------------------------------------------


def _rounds(view: View) -> list[View]:
    """From one user message up to the next one."""
    rounds: list[View] = []
    for one in view:
        if isinstance(one.turn, Asked):
            rounds.append([])
        rounds[-1].append(one)
    return rounds


def _cleared(_: Conversation, view: View) -> View:
    """Keep only the latest results."""
    return [
        Shown(Results(tuple((call, "[Old tool result content cleared]") for call, _ in one.turn.of)))
        if isinstance(one.turn, Results) and at < len(view) - 1
        else one
        for at, one in enumerate(view)
    ]


def _with_clock(_: Conversation, view: View) -> View:
    first = view[0].turn
    assert isinstance(first, Asked)
    return [Shown(Asked(f"{first.text} (asked {next(_clock)} seconds ago)")), *view[1:]]


def _rewritten(_: Conversation, view: View) -> View:
    return [Shown(Asked(f"<context>{next(_clock)} seconds</context>")), *view[1:]]


def _windowed(_: Conversation, view: View) -> View:
    return [one for part in _rounds(view)[-MAX_ROUNDS:] for one in part]


def _edited(conversation: Conversation, view: View) -> View:
    rounds = _rounds(view)
    at = conversation.round_to_edit(len(rounds))
    if at is not None:
        first = rounds[at][0].turn
        assert isinstance(first, Asked)
        rounds[at] = [Shown(Asked(f"{first.text}, as I said")), *rounds[at][1:]]
    return [one for part in rounds for one in part]


def _deleted(conversation: Conversation, view: View) -> View:
    rounds = _rounds(view)
    at = conversation.round_to_edit(len(rounds))
    return [one for number, part in enumerate(rounds) for one in part if number != at]


def _merged(_: Conversation, view: View) -> View:
    """Merge the steps of each loop into one turn, followed by their results."""
    merged: View = []
    for part in _rounds(view):
        steps = [one for one in part if isinstance(one.turn, Said) and one.turn.calls]
        results = [pair for one in part if isinstance(one.turn, Results) for pair in one.turn.of]
        merged.append(part[0])
        if steps:
            said = [one.turn for one in steps if isinstance(one.turn, Said)]
            calls = tuple(call for one in said for call in one.calls)
            text = "".join(one.text for one in said)
            merged.append(Shown(Said(text, calls), tuple(number for one in steps for number in one.numbers)))
        if results:
            merged.append(Shown(Results(tuple(results))))
        merged += [one for one in part[1:] if isinstance(one.turn, Said) and not one.turn.calls]
    return merged


def _renamed(_: Conversation, view: View) -> View:
    """Ids by position, from clients that keep none."""
    names: dict[str, str] = {}

    def named(call: Call) -> Call:
        return call._replace(id=names.setdefault(call.id, f"{len(names) + 1:09d}"))

    shown = []
    for one in view:
        turn = one.turn
        if isinstance(turn, Said):
            turn = turn._replace(calls=tuple(map(named, turn.calls)))
        elif isinstance(turn, Results):
            turn = Results(tuple((named(call), text) for call, text in turn.of))
        shown.append(Shown(turn, one.numbers))
    return shown


def _trimmed(_: Conversation, view: View) -> View:
    return [
        Shown(one.turn._replace(text=f"{one.turn.text.strip()}\n"), one.numbers)
        if isinstance(one.turn, Said) and one.turn.text
        else one
        for one in view
    ]


def _without_text(_: Conversation, view: View) -> View:
    return [
        Shown(one.turn._replace(text=""), one.numbers) if isinstance(one.turn, Said) and one.turn.calls else one
        for one in view
    ]


EDITS: dict[EditName, Callable[[Conversation, View], View]] = {
    "nothing": lambda _, view: view,
    "results cleared": _cleared,
    "clock in the first message": _with_clock,
    "first message rewritten": _rewritten,
    "sliding window": _windowed,
    "one turn edited": _edited,
    "one turn deleted": _deleted,
    "turns merged": _merged,
    "ids rewritten": _renamed,
    "texts trimmed": _trimmed,
    "no text beside calls": _without_text,
}


# --- counting --------------------------------------------------------------------------------------------------------


def play(kind: Kind, speaker: Speaker, *, seed: int, line: Line) -> Counts:
    """Play a world of conversations, from its first request to its last."""
    chance = random.Random(f"{seed} {kind} {speaker.format}")
    conversations = [Conversation(number, kind, speaker, chance) for number in range(WORLD)]
    requests = [one for one in conversations for _ in range(kind.requests)]
    chance.shuffle(requests)
    total = Counts()
    with _Lines() if kind.are_many else nullcontext() as lines:
        world = _World(speaker, line, conversations)
        for at, one in enumerate(requests):
            if lines is not None:
                world.use(lines.one_of(chance))
                if at == len(requests) // 2:
                    lines.forget()
                    world.forget()
            total = total.plus(world.exchange(one))
    return total


class _Lines:
    """Two lines on one store."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory()
        self._url = f"sqlite:///{self._folder.name}/turns.db"
        self._lines = [Line(self._url), Line(self._url)]

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        for line in self._lines:
            line.close()
        self._folder.cleanup()

    def one_of(self, chance: random.Random) -> Line:
        """One of them, now and then closed and opened again."""
        at = chance.randrange(len(self._lines))
        if chance.random() < RESTARTS:
            self._lines[at].close()
            self._lines[at] = Line(self._url)
        return self._lines[at]

    def forget(self) -> None:
        """Delete all that is remembered, as another process does it."""

        async def forget() -> None:
            store = await open_store(self._url)
            await store.delete(Filter())
            await store.close()

        asyncio.run(forget())


class _World:
    """A tenant of its own, and a model that answers it."""

    def __init__(self, speaker: Speaker, line: Line, conversations: Sequence[Conversation]) -> None:
        self._speaker, self._line = speaker, line
        self._by_owner = {one.owner: one for one in conversations}
        self._headers = {"authorization": f"Bearer key-of-world-{next(_tenants)}"}
        self._all_marks: set[str] = set()
        self._forgotten: set[str] = set()

    def use(self, line: Line) -> None:
        self._line = line

    def forget(self) -> None:
        """What was remembered so far must not come back."""
        self._forgotten |= self._all_marks

    def exchange(self, conversation: Conversation) -> Counts:
        """One request: judge what reaches the upstream, and capture its answer."""
        view, frame = conversation.go_on(), conversation.frame()
        speaker = self._speaker
        body = msgspec.json.encode(speaker.body([one.turn for one in view], frame, is_streaming=False))
        url = f"https://{HOSTS[speaker.provider]}{speaker.path_for(frame, is_streaming=False)}"
        begun = self._line.begin_sync("POST", url, self._headers | conversation.headers(), body)
        marks = _marks_by_run(begun.body, speaker)
        counts = _judged(view, conversation.owner, marks, self._is_equal)
        deleted = sum(mark in self._forgotten for run in marks for mark in run)
        counts = counts._replace(wrong=counts.wrong + deleted)
        said, thinks = conversation.answer()
        self._all_marks.add(thinks.removeprefix("ThoughtOf"))
        if not conversation.loses_this():
            begun.read(msgspec.json.encode(speaker.answer(said, thinks, next(_clock))))
        begun.end()
        return counts

    def _is_equal(self, one: str, other: str) -> bool:
        """Whether two pieces of reasoning were made for turns that are the same in everything visible up to them."""
        return self._history(one) == self._history(other)

    def _history(self, mark: str) -> tuple[object, ...]:
        return self._by_owner[mark[:-2]].history(int(mark[-2:]))


HOSTS = {
    "deepseek": "api.deepseek.com",
    "anthropic": "api.anthropic.com",
    "openai": "api.openai.com",
    "gemini": "generativelanguage.googleapis.com",
}


def _judged(
    view: View, owner: str, marks_by_run: Sequence[Sequence[str]], is_equal: Callable[[str, str], bool]
) -> Counts:
    """Neighbouring model turns are one run: it may carry the reasoning of its turns, in order."""
    runs: list[list[str]] = []
    is_in_run = False
    for one in view:
        if isinstance(one.turn, Said):
            own = [f"{owner}{number:02d}" for number in one.numbers]
            runs = [*runs[:-1], [*runs[-1], *own]] if is_in_run else [*runs, own]
        is_in_run = isinstance(one.turn, Said)
    assert len(runs) == len(marks_by_run), "a turn of the model went missing on its way"
    turns = wrong = restored = equal = misplaced = 0
    for own, marks in zip(runs, marks_by_run, strict=True):
        right = [mark for mark in marks if mark in own]
        strangers = [mark for mark in marks if not mark.startswith(owner)]
        alike = sum(any(is_equal(mark, one) for one in own) for mark in strangers)
        turns += len(own)
        restored += len(set(right))
        equal += alike
        misplaced += len(marks) - len(right) - len(strangers) if right == sorted(right) else len(marks)
        wrong += len(strangers) - alike
    return Counts(turns, wrong, turns - restored, restored, equal, misplaced)


def _marks_by_run(body: bytes, speaker: Speaker) -> list[list[str]]:
    decoded: Json = msgspec.json.decode(body)
    elements = decoded.get("messages") or decoded.get("input") or decoded["contents"]
    runs: list[list[str]] = []
    is_in_run = False
    for element in elements:
        is_model = element.get("role") in ("assistant", "model") or element.get("type") in (
            "reasoning",
            "function_call",
        )
        if is_model:
            if not is_in_run:
                runs.append([])
            runs[-1] += marks_in(msgspec.json.encode(element))
        is_in_run = is_model
    return runs
