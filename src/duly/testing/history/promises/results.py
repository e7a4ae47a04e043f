"""What a job shows while it runs and leaves behind: progress, partial results, the final one."""

from __future__ import annotations

from collections import defaultdict

from duly.model.events import EventType
from duly.testing.history.book import Book, Findings, Key, Row, Story, key_of, promise

_PARTIAL, _COMPLETED = EventType.PARTIAL.value, EventType.COMPLETED.value
_ROUNDED = 0.001


@promise
def i5(book: Book, found: Findings) -> None:
    """Progress never falls, each change has its event, and completed means 100."""
    steps: dict[Key, list[float]] = {}
    for story in book.stories.values():
        steps[story.key] = percents = _percents(found, story)
        if story.job is None:
            continue
        found.facts += 1
        shown = story.job["progress_percent"]
        if story.status == "completed" and shown != 100:
            found.report(f"it is completed at {shown} percent", story.key)
        if percents and abs(shown - percents[-1]) > _ROUNDED:
            found.report(f"its row says {shown} percent, its events {percents[-1]}", story.key)
    seen: dict[tuple[str, Key], float] = {}
    for sight in book.history.sights:
        found.facts += 1
        key, shown = (sight.org_id, sight.job_id), sight.progress_percent
        if shown < seen.get((sight.observer, key), 0.0) - _ROUNDED:
            found.report(f"a later look saw only {shown} percent", key, observer=sight.observer)
        seen[sight.observer, key] = shown
        told = steps.get(key, [])[sight.event_seq - 1 : sight.event_seq]
        if told and abs(told[0] - shown) > _ROUNDED:
            found.report(
                f"a look saw {shown} percent at event {sight.event_seq}, which says {told[0]}",
                key,
                observer=sight.observer,
            )


def _percents(found: Findings, story: Story) -> list[float]:
    """How far it was after each event."""
    percent, after = 0.0, []
    for event in story.events:
        told = (event["payload"] or {}).get("progress_percent") if event["payload"] else None
        if told is not None:
            found.facts += 1
            if told < percent - _ROUNDED:
                found.report(
                    f"its progress fell from {percent} to {told} percent",
                    story.key,
                    event_seq=event["event_seq"],
                )
            percent = float(told)
        elif event["event_type"] == _COMPLETED:
            percent = 100.0
        after.append(percent)
    return after


@promise
def i12(book: Book, found: Findings) -> None:
    """One final snapshot if and only if completed; result_seq has no gaps; partial results stay."""
    results: dict[Key, list[Row]] = defaultdict(list)
    for row in book.history.results:
        results[key_of(row)].append(row)
    for key in results.keys() - book.stories.keys():
        found.report("results of a job that does not exist", key)
    for story, job in book.jobs:
        kept = results.get(story.key, [])
        told = [e["payload"]["result_seq"] for e in story.events if e["event_type"] == _PARTIAL]
        if kept or told or job["status"] == "completed":
            found.facts += 1
            _check_results(found, story, job, kept, told)


def _check_results(found: Findings, story: Story, job: Row, kept: list[Row], told: list[int]) -> None:
    finals = [row["result_seq"] for row in kept if row["result_kind"] == "final"]
    partials = sorted(row["result_seq"] for row in kept if row["result_kind"] == "partial")
    if len(finals) != (job["status"] == "completed"):
        found.report(f"it is {job['status']} and has {len(finals)} final snapshots", story.key, seq=finals)
    if partials != sorted(told) or len(partials) != job["partial_count"]:
        found.report(
            f"{job['partial_count']} partial results were kept, and {len(partials)} can be read",
            story.key,
            events=told,
            rows=partials,
        )
    elif partials + finals != list(range(1, job["result_seq"] + 1)):
        found.report(
            "the numbers of its results have a gap, or are double",
            story.key,
            numbers=partials + finals,
            row=job["result_seq"],
        )
