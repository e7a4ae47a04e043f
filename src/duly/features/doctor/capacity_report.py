"""The capacity report: what was observed, what a load needs, and what the machine could take. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from duly.core.errors import ContractError
from duly.core.policy import Retention
from duly.features.doctor.capacity import (
    MAX_CORE_USE,
    MAX_DISK_USE,
    MIN_JOBS,
    USUAL_PEAK,
    DiskBytes,
    DiskGroup,
    JobCost,
    JobTimeline,
    Load,
    Machine,
    MachineNeed,
    compute_need,
    disk_by_group,
    disk_per_job,
    max_jobs_per_day,
    retention_days,
)
from duly.features.doctor.reference import read_reference

_DAY = timedelta(days=1)
_MAX_FOREIGN_SHARE = 0.1
"""The part of a period before the installation from which its counters are not those of the installation."""
GIB = 2**30


class FigureSource(StrEnum):
    """Where a figure comes from."""

    MEASURED = "measured"
    """Here, on this installation."""
    REFERENCE = "reference"
    """By `./dev bench bill` on another machine."""
    ASSUMED = "assumed"
    GIVEN = "given"
    """By an option."""
    SETTING = "setting"
    COMPUTED = "computed"
    """From the figures above it."""


class FigureUnit(StrEnum):
    """The unit of a figure."""

    JOBS_PER_DAY = "jobs/day"
    JOBS_PER_SECOND = "jobs/s"
    FACTOR = "x"
    MICROSECONDS = "us"
    BYTES = "bytes"
    BYTES_PER_DAY = "bytes/day"
    CORES = "cores"
    SLOTS = "slots"


@dataclass(frozen=True, slots=True)
class CapacityFigure:
    """One number of the report; None is unknown."""

    name: str
    value: float | None
    unit: FigureUnit
    source: FigureSource
    note: str = ""


@dataclass(frozen=True, slots=True)
class DiskUse:
    """What the tables of one group have on disk, now and in the steady state of the load."""

    group: DiskGroup
    now: DiskBytes
    per_job: DiskBytes | None
    source: FigureSource
    retention_days: float | None
    steady_bytes: float


@dataclass(frozen=True, slots=True)
class CapacityReport:
    """The figures in the order of the calculation, and the disk by group."""

    figures: tuple[CapacityFigure, ...]
    disk: tuple[DiskUse, ...]
    fits: bool | None
    """Whether the machine suffices for the load, as far as it is known; None if nothing of it is."""
    limit: str | None
    """What is exhausted first: cores or disk."""

    def __getitem__(self, name: str) -> CapacityFigure:
        return next(figure for figure in self.figures if figure.name == name)


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """A planned load and a machine, instead of those found here. None is what was found."""

    jobs_per_day: float | None = None
    peak: float | None = None
    cores: float | None = None
    disk_gib: float | None = None

    def check(self) -> None:
        """Raise if a value is out of range."""
        _check("jobs_per_day", self.jobs_per_day, 1, 1e12, "jobs")
        _check("peak", self.peak, 1, 1_440, "times the average: 1 is an even load")
        _check("cores", self.cores, 0.1, 100_000, "cores")
        _check("disk_gib", self.disk_gib, 0.1, 1e9, "GiB")


def _check(name: str, value: float | None, low: float, high: float, unit: str) -> None:
    if value is not None and not low <= value <= high:
        raise ContractError(
            f"{value:g} is out of range", field=name, fix=f"use {low:g} to {high:,.0f} {unit}"
        )


@dataclass(frozen=True, slots=True)
class RecentActivity:
    """What the workers have counted since then, within a day."""

    since: datetime
    ended: int = 0
    runs: int = 0
    run_seconds: float = 0.0
    busiest_hour: int = 0
    busiest_minute: int = 0


@dataclass(frozen=True, slots=True)
class Observation:
    """What the installation shows without reading its large tables."""

    history: JobTimeline
    started_at: datetime
    activity: RecentActivity
    database_bytes: float
    max_wal_bytes: float
    wal_bytes: float
    wal_since: datetime | None
    server_cpu_us: float | None
    """CPU time of the server since its start, if it is on this machine."""
    slots: int
    machine: Machine
    retention: Retention
    ledger_ttl: timedelta | None = None

    def jobs_since(self, start: datetime) -> float | None:
        """Return the jobs since then; None if they are too few, or too much of the time was before them."""
        foreign = max(timedelta(0), self.history.installed_at - start)
        jobs = self.history.since(start)
        too_foreign = foreign > (self.history.now - start) * _MAX_FOREIGN_SHARE
        return None if jobs < MIN_JOBS or too_foreign else jobs


@dataclass(slots=True)
class _Figures:
    """Collects the figures in their order."""

    found: list[CapacityFigure] = field(default_factory=list)

    def add(
        self, name: str, value: float | None, unit: FigureUnit, source: FigureSource, note: str = ""
    ) -> float:
        self.found.append(CapacityFigure(name, value, unit, source, note))
        return value or 0.0


def assess(observed: Observation, plan: CapacityPlan) -> CapacityReport:
    """Compute the report."""
    figures = _Figures()
    load = _load(figures, observed, plan)
    cost, disk_source = _cost(figures, observed)
    days = retention_days(observed.retention, observed.ledger_ttl)
    need = compute_need(load, cost, days)
    disk = tuple(_disk(observed, cost, disk_source, days, need))
    other = sum(use.steady_bytes for use in disk if use.retention_days is None) + observed.max_wal_bytes
    _add_need(figures, observed, load, need, other)
    limits = _limits(figures, observed, plan, cost, load, days, other)
    limit = min(limits, key=limits.__getitem__, default=None)
    fits = limits[limit] >= load.jobs_per_day if limit else None
    return CapacityReport(tuple(figures.found), disk, fits, limit)


def _load(figures: _Figures, observed: Observation, plan: CapacityPlan) -> Load:
    activity, unit = observed.activity, FigureUnit.JOBS_PER_DAY
    hours = max((observed.history.now - activity.since) / timedelta(hours=1), 1)
    found = {"jobs_last_day": float(activity.ended)}
    note = f"ended; busiest hour {activity.busiest_hour:,}, busiest minute {activity.busiest_minute:,}"
    figures.add("jobs_last_day", activity.ended, unit, FigureSource.MEASURED, note)
    for name, average in _monthly(observed).items():
        found[name] = figures.add(
            name, average, unit, FigureSource.MEASURED, "enqueued; estimated by the server"
        )
    if plan.jobs_per_day is None:
        name = max(found, key=found.__getitem__)
        jobs = figures.add("jobs_per_day", found[name], unit, FigureSource.MEASURED, f"the highest: {name}")
    else:
        jobs = figures.add("jobs_per_day", plan.jobs_per_day, unit, FigureSource.GIVEN)
    note = "the busiest hour, relative to the average one"
    if plan.peak is not None:
        peak = figures.add("peak", plan.peak, FigureUnit.FACTOR, FigureSource.GIVEN, note)
    elif activity.ended >= MIN_JOBS:
        measured = max(1.0, activity.busiest_hour * hours / activity.ended)
        peak = figures.add("peak", measured, FigureUnit.FACTOR, FigureSource.MEASURED, note)
    else:
        peak = figures.add("peak", USUAL_PEAK, FigureUnit.FACTOR, FigureSource.ASSUMED, note)
    load = Load(jobs, peak)
    note = "in the busiest hour"
    figures.add(
        "jobs_per_second", load.jobs_per_second, FigureUnit.JOBS_PER_SECOND, FigureSource.COMPUTED, note
    )
    return load


def _monthly(observed: Observation) -> dict[str, float]:
    """Return the jobs a day of this month and of the last one; a day of them counts whole."""
    history = observed.history
    month = history.now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    last = (month - _DAY).replace(day=1)
    periods = {"jobs_per_day_this_month": (month, history.now), "jobs_per_day_last_month": (last, month)}
    return {
        name: history.between(start, end) / max((end - max(start, history.installed_at)) / _DAY, 1.0)
        for name, (start, end) in periods.items()
    }


def _cost(figures: _Figures, observed: Observation) -> tuple[JobCost, Mapping[DiskGroup, FigureSource]]:
    reference = read_reference()
    batched, single = reference.batches, reference.one_by_one
    unit, jobs = FigureUnit.MICROSECONDS, observed.jobs_since(observed.started_at)
    if observed.server_cpu_us is not None and jobs:
        note = f"all of the server's CPU time since {observed.started_at:%Y-%m-%d %H:%M}Z"
        server = figures.add(
            "server_cpu_us_per_job", observed.server_cpu_us / jobs, unit, FigureSource.MEASURED, note
        )
    else:
        note = f"one by one; in batches {batched.server_us:.0f}"
        server = figures.add("server_cpu_us_per_job", single.server_us, unit, FigureSource.REFERENCE, note)
    note = f"one by one; in batches {batched.worker_us:.0f}; handlers not included"
    worker = figures.add("worker_cpu_us_per_job", single.worker_us, unit, FigureSource.REFERENCE, note)
    jobs = observed.jobs_since(observed.wal_since) if observed.wal_since else None
    if observed.wal_since and jobs:
        note = f"all of the server's WAL since {observed.wal_since:%Y-%m-%d %H:%M}Z"
        wal = figures.add(
            "wal_bytes_per_job", observed.wal_bytes / jobs, FigureUnit.BYTES, FigureSource.MEASURED, note
        )
    else:
        note = f"one by one; in batches {batched.wal_bytes:,.0f}"
        wal = figures.add(
            "wal_bytes_per_job", single.wal_bytes, FigureUnit.BYTES, FigureSource.REFERENCE, note
        )
    measured = disk_per_job(observed.history) or {}
    disk = {**batched.disk, **measured}
    sources = {
        group: FigureSource.MEASURED if group in measured else FigureSource.REFERENCE for group in disk
    }
    return JobCost(server, worker, wal, disk), sources


def _disk(
    observed: Observation,
    cost: JobCost,
    sources: Mapping[DiskGroup, FigureSource],
    days: Mapping[DiskGroup, float],
    need: MachineNeed,
) -> Iterator[DiskUse]:
    """Yield the use of each group; what does not grow with the jobs of a day stays as it is."""
    now = disk_by_group(observed.history.tables)
    rest = max(0.0, observed.database_bytes - sum(size.all for size in now.values()))
    now[DiskGroup.OTHER] = now[DiskGroup.OTHER].plus(DiskBytes(rest))
    for group, size in now.items():
        if group in days:
            steady = need.disk.get(group, DiskBytes()).all
            source = sources.get(group, FigureSource.REFERENCE)
            yield DiskUse(group, size, cost.disk.get(group, DiskBytes()), source, days[group], steady)
        else:
            yield DiskUse(group, size, None, FigureSource.MEASURED, None, size.all)


def _add_need(figures: _Figures, observed: Observation, load: Load, need: MachineNeed, other: float) -> None:
    computed, activity = FigureSource.COMPUTED, observed.activity
    headroom = f"at most {MAX_CORE_USE:.0%} of the cores are used"
    for name, cores in (("server_cores", need.server_cores), ("worker_cores", need.worker_cores)):
        figures.add(f"{name}_busy", cores, FigureUnit.CORES, computed, "in the busiest hour")
        figures.add(f"{name}_needed", cores / MAX_CORE_USE, FigureUnit.CORES, computed, headroom)
    if activity.runs:
        seconds = activity.run_seconds / activity.runs
        note = (
            f"busy in the busiest hour, {seconds:.3g} s a job as measured; live workers have {observed.slots}"
        )
        figures.add("busy_slots", load.jobs_per_second * seconds, FigureUnit.SLOTS, computed, note)
    note = (
        f"tables in the steady state, all else as now, max_wal_size of {observed.max_wal_bytes / GIB:.3g} GiB"
    )
    disk = figures.add("disk_bytes", need.disk_bytes + other, FigureUnit.BYTES, computed, note)
    note = f"at most {MAX_DISK_USE:.0%} of the disk is used"
    figures.add("disk_bytes_needed", disk / MAX_DISK_USE, FigureUnit.BYTES, computed, note)
    figures.add("wal_bytes_per_day", need.wal_bytes_per_day, FigureUnit.BYTES_PER_DAY, computed, "to archive")


def _limits(
    figures: _Figures,
    observed: Observation,
    plan: CapacityPlan,
    cost: JobCost,
    load: Load,
    days: Mapping[DiskGroup, float],
    other: float,
) -> dict[str, float]:
    found, shared = observed.machine, "shared with workers" if observed.machine.runs_workers else ""
    cores = plan.cores if plan.cores is not None else found.cores
    given = FigureSource.GIVEN
    source, note = (given, shared) if plan.cores is not None else (FigureSource.MEASURED, shared)
    figures.add("machine_cores", cores, FigureUnit.CORES, source, note if cores else "unknown: use --cores")
    disk = plan.disk_gib * GIB if plan.disk_gib is not None else found.disk_bytes
    source = given if plan.disk_gib is not None else FigureSource.MEASURED
    note = "of the database and free" if disk else "unknown: use --disk-gib"
    figures.add("machine_disk_bytes", disk, FigureUnit.BYTES, source, note)
    machine = Machine(cores, disk, found.runs_workers)
    limits = max_jobs_per_day(machine, cost, load.peak, days, other)
    for name, jobs in limits.items():
        note = f"what the {name} can take, with the same peak and headroom"
        figures.add(f"max_jobs_per_day_by_{name}", jobs, FigureUnit.JOBS_PER_DAY, FigureSource.COMPUTED, note)
    return limits
