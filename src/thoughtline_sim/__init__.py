"""Strict provider simulators: servers that answer as the real providers would, their 400s included.

    bytes → WireFormat.read → InputMessages → rules → Rejection
                                                    → ScriptedTurn → WireFormat.write → whole body | frames of a stream

`SIMULATORS` has one row per provider: its APIs (paths, a `WireFormat`, rules). `Simulation` is one at work, with no
socket and no clock; `app` puts it behind ASGI. Tokens are authenticated (`tokens`); `ledger` knows what came back.
"""
