"""Gateways that several tests share: one for each simulator, for the duration of a module."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from tests.gateway.gateways import Running, running
from tests.sim.faces import Case
from tests.sim.served_simulators import served

PROVIDER_OF = {"deepseek-v3.2": "deepseek", "gemini-2.5": "gemini"}
"""The provider rows of simulators for another generation or product line."""

Gateways = Callable[[Case], Running]


def provider_of(case: Case) -> str:
    return PROVIDER_OF.get(case.simulator, case.simulator)


@pytest.fixture(scope="module")
def gateways() -> Iterator[Gateways]:
    """The gateway in front of a case's simulator."""
    known: dict[tuple[str, str | None], Running] = {}
    with contextlib.ExitStack() as stack:

        def gateway_for(case: Case) -> Running:
            where = (case.simulator, case.profile)
            if where not in known:
                url = served(*where).url
                known[where] = stack.enter_context(running({provider_of(case): url}))
            return known[where]

        yield gateway_for
