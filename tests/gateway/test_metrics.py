"""Figures for Prometheus: who may read them, and their content."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.gateway.managed_gateways import TOKEN, Managed, managed
from thoughtline.gateway.admin.access import require_metrics_reader
from thoughtline.gateway.admin.requests import AdminRequest
from thoughtline.gateway.journal import OUTCOMES, Line
from thoughtline.gateway.metrics import Metrics
from thoughtline.stores import LayeredStore


@pytest.fixture
def gateway() -> Iterator[Managed]:
    with managed() as one:
        yield one


def figures(text: str) -> dict[tuple[str, ...], float]:
    """Samples by name and labels, with labels sorted by name."""
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return {(sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value for sample in samples}


NAMES = {
    "at": 1.0,
    "request": "r",
    "tenant": "t",
    "method": "POST",
    "route": "generate",
    "provider": "deepseek",
    "format": "openai_chat",
    "model": "m",
}


def line(status: int = 200, **more: float) -> Line:
    return Line(**NAMES, status=status, **more)  # type: ignore[arg-type]  # members of several types


def test_requests_are_counted(gateway: Managed) -> None:
    """By provider, format and class of status; what was done about reasoning, and the durations."""
    gateway.ask("list the files", turns=3)
    gateway.anyone.post("/deepseek/v1/chat/completions", content=b"{", headers={"authorization": "Bearer x"})
    found = figures(gateway.anyone.get("/metrics").text)
    assert found["thoughtline_requests_total", "openai_chat", "deepseek", "2xx"] == 3
    assert found["thoughtline_requests_total", "openai_chat", "deepseek", "4xx"] == 1
    assert found["thoughtline_outcomes_total", "captured", "deepseek"] == 3
    assert found["thoughtline_outcomes_total", "restored", "deepseek"] == 1 + 2
    assert found["thoughtline_own_seconds_count", "openai_chat"] == 4
    assert found["thoughtline_upstream_seconds_count", "deepseek"] >= 3
    assert found["thoughtline_upstream_seconds_sum", "deepseek"] > 0
    assert (found[("thoughtline_store_up",)], found[("thoughtline_streams_open",)]) == (1, 0)
    assert found[("thoughtline_store_hits_total",)] > 0


def test_no_content_is_a_label(gateway: Managed) -> None:
    """Models, tenants, sessions and paths come from outside and are unlimited: none of them is a label."""
    gateway.ask("list the files", key="a-secret-key", session="a-session", model="deepseek-v4-pro")
    gateway.anyone.get("/made-up-path")
    gateway.anyone.post("/v1/chat/completions", json={"model": "made-up/model"})
    text = gateway.anyone.get("/metrics").text
    for word in ("a-secret-key", "a-session", "deepseek-v4-pro", "made-up"):
        assert word not in text


def test_an_open_stream_is_counted(gateway: Managed) -> None:
    """While it lasts, and no longer."""
    seen: list[float] = []
    gauge = gateway.gateway.state.metrics.streams
    gauge.inc = lambda amount=1: seen.append(amount)  # type: ignore[method-assign]  # to see each step
    body = {"model": "deepseek-v4-pro", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    with gateway.anyone.stream(
        "POST", "/deepseek/v1/chat/completions", json=body, headers={"authorization": "Bearer x"}
    ) as response:
        response.read()
    assert gateway.anyone.get("/metrics").status_code == 200  # the stream's last step is over
    assert seen == [1, -1]


def test_each_outcome_is_counted() -> None:
    """Every count of a line has its own total, and zeros make none."""
    metrics = Metrics()
    for number, outcome in enumerate(OUTCOMES, 1):
        metrics.count(line(**{outcome: number}))
    metrics.count(line(502))
    metrics.count(line(0))
    found = figures(metrics.page().decode())
    totals = {key[1]: value for key, value in found.items() if key[0] == "thoughtline_outcomes_total"}
    assert totals == {outcome: number for number, outcome in enumerate(OUTCOMES, 1)}
    classes = {key[3]: value for key, value in found.items() if key[0] == "thoughtline_requests_total"}
    assert classes == {"2xx": len(OUTCOMES), "5xx": 1, "none": 1}


def test_a_failing_store_shows() -> None:
    """It is down, turns wait, and calls have failed: counted once, however often the page is read."""
    with managed(store_url="sqlite:////dev/null/nowhere.db") as gateway:
        gateway.ask("list the files")
        pages = [figures(gateway.anyone.get("/metrics").text) for _ in range(2)]
        store = gateway.gateway.state.store
        assert isinstance(store, LayeredStore)
        assert 1 <= pages[0][("thoughtline_store_failures_total",)] <= store.health.failures
    assert (pages[0][("thoughtline_store_up",)], pages[0][("thoughtline_store_waiting",)]) == (0, 1)
    assert pages[1][("thoughtline_store_lost_total",)] == 0


def test_a_reset_of_the_counts_takes_nothing_back(gateway: Managed) -> None:
    """Deleting everything resets the admin's counts; a total for Prometheus only grows."""
    gateway.ask("list the files", turns=2)
    before = figures(gateway.anyone.get("/metrics").text)[("thoughtline_store_hits_total",)]
    gateway.admin.delete("/api/cache/reasoning")
    after = figures(gateway.anyone.get("/metrics").text)[("thoughtline_store_hits_total",)]
    assert after == before > 0


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded", "x-real-ip", "via"])
def test_a_reverse_proxy_is_not_the_machine_itself(gateway: Managed, header: str) -> None:
    """From loopback without a token; but not through a proxy, unless with the token."""
    asked = {header: "127.0.0.1"}
    assert gateway.anyone.get("/metrics").status_code == 200
    assert gateway.anyone.get("/metrics", headers=asked).status_code == 401
    assert gateway.admin.get("/metrics", headers=asked).status_code == 200


