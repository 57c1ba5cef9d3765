"""Verifications of simulators: the real ones, and those with a rule changed."""

from __future__ import annotations

import random

from msgspec.structs import replace

from tests.sim.served_simulators import NOW, listening
from thoughtline.destinations.addresses import rebased
from thoughtline.destinations.catalogue import listed
from thoughtline.providers import host_named
from thoughtline.replay.detection import resolve
from thoughtline.values.destination import Destination
from thoughtline.values.turns import FormatName
from thoughtline.verify.asking import Asker
from thoughtline.verify.checks import Subject, Verification
from thoughtline.verify.reporting import Verified
from thoughtline_sim.app import SimulatorApp
from thoughtline_sim.exchange import Simulator
from thoughtline_sim.simulation import Simulation

BUDGET = 200_000


async def verified(
    simulator: Simulator, provider: str, model: str, api: FormatName, *, budget: int = BUDGET, other: str = ""
) -> tuple[Verified, Asker]:
    """What a verification sees of a simulator under a provider's name."""
    simulation = Simulation(simulator, simulator.profiles[0], random.Random(7).randrange(1000), lambda: NOW)
    url = listening(SimulatorApp(simulation))
    row = host_named(provider)
    assert row is not None
    asked = replace(listed()[provider], base_url=url, bases=rebased(listed()[provider], url))
    target = Destination(provider, url, model, api)
    contract = resolve(target)
    asker = Asker(asked, "sk-test-key", budget, pause_seconds=0)
    try:
        results = await Verification(Subject(row, target, contract, other), asker).run()
    finally:
        asker.close()
    return Verified(target, contract.name, tuple(results)), asker
