"""For all tests: no law is judged by the clock of a machine that has other things to do; and the servers of stores.

A server is started when the first test asks for it, one for each process that runs tests.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.sim.served_simulators import listening_no_longer
from tests.stores.places import own_database, sqlite_url
from tests.stores.servers import POSTGRES_VARIABLE, REDIS_VARIABLE, Postgres, Valkey, named

pytest.register_assert_rewrite("tests.identity_stories")
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


def pytest_collection_finish() -> None:
    """The tests themselves, a gigabyte of them, are no garbage: looking through them takes seconds each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _data_of_nobody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What commands keep for their user, they keep for nobody: no test meets what this machine's user has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(autouse=True)
def _no_servers_left() -> Iterator[None]:
    """What a test has served ends with it."""
    with listening_no_longer():
        yield


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    url = named(REDIS_VARIABLE)
    if url is not None:
        yield url
        return
    server = Valkey()
    yield server.url
    server.remove()


@pytest.fixture(scope="session")
def cluster_url() -> Iterator[str]:
    server = Valkey(cluster=True)
    yield server.url
    server.remove()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    url = named(POSTGRES_VARIABLE)
    if url is not None:
        yield url
        return
    server = Postgres()
    yield server.url
    server.remove()


@pytest.fixture(params=("sqlite", "redis", "postgres"))
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Every store that several gateways can share, empty and the test's own."""
    if request.param == "sqlite":
        yield sqlite_url(tmp_path)
        return
    with own_database(request.getfixturevalue(f"{request.param}_url")) as url:
        yield url
