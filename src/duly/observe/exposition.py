"""What was counted, as Prometheus reads it: by this process, or by all that share a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

CONTENT_TYPE = CONTENT_TYPE_LATEST
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that has processes count in one folder; it must be set before they import anything of ours."""


class _OfThisProcess(Collector):
    """Everything that is registered here, also by the program that Duly is part of.

    Without the times at which series began: processes that count together have none.
    """

    def collect(self) -> Iterable[Metric]:
        for metric in REGISTRY.collect():
            metric.samples = [one for one in metric.samples if not one.name.endswith("_created")]
            yield metric


def text(*more: Collector) -> bytes:
    """All numbers, with those of the given collectors."""
    registry = CollectorRegistry(auto_describe=False)
    if os.environ.get(FOLDER):
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    else:
        registry.register(_OfThisProcess())
    for collector in more:
        registry.register(collector)
    return generate_latest(registry)
