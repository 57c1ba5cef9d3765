"""Passages of conversations that were translated before, by their bytes: an agent sends the same ones again and again.

A passage begins where the model speaks, and ends where it speaks again. If its calls have ids and its results answer
them, its translation depends on nothing before or after it. So a body is translated without the passages that are
known, and what they became is put back in between:

    body    {"model":"m","messages":[ opening │ passage │ passage │ passage │ the last one ],"tools":[…]}
    short   {"model":"m","messages":[ opening                     │ passage │ the last one ],"tools":[…]}

The last passage is never known: the client may add to it, and what goes up for it may have a mark for prompt caching.
Where anything does not fit, the whole body is translated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.formats import FORMATS, Wire
from thoughtline.formats.json_text import element_spans
from thoughtline.formats.weighing import MAX_TURNS, Weight, decode_bounded, total, weight_of
from thoughtline.providers import Contract
from thoughtline.replay.findings import Finding
from thoughtline.replay.remembering import LISTS, Span, list_span
from thoughtline.translation.calls import HIDDEN, CallIds, unwrapped
from thoughtline.translation.requests import TranslatedRequest
from thoughtline.translation.tools import ToolNames
from thoughtline.values.errors import ThoughtlineError
from thoughtline.values.items import ENVELOPE_MARK, ToolCall, ToolResult
from thoughtline.values.records import Record, digest
from thoughtline.values.turns import FormatName, Transcript, Turn

Translates: TypeAlias = Callable[[Transcript], TranslatedRequest]

FEWEST = 3
"""A conversation of fewer passages is translated in less time than it takes to look for them."""

_MOST_MISSES = 64
SAMPLE = 160
"""Bytes by which a passage is found that did not follow a known one."""

_PASSAGE_BYTES = 1024
"""What a passage takes besides its bytes, roughly."""

_BEHIND = re.compile(rb"[ \t\n\r]*,[ \t\n\r]*(?=\{)")
_NOT_ALONE = (b'"additional_tools"', b"tool_search", b'"phase"', b'"defer_loading"')
"""Tools in a conversation, and what is reported once for a request."""

_AGENTS = b'"agent_message"'
"""Messages of other agents divide a step of the model."""


def _marker(wire: Wire) -> re.Pattern[bytes]:
    """What a passage has near its beginning."""
    kinds = b"|function_call|reasoning" if "items_are_elements" in wire.quirks else b""
    return re.compile(rb'"(?:%b%b)"' % (wire.message.role.encode(), kinds))


_MARKERS = {name: _marker(wire) for name, wire in FORMATS.items()}


class Direction(NamedTuple):
    """From whom to whom; `rules` are the settings that a translation depends on."""

    tenant: str
    client: FormatName
    to: FormatName
    contract: Contract
    model: str
    rules: tuple[object, ...] = ()


class Form(NamedTuple):
    """What of a request its passages depend on: the names of its tools, and whether its prompt is marked for the
    cache."""

    tools: ToolNames
    is_marked: bool


class Passage(Struct, eq=False):
    """A passage as the client sends it, and what goes up for it. `ids` are those of its calls at the upstream. It is
    found by `sample`, which begins at `sample_at`; `following` stood behind it the last time."""

    direction: Direction
    client: bytes
    sent: bytes
    form: Form
    ids: tuple[str, ...]
    elements: int
    turns: int
    weight: Weight
    has_envelopes: bool
    sample: bytes
    sample_at: int
    following: Passage | None = None

    @property
    def size(self) -> int:
        return len(self.client) + len(self.sent) + _PASSAGE_BYTES


class KnownRun(NamedTuple):
    """Known passages, and where they stood in the short body."""

    at: int
    passages: list[Passage]


class Written(NamedTuple):
    """A request that we wrote in its upstream's format; `read` decodes it. `is_joined`: of parts whose calls have their
    own ids."""

    body: bytes
    format: FormatName
    user: str
    read: Callable[[], Transcript]
    is_joined: bool = False

    @classmethod
    def of(cls, transcript: Transcript) -> Written:
        return cls(transcript.whole, transcript.format, transcript.user, lambda: transcript)


class Made(NamedTuple):
    """A request, translated. `short` is what of it was translated just now. `records` decodes the client's envelopes,
    if there may be any; `is_streaming` is what its body says. `order` has the passages, as far as they can be kept."""

    short: TranslatedRequest
    written: Written
    findings: tuple[Finding, ...]
    call_ids: CallIds
    is_streaming: bool
    records: Callable[[], tuple[Record, ...]] | None = None
    order: Sequence[Passage | None] = ()


class Shortened(NamedTuple):
    """A body, and the same without the passages that are known."""

    direction: Direction
    body: bytes
    short: bytes
    runs: tuple[KnownRun, ...] = ()
    are_kept: bool = True

    @property
    def whole(self) -> Shortened:
        return self._replace(short=self.body, runs=())

    def translated(self, translate: Translates) -> Made | None:
        """The request translated; None where what is known does not fit."""
        own = FORMATS[self.direction.client]
        try:
            transcript = decode_bounded(self.short, own.name, own.dialect)
            request = translate(transcript)
        except ThoughtlineError:
            if not self.runs:
                raise
            return None  # the whole says where the problem is
        parts = _divided(self, transcript, request) if self.are_kept else None
        if self.runs:
            return _joined(self, transcript, request, parts, translate) if parts is not None else None
        return Made(
            request,
            Written.of(request.transcript),
            request.findings,
            request.call_ids,
            transcript.is_streaming,
            records=(lambda: request.records) if request.records else None,
            order=parts.passages if parts is not None else (),
        )


class Passages:
    """What is known of passages, bounded in bytes: the least recently used go first. Nothing is kept in zero bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: dict[Passage, None] = {}
        self._samples: dict[Direction, dict[bytes, Passage]] = {}
        self.size = 0

    def shortened(self, body: bytes, direction: Direction) -> Shortened:
        """The body without what is known of it."""
        samples = self._samples.get(direction)
        listed = LISTS[direction.client].search(body) if samples else None
        if not samples or listed is None:
            return Shortened(direction, body, body, are_kept=self._max_bytes > 0)
        runs: list[KnownRun] = []
        pieces: list[bytes] = []
        copied = removed = 0
        for begin, end, passage in self._known(body, listed.end(), samples, _MARKERS[direction.client]):
            if runs and begin == copied:
                runs[-1].passages.append(passage)
            else:
                pieces.append(body[copied:begin])
                runs.append(KnownRun(begin - removed, [passage]))
            copied, removed = end, removed + end - begin
        return (
            Shortened(direction, body, b"".join([*pieces, body[copied:]]), tuple(runs))
            if runs
            else Shortened(direction, body, body)
        )

    def _known(
        self, body: bytes, at: int, samples: dict[bytes, Passage], marker: re.Pattern[bytes]
    ) -> Iterator[tuple[int, int, Passage]]:
        """The known passages of a body except the last one: where each begins, and where the next element does."""
        last: Passage | None = None
        misses = 0
        while misses < _MOST_MISSES:
            begin, passage = at, last.following if last is not None else None
            if passage is None or passage not in self._kept or not body.startswith(passage.client, at):
                found = marker.search(body, at)
                if found is None:
                    return
                passage = samples.get(body[found.start() : found.start() + SAMPLE])
                begin = found.start() - passage.sample_at if passage is not None else -1
                if passage is None or begin < at or not body.startswith(passage.client, begin):
                    at, last, misses = found.end(), None, misses + 1
                    continue
            behind = _BEHIND.match(body, begin + len(passage.client))
            if behind is None:
                return
            yield begin, behind.end(), passage
            at, last = behind.end(), passage

    def keep(self, made: Made) -> None:
        """Keep the passages of a request, those that were known as the ones used last."""
        if not made.order:
            return
        for passage in made.order:
            if passage is None:
                continue
            if passage in self._kept:
                del self._kept[passage]
            else:
                self._add(passage)
            self._kept[passage] = None
        for one, following in pairwise(made.order):
            if one is not None:
                one.following = following
        while self.size > self._max_bytes:
            self._drop(next(iter(self._kept)))

    def _add(self, passage: Passage) -> None:
        same = self._samples.get(passage.direction, {}).get(passage.sample)
        if same is not None and same.client == passage.client:
            self._drop(same)
        self.size += passage.size
        if passage.sample:
            self._samples.setdefault(passage.direction, {})[passage.sample] = passage

    def _drop(self, passage: Passage) -> None:
        if passage not in self._kept:
            return
        del self._kept[passage]
        self.size -= passage.size
        passage.following = None
        samples = self._samples.get(passage.direction, {})
        if samples.get(passage.sample) is passage:
            del samples[passage.sample]
            if not samples:
                del self._samples[passage.direction]

    def clear(self) -> None:
        self._kept.clear()
        self._samples.clear()
        self.size = 0


