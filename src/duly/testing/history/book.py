"""A history, opened at every job's page; and what is found wrong in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, wraps
from typing import Any
from uuid import UUID

from duly.testing.history.records import History, Violation

Key = tuple[UUID, UUID]
"""Org and job."""
Row = dict[str, Any]


@dataclass(slots=True)
class Story:
    """One job: its row at the end, and its events by their number."""

    key: Key
    job: Row | None = None
    events: list[Row] = field(default_factory=list)

    @property
    def status(self) -> str | None:
        """The status at the end."""
        return self.job["status"] if self.job else None


class Book:
    """A history, grouped once for all promises."""

    def __init__(self, history: History) -> None:
        self.history = history

    @cached_property
    def stories(self) -> dict[Key, Story]:
        """Every job that has a row or an event."""
        found: dict[Key, Story] = {}
        for job in self.history.jobs:
            key = key_of(job)
            found[key] = Story(key, job)
        for event in self.history.events:
            key = key_of(event)
            story = found.get(key)
            if story is None:
                story = found[key] = Story(key)
            story.events.append(event)
        for story in found.values():
            story.events.sort(key=_seq)
        return found

    @property
    def jobs(self) -> Iterator[tuple[Story, Row]]:
        """Every job that has a row."""
        return ((story, story.job) for story in self.stories.values() if story.job is not None)

    def story(self, key: Key) -> Story:
        """What is known of a job; an empty page if nothing is."""
        return self.stories.get(key) or Story(key)

    @cached_property
    def ended_at(self) -> datetime | None:
        """When everything was quiet: as the history says, or else with the last event."""
        last = max((event["occurred_at"] for event in self.history.events), default=None)
        return self.history.ended_at or last

    def waits_rightly(self, job: Row) -> bool:
        """Whether it is queued for a time that has not come."""
        return job["status"] == "queued" and self.ended_at is not None and bool(job["run_at"] > self.ended_at)


class Findings(list[Violation]):
    """The violations of one promise, and how many facts were examined."""

    def __init__(self, promise: str, words: str) -> None:
        super().__init__()
        self.promise = promise
        self.words = words
        self.facts = 0

    def report(self, message: str, key: Key | None = None, **evidence: Any) -> None:
        """It does not hold, and this shows it."""
        org_id, job_id = key or (None, None)
        self.append(Violation(self.promise, message, org_id, job_id, evidence))


Promise = Callable[[History | Book], Findings]


def promise(examine: Callable[[Book, Findings], None]) -> Promise:
    """Make a promise of what examines it; its docstring says it in words."""

    @wraps(examine)
    def checked(history: History | Book) -> Findings:
        words = (examine.__doc__ or "").partition("\n")[0].rstrip(".")
        found = Findings(examine.__name__.upper(), words)
        examine(history if isinstance(history, Book) else Book(history), found)
        return found

    return checked


def key_of(row: Row) -> Key:
    """Whose row it is."""
    return (row["org_id"], row["job_id"])


def _seq(event: Row) -> int:
    return event["event_seq"]  # type: ignore[no-any-return]
