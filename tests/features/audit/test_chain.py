"""The chain of the audit trail: what was sealed cannot be changed unnoticed."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duly.features.audit.chain import (
    GENESIS,
    VERSION,
    entry_bytes,
    entry_position,
    make_seals,
    seal_bytes,
    verify,
)

ORG, OTHER = uuid.UUID(int=0xA), uuid.UUID(int=0xB)
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
Rows = list[dict[str, Any]]


def entry(n: int, org: uuid.UUID = ORG, **changes: Any) -> dict[str, Any]:
    return {
        "org_id": org,
        "entry_id": uuid.UUID(int=n),
        "occurred_at": NOON + timedelta(seconds=n),
        "actor_type": "operator",
        "actor_id": "anna",
        "action": "queue.paused",
        "target_type": "queue",
        "target_id": "q:default",
        "reason": "Wartung \N{HAMMER}",
        "request_id": None,
        "correlation_id": None,
        "detail": {"b": 1, "a": [1.5, None, "x"]},
        "commit_xid": str(700 + n),
        **changes,
    }


def sealed(entries: Rows, each: int = 2) -> Rows:
    seals: Rows = []
    for start in range(0, len(entries), each):
        seals += make_seals(seals[-1] if seals else None, entries[start : start + each], NOON)
    return seals


@pytest.fixture
def entries() -> Rows:
    return [entry(n) for n in range(1, 8)]


def kinds(entries: Rows, seals: Rows, **options: Any) -> list[tuple[str, int | None, int | None]]:
    return [
        (found.kind, found.seal_seq, found.entry_id.int if found.entry_id else None)
        for found in verify(entries, seals, **options)
    ]


def test_an_untouched_chain_is_valid_in_any_order_of_its_rows(entries: Rows) -> None:
    seals = sealed(entries)
    assert [seal["seal_seq"] for seal in seals] == [1, 2, 3, 4]
    assert [seal["entry_count"] for seal in seals] == [2, 2, 2, 1]
    assert seals[0]["previous_hash"] == GENESIS
    assert verify(entries, seals) == []
    assert verify(entries[::-1], seals[::-1]) == []
    assert verify([], []) == []


def test_unsealed_entries_are_valid(entries: Rows) -> None:
    assert verify(entries, sealed(entries[:4])) == []
    assert verify(entries, []) == []


def test_every_column_of_an_entry_is_sealed_except_its_position(entries: Rows) -> None:
    seals = sealed(entries)
    for column, other in {
        "actor_type": "user",
        "actor_id": "bob",
        "action": "queue.resumed",
        "target_type": "org",
        "target_id": "q:exports",
        "reason": None,
        "request_id": "r",
        "correlation_id": "c",
        "occurred_at": NOON,
        "detail": {"b": 1, "a": [1.5, None, "y"]},
    }.items():
        changed = [entries[0] | {column: other}, *entries[1:]]
        assert kinds(changed, seals) == [("entry_changed", 1, 1)], column
    assert set(entries[0]) - set(json.loads(entry_bytes(entries[0]).split(b"\n")[1])) == {"commit_xid"}


def test_every_column_of_a_seal_is_part_of_its_hash(entries: Rows) -> None:
    seal = sealed(entries)[0]
    assert set(seal) - set(json.loads(seal_bytes(seal).split(b"\n")[1])) == {"hash"}


def _swap(rows: Rows, one: int, other: int, column: str) -> None:
    rows[one][column], rows[other][column] = rows[other][column], rows[one][column]


TAMPERINGS: dict[str, tuple[Callable[[Rows, Rows], object], list[tuple[str, int | None, int | None]]]] = {
    "an entry is deleted": (lambda entries, _: entries.pop(2), [("entry_missing", 2, 3)]),
    "two are deleted": (
        lambda entries, _: [entries.pop(0), entries.pop(0)],
        [("entry_missing", 1, 1), ("entry_missing", 1, 2)],
    ),
    "one is put between": (
        lambda entries, _: entries.append(entry(99, commit_xid="703")),
        [("entry_added", 2, 99)],
    ),
    "one is put before all": (
        lambda entries, _: entries.append(entry(99, commit_xid="0")),
        [("entry_added", 1, 99)],
    ),
    "one is there twice": (
        lambda entries, _: entries.append(entry(3, occurred_at=NOON + timedelta(seconds=3, microseconds=1))),
        [("entry_added", 2, 3)],
    ),
    "a seal in the middle is deleted": (lambda _, seals: seals.pop(1), [("seal_missing", 2, None)]),
    "the first seal is deleted": (lambda _, seals: seals.pop(0), [("seal_missing", 1, None)]),
    "an entry is moved behind the last seal": (
        lambda entries, _: entries.append(entries.pop(2) | {"commit_xid": "9999"}),
        [("entry_missing", 2, 3)],
    ),
    "two of one seal change places": (
        lambda entries, _: _swap(entries, 2, 3, "commit_xid"),
        [("entry_moved", 2, 3)],
    ),
    "two of different seals change places": (
        lambda entries, _: _swap(entries, 1, 2, "commit_xid"),
        [("entry_missing", 1, 2), ("entry_added", 2, 2)],
    ),
    "two say what the other said": (
        lambda entries, _: _swap(entries, 2, 3, "occurred_at"),
        [("entry_changed", 2, 3), ("entry_changed", 2, 4)],
    ),
    "a seal is changed": (
        lambda _, seals: seals[1].update(sealed_at=NOON + timedelta(days=1)),
        [("seal_changed", 2, None)],
    ),
    "a seal is of the future": (lambda _, seals: seals[3].update(version=2), [("seal_unreadable", 4, None)]),
}


@pytest.mark.parametrize("what", TAMPERINGS)
def test_tampering_is_found_and_located(entries: Rows, what: str) -> None:
    seals = sealed(entries)
    tamper, found = TAMPERINGS[what]
    tamper(entries, seals)
    assert kinds(entries, seals) == found


def test_swapped_seals_are_found(entries: Rows) -> None:
    seals = sealed(entries)
    _swap(seals, 1, 2, "seal_seq")
    assert kinds(entries, seals)[:2] == [("seal_unlinked", 2, None), ("seal_changed", 2, None)]


def test_a_recomputed_seal_does_not_link_to_the_next_one(entries: Rows) -> None:
    seals = sealed(entries)
    entries[2]["reason"] = "another"
    assert kinds(entries, seals) == [("entry_changed", 2, 3)]
    [seals[1]] = make_seals(seals[0], entries[2:4], NOON)
    assert kinds(entries, seals) == [("seal_unlinked", 3, None)]


def test_orgs_have_chains_of_their_own(entries: Rows) -> None:
    theirs = [entry(n, OTHER) for n in range(1, 6)]
    seals = sealed(entries) + sealed(theirs, each=3)
    assert verify(entries + theirs, seals) == []
    theirs[0]["actor_id"] = "eve"
    [found] = verify(entries + theirs, seals)
    assert (found.org_id, found.kind) == (OTHER, "entry_changed")
    # An entry of one org does not stand in for the same entry of another.
    assert entry_bytes(entry(1)) != entry_bytes(entry(1, OTHER))


def test_a_seal_covers_one_month_so_that_retention_takes_whole_seals() -> None:
    newyear = datetime(2027, 1, 1, tzinfo=UTC)
    times = [newyear - timedelta(seconds=2), newyear - timedelta(microseconds=1), newyear, newyear]
    entries = [entry(n, occurred_at=at) for n, at in enumerate(times, 1)]
    old, new = sealed(entries, each=4)
    assert ([i.int for i in old["entry_ids"]], [i.int for i in new["entry_ids"]]) == ([1, 2], [3, 4])
    assert verify(entries[2:], [old, new], retained_since=newyear) == []
    assert kinds(entries[2:], [old, new]) == [("entry_missing", 1, 1), ("entry_missing", 1, 2)]
    assert kinds(entries[3:], [old, new], retained_since=newyear) == [("entry_missing", 2, 3)]
    # What is still there of the old ones is still compared.
    changed = [entries[1] | {"action": "x"}, *entries[2:]]
    assert kinds(changed, [old, new], retained_since=newyear) == [("entry_changed", 1, 2)]


def test_rows_may_have_been_through_json(entries: Rows) -> None:
    def text(value: Any) -> Any:
        if isinstance(value, list):
            return [text(inner) for inner in value]
        if isinstance(value, datetime):
            return value.astimezone().isoformat()
        return (
            value.hex() if isinstance(value, bytes) else str(value) if isinstance(value, uuid.UUID) else value
        )

    seals = sealed(entries)
    plain = [
        json.loads(json.dumps([{k: text(v) for k, v in row.items()} for row in rows]))
        for rows in (entries, seals)
    ]
    assert verify(*plain) == []
    plain[0][3]["detail"] = {}
    assert kinds(*plain) == [("entry_changed", 2, 4)]
    dumped = [{**seal, "hash": f"\\x{seal['hash'].hex()}"} for seal in seals]
    assert verify(entries, dumped) == []


def test_the_bytes_that_are_hashed_never_change() -> None:
    """A change breaks every existing chain: add a version instead."""
    assert VERSION == 1
    one = entry(1)
    assert entry_bytes(one).decode() == (
        'duly.audit.entry.1\n{"action":"queue.paused","actor_id":"anna","actor_type":"operator",'
        '"correlation_id":null,"detail":{"a":[1.5,null,"x"],"b":1},'
        '"entry_id":"00000000-0000-0000-0000-000000000001","occurred_at":"2026-11-15T12:00:01.000000+00:00",'
        '"org_id":"00000000-0000-0000-0000-00000000000a","reason":"Wartung \N{HAMMER}","request_id":null,'
        '"target_id":"q:default","target_type":"queue"}'
    )
    [seal] = make_seals(None, [one], NOON)
    assert seal["hash"].hex() == "f84612cb9103b9a005d79d60ea0a9e46c9c4bc36246bad8a165e2ade875cc6ca"
    assert entry_position(one) == (701, NOON + timedelta(seconds=1), uuid.UUID(int=1))
