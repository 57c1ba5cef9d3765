"""Management: what is remembered, what was learned, what is set, what happens; for whoever holds the admin token.

    address ─ TABLE ─▶ Row: who may, which query and body ─▶ handler(Request) ─▶ Whole | Stream ─▶ client
                └────▶ openapi.document: the same rows for machines

A handler is a few lines over a function that can be called without it. Answers are the structs of `answers`; errors are
`{"error": {"code", "message", "remedy"}}`.
"""
