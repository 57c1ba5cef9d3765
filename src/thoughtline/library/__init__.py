"""Replay inside an application: what the gateway does for one provider in its own format, without another process.

    Line ── begin ──▶ AsyncExchange, SyncExchange    one request and its answer: body, heal, feed, save
    │                   │
    │                Engine    the store, the replayer and the lessons, on a separate event loop (background)
    ├─ http_client, anthropic, google, langchain, remember: integrations, each an exchange around a client's request
    └─ install: the integration for every client of the process

Each exchange becomes an `ExchangeReport`, which `last`, `Line.exchanges` and `Line.on_exchange` return.

No HTTP library is imported here: `transports` builds its classes from the library that a client uses.
"""
