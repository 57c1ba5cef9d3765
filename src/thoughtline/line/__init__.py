"""Replay inside an application: what the gateway does for one provider in its own format, without another process.

    Line ── begin ──▶ AsyncExchange, SyncExchange    one request and its answer: body, heal, feed, save
     │                   │
     │                Engine    the store, the replayer and the lessons, on a loop of their own (background)
     └─ http_client, anthropic, google, langchain, remember: doors, each an exchange around somebody else's request

No HTTP library is imported here: `transports` makes what it needs of the one that a client is made of.
"""

from thoughtline.line.door import ReplayLine, remember
from thoughtline.line.engine import LineReport
from thoughtline.line.exchange import AsyncExchange, SyncExchange

Line = ReplayLine  # the gateway has lines of another kind, in its journal

__all__ = ["AsyncExchange", "Line", "LineReport", "SyncExchange", "remember"]
