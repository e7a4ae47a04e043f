"""Every filter of `duly jobs list`."""

from __future__ import annotations

import uuid

import psycopg

from tests.cli.conftest import Run
from tests.features.overview.filled import all_of, fill


async def test_the_list_of_jobs_has_an_option_for_every_filter(
    duly: Run, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    fill(sql, org)
    rows = list(all_of(sql, org))
    [one] = [row for row in rows if row["outcome"] == "canceled" and row["subject_id"]][:1]
    at = one["created_at"].isoformat()
    line = ["jobs", "list", "--org", org, "--json", "--limit", "50"]
    told = {
        "--status": one["status"],
        "--outcome": one["outcome"],
        "--type": one["job_type"],
        "--queue": one["queue"],
        "--subject": one["subject_id"],
        "--created-after": at,
        "--metadata": f"customer={one['metadata']['customer']}",
    }
    found = await duly(*line, *(word for pair in told.items() for word in pair), "--metadata", "n=1")
    assert [job["job_id"] for job in found.document["jobs"]] == [str(one["job_id"])]
    for option, value in {**told, "--created-before": at, "--freshness": "likely_stale"}.items():
        some = (await duly(*line, option, value)).document["jobs"]
        assert 0 < len(some) < len(rows), option
        assert (str(one["job_id"]) in [job["job_id"] for job in some]) == (option in told), option
    for option, value in (("--metadata", "nothing"), ("--created-before", "noon"), ("--freshness", "rotten")):
        assert (await duly(*line, option, value)).code == 2
    assert (await duly(*line, "--freshness", "terminal")).code == 4


async def test_a_query_finds_jobs_and_changes_all_of_them(
    duly: Run, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    fill(sql, org)
    line = ["jobs", "list", "--org", org, "--json", "--limit", "50", "--match"]
    found = (await duly(*line, "status:failed payload.region:DE")).document["jobs"]
    wanted = [
        row for row in all_of(sql, org) if row["status"] == "failed" and row["payload"]["region"] == "DE"
    ]
    assert {one["job_id"] for one in found} == {str(row["job_id"]) for row in wanted} != set()
    assert len((await duly(*line, "type")).document["jobs"]) == 48
    bulk = ["jobs", "bulk", "replay", "--match", "status:failed payload.region:DE"]
    seen = (await duly(*bulk, "--org", org, "--dry-run", "--json")).document
    assert seen["jobs"] == {"count": len(wanted), "at_least": False}
    everywhere = await duly(*bulk, "--all-orgs", "--dry-run")
    assert f"failed  {len(wanted)}" in everywhere.out
    made = (await duly(*bulk, "--org", org, "--reason", "again", "--json")).document
    assert made["created"]
    said = "select job_type, actor_type from duly.job_records where job_id = %s"
    assert sql.execute(said, [made["job_id"]]).fetchone() == ("duly.bulk", "operator")
    for wrong in ([], ["--org", org], ["--org", org, "--all-orgs", "--dry-run"]):
        assert (await duly(*bulk, *wrong)).code == 2
    assert (
        await duly("jobs", "bulk", "cancel", "--org", org, "--match", "colour:red", "--dry-run")
    ).code == 4
