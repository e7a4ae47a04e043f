"""What handlers did beyond their job's row, and what becomes of the dead."""

from __future__ import annotations

from collections import Counter, defaultdict

from duly.model.events import EventType
from duly.testing.history.book import Book, Findings, Key, Row, Story, key_of, promise
from duly.testing.history.records import Effect

_STARTED, _DEADLETTERED = EventType.STARTED.value, EventType.DEADLETTERED.value


@promise
def i7(book: Book, found: Findings) -> None:
    """Effects in ctx.transaction() happen once if completed, else never; others at least once, under one key.

    A failure callback happens exactly once for each failed job of a type that has one. That a job has an
    effect at all is known only of the types named in `History.makes`; that it has none too many, of all.
    """
    done: dict[Key, list[Effect]] = defaultdict(list)
    for effect in book.history.effects:
        found.facts += 1
        done[effect.org_id, effect.job_id].append(effect)
    for key in done.keys() - book.stories.keys():
        found.report("an effect of a job that does not exist", key)
    owed = set(book.history.debts)
    for story, job in book.jobs:
        makes = book.history.makes.get(job["job_type"], ())
        found.facts += bool(makes)
        mine = done.get(story.key, [])
        if makes or mine:
            _in_transaction(found, story, job, mine, makes)
            _outside(found, story, job, mine, makes)
            _bridged(found, story, job, mine, makes)
        if job["job_id"] in owed:
            found.report("its failure callback is still owed", story.key)


def _of(effects: list[Effect], kind: str) -> list[int]:
    return [effect.attempt for effect in effects if effect.kind == kind]


def _in_transaction(
    found: Findings, story: Story, job: Row, mine: list[Effect], makes: tuple[str, ...]
) -> None:
    made = _of(mine, "transaction")
    most = int(job["status"] == "completed")
    least = most if "transaction" in makes else 0
    if not least <= len(made) <= most:
        found.report(
            f"it is {job['status']}, and its effect was committed {len(made)} times",
            story.key,
            attempts=made,
        )


def _outside(found: Findings, story: Story, job: Row, mine: list[Effect], makes: tuple[str, ...]) -> None:
    made = _of(mine, "outside")
    if "outside" in makes and job["status"] == "completed" and not made:
        found.report("it is completed, and its effect outside never happened", story.key)
    keys = {effect.key for effect in mine if effect.kind == "outside"}
    if len(keys) > 1:
        found.report("its effects outside have different dedup keys", story.key, keys=sorted(keys))
    started = {e["attempt"] for e in story.events if e["event_type"] == _STARTED} if made else set()
    if not started.issuperset(made):
        found.report("an effect of an attempt that never started", story.key, attempts=made)


def _bridged(found: Findings, story: Story, job: Row, mine: list[Effect], makes: tuple[str, ...]) -> None:
    told = len(_of(mine, "bridge"))
    wanted = job["status"] == "failed" and (
        "bridge" in makes or ("bridge.dead" in makes and job["outcome"] == "dead")
    )
    if told != wanted:
        found.report(
            f"it is {job['status']} ({job['outcome']}), and its callback came {told} times",
            story.key,
            wanted=int(wanted),
        )


@promise
def i11(book: Book, found: Findings) -> None:
    """Dead, if and only if there is one dead letter, one event job.deadlettered, and one alert.

    The alert comes a little later: unless somebody alerted to the end, of letters that say so.
    """
    letters = Counter(key_of(row) for row in book.history.dead_letters)
    alerts = Counter(key_of(row) for row in book.history.alerts)
    for key in (letters.keys() | alerts.keys()) - book.stories.keys():
        found.report("a dead letter of a job that does not exist", key)
    for row in book.history.dead_letters:
        wanted = int(book.history.alerting or row.get("alerted_at") is not None)
        if alerts.pop(key_of(row), 0) != wanted:
            found.report(f"its dead letter has not {wanted} alerts", key_of(row))
    for key in alerts:
        found.report("an alert of a job that has no dead letter", key)
    for story, job in book.jobs:
        told = sum(event["event_type"] == _DEADLETTERED for event in story.events)
        dead, kept = job["outcome"] == "dead", letters[story.key]
        found.facts += bool(dead or told or kept)
        if not dead == told == kept:
            found.report(
                f"its outcome is {job['outcome']}; it has {kept} dead letters and {told} events of them",
                story.key,
            )
