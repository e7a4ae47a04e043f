"""The reference figures: what a job costs, as `./dev bench bill --reference` measured it.

The benchmark writes `reference.json`; `python -m tests.architecture.pages` then updates the tables of
docs/operate/capacity.md.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from duly.features.doctor.capacity import DiskBytes, DiskGroup, JobCost, group_of

REFERENCE_FILE = Path(__file__).with_name("reference.json")


@dataclass(frozen=True, slots=True)
class ReferenceFigures:
    """What one job without a result costs, in batches of hundreds and one at a time."""

    machine: str
    batches: JobCost
    one_by_one: JobCost


def parse_reference(document: Mapping[str, Any]) -> ReferenceFigures:
    """Return the figures of a document that the benchmark wrote."""
    steps, disk = document["steps"], _disk(document["disk"])
    drain, lone = steps["drain by a worker"], ("enqueue, one", "claim, one", "finish, one")
    # Batches of a thousand hardly show the images of pages that a large index needs after each checkpoint.
    images = steps["enqueue into history"]["images"]
    batches = JobCost(
        server_us=steps["enqueue, batches of 1,000"]["server"] + drain["server"],
        worker_us=drain["client"],
        wal_bytes=steps["enqueue into history"]["wal"] + drain["wal"],
        disk=disk,
    )
    one_by_one = JobCost(
        server_us=sum(steps[step]["server"] for step in lone),
        worker_us=sum(steps[step]["client"] for step in lone[1:]),
        wal_bytes=sum(steps[step]["wal"] for step in lone) + images,
        disk=disk,
    )
    return ReferenceFigures(document["machine"], batches, one_by_one)


def _disk(tables: Mapping[str, Any]) -> dict[DiskGroup, DiskBytes]:
    found: dict[DiskGroup, DiskBytes] = defaultdict(DiskBytes)
    for table, sizes in tables.items():
        found[group_of(table)] = found[group_of(table)].plus(DiskBytes(*sizes))
    return {group: size for group, size in found.items() if group not in (DiskGroup.QUEUES, DiskGroup.OTHER)}


@cache
def read_reference() -> ReferenceFigures:
    """Return the figures of this release."""
    return parse_reference(json.loads(REFERENCE_FILE.read_text(encoding="utf-8")))
