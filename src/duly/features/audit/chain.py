"""The hash chain of the audit trail: seals over entries, and their verification. Pure.

A seal lists the entries it covers with their digests, and is hashed together with the hash of the previous
seal. So the seals of an org prove one another, and each entry is proven by its seal, whether retention has
dropped its neighbours or not. Rows are dicts of the columns of `duly.audit_entries` and `duly.audit_seals`,
as any driver returns them.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import groupby
from typing import Any, Literal
from uuid import UUID

VERSION = 1
"""The version of the hashed bytes. To change them, add a version: seals are verified by their own."""
GENESIS = bytes(32)
"""The previous hash of the first seal."""

Row = Mapping[str, Any]
ChainPosition = tuple[int, datetime, UUID]
"""The position of an entry in the chain: its transaction, its time, its id."""
ChainProblemKind = Literal[
    "entry_changed",
    "entry_missing",
    "entry_added",
    "entry_moved",
    "seal_changed",
    "seal_missing",
    "seal_unlinked",
    "seal_unreadable",
    "head_unknown",
]
_TEXT_COLUMNS = (
    *("actor_type", "actor_id", "action", "target_type", "target_id"),
    *("reason", "request_id", "correlation_id"),
)
_INTEGER_COLUMNS = ("seal_seq", "version", "last_commit_xid", "entry_count")


@dataclass(frozen=True, slots=True)
class ChainProblem:
    """A difference between the audit trail and its seals."""

    org_id: UUID
    kind: ChainProblemKind
    seal_seq: int | None
    entry_id: UUID | None
    message: str


def verify(
    entries: Iterable[Row], seals: Iterable[Row], *, retained_since: datetime | None = None
) -> list[ChainProblem]:
    """Return the problems of the chains of all orgs in these rows, which may come in any order.

    Entries that no seal covers yet are valid. Sealed entries before `retained_since` may be missing.
    """
    seals_of: dict[UUID, list[Row]] = defaultdict(list)
    for row in seals:
        seals_of[_uuid(row["org_id"])].append(row)
    entries_of: dict[UUID, list[Row]] = defaultdict(list)
    for row in entries:
        entries_of[_uuid(row["org_id"])].append(row)
    return [
        problem
        for org_id in sorted(seals_of)
        for problem in check_chain(Chain(org_id, retained_since), entries_of[org_id], seals_of[org_id])
    ]


def check_chain(chain: Chain, entries: Sequence[Row], seals: Sequence[Row]) -> Iterator[ChainProblem]:
    """Yield the problems of one chain; its rows may come in any order."""
    ordered = sorted(seals, key=lambda row: int(row["seal_seq"]))
    ends = [seal_position(row) for row in ordered]
    covered: dict[int, list[Row]] = defaultdict(list)
    for row in sorted(entries, key=entry_position):
        covered[bisect_left(ends, entry_position(row))].append(row)
    for index, row in enumerate(ordered):
        yield from chain.check_next(row, covered[index])


class Chain:
    """The chain of one org; checks its seals one by one, from the first."""

    def __init__(self, org_id: UUID, retained_since: datetime | None = None) -> None:
        self.org_id = org_id
        self._retained_since = retained_since
        self.head = GENESIS
        """The hash of the last seal."""
        self.length = 0
        """The number of the last seal."""
        self.sealed = 0
        """The entries that seals cover."""
        self.gone = 0
        """The sealed entries that retention has dropped."""

    def check_next(self, seal: Row, entries: Iterable[Row]) -> Iterator[ChainProblem]:
        """Check the next seal with the entries after the previous seal and up to its own position."""
        seq, version = int(seal["seal_seq"]), int(seal["version"])
        missing = seq != self.length + 1
        if missing:
            yield self._problem("seal_missing", self.length + 1, f"seals up to {seq - 1} are missing")
        elif _bytes(seal["previous_hash"]) != self.head:
            yield self._problem("seal_unlinked", seq, "it does not follow the previous seal")
        if version == VERSION:
            yield from self._check_entries(seal, entries, after_gap=missing)
        else:
            yield self._problem("seal_unreadable", seq, f"unknown version {version}")
        self.head, self.length = _bytes(seal["hash"]), seq

    def _check_entries(self, seal: Row, entries: Iterable[Row], *, after_gap: bool) -> Iterator[ChainProblem]:
        seq = int(seal["seal_seq"])
        if _hash(seal_bytes(seal)) != _bytes(seal["hash"]):
            yield self._problem("seal_changed", seq, "the seal was changed after it was written")
        digests = dict(zip(map(_uuid, seal["entry_ids"]), map(_bytes, seal["digests"]), strict=False))
        order, last = {entry_id: index for index, entry_id in enumerate(digests)}, -1
        self.sealed += len(digests)
        for row in entries:
            entry_id = _uuid(row["entry_id"])
            if entry_id in digests:
                if _hash(entry_bytes(row)) != digests.pop(entry_id):
                    yield self._problem("entry_changed", seq, "it was changed after it was sealed", entry_id)
                elif order[entry_id] < last:
                    yield self._problem(
                        "entry_moved", seq, "it is behind an entry that followed it", entry_id
                    )
                else:
                    last = order[entry_id]
            elif not after_gap:  # else it belongs to a missing seal
                yield self._problem("entry_added", seq, "it was added after its period was sealed", entry_id)
        if self._retained_since is not None and _time(seal["last_occurred_at"]) < self._retained_since:
            self.gone += len(digests)
            return
        for entry_id in digests:
            yield self._problem("entry_missing", seq, "it was sealed and is missing", entry_id)

    def _problem(
        self, kind: ChainProblemKind, seq: int, message: str, entry_id: UUID | None = None
    ) -> ChainProblem:
        return ChainProblem(self.org_id, kind, seq, entry_id, message)


def make_seals(previous: Row | None, entries: Iterable[Row], sealed_at: datetime) -> list[dict[str, Any]]:
    """Return the next seals of an org, for entries in the order of the chain.

    No seal covers more than one month: retention drops months, and so the entries of whole seals.
    """
    seals: list[dict[str, Any]] = []
    for _, month in groupby(entries, key=lambda row: _utc(row["occurred_at"])[:7]):
        seals.append(_make_seal(seals[-1] if seals else previous, list(month), sealed_at))
    return seals


def _make_seal(previous: Row | None, entries: Sequence[Row], sealed_at: datetime) -> dict[str, Any]:
    last_xid, last_at, last_id = entry_position(entries[-1])
    seal: dict[str, Any] = {
        "org_id": _uuid(entries[-1]["org_id"]),
        "seal_seq": int(previous["seal_seq"]) + 1 if previous else 1,
        "version": VERSION,
        "last_commit_xid": last_xid,
        "last_occurred_at": last_at,
        "last_entry_id": last_id,
        "entry_count": len(entries),
        "entry_ids": [_uuid(row["entry_id"]) for row in entries],
        "digests": [_hash(entry_bytes(row)) for row in entries],
        "previous_hash": _bytes(previous["hash"]) if previous else GENESIS,
        "sealed_at": sealed_at,
    }
    return {**seal, "hash": _hash(seal_bytes(seal))}


def entry_position(entry: Row) -> ChainPosition:
    """Return the position of an entry in the chain."""
    return int(entry["commit_xid"]), _time(entry["occurred_at"]), _uuid(entry["entry_id"])


def seal_position(seal: Row) -> ChainPosition:
    """Return the position of the last entry of a seal."""
    return int(seal["last_commit_xid"]), _time(seal["last_occurred_at"]), _uuid(seal["last_entry_id"])


def entry_bytes(entry: Row) -> bytes:
    """Return the hashed bytes of an entry: JSON with sorted keys, times in UTC.

    They leave out its transaction, which is its position, not its content: the seal has the order.
    """
    return _canonical(
        "duly.audit.entry.1",
        {
            "org_id": str(_uuid(entry["org_id"])),
            "entry_id": str(_uuid(entry["entry_id"])),
            "occurred_at": _utc(entry["occurred_at"]),
            **{name: entry[name] for name in _TEXT_COLUMNS},
            "detail": entry["detail"],
        },
    )


def seal_bytes(seal: Row) -> bytes:
    """Return the hashed bytes of a seal: everything except its own hash."""
    return _canonical(
        "duly.audit.seal.1",
        {
            "org_id": str(_uuid(seal["org_id"])),
            **{name: int(seal[name]) for name in _INTEGER_COLUMNS},
            "last_occurred_at": _utc(seal["last_occurred_at"]),
            "last_entry_id": str(_uuid(seal["last_entry_id"])),
            "entry_ids": [str(_uuid(value)) for value in seal["entry_ids"]],
            "digests": [_bytes(value).hex() for value in seal["digests"]],
            "previous_hash": _bytes(seal["previous_hash"]).hex(),
            "sealed_at": _utc(seal["sealed_at"]),
        },
    )


def _canonical(kind: str, value: Mapping[str, Any]) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"{kind}\n{text}".encode()


def _hash(content: bytes) -> bytes:
    return sha256(content).digest()


def _uuid(value: Any) -> UUID:
    return value if isinstance(value, UUID) else UUID(value)


def _time(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)


def _utc(value: Any) -> str:
    return _time(value).astimezone(UTC).isoformat(timespec="microseconds")


def _bytes(value: Any) -> bytes:
    """Return bytes, also from the hexadecimal text in a dump or in JSON."""
    return bytes.fromhex(value.removeprefix("\\x")) if isinstance(value, str) else bytes(value)
