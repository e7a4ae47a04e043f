"""Metrics: their values, bounded labels, and no org in any label."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import uuid
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly import Duly
from duly.core.errors import StoreUnavailable
from duly.features.metrics.service import DatabaseMetrics
from duly.http.application import create_app
from duly.jobs.resources import Resources
from duly.observability import exposition, metrics
from duly.observability.metrics import NONE, OTHER, BatchHistogram, CappedNames, FixedNames
from duly.worker.metrics import jain_index
from tests.http.conftest import caller, key_of
from tests.observability.metric_samples import current_samples, parse_samples, sum_samples
from tests.worker.working import working


def test_the_metrics_and_labels_of_the_specification_exist() -> None:
    expected = {
        "jobs_enqueued": ("job_type", "queue"),
        "jobs_started": ("job_type", "queue"),
        "jobs_succeeded": ("job_type", "queue"),
        "jobs_failed": ("job_type", "queue", "error_class"),
        "jobs_duration_seconds": ("job_type", "queue"),
        "jobs_attempts_histogram": ("job_type",),
        "deadletter": ("job_type", "queue"),
    }
    label_names = {
        metric._name: metric._labelnames
        for metric in vars(metrics).values()
        if hasattr(metric, "_labelnames")
    }
    assert {name: label_names[name] for name in expected} == expected
    for name in expected.keys() - {"jobs_duration_seconds", "jobs_attempts_histogram"}:
        assert f"# TYPE {name}_total counter" in exposition.render().decode()


def test_label_values_beyond_the_cap_become_other() -> None:
    names = CappedNames(2)
    assert [names(name) for name in ("a", "b", "c", "a", "", "d")] == ["a", "b", OTHER, "a", NONE, OTHER]
    assert [FixedNames(("GET",))(name) for name in ("GET", "BREW")] == ["GET", OTHER]


def test_clients_cannot_create_an_unbounded_number_of_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "routes", CappedNames(3))
    monkeypatch.setattr(metrics, "job_types", CappedNames(3))
    before = set(current_samples())
    for number in range(50):
        metrics.observe_request(f"X{number}", f"/made/up/{number}", 404, 0.1)
        metrics.count_enqueued(f"made.up{number}", "q:default", 1)
    new = {
        key
        for key in set(current_samples()) - before
        if key[0].endswith("_count") or key[0] == "jobs_enqueued_total"
    }
    assert {dict(labels)["method"] for name, labels in new if name.startswith("duly_http")} == {OTHER}
    assert len([1 for name, _ in new if name == "jobs_enqueued_total"]) == 4
    assert sum_samples(current_samples(), "jobs_enqueued_total", job_type=OTHER) == 47


@given(st.lists(st.floats(0, 1e4, allow_nan=False), max_size=40))
def test_a_batch_is_observed_like_single_values(values: list[float]) -> None:
    one = BatchHistogram("one", "", registry=None, buckets=(0.1, 1, 10, 1000))
    many = BatchHistogram("many", "", registry=None, buckets=(0.1, 1, 10, 1000))
    for value in values:
        one.observe(value)
    many.observe_all(values)
    [left], [right] = one.collect(), many.collect()
    comparable = [
        [(s.name.partition("_")[2], s.labels, pytest.approx(s.value)) for s in f.samples][:-1]
        for f in (left, right)
    ]
    assert comparable[0] == comparable[1]


@pytest.mark.parametrize(
    ("shares", "index"), [([], 1.0), ([5], 1.0), ([3, 3, 3], 1.0), ([9, 0, 0], 1.0), ([8, 1, 1], 0.505)]
)
def test_fairness_is_jains_index_of_the_served_orgs(shares: list[int], index: float) -> None:
    assert jain_index(shares) == pytest.approx(index, abs=0.001)


def _count_and_end(number: int) -> None:
    metrics.count_enqueued("counted.in_another_process", "q:default", number)
    metrics.count_started("counted.in_another_process", "q:default", [0.2] * number)
    metrics.LOOP_LAG.set(number)
    os._exit(0)


def test_the_counts_of_ended_processes_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(exposition.MULTIPROCESS_DIR, str(tmp_path))
    spawn = multiprocessing.get_context("spawn")
    for number in (1, 2, 3):
        process = spawn.Process(target=_count_and_end, args=(number,))
        process.start()
        process.join()
        assert process.exitcode == 0
        if number == 2:
            exposition.merge_ended(tmp_path)  # merged files can be merged again
    before = parse_samples(exposition.render().decode())
    exposition.merge_ended(tmp_path)
    after = parse_samples(exposition.render().decode())
    assert sum_samples(after, "jobs_enqueued_total", job_type="counted.in_another_process") == 6
    assert (
        sum_samples(after, "duly_jobs_wait_seconds_bucket", job_type="counted.in_another_process", le="0.25")
        == 6
    )
    assert sum_samples(
        after, "duly_jobs_wait_seconds_sum", job_type="counted.in_another_process"
    ) == pytest.approx(1.2)
    assert sum_samples(before, "duly_fairness_index") == 1, "the index of a process without claims is 1"
    gauges = ("duly_event_loop_lag_seconds", "duly_fairness_index")
    gone = {key for key in before if key[0] in gauges}
    assert {key: before[key] for key in before.keys() - gone} == pytest.approx(after)
    assert {file.name for file in tmp_path.iterdir()} == {"counter_0.db", "histogram_0.db"}


async def test_a_scrape_shows_the_state_of_the_database_and_names_no_org(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    @app.job("figured.out")
    async def out(n: int) -> None: ...

    handles = [await out.enqueue(n) for n in range(3)]
    sql.execute("update duly.job_records set run_at = now() - interval '90 s'")
    async with caller(create_app(app), await key_of(app, acting)) as http:
        await http.get(f"/v1/jobs/{handles[0].job_id}")
        await http.get("/v1/nowhere")
        text = (await http.get("/metrics")).text
    samples = parse_samples(text)
    assert sum_samples(samples, "duly_queue_depth", queue="q:default") == 3
    assert 90 <= sum_samples(samples, "duly_queue_oldest_age_seconds", queue="q:default") < 300
    assert sum_samples(samples, "duly_jobs_freshness", state="fresh") == 3
    assert sum_samples(samples, "duly_workers_alive") == 0
    assert sum_samples(samples, "duly_relay_lag_seconds") > 0
    assert not [
        1
        for name, labels in samples
        if "q:deadletter" in dict(labels).values() and name == "duly_queue_depth"
    ]
    assert sum_samples(samples, "duly_pool_connections", pool="app", state="idle") >= 1
    route = {"method": "GET", "route": "/v1/jobs/{job_id}", "status": "2xx"}
    assert sum_samples(samples, "duly_http_request_seconds_count", **route) >= 1
    assert sum_samples(samples, "duly_http_request_seconds_count", route=NONE, status="4xx") >= 1
    assert str(acting) not in text
    assert str(handles[0].job_id) not in text


async def test_database_metrics_are_queried_rarely_and_once_at_a_time(
    app: Duly, acting: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = 0
    resources = app.resources

    async def counting() -> Resources:
        nonlocal queries
        queries += 1
        return await resources()

    monkeypatch.setattr(app, "resources", counting)
    database_metrics = DatabaseMetrics(app, every=3600)
    await asyncio.gather(*(database_metrics.refresh() for _ in range(5)))
    assert queries == 1
    always = DatabaseMetrics(app, every=0)
    await always.refresh()
    await always.refresh()
    assert queries == 3


async def test_without_a_database_a_scrape_reports_that_and_does_not_fail(
    app: Duly, acting: uuid.UUID
) -> None:
    async def raise_unavailable() -> Resources:
        raise StoreUnavailable("no connection")

    database_metrics = DatabaseMetrics(app, every=0)
    await database_metrics.refresh()
    assert sum_samples(parse_samples(exposition.render(database_metrics).decode()), "duly_database_up") == 1
    app.open_with(raise_unavailable)
    await database_metrics.refresh()
    samples = parse_samples(exposition.render(database_metrics).decode())
    assert sum_samples(samples, "duly_database_up") == 0
    assert not [name for name, _ in samples if name == "duly_queue_depth"]
    async with caller(create_app(app), None) as http:
        response = await http.get("/metrics")
    assert (response.status_code, sum_samples(parse_samples(response.text), "duly_database_up")) == (200, 0)


async def test_a_worker_without_metrics_counts_nothing(app: Duly, acting: uuid.UUID) -> None:
    @app.job("uncounted.job")
    async def job() -> None: ...

    handle = await job.enqueue()
    async with working(app, metrics=False) as worker:
        await handle.wait(60)
        assert worker.why_not_ready == []
    assert worker.why_not_ready == ["it is draining"]
    assert sum_samples(current_samples(), "jobs_enqueued_total", job_type="uncounted.job") == 1
    assert sum_samples(current_samples(), "jobs_started_total", job_type="uncounted.job") == 0
    assert sum_samples(current_samples(), "jobs_succeeded_total", job_type="uncounted.job") == 0
