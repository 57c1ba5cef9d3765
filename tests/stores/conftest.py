"""The stores of the common suite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.stores.places import Place, place, sqlite_url

DURABLE = ("sqlite", "redis", "redis-cluster", "postgres")
LAYERED = tuple(f"layered {kind}" for kind in DURABLE)


def _url(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    """Return the address for a kind; a server is started when the first test needs it."""
    fixtures = {"redis": "redis_url", "redis-cluster": "cluster_url", "postgres": "postgres_url"}
    engine = kind.removeprefix("layered ")
    if engine in fixtures:
        return str(request.getfixturevalue(fixtures[engine]))
    return sqlite_url(folder) if engine == "sqlite" else "memory://"


@pytest.fixture(params=("memory", *DURABLE, *LAYERED))
async def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """Every store."""
    async with place(request.param, _url(request.param, request, tmp_path)) as made:
        yield made


@pytest.fixture(params=(*DURABLE, *LAYERED))
async def shared(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """Every store that several processes can open."""
    async with place(request.param, _url(request.param, request, tmp_path)) as made:
        yield made


@pytest.fixture(params=DURABLE)
async def durable(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """Every durable store, without memory in front."""
    async with place(request.param, _url(request.param, request, tmp_path)) as made:
        yield made
