"""Decides what to remember of a response, and what to put back into a request.

    request    Transcript ─▶ keys.walk ─▶ steps, each with the keys that its record can have
                                │
               plans.Needs ─────┘         the keys to look up first: one lineage per step
                                │
               a store finds records      (not here: the engine asks it)
                                │
               matching ─▶ chains         one record per step, all of them of one chain: the rule of identity
                                │
               planner ───────────▶ Plan  what to restore, remove or report: weaving, pairing, restoring, fallbacks
                                │
               Plan.apply ─▶ Transcript   as it is sent
    response   events ─▶ Turn ─▶ Record   with the keys of the step that it is
    refusal    refusals.classify ─▶ learn ─▶ Correction, which changes the contract

Pure: it fetches nothing, it only says which keys it needs.
"""
