"""Replay inside an application: what the gateway does for one provider in its own format, without another process.

    Line ── begin ──▶ AsyncExchange, SyncExchange    one request and its answer: body, heal, feed, save
     │                   │
     │                Engine    the store, the replayer and the lessons, on a loop of their own (background)
     ├─ http_client, anthropic, google, langchain, remember: doors, each an exchange around somebody else's request
     └─ install: the door of every client of the process

Each exchange becomes an `ExchangeReport`, which `last`, `Line.exchanges` and `Line.on_exchange` give.

No HTTP library is imported here: `transports` makes what it needs of the one that a client is made of.
"""
