"""Continuity: quotes one model's reasoning to another that can't read it natively; and thinking tags in visible text.

    records of the request's own turns ── checkpoints ──▶ Checkpoint … ┐
    earlier quotes ── memory ──▶ Quoted ───────────────────────┴─ handover ──▶ Quotation ──▶ injection
    a response's text ── tags ──▶ markers out, or the tagged text lifted into the reasoning of its format
    records of a route ── handoffs ──▶ the outcomes

All modules are pure except `memory`, which reads and writes a store's notes. `terms` says when and how much to quote.
"""
