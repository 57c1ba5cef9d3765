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

The way of one request, call by call; `…` marks where it may wait:

    proxy.Exchange.run ─▶ incoming.Incoming.take_in …      the client's key, its limits, the body, the targets
      ─▶ Exchange._converse ─▶ Exchange._try               one target and one key after the other
        ─▶ attempt.Attempt.prepare ─▶ request_stages.prepare ─▶ restore, or translate
          ─▶ engine.Replayer.prepare …                     look up records, plan, encode: `Prepared`
        ─▶ Attempt.get_answer … ─▶ Upstreams.send          refused: Replayer.heal, and again
        ─▶ Exchange._pass_on ─▶ answer_stages.down, relay.Relay.run …
          ─▶ Exchange._save … ─▶ Replayer.save             at most `hold_ms` before the end of the turn is sent
      ─▶ Exchange._record_end                              journal, recent requests, history

The work on reasoning is done by `thoughtline.engine`, which knows nothing of HTTP. `State` is everything that a request
needs: settings and values derived from them, the store, the lessons, the connections.
"""
