"""The gateway: clients point at it; it plans requests, forwards them, and stores what comes back.

    client's request                                                 client's answer
       │                                                                ▲
    app ── fixed addresses ─▶ admin.table                               │
       │                                                                │
    Exchange (proxy)                                                    │
       │  Incoming.take_in       admit, limit, read, choose targets     │
       ▼                                                                │
    Attempt: one target, one key ◀── next target or key ──┐             │
       │  Outgoing, a frozen value, through               │             │
       │  request_stages.prepare: server state,           │             │
       │  continuity, stored responses, compaction,       │           Relay: pieces through the stages of
       │  tools, restore or translate, tags               │           answer_stages.down, their copy into a Watch
       ▼                                                  │             ▲          │
    Upstreams ─▶ provider ── refused: heal, else fail ────┘             │          ▼
                    └──────── answered ─────────────────────────────────┘    engine: Record, saved
                                                                             journal, recent: what happened

The work on reasoning is done by `thoughtline.engine`, which knows nothing of HTTP. `State` is everything that a request
needs: settings and values derived from them, the store, the lessons, the connections.
"""
