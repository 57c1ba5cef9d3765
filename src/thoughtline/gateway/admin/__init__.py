"""The admin API: stored turns, lessons, settings and events, for holders of the admin token.

    address ─ TABLE ─▶ Row: access, query and body types ─▶ handler(Request) ─▶ Whole | Stream ─▶ client
                └────▶ openapi.document: the same rows for machines

A handler is a few lines over a function that can be called without it. Answers are the structs of `answers`; errors are
`{"error": {"code", "message", "remedy"}}`.
"""
