"""Every filter of `duly jobs list`."""

from __future__ import annotations

import uuid

import psycopg

from tests.cli.conftest import Run
from tests.features.overview.sample_jobs import all_of, fill


async def test_the_list_of_jobs_has_an_option_for_every_filter(
    duly: Run, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    fill(sql, org)
    rows = list(all_of(sql, org))
    [job_row] = [row for row in rows if row["outcome"] == "canceled" and row["subject_id"]][:1]
    at = job_row["created_at"].isoformat()
    line = ["jobs", "list", "--org", org, "--json", "--limit", "50"]
    filters = {
        "--status": job_row["status"],
        "--outcome": job_row["outcome"],
        "--type": job_row["job_type"],
        "--queue": job_row["queue"],
        "--subject": job_row["subject_id"],
        "--created-after": at,
        "--metadata": f"customer={job_row['metadata']['customer']}",
    }
    result = await duly(*line, *(arg for pair in filters.items() for arg in pair), "--metadata", "n=1")
    assert [job["job_id"] for job in result.document["jobs"]] == [str(job_row["job_id"])]
    for option, value in {**filters, "--created-before": at, "--freshness": "likely_stale"}.items():
        jobs = (await duly(*line, option, value)).document["jobs"]
        assert 0 < len(jobs) < len(rows), option
        assert (str(job_row["job_id"]) in [job["job_id"] for job in jobs]) == (option in filters), option
    for option, value in (("--metadata", "nothing"), ("--created-before", "noon"), ("--freshness", "rotten")):
        assert (await duly(*line, option, value)).code == 2
    assert (await duly(*line, "--freshness", "terminal")).code == 4


async def test_a_query_finds_jobs_and_changes_all_of_them(
    duly: Run, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    fill(sql, org)
    line = ["jobs", "list", "--org", org, "--json", "--limit", "50", "--match"]
    jobs = (await duly(*line, "status:failed payload.region:DE")).document["jobs"]
    expected = [
        row for row in all_of(sql, org) if row["status"] == "failed" and row["payload"]["region"] == "DE"
    ]
    assert {job["job_id"] for job in jobs} == {str(row["job_id"]) for row in expected} != set()
    assert len((await duly(*line, "type")).document["jobs"]) == 48
    bulk = ["jobs", "bulk", "replay", "--match", "status:failed payload.region:DE"]
    counted = (await duly(*bulk, "--org", org, "--dry-run", "--json")).document
    assert counted["jobs"] == {"count": len(expected), "at_least": False}
    of_all_orgs = await duly(*bulk, "--all-orgs", "--dry-run")
    assert f"failed  {len(expected)}" in of_all_orgs.out
    bulk_job = (await duly(*bulk, "--org", org, "--reason", "again", "--json")).document
    assert bulk_job["created"]
    statement = "select job_type, actor_type from duly.job_records where job_id = %s"
    assert sql.execute(statement, [bulk_job["job_id"]]).fetchone() == ("duly.bulk", "operator")
    for invalid in ([], ["--org", org], ["--org", org, "--all-orgs", "--dry-run"]):
        assert (await duly(*bulk, *invalid)).code == 2
    assert (
        await duly("jobs", "bulk", "cancel", "--org", org, "--match", "colour:red", "--dry-run")
    ).code == 4
