"""Reports what a line did for a call: to `last()` in the same task or thread, `line.exchanges`, registered functions,
and the log."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeAlias

from thoughtline.engine.capture import log_problem
from thoughtline.engine.request import Prepared
from thoughtline.library.explaining import ExchangeReport, moment, outcome_of
from thoughtline.replay.refusals import Refusal
from thoughtline.values.outcome import Outcome

log = logging.getLogger("thoughtline.line")

Listener: TypeAlias = Callable[[ExchangeReport], object]

KEPT = 100
"""Number of exchanges whose reports a line keeps."""


class Listeners:
    """A line's recent reports, and the functions that receive them."""

    def __init__(self) -> None:
        self.exchanges: deque[ExchangeReport] = deque(maxlen=KEPT)
        self.functions: tuple[Listener, ...] = ()

    def report(self, report: ExchangeReport) -> None:
        self.exchanges.append(report)
        if report.is_mended and log.isEnabledFor(logging.INFO):
            to = report.destination
            log.info("%s/%s: %s", to.provider, to.model, report.summary)
        for function in self.functions:
            try:
                function(report)
            except Exception as problem:
                log_problem("a function given to on_exchange has failed", problem)


class Teller:
    """Collects the report of one exchange. It does not keep the request: the notes of its plan are enough."""

    def __init__(self, listeners: Listeners, prepared: Prepared, outcome: Callable[[], Outcome]) -> None:
        self._listeners = listeners
        self._outcome = outcome
        self._at = time.time()
        self._destination = prepared.destination
        self._session = prepared.identity.session
        self._notes = prepared.plan.notes if prepared.plan is not None else None
        self._refusal: Refusal | None = None
        self._report: ExchangeReport | None = None
        self.status: int | None = None
        self.saved = 0
        _last.set(self)

    def healed(self, prepared: Prepared, refusal: Refusal | None) -> None:
        """Note a refusal; `prepared` is what is sent next, or the same again."""
        self._refusal = refusal or self._refusal
        self._notes = prepared.plan.notes if prepared.plan is not None else None

    def report(self, *, is_over: bool = False, is_cut: bool = False) -> ExchangeReport:
        if self._report is not None:
            return self._report
        counts = self._outcome()
        return ExchangeReport(
            at=moment(self._at),
            destination=self._destination,
            session=self._session,
            status=self.status,
            outcome=outcome_of(counts, self.status, is_over=is_over, is_cut=is_cut),
            counts=counts,
            saved=self.saved,
            refusal=self._refusal,
            notes=self._notes,
        )

    def finish(self, *, is_cut: bool) -> None:
        """Report the end, once: later events change nothing."""
        if self._report is None:
            self._report = self.report(is_over=True, is_cut=is_cut)
            self._outcome = _nothing  # it refers to the exchange
            self._listeners.report(self._report)


_nothing = Outcome

_last: ContextVar[Teller | None] = ContextVar("thoughtline_last", default=None)


def last() -> ExchangeReport | None:
    """Return the report on the last call of this task or thread; None before the first."""
    teller = _last.get()
    return teller.report() if teller is not None else None
