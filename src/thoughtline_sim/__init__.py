"""Strict provider simulators: servers that answer as the real providers would, their 400s included.

    bytes → Wire.hear → Heard messages → rules → Refusal
                                               → Step of the model → Wire.write → whole body | frames of a stream

`SIMULATORS` has one row per provider: its faces (paths, a `Wire`, rules). `Simulation` is one at work, with no socket
and no clock; `app` puts it behind ASGI. Tokens are really authenticated (`tokens`); `ledger` knows what came back.
"""

from thoughtline_sim.simulation import Request, Response, Simulation
from thoughtline_sim.simulators import SIMULATORS

__all__ = ["SIMULATORS", "Request", "Response", "Simulation"]
