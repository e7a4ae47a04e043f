"""Build the history for the checker from the logs and tables of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from duly.testing.history.export import export
from duly.testing.history.recorder import by_field, load
from duly.testing.history.records import (
    Cancellation,
    Effect,
    FeedRead,
    History,
    IsolationProbe,
    RecordedSubmission,
    StreamRead,
)
from tests.chaos.app import BRIDGED, EFFECTS, OUTSIDE
from tests.chaos.client_log import answered, lines
from tests.chaos.plan import CLIENTS, Fault
from tests.chaos.postgres import Pair

_MAKES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(EFFECTS, ("transaction",)),
    **dict.fromkeys(OUTSIDE, ("outside",)),
    **dict.fromkeys(BRIDGED, ("bridge",)),
}
_STILL = {"delay", "hole", "deaf", "worker_stop"}
"""Faults during which something stops and continues later."""


def collect(home: Path, pair: Pair, plan: list[Fault]) -> History:
    """Read everything when the cluster is idle."""
    logs = [home / f"c{number}.jsonl" for number in range(CLIENTS)]
    records = [line for log in logs for line in lines(log)]
    longest = max((fault.seconds for fault in plan if fault.kind in _STILL), default=0.0)
    with pair.primary.connect() as conn:
        effects = [
            Effect("transaction", *row)
            for row in conn.execute("select org_id, job_id, attempt from public.effects")
        ]
        effects += [
            Effect("bridge", *row)
            for row in conn.execute("select org_id, job_id, attempt from public.bridged")
        ]
        return export(
            conn,
            **by_field(load([home / "observations.jsonl"])),
            submissions=[found for log in logs for found in _submissions(log)],
            cancellations=[found for log in logs for found in _cancellations(log)],
            streams=[_stream(line) for line in records if line["op"] == "stream"],
            feeds=list(_feeds(records)),
            probes=[_probe(line) for line in records if line["op"] == "probe"],
            effects=effects + list(_outside(home / "outside.log")),
            required_effects=_MAKES,
            alerting=True,
            # A transaction, and a sweep, may be stuck as long as the network or its process is.
            open_seconds=1.0 + longest,
            allowed_lateness=5.0 + longest,
        )


def _submissions(log: Path) -> Iterator[RecordedSubmission]:
    for question, answer in answered(log):
        if question["op"] != "submit":
            continue
        reply = answer or {"answer": "unknown"}
        jobs = reply.get("jobs") or [None] * len(question["wishes"])
        for (key, job_type, *_), job in zip(question["wishes"], jobs, strict=True):
            yield RecordedSubmission(
                question["who"], UUID(question["org"]), key, job_type, reply["answer"], job and UUID(job)
            )


def _cancellations(log: Path) -> Iterator[Cancellation]:
    for question, answer in answered(log):
        if question["op"] == "cancel":
            reply = answer or {"answer": "unknown"}
            yield Cancellation(
                question["who"],
                UUID(question["org"]),
                UUID(question["job"]),
                reply["answer"],
                reply.get("status"),
            )


def _stream(line: dict[str, Any]) -> StreamRead:
    events = tuple((seq, event_type) for seq, event_type in line["events"])
    return StreamRead(line["reader"], UUID(line["org"]), UUID(line["job"]), events, line["end"])


def _feeds(records: list[dict[str, Any]]) -> Iterator[FeedRead]:
    """Return the pages of one reader over all processes of its client."""
    pages: dict[tuple[str, str], list[tuple[UUID, int]]] = {}
    for line in records:
        if line["op"] == "feed":
            events = pages.setdefault((line["reader"], line["org"]), [])
            events += [(UUID(job), seq) for job, seq in line["events"]]
    for (reader, org), events in pages.items():
        yield FeedRead(reader, UUID(org), tuple(events))


def _probe(line: dict[str, Any]) -> IsolationProbe:
    orgs = tuple(UUID(org) for org in line["orgs"])
    return IsolationProbe(UUID(line["caller"]), line["question"], line["foreign"], line["unknown"], orgs)


def _outside(ledger: Path) -> Iterator[Effect]:
    if ledger.exists():
        for line in ledger.read_text().splitlines():
            org, job, attempt, key = line.split()
            yield Effect("outside", UUID(org), UUID(job), int(attempt), key)
