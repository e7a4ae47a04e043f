"""The rules of capacity: from what a job costs and a load to cores, disk and WAL. Pure.

cores at peak    jobs a day x peak / 86,400 s x CPU seconds of a job
cores to have    cores at peak / 0.5
disk             jobs a day x sum over the tables of (bytes of a job x days kept), / 0.8
WAL a day        jobs a day x bytes of WAL of a job
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from duly.core.policy import JobPolicy, Retention

MAX_CORE_USE, MAX_DISK_USE = 0.5, 0.8
"""How much of the machine the load may use at its peak: the rest is for vacuum, reads, and bad days."""
USUAL_PEAK = 4.0
"""The busiest hour, relative to the average one, where it was not measured."""
MIN_JOBS = 10_000
"""Figures of fewer jobs are not used: empty tables and an idle server would count for too much."""
NEVER = datetime.max.replace(tzinfo=UTC)
_DAY = timedelta(days=1)
_MEASURED_SPAN = timedelta(days=31)
_JOBS_TABLE = "job_records"


class DiskGroup(StrEnum):
    """Tables with the same retention."""

    RECORDS = "records"
    EVENTS = "events"
    RESULTS = "results"
    PARTIAL_RESULTS = "partial results"
    LEDGER = "ledger"
    QUEUES = "queues"
    OTHER = "other"


_GROUPS = {
    "job_records": DiskGroup.RECORDS,
    "job_states": DiskGroup.RECORDS,
    "job_ends": DiskGroup.RECORDS,
    "event_batches": DiskGroup.RECORDS,
    "event_log": DiskGroup.EVENTS,
    "job_logs": DiskGroup.EVENTS,
    "webhook_deliveries": DiskGroup.EVENTS,
    "result_finals": DiskGroup.RESULTS,
    "result_partials": DiskGroup.PARTIAL_RESULTS,
    "key_ledger": DiskGroup.LEDGER,
    "ledger": DiskGroup.LEDGER,
    "ready": DiskGroup.QUEUES,
    "scheduled": DiskGroup.QUEUES,
    "claims": DiskGroup.QUEUES,
    "active_runs": DiskGroup.QUEUES,
}
_PER_JOB = (DiskGroup.RECORDS, DiskGroup.EVENTS, DiskGroup.RESULTS, DiskGroup.PARTIAL_RESULTS)


def group_of(table: str) -> DiskGroup:
    """Return the group of a table."""
    return _GROUPS.get(table, DiskGroup.OTHER)


@dataclass(frozen=True, slots=True)
class DiskBytes:
    """Bytes on disk: all, and those of indexes."""

    all: float = 0.0
    indexes: float = 0.0

    def plus(self, other: DiskBytes) -> DiskBytes:
        """Return the sum."""
        return DiskBytes(self.all + other.all, self.indexes + other.indexes)

    def times(self, factor: float) -> DiskBytes:
        """Return the product."""
        return DiskBytes(self.all * factor, self.indexes * factor)


class TableSize(NamedTuple):
    """A table or a partition as the catalog and the statistics of the server describe it."""

    table: str
    rows: float
    size: DiskBytes
    starts_at: datetime = NEVER
    ends_at: datetime = NEVER
    """The range of a partition; a default partition has none."""


@dataclass(frozen=True, slots=True)
class JobCost:
    """The cost of one job from enqueue to end; its handler and its enqueuing application aside."""

    server_us: float
    worker_us: float
    wal_bytes: float
    disk: Mapping[DiskGroup, DiskBytes]
    """Bytes for as long as they are kept."""


@dataclass(frozen=True, slots=True)
class Load:
    """Jobs of a day, and how much busier the busiest hour is than the average one."""

    jobs_per_day: float
    peak: float = USUAL_PEAK

    @property
    def jobs_per_second(self) -> float:
        """Jobs per second in the busiest hour."""
        return self.jobs_per_day * self.peak / _DAY.total_seconds()


@dataclass(frozen=True, slots=True)
class MachineNeed:
    """What a load uses, headroom not included."""

    server_cores: float
    worker_cores: float
    disk: Mapping[DiskGroup, DiskBytes]
    wal_bytes_per_day: float

    @property
    def disk_bytes(self) -> float:
        """Bytes of all tables in the steady state."""
        return sum(size.all for size in self.disk.values())


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine of the server; None is unknown."""

    cores: float | None = None
    disk_bytes: float | None = None
    """What the database and the free space have together."""
    runs_workers: bool = False
    """Whether workers share the cores."""


