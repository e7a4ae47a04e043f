"""`duly worker --metrics-port`: one endpoint for all processes."""

from __future__ import annotations

import os
import signal
import socket
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from duly import Duly
from tests.cli.conftest import Service
from tests.observability.metric_samples import Labels, parse_samples, sum_samples
from tests.worker.working import RETRY_AT_ONCE

Start = Callable[..., AbstractContextManager[Service]]
SHORT = {"DULY_WORKER_LEASE": "1", "DULY_WORKER_HEARTBEAT": "0.2"}


def scrape(address: str) -> dict[tuple[str, Labels], float]:
    response = httpx.get(address, timeout=30)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/plain; version=")
    return parse_samples(response.text)


def declare_jobs(app: Duly) -> dict[str, Any]:
    """Declare the job types of the sample application; the worker processes have the handlers."""

    async def greet(name: str) -> str:
        return name

    async def nothing() -> None: ...

    kinds = {"greet": greet, "sell": nothing, "crash": nothing}
    return {name: app.job(f"shop.{name}", retry=RETRY_AT_ONCE)(handler) for name, handler in kinds.items()}


async def test_metrics_add_up_all_processes_also_ended_ones(
    app: Duly, acting: uuid.UUID, service: Start
) -> None:
    jobs = declare_jobs(app)
    with (
        TemporaryDirectory(dir="/tmp") as short,
        service("--processes", "2", "--metrics-port", "0", **SHORT, TMPDIR=short) as running,
    ):
        address = running.read_until("metrics ")
        base = address.removesuffix("/metrics")
        assert httpx.get(f"{base}/livez").json() == {"status": "ok", "reasons": []}
        for _ in range(2):
            running.read_until("ready ")
        assert httpx.get(f"{base}/readyz").json()["status"] == "ok"
        assert [httpx.get(f"{base}/nothing").status_code, httpx.post(address).status_code] == [404, 405]
        calls = [*(jobs["greet"].call(name) for name in ("Ada", "Bea", "Cleo")), jobs["sell"].call()]
        for handle in await app.enqueue_many(calls):
            await handle.wait(60)
        first = scrape(address)
        assert sum_samples(first, "jobs_succeeded_total", job_type="shop.greet", queue="q:default") == 3
        assert sum_samples(first, "jobs_failed_total", job_type="shop.sell", error_class="Fail") == 1
        assert sum_samples(first, "duly_workers_alive") == 2
        assert sum_samples(first, "duly_database_up") == 1
        await (await jobs["crash"].enqueue()).wait(60)  # ends one of the two processes
        running.read_until("ready ")
        later = scrape(address)
        assert sum_samples(later, "jobs_succeeded_total", job_type="shop.greet") == 3
        assert sum_samples(later, "jobs_started_total", job_type="shop.crash") == 2
        assert sum_samples(later, "duly_lease_losses_total", job_type="shop.crash") == 1
        [folder] = Path(short).glob("duly-metrics-*")
        pids = {int(file.stem.rpartition("_")[2]) for file in folder.glob("*.db")}
        assert 0 in pids  # the merged counts of ended processes
        for pid in pids - {0}:
            os.kill(pid, 0)
        running.process.send_signal(signal.SIGTERM)
        assert running.wait_for_exit() == 0
        assert not list(Path(short).glob("duly-metrics-*"))


def test_socket_paths_fit_with_a_long_temporary_folder(service: Start, tmp_path: Path) -> None:
    deep = tmp_path / ("deep" * 30)
    deep.mkdir()
    with service("--metrics-port", "0", **SHORT, TMPDIR=str(deep)) as running:
        address = running.read_until("metrics ")
        running.read_until("ready ")
        assert httpx.get(address.replace("/metrics", "/readyz")).json()["status"] == "ok"


def test_a_port_in_use_is_an_error_at_once(service: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        port = str(occupied.getsockname()[1])
        with service("--metrics-port", port) as refused:
            assert "metrics_port" in refused.read_error("cannot listen")
            assert refused.wait_for_exit() == 2
