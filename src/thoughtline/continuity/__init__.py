"""Continuity: what one model thought, told to another that can't take it natively; and thinking tags in visible text.

    records of the request's own turns ── checkpoints ──▶ Checkpoint … ┐
    what was quoted before ── memory ──▶ Quoted ───────────────────────┴─ handover ──▶ Quotation ──▶ injection
    a response's text ── tags ──▶ markers out, or the tagged text lifted into the reasoning of its format
    records of a route ── handoffs ──▶ what became of it

All of it is pure but for `memory`, which reads and writes the notes of a store. `terms` says when and how much.
"""
