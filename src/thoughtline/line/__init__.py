"""Replay inside an application: what the gateway does for one provider in its own format, without another process.

    Line ── begin ──▶ Exchange          one request and its answer: body, heal, feed, save
     │                   │
     │                Engine            the store, the replayer and the lessons, on a loop of their own (background)
     └─ http_client, anthropic, google, langchain, remember: doors, each an Exchange around somebody else's request

No HTTP library is imported here: `transports` makes what it needs of the one that a client is made of.
"""

from thoughtline.line.door import Line, remember
from thoughtline.line.engine import Report
from thoughtline.line.exchange import Exchange, SyncExchange

__all__ = ["Exchange", "Line", "Report", "SyncExchange", "remember"]
