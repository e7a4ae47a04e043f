"""Every operation of the client, against the real service and a real worker."""

from __future__ import annotations

import io
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from duly import AsyncClient, Duly, Outcome, Status, errors
from duly.client import JobStatus
from tests.client.conftest import Gate
from tests.worker.working import WAIT_TIMEOUT, working


async def test_a_client_waits_for_a_job_and_reads_its_results(
    client: AsyncClient, app: Duly, gate: Gate, tmp_path: Path
) -> None:
    progress: list[JobStatus] = []

    async def on_progress(job: JobStatus) -> None:
        progress.append(job)
        if job.partial_count == 1:
            gate.opened.set()

    job = await client.submit("report.build", {"regions": ["DE", "FRA"]}, subject_id="order-7", expedite=True)
    waiting = await job.status()
    assert (waiting.status, waiting.subject_id, waiting.priority) == (Status.QUEUED, "order-7", 50)
    assert await job.partials() == []
    async with working(app):
        ended = await job.wait(WAIT_TIMEOUT, on_progress)
    assert (ended.outcome, progress[0].status, progress[-1].stage) == (
        Outcome.SUCCEEDED,
        Status.QUEUED,
        ended.stage,
    )
    assert len({one.stage for one in progress}) == len(progress) >= 3
    assert await job.result() == {"DE": 2, "FRA": 3}
    assert [(one.chunk_key, one.value) for one in await job.partials()] == [("DE", 2), ("FRA", 3)]
    assert ended.result_id is not None
    final = await client.result_of(ended.result_id)
    first = await client.result_of(str(ended.result_id), seq=1)
    assert final.snapshot is not None
    assert first.snapshot is not None
    assert (final.snapshot.kind, first.snapshot.value) == ("final", 2)
    [file] = await job.artifacts()
    assert (file.content_type, file.size) == ("text/plain", 100_000)
    assert await job.download(file.name) == b"x" * 100_000
    saved = await job.save(file.name, tmp_path / "report.txt")
    assert saved.read_bytes() == b"x" * 100_000
    with pytest.raises(errors.UnknownArtifact):
        await job.save("no.txt", tmp_path / "no.txt")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["report.txt"]


async def test_the_result_of_a_failed_or_canceled_job_raises(client: AsyncClient, app: Duly) -> None:
    failing, canceled = await client.submit_many([{"job_type": "report.refuse"}] * 2)
    with pytest.raises(errors.WaitTimeout):
        await canceled.wait(0)
    with pytest.raises(errors.WaitTimeout):
        await canceled.wait(timedelta(seconds=0.05))
    subscription_id = await canceled.subscribe(outcomes=["canceled"], locale="de")
    assert subscription_id == await canceled.subscribe(outcomes=["canceled"], locale="de")
    [listed] = (await client.request("GET", "/v1/subscriptions"))["subscriptions"]
    assert (listed["subscription_id"], listed["channel"]) == (str(subscription_id), "in_app")
    first, again = await canceled.cancel("not needed"), await canceled.cancel("not needed")
    assert first.status == again.status == Status.CANCELED
    with pytest.raises(errors.JobCanceled, match="not needed"):
        await canceled.result()
    async with working(app):
        with pytest.raises(errors.JobFailed, match="page 3 is missing") as failed:
            await failing.result(WAIT_TIMEOUT)
    assert failed.value.field == "report.incomplete"
    with pytest.raises(errors.AlreadyFinished):
        await failing.cancel("too late")


async def test_problem_responses_raise_the_errors_of_core(client: AsyncClient) -> None:
    with pytest.raises(errors.UnknownJob) as unknown:
        await client.job(uuid.uuid4()).status()
    assert (unknown.value.status, unknown.value.field) == (404, "job_id")
    assert unknown.value.fix == "check the id and the org"
    assert unknown.value.request_id
    with pytest.raises(errors.UnknownJobType):
        await client.submit("no.such")
    with pytest.raises(errors.ContractError) as invalid:
        await client.submit("report.build", {"regions": 7}, correlation_id="c-1")
    assert (invalid.value.status, invalid.value.field) == (422, "payload.regions")
    with pytest.raises(errors.ContractError) as later:
        await client.submit("report.refuse", priorty=7)  # type: ignore[call-arg]
    assert (later.value.code, later.value.field) == ("request.invalid", "priorty")
    await client.submit("report.refuse", idempotency_key="k-1")
    with pytest.raises(errors.KeyReused):
        await client.submit("report.refuse", {"message": "other"}, idempotency_key="k-1")
    with pytest.raises(errors.ContractError) as invalid_key:
        await client.submit("report.refuse", idempotency_key="schlüssel")
    assert invalid_key.value.field == "idempotency_key"


async def test_jobs_are_listed_page_by_page(client: AsyncClient) -> None:
    since = datetime.now(UTC) - timedelta(minutes=1)
    submitted = await client.submit_many(
        {"job_type": "report.refuse", "subject_id": str(n % 2), "metadata": {"half": n % 2}}
        for n in range(210)
    )
    assert len({job.job_id for job in submitted}) == 210
    listed = [job.job_id async for job in client.jobs(status=Status.QUEUED, created_after=since)]
    assert sorted(listed) == sorted(job.job_id for job in submitted)
    half = [job.subject_id async for job in client.jobs(metadata={"half": 1}, job_type="report.refuse")]
    assert half == ["1"] * 105
    with pytest.raises(errors.ContractError) as unknown:
        await anext(client.jobs(colour="red"))  # type: ignore[call-arg]
    assert unknown.value.field == "colour"


async def test_bytes_paths_and_open_files_are_uploaded(client: AsyncClient, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"content")
    sources = (b"content", tmp_path / "a.txt", str(tmp_path / "a.txt"), io.BytesIO(b"content"))
    [reference] = {await client.upload(source) for source in sources}
    assert reference.startswith("blob:")


async def test_request_calls_any_route_by_its_path(client: AsyncClient) -> None:
    body = {"job_type": "report.refuse", "scheduled_for": None}
    accepted = await client.request("post", "/v1/jobs", json=body, idempotency_key="k-1")
    assert await client.request("GET", f"/v1/jobs/{accepted['job_id']}/events", params={"after": 1}) == {
        "events": [],
        "after": 1,
    }
    for elsewhere in ("https://elsewhere.test/v1/jobs", "//elsewhere.test/v1/jobs", "v1/jobs"):
        with pytest.raises(errors.ContractError):
            await client.request("GET", elsewhere)