# --- what a translation shows of the passages in it -------------------------------------------------------------------


class _Divided(NamedTuple):
    """Both sides of a translation: where their elements stand, and at which of them passages begin."""

    came: list[Span]
    sent: list[Span]
    starts: list[int]
    sent_starts: list[int]
    form: Form
    passages: list[Passage | None]


def _divided(shortened: Shortened, transcript: Transcript, request: TranslatedRequest) -> _Divided | None:
    """None where the passages of one side are not those of the other."""
    final, direction = request.transcript, shortened.direction
    if transcript.around is not None or final.around is not None or transcript.has_lone_surrogates:
        return None
    if _AGENTS in shortened.short:
        return None
    firsts, sent_firsts = _firsts(transcript.turns), _firsts(final.turns)
    if len(firsts) != len(sent_firsts) or not firsts or (not shortened.runs and len(firsts) < FEWEST):
        return None
    listed, sent_at = list_span(shortened.short, direction.client), list_span(final.body, direction.to)
    if listed is None or sent_at is None:
        return None
    came = element_spans(shortened.short, listed[0] - 1, listed[1])
    sent = element_spans(final.body, sent_at[0] - 1, sent_at[1])
    starts = [transcript.turns[at].at for at in firsts]
    sent_starts = [final.turns[at].at for at in sent_firsts]
    marks = FORMATS[direction.to].cache_marks
    form = Form(request.tools, marks is not None and marks.word in final.body)
    noted = _noted_elements(request.findings, direction.client)
    named = Counter([unwrapped(call.id or "") for turn in transcript.turns for call in _calls(turn)])
    passages: list[Passage | None] = []
    for number, (first, end) in enumerate(pairwise(firsts)):
        start, behind = starts[number], starts[number + 1]
        turns = transcript.turns[first:end]
        sent_turns = final.turns[sent_firsts[number] : sent_firsts[number + 1]]
        ids = _ids_alone(turns, sent_turns, named)
        client = shortened.short[came[start][0] : came[behind - 1][1]]
        there = final.body[sent[sent_starts[number]][0] : sent[sent_starts[number + 1] - 1][1]]
        is_alone = _is_alone(client, direction.client) and not _is_of_its_place(there, direction.to)
        if ids is None or not is_alone or not noted.isdisjoint(range(start, behind)):
            passages.append(None)
            continue
        found = _MARKERS[direction.client].search(client)
        sample = client[found.start() : found.start() + SAMPLE] if found is not None else b""
        passages.append(
            Passage(
                direction,
                client=client,
                sent=there,
                form=form,
                ids=ids,
                elements=behind - start,
                turns=sum(turn.role == "assistant" for turn in turns),
                weight=weight_of(client),
                has_envelopes=ENVELOPE_MARK.encode() in client,
                sample=sample if len(sample) == SAMPLE else b"",
                sample_at=found.start() if found is not None else 0,
            )
        )
    return _Divided(came, sent, starts, sent_starts, form=form, passages=[*passages, None])


