"""The audit trail of an org: listed, filtered and exported."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from duly import errors
from duly.features.audit import service
from duly.features.audit.chain import verify
from tests.features.audit.trail import Trail, trail

__all__ = ["trail"]


async def test_entries_are_listed_newest_first_and_filtered(trail: Trail) -> None:
    async def walk(**filters: Any) -> list[str]:
        found, after, first = [], None, True
        while first or after:
            page = await trail.app.audit.list(trail.org, limit=3, after=after, **filters)
            found += [entry.target_id for entry in page.entries]
            after, first = page.after, False
        return found

    everything = await walk()
    assert sorted(everything) == list("12345678")
    assert set(everything[:2]) == {"7", "8"}
    assert sorted(await walk(action="queue.paused")) == ["1", "3", "5", "7"]
    assert await walk(action="queue") == await walk(actor="anna") == await walk(actor="operator:anna")
    assert sorted(await walk(actor="anna")) == list("12345678")
    assert await walk(actor="user:anna") == await walk(actor="operator:anna", action="org") == []
    assert await walk(target_id="5") == ["5"]
    [first] = (await trail.app.audit.list(trail.org, target_id="7")).entries
    assert set(await walk(since=first.occurred_at)) == {"7", "8"}
    assert await walk(since=first.occurred_at + timedelta(hours=1)) == []
    earlier = await walk(until=first.occurred_at)
    assert sorted(earlier) == list("123456")
    assert await walk(until=first.occurred_at, action="queue.paused") == [n for n in earlier if n in "135"]
    assert (first.actor_type, first.actor_id, first.action) == ("operator", "anna", "queue.paused")


async def test_a_filter_scans_a_bounded_number_of_entries_per_page(
    trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_ENTRIES_PER_READ", 2)
    found: list[str] = []
    pages = 0
    after, first = None, True
    while first or after:
        page = await trail.app.audit.list(trail.org, target_id="1", after=after)
        found, pages = [*found, *(entry.target_id for entry in page.entries)], pages + 1
        after, first = page.after, False
    assert found == ["1"]
    assert pages > 3


async def test_an_invalid_cursor_and_a_time_without_a_zone_are_refused(trail: Trail) -> None:
    bad: dict[str, Callable[[], Any]] = {
        "after": lambda: trail.app.audit.list(trail.org, after="?"),
        "since": lambda: trail.app.audit.list(trail.org, since=datetime(2026, 1, 1)),
        "until": lambda: trail.app.audit.list(trail.org, until=datetime(2026, 1, 1)),
        "limit": lambda: trail.app.audit.list(trail.org, limit=0),
    }
    for field, call in bad.items():
        with pytest.raises(errors.ContractError) as caught:
            await call()
        assert caught.value.field == field


async def test_an_export_is_complete_and_can_be_verified_without_the_database(
    trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    await trail.write(9, 10, 11)
    monkeypatch.setattr(service, "_ENTRIES_PER_READ", 2)
    rows = [row async for row in trail.app.audit.export(trail.org)]
    assert [row["kind"] for row in rows] == (["entry"] * 3 + ["seal"]) * 2 + ["entry"] * 2 + ["seal"] + [
        "entry"
    ] * 3
    entries, seals = ([row for row in rows if row["kind"] == kind] for kind in ("entry", "seal"))
    assert verify(entries, seals) == []
    assert len({row["entry_id"] for row in entries}) == 11
