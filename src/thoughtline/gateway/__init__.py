"""The gateway: clients point at it; it plans requests, forwards them, and stores what comes back.

    app ── fixed addresses ─▶ admin.table ─▶ cache, sessions, settings, contracts, audits, events, metrics, probes
    └──── every other ─────▶ Exchange: route → caller → choice → prepare → Upstreams ⟲ heal → Relay → journal

`State` is everything that a request needs: settings and values derived from them, the store, the lessons, the
connections.
"""
