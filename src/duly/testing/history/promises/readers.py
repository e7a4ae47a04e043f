"""Promises about readers: event streams of a job, feeds of an org, and isolation between orgs."""

from __future__ import annotations

from collections import Counter, defaultdict
from uuid import UUID

from duly.testing.history.checker import HistoryIndex, Key, PromiseFindings, promise
from duly.testing.history.records import FeedRead, StreamRead


@promise
def i14(index: HistoryIndex, findings: PromiseFindings) -> None:
    """A reader of a stream receives the events 1..n exactly once, in order, over all its reconnects."""
    for read in index.history.streams:
        findings.facts += len(read.events)
        key, numbers = (read.org_id, read.job_id), [seq for seq, _ in read.events]
        if numbers != list(range(1, len(numbers) + 1)):
            findings.report(f"{read.reader} received other events than 1..n", key, numbers=numbers)
        elif read.to_the_end and len(numbers) != len(index.job(key).events):
            findings.report(
                f"the stream of {read.reader} ended after {len(numbers)} of"
                f" {len(index.job(key).events)} events",
                key,
            )


@promise
def i15(index: HistoryIndex, findings: PromiseFindings) -> None:
    """Every published event is stored, and a feed that is read to its end omits none."""
    for read in index.history.streams:
        _check_stream(index, findings, read)
    by_org: dict[UUID, set[tuple[UUID, int]]] = defaultdict(set)
    if index.history.feeds:
        for event in index.history.events:
            by_org[event["org_id"]].add((event["job_id"], event["event_seq"]))
    for feed in index.history.feeds:
        _check_feed(findings, feed, by_org[feed.org_id])


def _check_stream(index: HistoryIndex, findings: PromiseFindings, read: StreamRead) -> None:
    key: Key = (read.org_id, read.job_id)
    known = {event["event_seq"]: event["event_type"] for event in index.job(key).events}
    for seq, event_type in read.events:
        findings.facts += 1
        if known.get(seq) != event_type:
            findings.report(
                f"{read.reader} received {event_type} as event {seq}, which is {known.get(seq)}", key
            )


def _check_feed(findings: PromiseFindings, feed: FeedRead, known: set[tuple[UUID, int]]) -> None:
    received = Counter(feed.events)
    findings.facts += len(feed.events)
    for (job_id, seq), times in received.items():
        if (job_id, seq) not in known:
            findings.report(
                f"{feed.reader} received event {seq}, which does not exist", (feed.org_id, job_id)
            )
        elif times > 1:
            findings.report(f"{feed.reader} received event {seq} {times} times", (feed.org_id, job_id))
    for job_id, seq in sorted(known - received.keys()):
        findings.report(f"{feed.reader} never received event {seq}", (feed.org_id, job_id), event_seq=seq)


@promise
def i16(index: HistoryIndex, findings: PromiseFindings) -> None:
    """Every org in an answer is the caller's; a foreign id is answered like an unknown one."""
    for probe in index.history.probes:
        findings.facts += 1
        if probe.foreign != probe.unknown:
            findings.report(
                f"{probe.question!r} distinguishes a foreign id from an unknown one",
                caller=probe.caller,
                foreign=probe.foreign[:500],
                unknown=probe.unknown[:500],
            )
        foreign_orgs = sorted({str(org) for org in probe.orgs_named if org != probe.caller})
        if foreign_orgs:
            findings.report(
                f"{probe.question!r} revealed another org", caller=probe.caller, orgs=foreign_orgs
            )
