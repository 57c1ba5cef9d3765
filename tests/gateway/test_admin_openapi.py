"""The OpenAPI document: generated from the table of addresses, and true of every answer."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import httpx
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import positive_data_acceptance

from tests.gateway.managed_gateways import TOKEN, Managed, managed
from thoughtline.gateway.admin.answers import Failure
from thoughtline.gateway.admin.openapi import document
from thoughtline.gateway.admin.requests import Row
from thoughtline.gateway.admin.table import TABLE

EXAMPLES = 40
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
DOCUMENT = msgspec.json.decode(document(TABLE))
CHOOSY = {
    ("GET", "/api/cache/reasoning"),
    ("GET", "/api/sessions/{id}"),
    ("GET", "/api/requests"),
    ("GET", "/api/requests/{id}"),
    ("POST", "/api/audit"),
    ("POST", "/api/keys"),
    ("DELETE", "/api/keys"),
    ("GET", "/api/connect"),
}
"""Addresses that may refuse values which their schema allows: a cursor must come from a page, a request must have a
format, keys need a durable store, a client must be on the list."""

schema = schemathesis.openapi.from_dict(DOCUMENT).exclude(path="/api/events")  # which never ends: test_admin_events.py


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Managed]:
    with managed(store_url=f"sqlite:///{tmp_path_factory.mktemp('store')}/kept.db") as one:
        one.ask("list the files", session="known", turns=2)
        yield one


@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_answer_is_as_described(gateway: Managed, case: Case[Any]) -> None:
    """Generated requests, valid and invalid: no 5xx, no undocumented status, type or member, and none without auth."""
    excluded = [positive_data_acceptance] if (case.method, case.path) in CHOOSY else []
    case.call_and_validate(
        base_url=gateway.url, headers=ADMIN, excluded_checks=excluded, allow_redirects=False, timeout=30
    )


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.method} {row.path}")
def test_what_is_said_of_access_holds(gateway: Managed, row: Row) -> None:
    """Without a token: 401 exactly where the document requires one."""
    described = DOCUMENT["paths"][row.path][row.method.lower()]
    needs_token = bool(described["security"]) and {} not in described["security"]
    response = httpx.request(row.method, gateway.url + row.path.replace("{id}", "x"))
    assert (response.status_code == 401) == needs_token
    if needs_token:
        msgspec.json.decode(response.content, type=Failure)


def test_the_document_is_served(gateway: Managed) -> None:
    """The same one, with the package's version."""
    found = gateway.get("/api/openapi.json")
    assert found == DOCUMENT
    assert (found["openapi"], found["info"]["version"]) == ("3.1.0", version("thoughtline"))


def test_every_address_is_described() -> None:
    """Each row has a summary, a unique name, its answer, and errors of the common shape.

    A gateway that is not ready answers in the same shape as one that is.
    """
    operations = {(method, path): row for path, item in DOCUMENT["paths"].items() for method, row in item.items()}
    assert {(row.method.lower(), row.path) for row in TABLE} == set(operations)
    assert len({row["operationId"] for row in operations.values()}) == len(TABLE)
    for (_, path), row in operations.items():
        assert row["summary"]
        for status, response in row["responses"].items():
            if int(status) >= 400 and (path, status) != ("/readyz", "503"):
                failure = {"$ref": "#/components/schemas/Failure"}
                assert response["content"] == {"application/json": {"schema": failure}}


def test_the_members_of_the_cache_are_described() -> None:
    """The members that dashboards use are required, and no others may be added without documentation."""
    schemas = DOCUMENT["components"]["schemas"]
    assert {"toolCallId", "reasoning", "charCount", "createdAt", "expiresAt"} <= set(schemas["CacheEntry"]["required"])
    assert set(schemas["CacheStats"]["required"]) == set(schemas["CacheStats"]["properties"])
    assert schemas["CacheEntry"]["additionalProperties"] is False
