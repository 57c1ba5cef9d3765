"""Which requests are asked for: by words that a request has, and by when it began.

A filter is first a choice among the groups of the history; a request in memory is held against it as a group of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Literal, NamedTuple, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import fields

from thoughtline.gateway.admin.request_answers import RequestOutcome, RequestRow
from thoughtline.providers import canonical_name
from thoughtline.stores.history import DAY, HOUR, MINUTE, MINUTES_KEPT_SECONDS, Group
from thoughtline.stores.settings import decode_duration
from thoughtline.values.errors import Declined, StoreError

TableFormat: TypeAlias = Literal["json", "csv"]
MAX_RANGE_SECONDS = 366 * DAY
DAY_SECONDS = float(DAY)


class Range(Struct, frozen=True, kw_only=True):
    """When. `range` is how long, as in `15m`, `24h` or `90d`, up to `until` or now; `since` and `until` are moments,
    as in `2026-11-19T14:00Z`."""

    range: str | None = None
    since: str | None = None
    until: str | None = None


class RequestFilter(Range, frozen=True, kw_only=True):
    """Which requests: those that agree with all that is given, in any case.

    A value with `!` before it means all others, `*` at its end what begins so, commas several of which one fits;
    `session` and `tenant` are beginnings anyway. `provider` may be an alias. `caller` is the name of a client key.
    `status` is one (`400`) or a class (`4xx`).
    """

    session: str | None = None
    tenant: str | None = None
    caller: str | None = None
    client: str | None = None
    provider: str | None = None
    model: str | None = None
    route: str | None = None
    action: str | None = None
    mode: str | None = None
    status: str | None = None
    outcome: str | None = None
    code: str | None = None


class RequestsQuery(RequestFilter, frozen=True, kw_only=True):
    """Which requests, and which page of them; `limit` is 1 to 200.

    `text` is looked for in ids, sessions, names of models, providers, clients and callers, and in errors.
    """

    text: str | None = None
    limit: int = 50
    cursor: str | None = None
    format: TableFormat = "json"


_BY_BEGINNING = ("tenant",)
_FILTERED = tuple(
    field.name for field in fields(RequestFilter) if field.name not in ("range", "since", "until", "session")
)


class Span(NamedTuple):
    """A range of time in seconds since the epoch."""

    since: float
    until: float

    @property
    def seconds(self) -> float:
        return self.until - self.since

    @property
    def before(self) -> Span:
        """The range before it, of the same length."""
        return Span(self.since - self.seconds, self.since)

    def step(self, now: float) -> int:
        """How long the steps of a chart of it are: those that are still kept."""
        if self.seconds <= DAY and self.since >= now - MINUTES_KEPT_SECONDS:
            return MINUTE
        return HOUR if self.seconds <= 14 * DAY else DAY


def span_of(given: Range, now: float, usual: float | None = DAY_SECONDS) -> Span | None:
    """The range that is asked for. Without one it is the last `usual` seconds; None where all of it is meant."""
    until = _moment("until", given.until) if given.until else now
    if given.since:
        since = _moment("since", given.since)
    elif given.range:
        since = until - _length(given.range)
    elif given.until or usual is None:
        return None if usual is None and not given.until else Span(0.0, until)
    else:
        since = until - usual
    if since >= until:
        raise Declined(400, "bad_range", "This range ends before it begins.", "`since` is earlier than `until`.")
    return Span(since, until)


def _length(text: str) -> float:
    try:
        seconds = decode_duration(text)
    except StoreError:
        seconds = 0.0
    if not 0 < seconds <= MAX_RANGE_SECONDS:
        raise Declined(400, "bad_range", f"{text[:40]!r} is no range.", "For example 15m, 24h, 7d or 90d.")
    return seconds


def _moment(name: str, text: str) -> float:
    try:
        found = datetime.fromisoformat(text.replace(" ", "+"))
    except ValueError:
        problem = f"{name} can't be {text[:40]!r}."
        raise Declined(400, "bad_range", problem, "Write it as 2026-11-19T14:00Z.") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def check(query: RequestFilter) -> None:
    """Raises for an outcome that there is none of."""
    known = get_args(RequestOutcome)
    for one in _words(query.outcome):
        if one not in known and not one.endswith("*"):
            raise Declined(400, "bad_query", f"There is no outcome {one[:40]!r}.", f"One of {', '.join(known)}.")


def is_filtered(query: RequestFilter) -> bool:
    """Whether it asks for some groups only."""
    return any(getattr(query, name) for name in _FILTERED)


def group_test(query: RequestFilter) -> Callable[[Group], bool]:
    """Whether a group is one of those asked for."""
    tests = [(name, *_parts(name, wanted)) for name in _FILTERED if (wanted := getattr(query, name))]

    def fits(group: Group) -> bool:
        for name, is_negated, wanted in tests:
            has = any(_has(name, getattr(group, name), one) for one in wanted)
            if has is is_negated:
                return False
        return True

    return fits


def session_fits(query: RequestFilter, session: str | None) -> bool:
    if not query.session:
        return True
    is_negated, wanted = _parts("session", query.session)
    return any((session or "").lower().startswith(one.removesuffix("*")) for one in wanted) is not is_negated


def exact_session(query: RequestFilter) -> str | None:
    """The session that is asked for, or its beginning; None where others are meant too."""
    wanted = query.session or ""
    return wanted.removesuffix("*") if wanted and not wanted.startswith("!") and "," not in wanted else None


def group_of_row(row: RequestRow) -> Group:
    """What a row has in common with others."""
    return Group(*(getattr(row, name) for name in Group.__struct_fields__))


def text_fits(words: Iterable[str | None], text: str) -> bool:
    return text.lower() in "\n".join(filter(None, words)).lower()


def _words(value: str | None) -> list[str]:
    return [one for one in (value or "").removeprefix("!").lower().split(",") if one]


def _parts(name: str, value: str) -> tuple[bool, list[str]]:
    words = _words(value)
    if name == "provider":
        words += [canonical_name(one) for one in words]
    return value.startswith("!"), words


def _has(name: str, value: str | int, wanted: str) -> bool:
    if name == "status":
        status = int(value)
        return wanted.removesuffix("*") in (str(status), f"{status // 100}xx", f"{status // 100}")
    text = str(value).lower()
    if wanted.endswith("*") or name in _BY_BEGINNING:
        return text.startswith(wanted.removesuffix("*"))
    return text == wanted
