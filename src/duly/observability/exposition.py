"""The Prometheus exposition of one process, or of all processes that share a directory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    generate_latest,
    mmap_dict,
    multiprocess,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

CONTENT_TYPE = CONTENT_TYPE_LATEST
MULTIPROCESS_DIR = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that makes processes count in one directory; set it before they import Duly."""


class _ProcessCollector(Collector):
    """Everything registered in this process, also by the program that embeds Duly.

    Without creation times of series: processes that count together have none.
    """

    def collect(self) -> Iterable[Metric]:
        for metric in REGISTRY.collect():
            metric.samples = [one for one in metric.samples if not one.name.endswith("_created")]
            yield metric


def render(*more: Collector) -> bytes:
    """Return all metrics, with those of the given collectors."""
    registry = CollectorRegistry(auto_describe=False)
    if os.environ.get(MULTIPROCESS_DIR):
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    else:
        registry.register(_ProcessCollector())
    for collector in more:
        registry.register(collector)
    return generate_latest(registry)


# These modules of the library are not typed.
_files: Any = mmap_dict
_processes: Any = multiprocess
_KINDS = ("counter", "histogram")
_ENDED = "0"
"""Replaces the pid in the names of merged files: no process has this one."""


def merge_ended(directory: Path) -> None:
    """Merge the files of ended processes into two. No other process may read the directory meanwhile."""
    for pid in {_pid(file) for file in directory.glob("*.db")} - {_ENDED}:
        if not _is_alive(int(pid)):
            _processes.mark_process_dead(pid, str(directory))
            for kind in _KINDS:
                _add(directory / f"{kind}_{pid}.db", directory / f"{kind}_{_ENDED}.db")
            (directory / f"{pid}.sock").unlink(missing_ok=True)


def _pid(file: Path) -> str:
    return file.stem.rpartition("_")[2]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _add(file: Path, to: Path) -> None:
    if not file.exists():
        return
    files = [str(one) for one in (file, to) if one.exists()]
    sums = _processes.MultiProcessCollector.merge(files, accumulate=False)
    merged = _files.MmapedDict(str(to))
    for metric in sums:
        for sample in metric.samples:
            labels = sample.labels
            key = _files.mmap_key(
                metric.name, sample.name, list(labels), list(labels.values()), metric.documentation
            )
            merged.write_value(key, sample.value, 0.0)
    merged.close()
    file.unlink()
