"""What a change of many jobs goes through, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, cast
from uuid import UUID

from duly.core.errors import ContractError
from duly.core.job import Actor
from duly.core.states import Outcome, Status
from duly.features.jobs.filter import Filters, choose
from duly.features.jobs.filter_store import Choice
from duly.features.system_jobs import may_change

JOB_TYPE = "duly.bulk"
_MOMENTS = ("created_after", "created_before")
_MIXED = ("keys", "jobs/list_of_subject", "jobs/list_of_kind")


class Verb(StrEnum):
    """What is done with each of many jobs."""

    CANCEL = "cancel"
    """Ask for the end of those that are active."""
    REPLAY = "replay"
    """Do those that have ended again, each as a new job; dead letters that were resolved stay so."""
    DISCARD = "discard"
    """Take their dead letters out of the box."""

    def touches(self, status: Status) -> bool:
        """Whether it can do anything with a job in this status."""
        match self:
            case Verb.CANCEL:
                return not status.terminal
            case Verb.REPLAY:
                return status.terminal
            case Verb.DISCARD:
                return status is Status.FAILED


def verb_of(text: str) -> Verb:
    """The verb of this name."""
    try:
        return Verb(text)
    except ValueError:
        raise ContractError(f"{text!r} is no verb", field="verb", fix=f"one of {', '.join(Verb)}") from None


def touched(choice: Choice, verb: Verb, actor: Actor) -> list[Choice]:
    """The lists of those that the verb is about, one after the other."""
    statuses = tuple(status for status in choice.statuses if verb.touches(status))
    if verb is Verb.DISCARD:
        dead = choice.outcome in (None, Outcome.DEAD)
        choice = choice._replace(outcome=Outcome.DEAD, open_letter=True)
        statuses = statuses if dead else ()
    else:
        choice = choice._replace(not_own=not may_change(actor, JOB_TYPE))
    return _lists(choice, statuses)


def by_status(choice: Choice) -> dict[Status, Choice]:
    """The same jobs, those of each status by themselves."""
    return {status: choice._replace(statuses=(status,)) for status in choice.statuses}


def _lists(choice: Choice, statuses: tuple[Status, ...]) -> list[Choice]:
    """Ended jobs are listed by one status at a time, unless their list has all anyway."""
    if not statuses:
        return []
    if choice.path in _MIXED or not statuses[0].terminal:
        return [choice._replace(statuses=statuses)]
    return [choice._replace(statuses=(status,)) for status in statuses]


def stored(wanted: Filters) -> dict[str, Any]:
    """Filters as JSON."""
    return {name: _plain(value) for name, value in wanted.items() if value is not None}


def restored(kept: Mapping[str, Any]) -> Filters:
    """Filters from JSON."""
    read = {name: datetime.fromisoformat(text) for name, text in kept.items() if name in _MOMENTS}
    return cast(Filters, {**kept, **read})


def fenced(org_id: UUID | None, wanted: Filters, before: datetime) -> Choice:
    """Those of the jobs that existed before a moment: not what is made of them meanwhile."""
    until = min(before, wanted.get("created_before") or before)
    return choose(org_id, cast(Filters, {**wanted, "created_before": until}))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    return value if isinstance(value, str) else [str(one) for one in value]
