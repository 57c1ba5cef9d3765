"""The gateway: any client points at it; requests are planned, sent on, and what comes back is kept.

    app ── fixed addresses ─▶ admin.table ─▶ cache, sessions, settings, contracts, audits, events, metrics, probes
     └──── every other ─────▶ Exchange: route → caller → choice → prepare → Upstreams ⟲ heal → Relay → journal

`State` is all that a request needs: settings and what was made from them, the store, the lessons, the connections.
"""
