"""Checks of the server: durability, disk, WAL, vacuum and long transactions."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from datetime import timedelta

from duly.features.doctor.models import CheckOutcome, CheckProblem, passed, result_of
from duly.features.doctor.store import Row
from duly.features.doctor.target import Target

_GIB = 2**30
_WARN_FREE_BYTES, _FAIL_FREE_BYTES = 1 * _GIB, 256 * 2**20
_WARN_WAL_BYTES, _FAIL_WAL_BYTES = 1 * _GIB, 16 * _GIB
_FAIL_UNARCHIVED = timedelta(hours=1)
_MAX_DEAD_ROWS = 100_000
_WARN_FREEZE_RATIO, _FAIL_FREEZE_AGE = 1.5, 1_600_000_000
_WARN_TRANSACTION_AGE, _FAIL_TRANSACTION_AGE = timedelta(hours=1), timedelta(hours=24)


async def check_durability(target: Target) -> CheckOutcome:
    """Check that commits survive a crash of the machine."""
    settings = await target.read("list_durability_settings")
    return result_of(
        (
            CheckProblem(
                f"{row['name']} is off: committed changes may be lost",
                f"alter system set {row['name']} = on; select pg_reload_conf()",
                fails=False,
            )
            for row in settings
            if row["setting"] == "off"
        ),
        "commits are durable",
    )


async def check_disk(target: Target) -> CheckOutcome:
    """Check the free space, if the database is on this machine."""
    [row] = await target.read("read_disk")
    size, free = int(row["bytes"]), await asyncio.to_thread(free_bytes, row)
    database = f"the database has {format_bytes(size)}"
    if free is None:
        return passed(f"{database}; its free space is not visible from here")
    return result_of(_disk_problems(size, free), f"{database}, {format_bytes(free)} are free")


def free_bytes(row: Row) -> int | None:
    """Return the free space of a row of `read_disk`; None if it is not visible from here."""
    if not row["same_machine"] or row["directory"] is None:
        return None
    try:
        return shutil.disk_usage(row["directory"]).free
    except OSError:
        return None  # a socket of another container


def _disk_problems(size: int, free: int) -> Iterator[CheckProblem]:
    if free < max(_WARN_FREE_BYTES, size // 10):
        yield CheckProblem(
            f"only {format_bytes(free)} are free beside {format_bytes(size)} of data",
            "free space on the disk of the data directory, or shorten the retention (DULY_KEEP_...)",
            fails=free < max(_FAIL_FREE_BYTES, size // 50),
        )


async def check_wal(target: Target) -> CheckOutcome:
    """Check that WAL is archived, and not retained for replication slots without a reader."""
    slots = await target.read("list_replication_slots")
    problems = [*_slot_problems(slots), *_archiver_problems(await target.read("read_archiver"))]
    retained = format_bytes(sum(slot["bytes"] for slot in slots))
    return result_of(problems, f"{len(slots)} replication slots, {retained} retained")


def _slot_problems(slots: Sequence[Row]) -> Iterator[CheckProblem]:
    for slot in slots:
        name, size = slot["slot"], slot["bytes"]
        drop = f"select pg_drop_replication_slot('{name}')"
        if slot["wal_status"] == "lost":
            fix = f"{drop}; create its reader again"
            yield CheckProblem(f"the slot {name} has lost its WAL", fix, fails=False)
        elif size > _WARN_WAL_BYTES:
            idle = "" if slot["active"] else ", which has no reader"
            yield CheckProblem(
                f"{format_bytes(size)} of WAL are retained for the slot {name}{idle}",
                f"start its reader, or drop it: {drop}",
                fails=size > _FAIL_WAL_BYTES,
            )


def _archiver_problems(rows: Sequence[Row]) -> Iterator[CheckProblem]:
    for row in rows:
        if row["failing"]:
            yield CheckProblem(
                f"archiving {row['segment']} failed: WAL accumulates, and backups have a gap",
                "correct archive_command or its target; the log of the server has the error",
                fails=row["since"] is None or row["since"] > _FAIL_UNARCHIVED,
            )


async def check_vacuum(target: Target) -> CheckOutcome:
    """Check that vacuum removes dead rows and freezes old ones."""
    [settings] = await target.read("read_autovacuum")
    [oldest] = await target.read("read_oldest_unfrozen")
    dead = await target.read("list_dead_rows", max_dead=_MAX_DEAD_ROWS)
    problems = [*_autovacuum_problems(settings), *_freeze_problems(oldest), *_dead_row_problems(dead)]
    return result_of(problems, f"the oldest rows are {oldest['age']:,} transactions old")


def _autovacuum_problems(settings: Row) -> Iterator[CheckProblem]:
    if not settings["enabled"]:
        fix = "alter system set autovacuum = on; alter system set track_counts = on; select pg_reload_conf()"
        yield CheckProblem("autovacuum is off", fix)
    for name in settings["disabled_tables"]:
        fix = f"alter table duly.{name} reset (autovacuum_enabled)"
        yield CheckProblem(f"autovacuum is off for duly.{name}", fix, fails=False)


def _freeze_problems(oldest: Row) -> Iterator[CheckProblem]:
    relation, age, max_age = oldest["relation"], oldest["age"], oldest["max_age"]
    if age > max_age * _WARN_FREEZE_RATIO or age > _FAIL_FREEZE_AGE:
        yield CheckProblem(
            f"{relation} has transactions of {age:,} ago, and should have been frozen at {max_age:,}",
            f"vacuum (freeze, verbose) {relation}, after ending old transactions",
            fails=age > _FAIL_FREEZE_AGE,
        )


def _dead_row_problems(tables: Sequence[Row]) -> Iterator[CheckProblem]:
    for row in tables:
        name = f"duly.{row['table_name']}"
        message = f"{name} has {row['dead']:,} dead rows and {row['live']:,} live ones"
        yield CheckProblem(message, f"vacuum {name}, after ending old transactions", fails=False)


async def check_transactions(target: Target) -> CheckOutcome:
    """Check that no transaction is open for hours: vacuum cannot remove rows that died since it began."""
    found = await target.read("list_old_transactions", older_than=_WARN_TRANSACTION_AGE)
    return result_of(map(_transaction_problem, found), f"none is open for more than {_WARN_TRANSACTION_AGE}")


def _transaction_problem(row: Row) -> CheckProblem:
    name, age = row["name"], timedelta(seconds=round(row["age"].total_seconds()))
    end = f"rollback prepared '{name}'" if row["prepared"] else f"select pg_terminate_backend({name})"
    message = f"transaction of {name} ({row['client'].strip()}) is open for {age}"
    return CheckProblem(message, end, fails=age > _FAIL_TRANSACTION_AGE)


def format_bytes(count: float) -> str:
    """Return a size for people."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.2g} {unit}" if count < 10 else f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
