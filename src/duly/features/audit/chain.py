"""The audit trail as a chain: what a seal says of its entries, and what must hold of them for ever after.

A seal lists the entries it covers with their digests, and is hashed together with the hash of the seal before
it. So the seals of an org prove one another, and each entry is proven by its seal, whether its neighbours are
still kept or not. Rows are dicts of the columns of `duly.audit_entries` and `duly.audit_seals`, as any driver
returns them.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import groupby
from typing import Any, Literal
from uuid import UUID

VERSION = 1
"""How entries and seals are hashed. Seals of older versions are verified as they were made."""
GENESIS = bytes(32)
"""What comes before the first seal."""

Row = Mapping[str, Any]
Place = tuple[int, datetime, UUID]
"""Where an entry lies in the chain: by its transaction, its time, its id."""
Kind = Literal[
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
_TEXTS = ("actor_type", "actor_id", "action", "target_type", "target_id")
_OPTIONAL = ("reason", "request_id", "correlation_id")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not as it was sealed."""

    org_id: UUID
    kind: Kind
    seal_seq: int | None
    entry_id: UUID | None
    message: str


def verify(
    entries: Iterable[Row], seals: Iterable[Row], *, kept_since: datetime | None = None
) -> list[Problem]:
    """Everything that is wrong with the chains of all orgs in these rows; their order does not matter.

    Entries that no seal covers yet are right. Sealed entries before `kept_since` may be gone.
    """
    chains: dict[UUID, list[Row]] = defaultdict(list)
    for row in seals:
        chains[_uuid(row["org_id"])].append(row)
    trails: dict[UUID, list[Row]] = defaultdict(list)
    for row in entries:
        trails[_uuid(row["org_id"])].append(row)
    return [
        problem
        for org_id in sorted(chains)
        for problem in walk(Chain(org_id, kept_since=kept_since), trails[org_id], chains[org_id])
    ]


def walk(chain: Chain, entries: Sequence[Row], seals: Sequence[Row]) -> Iterator[Problem]:
    """Everything that is wrong with one chain, whose rows come in any order."""
    in_order = sorted(seals, key=lambda row: int(row["seal_seq"]))
    ends = [end_of(row) for row in in_order]
    covered: dict[int, list[Row]] = defaultdict(list)
    for row in sorted(entries, key=place_of):
        covered[bisect_left(ends, place_of(row))].append(row)
    for number, row in enumerate(in_order):
        yield from chain.take(row, covered[number])


class Chain:
    """The chain of one org, walked from its first seal."""

    def __init__(self, org_id: UUID, *, kept_since: datetime | None = None) -> None:
        self.org_id = org_id
        self._kept_since = kept_since
        self.head = GENESIS
        """The hash of the last seal."""
        self.length = 0
        """The number of the last seal."""
        self.sealed = 0
        """Entries that seals cover."""
        self.gone = 0
        """Those of them that are no longer kept."""

    def take(self, seal: Row, entries: Iterable[Row]) -> Iterator[Problem]:
        """The next seal, with the entries that lie after the seal before it and up to its own end."""
        seq, version = int(seal["seal_seq"]), int(seal["version"])
        missing = seq != self.length + 1
        if missing:
            yield self._problem("seal_missing", self.length + 1, f"seals up to {seq - 1} are missing")
        elif _bytes(seal["previous_hash"]) != self.head:
            yield self._problem("seal_unlinked", seq, "it does not follow the seal before it")
        if version not in _HASHES:
            yield self._problem(
                "seal_unreadable", seq, f"it is of version {version}, which is not known here"
            )
        else:
            yield from self._check(seal, entries, _HASHES[version], orphans=missing)
        self.head, self.length = _bytes(seal["hash"]), seq

    def _check(
        self, seal: Row, entries: Iterable[Row], hashes: _Hashes, *, orphans: bool
    ) -> Iterator[Problem]:
        seq = int(seal["seal_seq"])
        if hashes.of_seal(seal) != _bytes(seal["hash"]):
            yield self._problem("seal_changed", seq, "the seal itself is not as it was made")
        left = dict(zip(map(_uuid, seal["entry_ids"]), map(_bytes, seal["digests"]), strict=False))
        order, last = {entry_id: place for place, entry_id in enumerate(left)}, -1
        self.sealed += len(left)
        for row in entries:
            found = _uuid(row["entry_id"])
            if found in left:
                if hashes.of_entry(row) != left.pop(found):
                    yield self._problem("entry_changed", seq, "it is not as it was sealed", found)
                elif order[found] < last:
                    yield self._problem("entry_moved", seq, "it lies behind one that came after it", found)
                else:
                    last = order[found]
            elif not orphans:  # else they are the missing seals'
                yield self._problem("entry_added", seq, "it was not there when its time was sealed", found)
        if self._kept_since is not None and _moment(seal["last_occurred_at"]) < self._kept_since:
            self.gone += len(left)
            return
        for entry_id in left:
            yield self._problem("entry_missing", seq, "it was sealed, and is not there", entry_id)

    def _problem(self, kind: Kind, seq: int, message: str, entry_id: UUID | None = None) -> Problem:
        return Problem(self.org_id, kind, seq, entry_id, message)


