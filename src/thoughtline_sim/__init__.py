"""Strict provider simulators: servers that answer as the real providers do, including their 400s.

    bytes → WireFormat.read → InputMessages → rules → Rejection
                                                    → ScriptedTurn → WireFormat.write → whole body | frames of a stream

`SIMULATORS` has one row per provider: its APIs (paths, a `WireFormat`, rules). `Simulation` runs one, with no
socket and no clock; `app` serves it over ASGI. Tokens are authenticated (`tokens`); `ledger` tracks what comes back.
"""
