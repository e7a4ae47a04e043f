"""What readers saw: streams of a job, feeds of an org, and answers about what is not theirs."""

from __future__ import annotations

from collections import Counter, defaultdict
from uuid import UUID

from duly.testing.history.book import Book, Findings, Key, promise
from duly.testing.history.records import FeedRead, StreamRead


@promise
def i14(book: Book, found: Findings) -> None:
    """A reader of a stream sees the events 1..n exactly once, in order, over all its reconnects."""
    for read in book.history.streams:
        found.facts += len(read.events)
        key, numbers = (read.org_id, read.job_id), [seq for seq, _ in read.events]
        if numbers != list(range(1, len(numbers) + 1)):
            found.report(f"{read.reader} saw other events than 1..n", key, numbers=numbers)
        elif read.to_the_end and len(numbers) != len(book.story(key).events):
            found.report(
                f"{read.reader} was told that it is over after {len(numbers)} of"
                f" {len(book.story(key).events)} events",
                key,
            )


@promise
def i15(book: Book, found: Findings) -> None:
    """Every published event is on record, and a feed that is read to its end leaves none out."""
    for read in book.history.streams:
        _no_phantom_in_stream(book, found, read)
    by_org: dict[UUID, set[tuple[UUID, int]]] = defaultdict(set)
    if book.history.feeds:
        for event in book.history.events:
            by_org[event["org_id"]].add((event["job_id"], event["event_seq"]))
    for feed in book.history.feeds:
        _whole_feed(found, feed, by_org[feed.org_id])


def _no_phantom_in_stream(book: Book, found: Findings, read: StreamRead) -> None:
    key: Key = (read.org_id, read.job_id)
    known = {event["event_seq"]: event["event_type"] for event in book.story(key).events}
    for seq, event_type in read.events:
        found.facts += 1
        if known.get(seq) != event_type:
            found.report(f"{read.reader} saw {event_type} as event {seq}, which is {known.get(seq)}", key)


def _whole_feed(found: Findings, feed: FeedRead, known: set[tuple[UUID, int]]) -> None:
    seen = Counter(feed.events)
    found.facts += len(feed.events)
    for (job_id, seq), times in seen.items():
        if (job_id, seq) not in known:
            found.report(f"{feed.reader} saw event {seq}, which there is not", (feed.org_id, job_id))
        elif times > 1:
            found.report(f"{feed.reader} saw event {seq} {times} times", (feed.org_id, job_id))
    for job_id, seq in sorted(known - seen.keys()):
        found.report(f"{feed.reader} never saw event {seq}", (feed.org_id, job_id), event_seq=seq)


@promise
def i16(book: Book, found: Findings) -> None:
    """Every org in an answer is the caller's; a foreign id is answered like an unknown one."""
    for probe in book.history.probes:
        found.facts += 1
        if probe.foreign != probe.unknown:
            found.report(
                f"{probe.question!r} tells a foreign id from an unknown one",
                caller=probe.caller,
                foreign=probe.foreign[:500],
                unknown=probe.unknown[:500],
            )
        strangers = sorted({str(org) for org in probe.orgs_seen if org != probe.caller})
        if strangers:
            found.report(f"{probe.question!r} showed another org", caller=probe.caller, orgs=strangers)
