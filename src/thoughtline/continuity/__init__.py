"""Continuity: what one model thought, told to another that can't take it natively; and thinking tags in visible text.

    records of the request's own turns ── checkpoints ──▶ Checkpoint …
    what was quoted before ── memory ──▶ Told               ├── injection ──▶ Quotation ──▶ the system prompt
                                                            framing: the text that no content can break out of
    a response's text ── tags ──▶ markers out, or the tagged text lifted into the reasoning of its format

All of it is pure but for `memory`, which reads and writes the notes of a store.
"""
