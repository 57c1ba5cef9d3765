"""The Grafana dashboard in `docs/`: it asks for nothing that `/metrics` does not have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from thoughtline.gateway.journal import Line
from thoughtline.gateway.metrics import Metrics
from thoughtline.values.outcome import COUNTED

DASHBOARD = json.loads((Path(__file__).parents[1] / "docs" / "grafana.json").read_text())


def _expressions() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]


EXPRESSIONS = tuple(_expressions())


@pytest.fixture(scope="module")
def labels() -> dict[str, set[str]]:
    """Every series that a page has once everything has happened, with its labels."""
    metrics = Metrics()
    counts = dict.fromkeys((*COUNTED, "late", "added_chars"), 1)
    metrics.count(
        Line(
            **counts,  # type: ignore[arg-type] # counts by name
            at=0.0,
            request="r",
            tenant="t",
            method="POST",
            route="generate",
            provider="p",
            format="openai_chat",
            model="m",
            status=200,
            avoided=True,
            via="fast",
            handoff="q/n",
            captured=1,
            upstream_ms=1.0,
        )
    )
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(metrics.page().decode()):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_series_and_label_exists(expression: str, labels: dict[str, set[str]]) -> None:
    """A renamed metric would leave a panel empty without a word."""
    names = re.findall(r"thoughtline_\w+", expression)
    assert names
    for name in names:
        assert name in labels
    used = re.findall(r'(\w+)(?:=~|=|!=)"', expression)
    used += [label for group in re.findall(r"by \(([^)]*)\)", expression) for label in re.findall(r"\w+", group)]
    for label in used:
        assert label in set().union(*(labels[name] for name in names))


def test_every_metric_is_shown(labels: dict[str, set[str]]) -> None:
    """What is worth counting is worth a panel; histograms by their buckets, the version nowhere."""
    shown = {name for expression in EXPRESSIONS for name in re.findall(r"thoughtline_\w+", expression)}
    left = {name for name in labels if not name.endswith(("_sum", "_count", "_created", "_info"))}
    assert left <= shown
