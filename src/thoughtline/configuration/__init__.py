"""What people write: a TOML file, the environment over it, flags over that, all as one tree of values with places.

    file ── tree ──┐
    environment ───┼──▶ Tree of `Given` values ── tables, providers, contracts ──▶ members of `Settings`
    flags ─────────┘                          └─▶ `Problem`s, all of them, each with its place and its remedy

A `Key` is a row: what it is called, what may stand there, what it means; the documentation is made from the rows. No
value that somebody wrote is ever said again: it may be a secret.
"""
