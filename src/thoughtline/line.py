"""Replay inside an application: lines, their exchanges, and what they report. The code is in `library`."""

from __future__ import annotations

from thoughtline.library.door import ReplayLine, remember
from thoughtline.library.exchange import AsyncExchange, SyncExchange
from thoughtline.library.explaining import ExchangeReport, TurnReport
from thoughtline.library.installing import Installation, install, uninstall
from thoughtline.library.line_engine import LineReport
from thoughtline.library.telling import last

Line = ReplayLine  # the gateway has lines of another kind, in its journal

__all__ = [
    "AsyncExchange",
    "ExchangeReport",
    "Installation",
    "Line",
    "LineReport",
    "SyncExchange",
    "TurnReport",
    "install",
    "last",
    "remember",
    "uninstall",
]
