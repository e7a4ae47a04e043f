"""Whether the server is fit for work: what it promises, its disk, its log and its cleaning up."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from datetime import timedelta

from duly.features.doctor.finding import Complaint, Finding, Verdict, judged
from duly.features.doctor.store import Row
from duly.features.doctor.target import Patient

_GIB = 2**30
_LITTLE, _ALMOST_NOTHING = 1 * _GIB, 256 * 2**20
_KEPT_LOG, _TOO_MUCH_LOG = 1 * _GIB, 16 * _GIB
_UNARCHIVED = timedelta(hours=1)
_DEAD_ROWS = 100_000
_FREEZE_LATE, _FAILSAFE = 1.5, 1_600_000_000
_LONG, _FAR_TOO_LONG = timedelta(hours=1), timedelta(hours=24)


async def durability(patient: Patient) -> Finding:
    """What is committed stays, even if the machine falls over."""
    off = [row["name"] for row in await patient.read("durability") if row["setting"] == "off"]
    return judged(
        (
            Complaint(
                Verdict.WARN,
                f"{name} is off: what was committed may be lost",
                f"alter system set {name} = on; select pg_reload_conf()",
            )
            for name in off
        ),
        "what is committed stays",
    )


async def disk(patient: Patient) -> Finding:
    """There is room left, if the database lies on this machine; else how large it is."""
    [row] = await patient.read("disk")
    size, free = int(row["bytes"]), await asyncio.to_thread(_free, row)
    told = f"the database has {_bytes(size)}"
    if free is None:
        return judged((), f"{told}; its disk cannot be seen from here")
    return judged(_full(size, free), f"{told}, {_bytes(free)} are free")


def _free(row: Row) -> int | None:
    if not row["same_machine"] or row["directory"] is None:
        return None
    try:
        return shutil.disk_usage(row["directory"]).free
    except OSError:
        return None  # a socket of another container


def _full(size: int, free: int) -> Iterator[Complaint]:
    fix = "make room on the disk of the data directory, or shorten the retention (DULY_KEEP_...)"
    said = f"only {_bytes(free)} are free beside {_bytes(size)} of data"
    if free < max(_ALMOST_NOTHING, size // 50):
        yield Complaint(Verdict.FAIL, said, fix)
    elif free < max(_LITTLE, size // 10):
        yield Complaint(Verdict.WARN, said, fix)


async def wal(patient: Patient) -> Finding:
    """The log is not kept for somebody who never takes it."""
    slots = await patient.read("slots")
    complaints = [*_slots(slots), *_archiver(await patient.read("archiver"))]
    return judged(
        complaints, f"{len(slots)} replication slots, {_bytes(sum(s['bytes'] for s in slots))} kept"
    )


def _slots(slots: Sequence[Row]) -> Iterator[Complaint]:
    for slot in slots:
        name, drop = slot["slot"], f"select pg_drop_replication_slot('{slot['slot']}')"
        fix = f"bring its reader back, or drop it: {drop}"
        if slot["wal_status"] == "lost":
            yield Complaint(
                Verdict.WARN, f"the slot {name} has lost its log", f"{drop}; make its reader anew"
            )
        elif slot["bytes"] > _KEPT_LOG:
            verdict = Verdict.FAIL if slot["bytes"] > _TOO_MUCH_LOG else Verdict.WARN
            idle = "" if slot["active"] else ", which nobody reads"
            yield Complaint(verdict, f"{_bytes(slot['bytes'])} are kept for the slot {name}{idle}", fix)


def _archiver(found: Sequence[Row]) -> Iterator[Complaint]:
    for row in found:
        if row["failing"]:
            long = row["since"] is None or row["since"] > _UNARCHIVED
            yield Complaint(
                Verdict.FAIL if long else Verdict.WARN,
                f"archiving {row['segment']} failed: the log piles up, and backups have a gap",
                "correct archive_command or its target; the server's log says what it answered",
            )


async def vacuum(patient: Patient) -> Finding:
    """What is dead is cleaned up, and what is old is frozen."""
    [settings] = await patient.read("autovacuum")
    [oldest] = await patient.read("frozen")
    dead = await patient.read("dead_rows", most=_DEAD_ROWS)
    complaints = [*_switched_off(settings), *_unfrozen(oldest), *_dead(dead)]
    return judged(complaints, f"the oldest rows are {oldest['age']:,} transactions old")


def _switched_off(settings: Row) -> Iterator[Complaint]:
    if not settings["works"]:
        fix = "alter system set autovacuum = on; alter system set track_counts = on; select pg_reload_conf()"
        yield Complaint(Verdict.FAIL, "autovacuum is off", fix)
    for name in settings["excepted"]:
        fix = f"alter table duly.{name} reset (autovacuum_enabled)"
        yield Complaint(Verdict.WARN, f"autovacuum is off for duly.{name}", fix)


def _unfrozen(oldest: Row) -> Iterator[Complaint]:
    if oldest["age"] > oldest["most"] * _FREEZE_LATE or oldest["age"] > _FAILSAFE:
        yield Complaint(
            Verdict.FAIL if oldest["age"] > _FAILSAFE else Verdict.WARN,
            f"{oldest['relation']} holds transactions of {oldest['age']:,} ago, "
            f"and should have been frozen at {oldest['most']:,}",
            f"vacuum (freeze, verbose) {oldest['relation']}, after ending old transactions",
        )


def _dead(tables: Sequence[Row]) -> Iterator[Complaint]:
    for row in tables:
        name = f"duly.{row['table_name']}"
        said = f"{name} has {row['dead']:,} dead rows and {row['live']:,} living ones"
        yield Complaint(Verdict.WARN, said, f"vacuum {name}, after ending old transactions")


async def transactions(patient: Patient) -> Finding:
    """Nobody keeps a transaction open for hours: what dies meanwhile cannot be cleaned up."""
    found = await patient.read("transactions", older_than=_LONG)
    return judged(map(_long_one, found), f"none is open for more than {_LONG}")


def _long_one(row: Row) -> Complaint:
    prepared = row["whose"].endswith(" prepared")
    end = f"rollback prepared '{row['who']}'" if prepared else f"select pg_terminate_backend({row['who']})"
    age = timedelta(seconds=round(row["age"].total_seconds()))
    verdict = Verdict.FAIL if age > _FAR_TOO_LONG else Verdict.WARN
    return Complaint(verdict, f"{row['who']} ({row['whose'].strip()}) has one open for {age}", end)


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
