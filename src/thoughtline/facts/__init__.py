"""Facts about models and hosts as documents: the table of `providers` as sheets of entries, and overlays on it.

    FactTable ── sheets.written ──▶ Sheets ── writing ──▶ TOML
    TOML ── reading ──▶ Changes ── overlays.laid ──▶ Sheets ── sheets.assembled ──▶ FactTable

A sheet has entries of one kind by name: `[contracts.kimi]`, `[models.kimi-1]`. Each entry has a `source` and the day
that was `read`, or is `unverified`.
"""
