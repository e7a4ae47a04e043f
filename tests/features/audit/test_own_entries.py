"""Audit entries that an application writes in its own transactions."""

from __future__ import annotations

import uuid

import pytest

from duly import Actor, Duly, errors

ANNA = Actor.operator("anna")


async def test_an_application_writes_entries_in_its_own_transaction(app: Duly, org: uuid.UUID) -> None:
    with pytest.raises(ZeroDivisionError):
        async with app.tenant_session(org) as conn:
            await app.audit.record(conn, org, "invoice.deleted", "i-1", actor=ANNA)
            raise ZeroDivisionError
    async with app.tenant_session(org) as conn:
        await app.audit.record(conn, org, "invoice.deleted", "i-2", actor=ANNA, reason="paid", number=7)
        # What follows is the tenant's again.
        assert await (await conn.execute("select current_user, duly.current_org()")).fetchone() == (
            "duly_tenant",
            org,
        )
    [entry] = (await app.audit.list(org)).entries
    assert (entry.action, entry.target_type, entry.target_id) == ("invoice.deleted", "invoice", "i-2")
    assert (entry.reason, entry.detail) == ("paid", {"number": 7})
    for action in ("queue.paused", "Invoice.x", ""):
        async with app.tenant_session(org) as conn:
            with pytest.raises(errors.DulyError) as refused:
                await app.audit.record(conn, org, action, "1", actor=ANNA)
            assert refused.value.field == "action"
