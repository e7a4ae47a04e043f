"""The capacity report: its rules, and what it measures on a database."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from duly import Duly
from duly.core.errors import ContractError, SchemaMismatch, StoreUnavailable
from duly.core.policy import Retention
from duly.features.doctor.capacity import (
    MIN_JOBS,
    NEVER,
    DiskBytes,
    DiskGroup,
    JobCost,
    JobTimeline,
    Load,
    Machine,
    TableSize,
    compute_need,
    disk_per_job,
    max_jobs_per_day,
    retention_days,
    whole_cores,
)
from duly.features.doctor.capacity_report import (
    GIB,
    CapacityPlan,
    FigureSource,
    Observation,
    RecentActivity,
    assess,
)
from duly.features.doctor.reference import read_reference
from duly.testing import DatabaseCluster

NOW = datetime(2026, 11, 16, tzinfo=UTC)
INSTALLED = datetime(2026, 1, 1, tzinfo=UTC)
COST = JobCost(server_us=100, worker_us=50, wal_bytes=1_000, disk={DiskGroup.RECORDS: DiskBytes(1_000, 400)})


def month(number: int, rows: float, table: str = "job_records", size: float = 0) -> TableSize:
    ends_at = datetime(2026, number + 1, 1, tzinfo=UTC)
    return TableSize(table, rows, DiskBytes(size, size / 4), datetime(2026, number, 1, tzinfo=UTC), ends_at)


HISTORY = JobTimeline(
    [
        month(9, 300_000, size=300e6),
        month(10, 310_000, size=310e6),
        month(11, 600_000, size=600e6),
        month(10, 0, "event_log", size=155e6),
        month(11, 0, "event_log", size=300e6),
        TableSize("job_records", 0, DiskBytes(8_192)),
        TableSize("key_ledger", 20_000, DiskBytes(4e6, 2e6)),
        TableSize("members", 5, DiskBytes(1e6)),
    ],
    INSTALLED,
    NOW,
)
SEEN = Observation(
    history=HISTORY,
    started_at=NOW - timedelta(days=5),
    activity=RecentActivity(NOW - timedelta(days=1), 48_000, 48_000, 4_800.0, 6_000, 400),
    database_bytes=2e9,
    max_wal_bytes=GIB,
    wal_bytes=1e9,
    wal_since=NOW - timedelta(days=10),
    server_cpu_us=2e7,
    slots=10,
    machine=Machine(cores=4, disk_bytes=100 * GIB),
    retention=Retention(),
)


def test_a_load_needs_cores_disk_and_wal_by_the_documented_formulas() -> None:
    need = compute_need(Load(864_000, peak=3), COST, {DiskGroup.RECORDS: 431})
    assert need.server_cores == pytest.approx(30 * 100e-6)
    assert need.worker_cores == pytest.approx(30 * 50e-6)
    assert need.disk_bytes == pytest.approx(864_000 * 1_000 * 431)
    assert need.disk[DiskGroup.RECORDS].indexes == pytest.approx(need.disk_bytes * 0.4)
    assert need.wal_bytes_per_day == pytest.approx(864e6)


@pytest.mark.parametrize(("busy", "cores"), [(0.0, 1), (0.5, 1), (0.51, 2), (2.0, 4)])
def test_half_of_the_cores_are_headroom(busy: float, cores: int) -> None:
    assert whole_cores(busy) == cores


@pytest.mark.parametrize("shared", [False, True])
def test_the_most_jobs_of_a_machine_are_those_that_need_exactly_it(*, shared: bool) -> None:
    days = {DiskGroup.RECORDS: 431.0}
    machine = Machine(cores=8, disk_bytes=1e12, runs_workers=shared)
    most = max_jobs_per_day(machine, COST, 4, days, other_bytes=1e9)
    by_cores, by_disk = (compute_need(Load(most[name], 4), COST, days) for name in ("cores", "disk"))
    assert by_cores.server_cores + (by_cores.worker_cores if shared else 0) == pytest.approx(8 * 0.5)
    assert by_disk.disk_bytes + 1e9 == pytest.approx(1e12 * 0.8)
    assert max_jobs_per_day(Machine(), COST, 4, days) == {}


def test_rows_lie_on_disk_until_their_whole_partition_is_old() -> None:
    days = retention_days(Retention(events=timedelta(days=60)), timedelta(days=30))
    assert days[DiskGroup.RECORDS] == 400 + 31
    assert days[DiskGroup.EVENTS] == 60 + 7
    assert days[DiskGroup.LEDGER] == 30
    assert retention_days(Retention())[DiskGroup.LEDGER] == 7


def test_jobs_of_a_period_are_estimated_from_the_partitions() -> None:
    assert HISTORY.between(datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)) == 310_000
    # Half of November has passed: its rows belong to that half.
    assert HISTORY.since(NOW - timedelta(days=1)) == pytest.approx(40_000)
    assert HISTORY.between(NOW - timedelta(days=2), NOW - timedelta(days=1)) == pytest.approx(40_000)
    assert HISTORY.since(INSTALLED) == 1_210_000
    recent = replace(HISTORY, installed_at=NOW - timedelta(days=3))
    assert recent.since(NOW - timedelta(days=3)) == pytest.approx(600_000)


def test_bytes_of_a_job_are_those_of_the_last_months() -> None:
    found = disk_per_job(HISTORY)
    assert found is not None
    assert found[DiskGroup.RECORDS].all == pytest.approx(1_000)
    assert found[DiskGroup.RECORDS].indexes == pytest.approx(250)
    assert found[DiskGroup.EVENTS].all == pytest.approx(455e6 / 910_000)
    assert found[DiskGroup.LEDGER] == DiskBytes(200, 100)
    assert found[DiskGroup.RESULTS].all == 0
    assert disk_per_job(replace(HISTORY, tables=[month(11, MIN_JOBS - 1, size=1e9)])) is None
    assert disk_per_job(replace(HISTORY, tables=[])) is None


def test_the_report_computes_from_measured_figures() -> None:
    report = assess(SEEN, CapacityPlan())
    assert report["jobs_last_day"].value == 48_000
    assert report["jobs_per_day_this_month"].value == pytest.approx(40_000)
    assert report["jobs_per_day_last_month"].value == pytest.approx(10_000)
    load, peak = report["jobs_per_day"], report["peak"]
    assert (load.value, load.source, load.note) == (
        48_000,
        FigureSource.MEASURED,
        "the highest: jobs_last_day",
    )
    assert (peak.value, peak.source) == (3.0, FigureSource.MEASURED)
    # 5 days of 40,000 jobs; 10 days of WAL.
    assert report["server_cpu_us_per_job"].value == pytest.approx(2e7 / 200_000)
    assert report["wal_bytes_per_job"].value == pytest.approx(1e9 / 400_000)
    assert (
        report["server_cpu_us_per_job"].source is report["wal_bytes_per_job"].source is FigureSource.MEASURED
    )
    assert report["worker_cpu_us_per_job"].source is FigureSource.REFERENCE
    assert report["server_cores_busy"].value == pytest.approx(48_000 * 3 / 86_400 * 100e-6)
    assert report["busy_slots"].value == pytest.approx(48_000 * 3 / 86_400 * 0.1)
    assert report["wal_bytes_per_day"].value == pytest.approx(48_000 * 2_500)
    tables = 48_000 * (1_000 * 431 + 500 * 37 + 200 * 7)
    other = GIB + 1e6 + (2e9 - sum(table.size.all for table in HISTORY.tables))
    assert report["disk_bytes"].value == pytest.approx(tables + other)
    by_cores = report["max_jobs_per_day_by_cores"].value
    assert by_cores == pytest.approx(4 * 0.5 / (3 / 86_400 * 100e-6))
    assert (report.fits, report.limit) == (True, "disk")


def test_a_planned_load_on_a_planned_machine_replaces_what_was_found() -> None:
    report = assess(SEEN, CapacityPlan(jobs_per_day=10e6, peak=2, cores=16, disk_gib=8_000))
    assert [
        report[name].source for name in ("jobs_per_day", "peak", "machine_cores", "machine_disk_bytes")
    ] == [FigureSource.GIVEN] * 4
    assert report["jobs_per_second"].value == pytest.approx(10e6 * 2 / 86_400)
    assert report.fits is True
    assert assess(SEEN, CapacityPlan(jobs_per_day=10e6)).fits is False
    assert assess(SEEN, CapacityPlan(jobs_per_day=10e6)).limit == "disk"


@pytest.mark.parametrize(
    ("change", "figures"),
    [
        ({"server_cpu_us": None}, {"server_cpu_us_per_job"}),
        ({"wal_since": None}, {"wal_bytes_per_job"}),
        (
            {"started_at": NOW - timedelta(hours=1), "wal_since": NOW - timedelta(hours=1)},
            {"server_cpu_us_per_job", "wal_bytes_per_job"},
        ),
        ({"wal_since": INSTALLED - timedelta(days=365)}, {"wal_bytes_per_job"}),
        ({"history": replace(HISTORY, tables=[])}, {"server_cpu_us_per_job", "wal_bytes_per_job"}),
    ],
    ids=["remote", "unknown since", "few jobs", "before the installation", "new"],
)
def test_what_cannot_be_measured_is_a_reference_figure(change: dict[str, object], figures: set[str]) -> None:
    report = assess(replace(SEEN, **change), CapacityPlan())
    reference = {one.name for one in report.figures if one.source is FigureSource.REFERENCE}
    assert reference == figures | {"worker_cpu_us_per_job"}
    for name in figures:
        assert "in batches" in report[name].note


def test_an_unknown_machine_leaves_the_verdict_open() -> None:
    report = assess(replace(SEEN, machine=Machine()), CapacityPlan())
    assert (report.fits, report.limit) == (None, None)
    assert (report["machine_cores"].value, report["machine_cores"].note) == (None, "unknown: use --cores")
    assert assess(replace(SEEN, machine=Machine()), CapacityPlan(cores=2)).limit == "cores"


def test_a_quiet_day_has_the_usual_peak() -> None:
    quiet = RecentActivity(NOW - timedelta(days=1))
    report = assess(replace(SEEN, activity=quiet), CapacityPlan())
    assert (report["peak"].value, report["peak"].source) == (4.0, FigureSource.ASSUMED)
    assert report["jobs_per_day"].note == "the highest: jobs_per_day_this_month"
    assert "busy_slots" not in {one.name for one in report.figures}


def test_the_reference_figures_name_their_machine_and_are_plausible() -> None:
    reference = read_reference()
    assert "core" in reference.machine
    assert 0 < reference.batches.server_us < reference.one_by_one.server_us
    assert 0 < reference.batches.wal_bytes < reference.one_by_one.wal_bytes
    # The events of its jobs are their records and ends.
    for group in (DiskGroup.RECORDS, DiskGroup.LEDGER):
        size = reference.batches.disk[group]
        assert 0 < size.indexes < size.all


async def test_a_database_shows_its_bytes_of_a_job(
    app: Duly, sql: psycopg.Connection, acting: uuid.UUID
) -> None:
    @app.job("mill.grind")
    async def grind(number: int) -> None: ...

    for batch in range(12):
        await app.enqueue_many([grind.call(batch * 1_000 + number) for number in range(1_000)])
    minute = """
        insert into duly.queue_minutes
        select now() - make_interval(mins => m), 'q:default', gen_random_uuid(), 9, 800, 100, 7, 100, 25,
               '{}', '{}', '{}', '{}'
        from generate_series(1, 12) m"""
    sql.execute(minute)
    sql.execute("analyze duly.job_records; analyze duly.key_ledger")
    report = await app.doctor.capacity()
    assert report["jobs_last_day"].value == 12_000
    assert report["jobs_per_day_this_month"].value == pytest.approx(12_000)
    disk = {use.group: use for use in report.disk}
    for group in (DiskGroup.RECORDS, DiskGroup.EVENTS, DiskGroup.LEDGER):
        use = disk[group]
        assert use.source is FigureSource.MEASURED
        assert use.per_job is not None
        # The empty tables and indexes of the group count as well.
        assert use.per_job.all * 12_000 <= use.now.all * 1.01
        assert 0 < use.per_job.indexes < use.per_job.all < 3_000
    total = sql.execute("select pg_database_size(current_database())").fetchone()
    assert sum(use.now.all for use in report.disk) == pytest.approx(total[0], rel=0.01)


async def test_a_plan_out_of_range_names_the_field_and_the_range(app: Duly) -> None:
    for name, value in (("jobs_per_day", 0), ("peak", 0.9), ("cores", -1), ("disk_gib", float("nan"))):
        with pytest.raises(ContractError) as refused:
            await app.doctor.capacity(CapacityPlan(**{name: value}))
        assert refused.value.field == name
        assert str(refused.value.fix).startswith("use ")


async def test_a_database_that_cannot_be_read_raises(cluster: DatabaseCluster) -> None:
    with pytest.raises(StoreUnavailable):
        await Duly(database_url="postgresql://127.0.0.1:1/none").doctor.capacity()
    with cluster.fresh(migrated=False) as made, pytest.raises(SchemaMismatch):
        await Duly(database_url=made.direct_url).doctor.capacity()


def test_a_table_without_a_range_never_began() -> None:
    assert TableSize("ready", 0, DiskBytes()).starts_at == NEVER > NOW