@pytest.mark.parametrize(
    ("peer", "headers", "is_let_in"),
    [
        ("127.0.0.1", {}, True),
        ("::1", {}, True),
        ("10.0.0.9", {}, False),
        ("", {}, False),
        ("10.0.0.9", {b"authorization": f"Bearer {TOKEN}".encode()}, True),
        ("10.0.0.9", {b"authorization": b"Bearer wrong"}, False),
    ],
)
def test_others_need_the_token(gateway: Managed, peer: str, headers: dict[bytes, bytes], is_let_in: bool) -> None:
    """An address of this machine, or the admin token."""
    request = AdminRequest(gateway.gateway.state, "GET", headers, "", {}, b"", peer, "http")
    try:
        gateway.gateway.wait_for(require_metrics_reader(request))
    except Exception as error:
        assert not is_let_in, error
    else:
        assert is_let_in


def test_workers_are_counted_together(tmp_path: Path) -> None:
    """With `PROMETHEUS_MULTIPROC_DIR` one page has the counts of all processes."""
    program = """
import sys
from thoughtline.gateway.journal import Line
from thoughtline.gateway.metrics import Metrics
metrics = Metrics()
for _ in range(int(sys.argv[1])):
    names = {"request": "r", "tenant": "t", "method": "POST", "route": "generate", "provider": "deepseek"}
    metrics.count(Line(at=1.0, **names, format="openai_chat", model="m", status=200, restored=2, own_ms=1.0))
metrics.streams.inc(1)
sys.stdout.write(metrics.page().decode())
"""
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    pages = [
        subprocess.run(
            [sys.executable, "-c", program, count], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for count in ("2", "3")
    ]
    found = figures(pages[1])
    assert found["thoughtline_requests_total", "openai_chat", "deepseek", "2xx"] == 5
    assert found["thoughtline_outcomes_total", "restored", "deepseek"] == 10
    assert found["thoughtline_own_seconds_count", "openai_chat"] == 5
    assert found["thoughtline_build_info", "0.1.0"] == 1
    assert found[("thoughtline_streams_open",)] == 1  # the first process is gone, and its stream with it


def test_the_page_is_what_prometheus_reads(gateway: Managed) -> None:
    """In the text format, with its version, and without a gauge for the creation of each series."""
    response = httpx.get(gateway.url + "/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "_created" not in response.text