def _firsts(turns: Sequence[Turn]) -> list[int]:
    """The turns with which passages begin."""
    firsts: list[int] = []
    was_model = False
    for position, turn in enumerate(turns):
        if turn.at >= 0:
            if turn.role == "assistant" and not was_model:
                firsts.append(position)
            was_model = turn.role == "assistant"
    return firsts


def _calls(turn: Turn) -> list[ToolCall]:
    return [item for item in turn.items if isinstance(item, ToolCall)]


def _answered(turns: Sequence[Turn]) -> list[str | None]:
    return [item.call_id for turn in turns for item in turn.items if isinstance(item, ToolResult)]


def _ids_alone(turns: Sequence[Turn], sent: Sequence[Turn], named: Counter[str | None]) -> tuple[str, ...] | None:
    """The ids of a passage's calls at the upstream; None where a call or a result is not known by its own id alone.
    `named` counts those of all calls."""
    calls, results = [call.id or "" for turn in turns for call in _calls(turn)], _answered(turns)
    if any(turn.role == "system" for turn in turns) or not _has_own_ids(turns) or len(set(results)) < len(results):
        return None
    ids = tuple([call.id for turn in sent for call in _calls(turn) if call.id])
    return ids if len(ids) == len(calls) and all(named[unwrapped(name)] == 1 for name in calls) else None


def _is_alone(client: bytes, format: FormatName) -> bool:
    """Whether nothing in a passage depends on the rest of the request, nor the rest on it."""
    marks, notes = FORMATS[format].cache_marks, FORMATS[format].notes
    is_marked = marks is not None and marks.word in client
    has_notes = b'"annotations"' in client if notes.in_history is not None else notes.mark.search(client) is not None
    if is_marked or has_notes:
        return False
    return not any(word in client for word in _NOT_ALONE)


def _is_of_its_place(sent: bytes, format: FormatName) -> bool:
    """Whether what goes up for a passage has a mark for the cache, or an id that may be made by counting."""
    marks = FORMATS[format].cache_marks
    return HIDDEN.encode() in sent or (marks is not None and marks.word in sent)


