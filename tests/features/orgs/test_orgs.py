"""Orgs and their projects: create, rename, suspend, resume, list."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg
import pytest

from duly import Actor, Duly, context, errors
from duly.core.job import SYSTEM_ORG
from duly.features.orgs.models import OrgStatus
from duly.features.orgs.service import Orgs
from tests.features.api_keys.test_api_keys import audited

ANNA = Actor.operator("anna")
WHY: dict[str, Any] = {"actor": ANNA, "reason": "because"}


@pytest.fixture
def orgs(app: Duly) -> Orgs:
    return app.orgs


async def test_each_change_is_audited_in_the_orgs_own_trail_and_a_change_of_nothing_is_not(
    orgs: Orgs, sql: psycopg.Connection
) -> None:
    made = await orgs.create(None, "Acme", **WHY)
    org, project = made.org_id, uuid.uuid4()
    for _ in range(2):
        assert (await orgs.create(org, "Acme", **WHY)).created_at == made.created_at
        await orgs.rename(org, "Acme Inc.", **WHY)
        renamed = await orgs.rename(org, "Acme", **WHY)
    for _ in range(2):
        suspended = await orgs.suspend(org, actor=ANNA, reason="unpaid")
    for _ in range(2):
        resumed = await orgs.resume(org, actor=ANNA, reason="paid")
    for _ in range(2):
        await orgs.create_project(org, project, "Berlin", **WHY)
    assert [o.status for o in (made, renamed, suspended, resumed)] == [
        "active",
        "active",
        "suspended",
        "active",
    ]
    assert await orgs.get(str(org)) == resumed
    who, there = "operator:anna", ("org", str(org))
    longer = (org, "org.renamed", who, "because", *there, {"name": "Acme Inc.", "before": "Acme"})
    shorter = (org, "org.renamed", who, "because", *there, {"name": "Acme", "before": "Acme Inc."})
    assert audited(sql) == [
        (org, "org.created", who, "because", *there, {"name": "Acme"}),
        longer,
        shorter,
        longer,
        shorter,
        (org, "org.suspended", who, "unpaid", *there, {}),
        (org, "org.resumed", who, "paid", *there, {}),
        (org, "project.created", who, "because", "project", str(project), {"name": "Berlin"}),
    ]


async def test_a_suspended_org_cannot_enqueue_and_its_queued_jobs_run(
    app: Duly, orgs: Orgs, org: uuid.UUID
) -> None:
    @app.job("shop.greet")
    async def greet(name: str) -> str:
        return f"Hello {name}"

    with context(org_id=org, actor=Actor.user("u1")):
        waiting = await greet.enqueue("Ada")
        await orgs.suspend(org, **WHY)
        with pytest.raises(errors.UnknownOrg):
            await greet.enqueue("Eve")
    async with app.worker():
        assert await waiting.result(timeout=30) == "Hello Ada"
    await orgs.resume(org, **WHY)
    with context(org_id=org, actor=Actor.user("u1")):
        assert (await greet.enqueue("Eve")).created


async def test_orgs_and_projects_are_listed_page_by_page(orgs: Orgs) -> None:
    made = [(await orgs.create(None, f"Org {n}", **WHY)).org_id for n in range(4)]
    await orgs.suspend(made[0], **WHY)
    for n in range(3):
        await orgs.create_project(made[1], None, f"Project {n}", **WHY)
    seen, after = [], None
    while not seen or after is not None:
        page = await orgs.list(limit=2, after=after)
        seen, after = [*seen, *page.orgs], page.after
    assert [o.org_id for o in seen] == sorted([*made, SYSTEM_ORG])
    assert [o.org_id for o in seen if o.status is OrgStatus.SUSPENDED] == [made[0]]
    first = await orgs.list_projects(made[1], limit=2)
    rest = await orgs.list_projects(made[1], limit=2, after=first.after)
    assert {p.name for p in (*first.projects, *rest.projects)} == {f"Project {n}" for n in range(3)}
    assert (len(first.projects), rest.after) == (2, None)
    assert (await orgs.list_projects(made[2])).projects == ()
    for wrong in ({"after": "nonsense"}, {"after": "YSBi"}, {"limit": 501}):
        with pytest.raises(errors.ContractError):
            await orgs.list(**wrong)


async def test_an_invalid_argument_is_named_with_a_fix(
    orgs: Orgs, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    project, unknown = uuid.uuid4(), uuid.uuid4()
    await orgs.create_project(org, project, "Berlin", **WHY)
    before = audited(sql)
    for call, kind, field in (
        (orgs.create(org, "Other", **WHY), errors.Conflict, "org_id"),
        (orgs.create_project(org, project, "Other", **WHY), errors.Conflict, "project_id"),
        (orgs.suspend(SYSTEM_ORG, **WHY), errors.ContractError, "org_id"),
        (orgs.create(uuid.UUID(int=0), "None", **WHY), errors.ContractError, "org_id"),
        (orgs.rename(org, "", **WHY), errors.ContractError, "name"),
        (orgs.suspend(org, actor=ANNA, reason=None), errors.MissingField, "reason"),  # type: ignore[arg-type]
        (orgs.suspend(unknown, **WHY), errors.UnknownOrg, "org_id"),
        (orgs.create_project(unknown, None, "Berlin", **WHY), errors.UnknownOrg, "org_id"),
        (orgs.list_projects(unknown), errors.UnknownOrg, "org_id"),
        (orgs.get(unknown), errors.UnknownOrg, "org_id"),
    ):
        with pytest.raises(kind) as caught:
            await call
        assert (caught.value.field, bool(caught.value.fix)) == (field, True)
    assert audited(sql) == before
