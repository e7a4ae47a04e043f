"""Members of orgs: set, remove, list, roles."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import psycopg
import pytest

from duly import Actor, Duly, errors
from duly.core.job import SYSTEM_ORG
from duly.core.principal import Role
from duly.features.members.service import Members
from tests.features.api_keys.test_api_keys import audited

ANNA = Actor.operator("anna")
WHY: dict[str, Any] = {"actor": ANNA, "reason": "because"}


@pytest.fixture
def members(app: Duly) -> Members:
    return app.members


async def test_each_change_is_audited_with_the_previous_role_and_a_change_of_nothing_is_not(
    members: Members, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    for _ in range(2):
        first = await members.set(org, "eve", "viewer", **WHY)
    for _ in range(2):
        changed = await members.set(org, "eve", Role.ADMIN, **WHY)
    assert (first.role, changed.role, changed.created_at) == (Role.VIEWER, Role.ADMIN, first.created_at)
    assert await members.role_of(org, "eve") is Role.ADMIN
    assert await members.remove(org, "eve", **WHY) == changed
    assert await members.role_of(org, "eve") is None
    start = (org, "member.set", "operator:anna", "because", "member", "eve")
    assert audited(sql) == [
        (*start, {"role": "viewer", "before": None}),
        (*start, {"role": "admin", "before": "viewer"}),
        (org, "member.removed", *start[2:], {"role": "admin"}),
    ]


async def test_concurrent_changes_each_record_the_right_previous_role(
    members: Members, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    roles = [*Role] * 4
    await asyncio.gather(*(members.set(org, "eve", role, **WHY) for role in roles))
    steps = [(entry[6]["before"], entry[6]["role"]) for entry in audited(sql)]
    left = {None: 1}  # what was entered and left, step by step, is one way from nothing to the last role
    for before, role in steps:
        assert before != role
        left[before] = left.get(before, 0) - 1
        left[role] = left.get(role, 0) + 1
    last = await members.role_of(org, "eve")
    assert {role: n for role, n in left.items() if n} == {last: 1}


async def test_a_member_of_another_org_has_no_role_here(app: Duly, members: Members, org: uuid.UUID) -> None:
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    await members.set(other, "eve", "admin", **WHY)
    assert await members.role_of(org, "eve") is None
    with pytest.raises(errors.UnknownMember):
        await members.remove(org, "eve", **WHY)
    assert (await members.list(org)).members == ()
    assert await members.role_of(other, "eve") is Role.ADMIN
    await app.orgs.suspend(other, **WHY)
    assert await members.role_of(other, "eve") is None


async def test_members_are_listed_page_by_page_whatever_their_ids_are(
    members: Members, org: uuid.UUID
) -> None:
    named = {"eve", "eve adams", "auth0|5f", "Ünal", " ", "a" * 500}
    for user_id in named:
        await members.set(org, user_id, "viewer", **WHY)
    seen, after, pages = [], None, 0
    while pages == 0 or after is not None:
        page = await members.list(org, limit=1, after=after)
        seen, after, pages = [*seen, *(m.user_id for m in page.members)], page.after, pages + 1
    assert (set(seen), len(seen), pages) == (named, 6, 6)
    for wrong in ({"after": "nonsense"}, {"after": "AA=="}, {"limit": True}):
        with pytest.raises(errors.ContractError):
            await members.list(org, **wrong)
    with pytest.raises(errors.UnknownOrg):
        await members.list(uuid.uuid4())


@pytest.mark.parametrize(
    ("changes", "field", "kind"),
    [
        ({"org_id": uuid.UUID(int=7)}, "org_id", errors.UnknownOrg),
        ({"org_id": SYSTEM_ORG}, "org_id", errors.ContractError),
        ({"user_id": "e\0ve"}, "user_id", errors.ContractError),
        ({"role": "owner"}, "role", errors.ContractError),
        ({"reason": ""}, "reason", errors.ContractError),
    ],
)
async def test_an_invalid_argument_is_named_with_a_fix(
    members: Members,
    org: uuid.UUID,
    sql: psycopg.Connection,
    changes: dict[str, Any],
    field: str,
    kind: type[errors.DulyError],
) -> None:
    with pytest.raises(kind) as caught:
        await members.set(**{"org_id": org, "user_id": "eve", "role": "viewer", **WHY, **changes})
    assert (caught.value.field, bool(caught.value.fix)) == (field, True)
    assert audited(sql) == []