def make_seals(previous: Row | None, entries: Iterable[Row], sealed_at: datetime) -> list[dict[str, Any]]:
    """The next seals of an org, for entries in the order of the chain.

    No seal covers more than one month: retention drops by the month, and so takes the entries of whole seals.
    """
    made: list[dict[str, Any]] = []
    for _, month in groupby(entries, key=lambda row: _utc(row["occurred_at"])[:7]):
        made.append(_seal(made[-1] if made else previous, list(month), sealed_at))
    return made


def _seal(previous: Row | None, entries: Sequence[Row], sealed_at: datetime) -> dict[str, Any]:
    last_xid, last_at, last_id = place_of(entries[-1])
    seal: dict[str, Any] = {
        "org_id": _uuid(entries[-1]["org_id"]),
        "seal_seq": int(previous["seal_seq"]) + 1 if previous else 1,
        "version": VERSION,
        "last_commit_xid": last_xid,
        "last_occurred_at": last_at,
        "last_entry_id": last_id,
        "entry_count": len(entries),
        "entry_ids": [_uuid(row["entry_id"]) for row in entries],
        "digests": [_HASHES[VERSION].of_entry(row) for row in entries],
        "previous_hash": _bytes(previous["hash"]) if previous else GENESIS,
        "sealed_at": sealed_at,
    }
    return {**seal, "hash": _HASHES[VERSION].of_seal(seal)}


def place_of(entry: Row) -> Place:
    """Where an entry lies in the chain."""
    return int(entry["commit_xid"]), _moment(entry["occurred_at"]), _uuid(entry["entry_id"])


def end_of(seal: Row) -> Place:
    """Where the last entry of a seal lies."""
    return int(seal["last_commit_xid"]), _moment(seal["last_occurred_at"]), _uuid(seal["last_entry_id"])


def entry_bytes(entry: Row) -> bytes:
    """What an entry says, in the same bytes wherever they are made: JSON with sorted keys, times in UTC.

    Its transaction is left out: that is where it lies, not what it says. The seal has the order.
    """
    return _canonical(
        "duly.audit.entry.1",
        {
            "org_id": str(_uuid(entry["org_id"])),
            "entry_id": str(_uuid(entry["entry_id"])),
            "occurred_at": _utc(entry["occurred_at"]),
            **{name: entry[name] for name in (*_TEXTS, *_OPTIONAL)},
            "detail": entry["detail"],
        },
    )


def seal_bytes(seal: Row) -> bytes:
    """Everything a seal says but its own hash."""
    return _canonical(
        "duly.audit.seal.1",
        {
            "org_id": str(_uuid(seal["org_id"])),
            **{name: int(seal[name]) for name in ("seal_seq", "version", "last_commit_xid", "entry_count")},
            "last_occurred_at": _utc(seal["last_occurred_at"]),
            "last_entry_id": str(_uuid(seal["last_entry_id"])),
            "entry_ids": [str(_uuid(value)) for value in seal["entry_ids"]],
            "digests": [_bytes(value).hex() for value in seal["digests"]],
            "previous_hash": _bytes(seal["previous_hash"]).hex(),
            "sealed_at": _utc(seal["sealed_at"]),
        },
    )


@dataclass(frozen=True, slots=True)
class _Hashes:
    of_entry: Callable[[Row], bytes]
    of_seal: Callable[[Row], bytes]


_HASHES = {
    1: _Hashes(
        lambda entry: sha256(entry_bytes(entry)).digest(),
        lambda seal: sha256(seal_bytes(seal)).digest(),
    )
}


def _canonical(kind: str, value: Mapping[str, Any]) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"{kind}\n{text}".encode()


def _uuid(value: Any) -> UUID:
    return value if isinstance(value, UUID) else UUID(value)


def _moment(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)


def _utc(value: Any) -> str:
    return _moment(value).astimezone(UTC).isoformat(timespec="microseconds")


def _bytes(value: Any) -> bytes:
    """Also from the text that PostgreSQL writes, as in a dump or in JSON."""
    return bytes.fromhex(value.removeprefix("\\x")) if isinstance(value, str) else bytes(value)
