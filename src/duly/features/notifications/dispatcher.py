"""What is due is put into somebody's hands: told in the product, given to an endpoint, or to a job.

Nothing is locked while templates are rendered: whoever writes first, writes; the fences do the rest. An org
whose quota has no room for the jobs keeps what it has pending, and keeps nobody else waiting; nor does one
whose messages are slow to write, or cannot be written at all.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

import psycopg

from duly.core.errors import ContractError, LimitExceeded, StoreError
from duly.core.job import JobSpec, Origin
from duly.core.redaction import redact
from duly.db.database import retry_transaction
from duly.features.notifications import store
from duly.features.notifications.channels import known
from duly.features.notifications.delivery_job import DELIVERER, JOB_TYPE, Result
from duly.features.notifications.recipients import IN_APP, WEBHOOK
from duly.features.notifications.rendering import own_templates, words_of
from duly.features.notifications.store import DeliveryStatus, Due, Settled
from duly.features.notifications.visibility import veiled
from duly.features.templates.lazy import Words
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.enqueue_options import new_job_id, new_result_id
from duly.jobs.job import Job
from duly.observability import metrics

log = logging.getLogger("duly.notifications")
_NOW, _EVERY = timedelta(0), timedelta(seconds=1)
_AFTER_TROUBLE, _LOST_EVERY = 30.0, 30.0
_LOST_AT_ONCE = 500
_RESULTS: dict[DeliveryStatus, Result] = {
    DeliveryStatus.SENT: "sent",
    DeliveryStatus.FAILED: "failed",
    DeliveryStatus.SUPPRESSED: "suppressed",
}
_GONE = Settled(DeliveryStatus.FAILED, error="the endpoint is gone or disabled")


class Notifier:
    """The chore that takes what is due."""

    name = "notifier"

    def __init__(self, app: App, *, public_url: str = "", share: int = 50) -> None:
        self._app = app
        self._public_url = public_url
        self._share = share
        self._served: set[UUID] = set()
        """Orgs that had their share, and wait until all others had theirs."""
        self._aside: dict[UUID, float] = {}
        """Orgs whose jobs were refused, and until when they are left alone."""
        self._look_for_lost = 0.0

    async def once(self) -> timedelta:
        """Take what is due, some of each org; zero if there is more."""
        due = await self._take()
        await self._hand_over([one for one in due if not _needs_no_job(one)])
        left = await self._tell([one for one in due if _needs_no_job(one)])
        await self._end_lost()
        full = {org_id for org_id, n in Counter(one.org_id for one in due).items() if n == self._share}
        again = bool(full or left or self._served)
        self._served = self._served | full if full else set()
        return _NOW if again else _EVERY

    async def _take(self) -> list[Due]:
        now = time.monotonic()
        self._aside = {org_id: until for org_id, until in self._aside.items() if until > now}
        async with (await self._app.resources()).database.engine() as conn:
            due = await store.take_due(conn, waiting={*self._served, *self._aside}, share=self._share)
        return await veiled(self._app, due)

    async def _tell(self, due: Sequence[Due]) -> int:
        """Tell what needs no job: it is read in the product, goes to an endpoint, or is not wanted.

        How much there was no time for. What cannot be written together is written one by one, so that only
        the one that is to blame fails.
        """
        if not due:
            return 0
        try:
            return await self._told(due)
        except Exception as error:
            if _is_away(error):
                raise
            if len(due) > 1:
                return sum([await self._tell([one]) for one in due])
            await self._give_up(due[0], error)
            return 0

    async def _give_up(self, one: Due, error: Exception) -> None:
        log.warning("notification %s cannot be told: %s", one.notification_id, redact(str(error)))
        failed = Settled(DeliveryStatus.FAILED, error=f"it cannot be told: {type(error).__name__}", tries=1)
        try:
            async with (await self._app.resources()).database.engine() as conn:
                await store.settle(conn, {one.key: failed})
        except psycopg.Error:
            self._aside[one.org_id] = time.monotonic() + _AFTER_TROUBLE

    async def _told(self, due: Sequence[Due]) -> int:
        database = (await self._app.resources()).database
        wanted = _in_turn([one for one in due if not one.refusal])
        async with database.engine() as conn:
            own = await own_templates(conn, wanted)
        said = await words_of(wanted, own, self._public_url)
        ended = {
            one.key: _ending(one, said.get(one.notification_id))
            for one in due
            if one.refusal or one.notification_id in said
        }
        carried = {
            one.notification_id: (one, *words)
            for one in wanted
            if one.channel == WEBHOOK and isinstance(words := said.get(one.notification_id), Words)
        }
        async with database.engine() as conn:
            given = await store.hand_to_endpoint(conn, carried) if carried else set()
            done = await store.settle(conn, {key: one for key, one in ended.items() if key[1] not in given})
        for one in due:
            if one.notification_id in done:
                metrics.notified(known(one.channel), _RESULTS[ended[one.key].status])
        return len(due) - len(ended)

    async def _hand_over(self, due: Sequence[Due]) -> None:
        """Have jobs deliver the rest, org by org."""
        orgs: dict[UUID, list[UUID]] = {}
        for one in due:
            orgs.setdefault(one.org_id, []).append(one.notification_id)
        for org_id, ids in orgs.items():
            trouble = await self._handed(org_id, ids)
            if isinstance(trouble, LimitExceeded):
                # A quota that has no room for a round's messages may have room for one.
                trouble = await self._handed(org_id, ids[:1]) or trouble
            if trouble is not None:
                log.warning("notifications of org %s wait: %s", org_id, redact(str(trouble)))
                self._aside[org_id] = time.monotonic() + _AFTER_TROUBLE
        if orgs:
            (await self._app.resources()).waker.wake()

    async def _handed(self, org_id: UUID, ids: Sequence[UUID]) -> Exception | None:
        """Why these could not be handed over, if so."""
        try:
            await retry_transaction(partial(self._enqueue, org_id, ids))
        except Exception as error:
            if _is_away(error):
                raise
            return error
        return None

    async def _enqueue(self, org_id: UUID, ids: Sequence[UUID]) -> None:
        job = self._app.registry.get(JOB_TYPE)
        async with (await self._app.resources()).database.engine() as conn:
            held = await store.hold(conn, org_id, ids)
            if not held:
                return
            specs = [_spec(org_id, which, due_at, job) for which, due_at in held.items()]
            written = await job_store.enqueue_jobs(conn, org_id, specs)
            handed = {which: one.job_id for which, one in zip(held, written, strict=True)}
            await store.hand_over(conn, org_id, handed)
        metrics.enqueued(job.name, job.policy.queue, sum(one.created for one in written))

    async def _end_lost(self) -> None:
        """From time to time: what was in hands that are gone has failed."""
        if time.monotonic() < self._look_for_lost:
            return
        self._look_for_lost = time.monotonic() + _LOST_EVERY
        async with (await self._app.resources()).database.engine() as conn:
            lost = await store.end_lost(conn, limit=_LOST_AT_ONCE)
        if lost:
            log.warning("%s notifications were in the hands of jobs that are over, and have failed", lost)


def _is_away(error: Exception) -> bool:
    """Whether it has nothing to do with what is told: the database is not there."""
    return isinstance(error, StoreError) or (
        isinstance(error, psycopg.OperationalError) and not error.sqlstate
    )


def _in_turn(due: Sequence[Due]) -> list[Due]:
    """The first of each org, then the second of each: there may not be time for all."""
    turns: Counter[UUID] = Counter()
    ranked = []
    for one in due:
        turns[one.org_id] += 1
        ranked.append((turns[one.org_id], one))
    return [one for _, one in sorted(ranked, key=lambda pair: pair[0])]


def _needs_no_job(one: Due) -> bool:
    return one.refusal is not None or one.channel in (IN_APP, WEBHOOK)


def _ending(one: Due, said: Words | ContractError | None) -> Settled:
    """What becomes of one that needs no job. Of one that goes to an endpoint: unless it does."""
    if said is None:
        return Settled(DeliveryStatus.SUPPRESSED, error=one.refusal)
    if isinstance(said, ContractError):
        return Settled(DeliveryStatus.FAILED, error=str(said), tries=1)
    return _GONE if one.channel == WEBHOOK else Settled(DeliveryStatus.SENT, *said, tries=1)


def _spec(org_id: UUID, notification_id: UUID, due_at: datetime, job: Job[..., object]) -> JobSpec:
    key = f"notify:{notification_id}"
    return JobSpec(
        job_id=new_job_id(),
        result_id=new_result_id(),
        job_type=job.name,
        origin=Origin(org_id, DELIVERER, key, key),
        policy=job.policy,
        payload=json.dumps({"notification_id": str(notification_id)}),
        # What is told again is due again, and is another job's.
        idempotency_key=f"{key}:{due_at.timestamp():.6f}",
    )