def _noted_elements(findings: Sequence[Finding], format: FormatName) -> set[int]:
    """The elements that findings are about."""
    place = f"{FORMATS[format].list_place}/"
    numbers = [one.place.removeprefix(place).partition("/")[0] for one in findings if one.place.startswith(place)]
    return {int(number) for number in numbers if number.isdecimal()}


# --- the whole --------------------------------------------------------------------------------------------------------


def _joined(
    shortened: Shortened, transcript: Transcript, request: TranslatedRequest, parts: _Divided, translate: Translates
) -> Made | None:
    """The request with what is known put back."""
    direction, final = shortened.direction, request.transcript
    known = [passage for run in shortened.runs for passage in run.passages]
    numbers = {parts.came[start][0]: number for number, start in enumerate(parts.starts)}
    places = [numbers.get(run.at) for run in shortened.runs]
    if None in places or [passage.form for passage in known].count(parts.form) < len(known):
        return None
    turns = len(transcript.turns) + sum([passage.elements for passage in known])
    weight = total([passage.weight for passage in known]).plus(weight_of(shortened.short))
    looks_at_all = b'"defer_loading"' in shortened.short
    if looks_at_all or turns > MAX_TURNS or not weight.is_read:
        return None
    if not _has_own_ids(transcript.turns) or not _fits_next_to_known(final, parts, direction):
        return None
    ids = [name for passage in known for name in passage.ids] + list(request.call_ids.used)
    used = frozenset(ids)
    if len(used) < len(ids) or len(request.call_ids.used) < _count_calls(final):
        return None
    order: list[Passage | None] = []
    pieces: list[bytes] = []
    copied = taken = 0
    added: list[tuple[int, int]] = []
    for run, number in zip(shortened.runs, places, strict=True):
        assert number is not None
        order += [*parts.passages[taken:number], *run.passages]
        place = parts.sent[parts.sent_starts[number]][0]
        pieces += [final.body[copied:place], *[one for passage in run.passages for one in (passage.sent, b",")]]
        copied, taken = place, number
        added.append((parts.starts[number], sum([passage.elements for passage in run.passages])))
    call_ids = request.call_ids._replace(
        used=used,
        turn=request.call_ids.turn + sum([passage.turns for passage in known]),
        salt=digest(shortened.body).hex(),
    )
    has_envelopes = bool(request.records) or True in [passage.has_envelopes for passage in known]
    body = b"".join([*pieces, final.body[copied:]])
    return Made(
        request,
        Written(body, direction.to, final.user, partial(_read_back, body, final, direction.contract), is_joined=True),
        _moved(request.findings, direction.client, added),
        call_ids,
        transcript.is_streaming,
        records=partial(_records, shortened, translate) if has_envelopes else None,
        order=[*order, *parts.passages[taken:]],
    )


def _has_own_ids(turns: Sequence[Turn]) -> bool:
    """Whether every call has an id of its own, and every result is that of one of them."""
    calls = [call.id for turn in turns for call in _calls(turn)]
    names = {unwrapped(name) if name else None for name in calls}
    return None not in names and len(names) == len(calls) and set(calls).issuperset(_answered(turns))


def _fits_next_to_known(final: Transcript, parts: _Divided, direction: Direction) -> bool:
    """Whether what was translated now is the same next to what is known."""
    if HIDDEN.encode() in final.body:
        return False
    if "tools_needed" in FORMATS[direction.to].quirks and not _count_calls(final):
        return False
    marks = FORMATS[direction.to].cache_marks
    last = parts.sent[parts.sent_starts[-1]][0]
    return not parts.form.is_marked or marks is None or marks.word in final.body[last : parts.sent[-1][1]]


def _count_calls(transcript: Transcript) -> int:
    return sum([len(_calls(turn)) for turn in transcript.turns])


def _moved(findings: tuple[Finding, ...], format: FormatName, added: list[tuple[int, int]]) -> tuple[Finding, ...]:
    """Findings with their places in the whole; `added`: before which element how many were put back."""
    place, moved = f"{FORMATS[format].list_place}/", []
    for one in findings:
        number, slash, rest = one.place.removeprefix(place).partition("/")
        if one.place.startswith(place) and number.isdecimal():
            at = int(number) + sum([count for start, count in added if start <= int(number)])
            one = replace(one, place=f"{place}{at}{slash}{rest}")
        moved.append(one)
    return tuple(moved)


def _records(shortened: Shortened, translate: Translates) -> tuple[Record, ...]:
    made = shortened.whole._replace(are_kept=False).translated(translate)
    return made.short.records if made is not None else ()


def _read_back(body: bytes, short: Transcript, contract: Contract) -> Transcript:
    whole = FORMATS[short.format].bodies.decode_request(body, contract.dialect)
    return replace(whole, model=short.model, is_streaming=short.is_streaming, user=short.user)
