"""Read what the capacity report is computed from: catalogs, counters, a day of statistics; no large table."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

from duly.core.policy import parse_stored_policy
from duly.db import migrate
from duly.features.doctor.capacity import NEVER, DiskBytes, JobTimeline, Machine, TableSize
from duly.features.doctor.capacity_report import Observation, RecentActivity
from duly.features.doctor.server_checks import free_bytes
from duly.features.doctor.target import Target
from duly.features.system_jobs import is_system_job

MAX_STATISTICS = 200_000
"""Rows of queue statistics: a day of 140 workers that serve one queue each. Of more, the newest are read."""


async def observe(target: Target) -> Observation:
    """Return what the installation shows. Raise if it cannot be read, or has another schema."""
    await target.locate()
    await asyncio.to_thread(migrate.check, target.direct_url)
    [load] = await target.read_as_engine("read_load")
    [disk] = await target.read("read_disk")
    [activity] = await target.read_as_engine("read_activity", max_rows=MAX_STATISTICS)
    sizes = await target.read_as_engine("list_table_sizes")
    types = await target.read_as_engine("list_job_types")
    ttls = [
        parse_stored_policy(row["policy"]).ledger_ttl for row in types if not is_system_job(row["job_type"])
    ]
    free = await asyncio.to_thread(free_bytes, disk)
    return Observation(
        history=JobTimeline([_table_size(row) for row in sizes], load["installed_at"], load["now"]),
        started_at=load["started_at"],
        activity=RecentActivity(**activity),
        database_bytes=disk["bytes"],
        max_wal_bytes=load["max_wal_bytes"],
        wal_bytes=load["wal_bytes"],
        wal_since=load["wal_since"],
        server_cpu_us=await asyncio.to_thread(_server_cpu_us, load["pid"]) if disk["same_machine"] else None,
        slots=load["slots"],
        machine=Machine(
            cores=_cores() if disk["same_machine"] else None,
            disk_bytes=None if free is None else disk["bytes"] + free,
            runs_workers=disk["same_machine"] and socket.gethostname() in load["hosts"],
        ),
        retention=target.settings.conditions().retention,
        ledger_ttl=max(ttls, default=None),
    )


def _table_size(row: dict[str, Any]) -> TableSize:
    size = DiskBytes(row["bytes"], row["index_bytes"])
    return TableSize(
        row["table_name"], row["row_count"], size, row["starts_at"] or NEVER, row["ends_at"] or NEVER
    )


def _cores() -> int:
    """Return the cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _server_cpu_us(pid: int) -> float | None:
    """Return the CPU time of the server, of which `pid` is a process; None if it is not visible."""
    server = _stat(pid)
    if server is None or server[0] != "postgres":
        return None  # another machine behind the socket, or a container of its own
    postmaster = int(server[1][1])
    found = [process for entry in Path("/proc").iterdir() if (process := _stat(entry.name)) is not None]
    backends = [fields for _, fields in found if int(fields[1]) == postmaster]
    parent = _stat(postmaster)
    if parent is None:
        return None
    # Of the postmaster also the time of processes that have exited.
    ticks = sum(map(int, parent[1][11:15])) + sum(int(tick) for fields in backends for tick in fields[11:13])
    return ticks / os.sysconf("SC_CLK_TCK") * 1e6


def _stat(pid: int | str) -> tuple[str, list[str]] | None:
    """Return the name of a process and its fields of /proc/<pid>/stat from the state on."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None  # gone, no process, or not Linux
    name, _, fields = text.partition("(")[2].rpartition(")")
    return name, fields.split()
