"""API keys: create, rotate, revoke and authenticate."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from duly import Actor, Duly, errors
from duly.core import payload
from duly.core.job import SYSTEM_ORG
from duly.core.principal import Scope
from duly.core.redaction import redact
from duly.features.api_keys import service, store
from duly.features.api_keys.models import NewApiKey
from duly.features.api_keys.service import ApiKeys
from tests.features.schedules.scheduler_clock import NOON, Clock

ANNA = Actor.operator("anna")
WHY: dict[str, Any] = {"actor": ANNA, "reason": "because"}
HOUR = timedelta(hours=1)


@pytest.fixture
def keys(app: Duly) -> ApiKeys:
    return app.api_keys


async def make(keys: ApiKeys, org: uuid.UUID, name: str = "ci", **more: Any) -> NewApiKey:
    return await keys.create(org, name, ["jobs:read"], **more, **WHY)


async def refusal(keys: ApiKeys, text: str) -> tuple[Any, ...]:
    with pytest.raises(errors.Unauthenticated) as caught:
        await keys.authenticate(text)
    error = caught.value
    return type(error), str(error), error.args, error.__cause__, error.__context__


def audited(sql: psycopg.Connection) -> list[tuple[Any, ...]]:
    query = """select org_id, action, actor_type || ':' || actor_id, reason, target_type, target_id, detail
               from duly.audit_entries order by entry_id"""
    return sql.execute(query).fetchall()


async def test_a_key_authenticates_its_org_with_its_scopes(keys: ApiKeys, org: uuid.UUID) -> None:
    scopes = ["jobs:write", Scope.READ, "jobs:read"]
    new = await keys.create(org, "ci", scopes, environment="test", **WHY)
    assert new.key.scopes == ("jobs:read", "jobs:write")
    assert (new.key.created_by, new.key.alive, new.key.last_used_at) == ("operator:anna", True, None)
    assert new.text.startswith(f"duly_test_{new.key.key_id}_")
    principal = await keys.authenticate(new.text)
    assert (principal.org_id, principal.actor, principal.environment) == (
        org,
        Actor.api_key(new.key.key_id),
        "test",
    )
    assert principal.scopes == {Scope.READ, Scope.WRITE}


async def test_a_scope_of_a_later_version_grants_nothing(
    keys: ApiKeys, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    new = await make(keys, org)
    sql.execute("update duly.api_keys set scopes = scopes || '{jobs:own}'::text[]")
    assert (await keys.authenticate(new.text)).scopes == {Scope.READ}


async def test_every_rejected_key_gets_the_same_error(
    app: Duly, keys: ApiKeys, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    clock = Clock(sql, NOON)
    good, revoked, foreign = await make(keys, org), await make(keys, org), await make(keys, org)
    expired = await make(keys, org, expires_at=NOON + HOUR)
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    suspended = await make(keys, other)
    await keys.revoke(org, revoked.key.key_id, **WHY)
    await app.orgs.suspend(other, **WHY)
    clock.advance(HOUR)
    start, secret = good.text[:-48], good.text[-48:]
    wrong = [
        *(revoked.text, expired.text, suspended.text),
        start + foreign.text[-48:],
        start + ("0" if secret[0] != "0" else "1") + secret[1:],
        f"duly_live_{'0' * 20}_{secret}",
        good.text.replace("_live_", "_test_"),
        *(good.text.upper(), good.text + "\n", f" {good.text}", good.text[:-1], f"{good.text}0"),
        *("", "duly_", "\0", "ü" * 10_000, good.key.key_id, secret),
    ]
    assert len({await refusal(keys, text) for text in wrong}) == 1
    assert (await keys.authenticate(good.text)).org_id == org
    await app.orgs.resume(other, **WHY)
    assert (await keys.authenticate(suspended.text)).org_id == other


async def test_the_secret_is_in_no_table_no_log_no_repr_and_no_error(
    keys: ApiKeys, org: uuid.UUID, sql: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    first = await make(keys, org)
    created = [first, await keys.rotate(org, first.key.key_id, **WHY)]
    output = repr(created) + "".join(map(str, created))
    for new in created:
        await keys.authenticate(new.text)
        with pytest.raises(errors.UnknownKey) as caught:  # the whole key in place of its id
            await keys.revoke(org, new.text, **WHY)
        output += f"{caught.value}{caught.value!r}"
    for table in ("api_keys", "audit_entries"):
        output += str(sql.execute(f"select t::text from duly.{table} t").fetchall())
    output += caplog.text
    for new in created:
        secret = new.text[-48:]
        assert new.key.key_id in output
        assert secret not in output
        assert hashlib.sha256(secret.encode()).hexdigest() in output
        assert secret not in redact(f"cannot log in with {new.text}, sorry")
        with pytest.raises(errors.SecretInPayload):
            payload.check_payload({"note": f"use {new.text}"}, 100)


async def test_a_rotated_key_works_beside_its_successor_until_the_overlap_ends(
    keys: ApiKeys, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    clock = Clock(sql, NOON)
    old = await make(keys, org, "ci", environment="test", expires_at=NOON + 10 * HOUR)
    clock.advance(HOUR)
    new = await keys.rotate(org, old.key.key_id, overlap=HOUR, **WHY)
    same = ("name", "scopes", "environment")
    assert [getattr(new.key, n) for n in same] == [getattr(old.key, n) for n in same]
    assert new.key.expires_at == NOON + 11 * HOUR  # as long as the old one was made for
    clock.set(NOON + 2 * HOUR - timedelta(microseconds=1))
    assert {(await keys.authenticate(key.text)).actor.id for key in (old, new)} == {
        old.key.key_id,
        new.key.key_id,
    }
    clock.set(NOON + 2 * HOUR)
    await refusal(keys, old.text)
    assert (await keys.authenticate(new.text)).org_id == org
    with pytest.raises(errors.Conflict, match="has ended"):
        await keys.rotate(org, old.key.key_id, **WHY)
    clock.set(NOON + 11 * HOUR)
    await refusal(keys, new.text)


async def test_a_key_is_revoked_at_once_and_no_rotation_extends_it(
    keys: ApiKeys, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    clock = Clock(sql, NOON)
    old = await make(keys, org)
    await keys.rotate(org, old.key.key_id, overlap=HOUR, **WHY)
    await keys.rotate(org, old.key.key_id, overlap=10 * HOUR, **WHY)
    [stored] = [key for key in (await keys.list(org)).keys if key.key_id == old.key.key_id]
    assert (stored.revoked_at, stored.alive) == (NOON + HOUR, True)
    first = await keys.revoke(org, old.key.key_id, **WHY)
    assert (first.revoked_at, first.alive) == (NOON, False)
    await refusal(keys, old.text)
    clock.advance(HOUR)
    assert await keys.revoke(org, old.key.key_id, **WHY) == first
    assert [entry[1] for entry in audited(sql)].count("key.revoked") == 1


async def test_each_change_is_audited_in_the_org(
    keys: ApiKeys, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    Clock(sql, NOON)
    old = await make(keys, org, expires_at=NOON + 48 * HOUR)
    new = await keys.rotate(org, old.key.key_id, overlap=HOUR, actor=Actor.user("u1"), reason="leaked")
    for _ in range(2):
        await keys.revoke(org, new.key.key_id, **WHY)
    first, second = old.key.key_id, new.key.key_id
    detail = {
        "name": "ci",
        "environment": "live",
        "scopes": ["jobs:read"],
        "expires_at": "2026-11-17T12:00:00Z",
    }
    ends = "2026-11-15T13:00:00Z"
    assert sorted(audited(sql), key=lambda entry: (entry[3], entry[1])) == [
        (org, "key.created", "operator:anna", "because", "key", first, detail),
        (org, "key.revoked", "operator:anna", "because", "key", second, {"name": "ci"}),
        (org, "key.created", "user:u1", "leaked", "key", second, {**detail, "successor_of": first}),
        (org, "key.rotated", "user:u1", "leaked", "key", first,
            {"name": "ci", "successor": second, "revoked_at": ends}),
    ]  # fmt: skip


async def test_the_use_of_a_key_is_recorded_once_a_minute(
    app: Duly, keys: ApiKeys, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    clock, new, noted = Clock(sql, NOON), await make(keys, org), []
    for seconds in (0, 59, 60, 61):
        clock.set(NOON + timedelta(seconds=seconds))
        await keys.authenticate(new.text)
        async with (await app.resources()).database.engine() as conn:
            await store.touch_key(conn, new.key)  # another request that read the key before its first use
        noted.append((await keys.list(org)).keys[0].last_used_at)
    later = NOON + timedelta(seconds=60)
    assert noted == [NOON, NOON, later, later]


async def test_a_lock_or_a_missing_privilege_does_not_delay_authentication(
    keys: ApiKeys, org: uuid.UUID, sql: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    new = await make(keys, org)
    for held in ("select from duly.api_keys for update", "lock table duly.api_keys in share mode"):
        with sql.transaction():
            sql.execute(held)
            async with asyncio.timeout(20):
                assert (await keys.authenticate(new.text)).org_id == org
    sql.execute("revoke update on duly.api_keys from duly_engine")
    await keys.authenticate(new.text)
    assert (await keys.list(org)).keys[0].last_used_at is None
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    assert new.text[-48:] not in caplog.text


async def test_a_key_of_another_org_is_unknown(app: Duly, keys: ApiKeys, org: uuid.UUID) -> None:
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    theirs = await make(keys, other)
    for change in (keys.revoke, keys.rotate):
        messages = set()
        for key_id in (theirs.key.key_id, "0" * 20):
            with pytest.raises(errors.UnknownKey) as caught:
                await change(org, key_id, **WHY)
            messages.add(str(caught.value))
        assert len(messages) == 1
    assert (await keys.list(org)).keys == ()
    assert (await keys.authenticate(theirs.text)).org_id == other


async def test_only_keys_of_the_system_org_have_the_scope_platform(keys: ApiKeys, org: uuid.UUID) -> None:
    new = await keys.create(SYSTEM_ORG, "ops", ["platform"], **WHY)
    assert (await keys.authenticate(new.text)).scopes == {Scope.PLATFORM}
    for owner, scopes in ((org, ["platform"]), (org, [*Scope]), (SYSTEM_ORG, ["platform", "jobs:read"])):
        with pytest.raises(errors.ContractError) as caught:
            await keys.create(owner, "ops", scopes, **WHY)
        assert caught.value.field == "scopes"


async def test_an_org_has_a_maximum_of_live_keys(
    keys: ApiKeys, org: uuid.UUID, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_KEYS_PER_ORG", 3)
    created = await asyncio.gather(*(make(keys, org) for _ in range(5)), return_exceptions=True)
    stored = [new for new in created if isinstance(new, NewApiKey)]
    refused = [error for error in created if isinstance(error, errors.Conflict)]
    assert (len(stored), len(refused), bool(refused[0].fix)) == (3, 2, True)
    with pytest.raises(errors.Conflict):
        await keys.rotate(org, stored[0].key.key_id, **WHY)
    assert (await keys.authenticate(stored[0].text)).org_id == org
    replaced = await keys.rotate(org, stored[0].key.key_id, overlap=timedelta(0), **WHY)
    await keys.revoke(org, replaced.key.key_id, **WHY)
    assert (await make(keys, org)).key.alive


@pytest.mark.parametrize(
    ("changes", "field", "kind"),
    [
        ({"org_id": uuid.UUID(int=7)}, "org_id", errors.UnknownOrg),
        ({"name": ""}, "name", errors.ContractError),
        ({"scopes": []}, "scopes", errors.ContractError),
        ({"scopes": ["jobs:own"]}, "scopes", errors.ContractError),
        ({"environment": "a_b"}, "environment", errors.ContractError),
        ({"environment": "eu1"}, "environment", errors.ContractError),
        ({"expires_at": datetime(2100, 1, 1)}, "expires_at", errors.ContractError),
        ({"expires_at": datetime(2020, 1, 1, tzinfo=UTC)}, "expires_at", errors.ContractError),
        ({"expires_at": datetime.max.replace(tzinfo=UTC)}, "expires_at", errors.ContractError),
        ({"actor": None}, "actor", errors.MissingField),
        ({"reason": None}, "reason", errors.MissingField),
    ],
)
async def test_an_invalid_argument_is_named_with_a_fix(
    keys: ApiKeys,
    org: uuid.UUID,
    sql: psycopg.Connection,
    changes: dict[str, Any],
    field: str,
    kind: type[errors.DulyError],
) -> None:
    with pytest.raises(kind) as caught:
        await keys.create(**{"org_id": org, "name": "ci", "scopes": ["jobs:read"], **WHY, **changes})
    assert (caught.value.field, bool(caught.value.fix)) == (field, True)
    assert (audited(sql), (await keys.list(org)).keys) == ([], ())


async def test_keys_are_listed_in_pages_including_ended_ones(keys: ApiKeys, org: uuid.UUID) -> None:
    created = [await make(keys, org, f"key {n}") for n in range(5)]
    await keys.revoke(org, created[0].key.key_id, **WHY)
    listed, after, pages = [], None, 0
    while pages == 0 or after is not None:
        page = await keys.list(org, limit=2, after=after)
        listed, after, pages = [*listed, *page.keys], page.after, pages + 1
    assert pages == 3
    assert [key.key_id for key in listed] == sorted(new.key.key_id for new in created)
    assert sum(not key.alive for key in listed) == 1
    for wrong in ({"after": "nonsense"}, {"after": "AA=="}, {"after": ""}, {"limit": 0}):
        with pytest.raises(errors.ContractError):
            await keys.list(org, **wrong)
    with pytest.raises(errors.ContractError):
        await keys.rotate(org, created[1].key.key_id, overlap=timedelta(days=91), **WHY)
    with pytest.raises(errors.UnknownOrg):
        await keys.list(uuid.uuid4())