def retention_days(retention: Retention, ledger_ttl: timedelta | None = None) -> dict[DiskGroup, float]:
    """Return for how many days the rows of each group lie on disk at most.

    A partition is dropped when its last row is old enough: add its length, a week or a month.
    """
    week, month, ttl = 7, 31, ledger_ttl or JobPolicy().ledger_ttl
    return {
        DiskGroup.RECORDS: retention.jobs / _DAY + month,
        DiskGroup.EVENTS: retention.events / _DAY + week,
        DiskGroup.RESULTS: retention.final_results / _DAY + month,
        DiskGroup.PARTIAL_RESULTS: retention.partial_results / _DAY + week,
        DiskGroup.LEDGER: ttl / _DAY,
    }


def compute_need(load: Load, cost: JobCost, days: Mapping[DiskGroup, float]) -> MachineNeed:
    """Return what a load uses in the steady state."""
    return MachineNeed(
        server_cores=load.jobs_per_second * cost.server_us / 1e6,
        worker_cores=load.jobs_per_second * cost.worker_us / 1e6,
        disk={
            group: size.times(load.jobs_per_day * days[group])
            for group, size in cost.disk.items()
            if group in days
        },
        wal_bytes_per_day=load.jobs_per_day * cost.wal_bytes,
    )


def max_jobs_per_day(
    machine: Machine, cost: JobCost, peak: float, days: Mapping[DiskGroup, float], other_bytes: float = 0.0
) -> dict[str, float]:
    """Return for how many jobs a day the cores and the disk suffice, with headroom, if they are known."""
    one = compute_need(Load(1.0, peak), cost, days)
    found = {}
    if machine.cores is not None:
        used = one.server_cores + (one.worker_cores if machine.runs_workers else 0)
        found["cores"] = machine.cores * MAX_CORE_USE / used
    if machine.disk_bytes is not None:
        found["disk"] = max(0.0, machine.disk_bytes * MAX_DISK_USE - other_bytes) / one.disk_bytes
    return found


def whole_cores(cores_at_peak: float) -> int:
    """Return the cores to have: at least one."""
    return max(1, math.ceil(cores_at_peak / MAX_CORE_USE))


@dataclass(frozen=True, slots=True)
class JobTimeline:
    """The jobs of an installation over time, from the estimated rows of the partitions of jobs."""

    tables: Sequence[TableSize]
    installed_at: datetime
    now: datetime

    def between(self, start: datetime, end: datetime) -> float:
        """Estimate the jobs enqueued in a period.

        Within a partition they are spread evenly: over its range, or from the installation on, until now.
        """
        jobs = 0.0
        for one in self.tables:
            last = min(one.ends_at, self.now)
            if one.table != _JOBS_TABLE or one.starts_at >= last:
                continue
            first = self.installed_at if one.starts_at < self.installed_at < last else one.starts_at
            covered = min(last, end) - max(first, start)
            jobs += one.rows * max(0.0, covered / (last - first))
        return jobs

    def since(self, start: datetime) -> float:
        """Estimate the jobs enqueued since then."""
        return self.between(start, self.now)


def disk_by_group(tables: Sequence[TableSize]) -> dict[DiskGroup, DiskBytes]:
    """Return what each group has on disk."""
    found: dict[DiskGroup, DiskBytes] = {group: DiskBytes() for group in DiskGroup}
    for one in tables:
        found[group_of(one.table)] = found[group_of(one.table)].plus(one.size)
    return found


def disk_per_job(history: JobTimeline) -> dict[DiskGroup, DiskBytes] | None:
    """Return the bytes of a job by group, from the partitions of at least a month; None of too few jobs."""
    now, month = history.now, history.now - _MEASURED_SPAN
    begun = [one for one in history.tables if one.starts_at <= now]
    since = min(
        (one.starts_at for one in begun if one.table == _JOBS_TABLE and one.ends_at > month), default=now
    )
    if history.since(since) < MIN_JOBS:
        return None
    found = {group: DiskBytes() for group in _PER_JOB}
    for table in {one.table for one in begun if group_of(one.table) in _PER_JOB}:
        parts = [one for one in begun if one.table == table and one.starts_at >= since]
        jobs = history.since(min((one.starts_at for one in parts), default=now))
        for one in parts if jobs >= 1 else ():
            found[group_of(table)] = found[group_of(table)].plus(one.size.times(1 / jobs))
    for one in history.tables:
        if one.table == "key_ledger" and one.rows >= MIN_JOBS:
            found[DiskGroup.LEDGER] = one.size.times(1 / one.rows)
    return found
