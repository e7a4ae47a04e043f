"""Dead letters: look at them, then replay, fix or discard them. Each change is audited in its transaction."""

from __future__ import annotations

import builtins
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from duly.core.errors import ContractError, MissingField, NotFound
from duly.core.job import Actor
from duly.db.pool import Connection
from duly.features.arguments import check_org_exists, org_uuid, required_text
from duly.features.audit.entries import audited_transaction, change_request
from duly.features.dead_letters import replay as replays
from duly.features.dead_letters import store as dead
from duly.features.dead_letters.store import (
    MOST_COUNTED,
    Choice,
    DeadLetter,
    DeadLetterDetail,
    DeadLetterGroup,
    DeadLetterKind,
    Order,
    Place,
    Replayed,
    Resolution,
    Wanted,
)
from duly.jobs.application import App
from duly.jobs.enqueue import store_payload
from duly.jobs.handle import Handle
from duly.jobs.request_context import as_uuid, checked_text, current_context
from duly.observability import metrics

__all__ = [
    "MOST_COUNTED",
    "DeadLetter",
    "DeadLetterDetail",
    "DeadLetterGroup",
    "DeadLetterKind",
    "DeadLetterPage",
    "DeadLetters",
    "ReplayReport",
    "Resolution",
]
_NEWEST = Place(datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))
_OLDEST = Place(datetime.min.replace(tzinfo=UTC), UUID(int=0))
_BATCH = 500
_PAIRS = 1_000


@dataclass(frozen=True, slots=True)
class DeadLetterPage:
    """Some letters; `after` asks for those that follow, and is None at the end."""

    letters: tuple[DeadLetter, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What became of many letters."""

    replayed: tuple[Handle[Any], ...]
    """The new jobs, in the order in which they may run."""
    left: Mapping[UUID, str]
    """The letters that stayed in the box, and why."""
    last_run_at: datetime | None
    """When the last of the new jobs may run."""


class DeadLetters:
    """The dead letters of the orgs of an application, and what is done about them."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def list(
        self,
        org_id: UUID | str,
        *,
        fingerprint: str | None = None,
        job_type: str | None = None,
        resolved: bool = False,
        limit: int = 50,
        after: str | None = None,
    ) -> DeadLetterPage:
        """The letters of an org that are open, or those that were resolved; the newest first."""
        found, choice, before = org_uuid(org_id), _choice(fingerprint, job_type), _place(after)
        _check_limit(limit, _BATCH)
        async with self._app.tenant_session(found) as conn:
            letters = await dead.list_letters(
                conn, found, choice, before=before, limit=limit + 1, resolved=resolved
            )
            if not letters:
                await check_org_exists(conn, found)
        page = tuple(letters[:limit])
        return DeadLetterPage(page, page[-1].place.cursor if len(letters) > limit else None)

    async def groups(self, org_id: UUID | str) -> builtins.list[DeadLetterGroup]:
        """The open letters by kind of failure, the latest first."""
        found = org_uuid(org_id)
        async with self._app.tenant_session(found) as conn:
            kinds = await dead.group(conn, found, limit=_BATCH)
            if not kinds:
                await check_org_exists(conn, found)
            return kinds

    async def groups_everywhere(self) -> builtins.list[DeadLetterGroup]:
        """The open letters of all orgs by org and kind, the latest first: for who runs the installation.

        The same kind has the same fingerprint in every org.
        """
        async with (await self._app.resources()).database.engine() as conn:
            return await dead.group_all(conn, limit=_PAIRS)

    async def kind(self, org_id: UUID | str, fingerprint: str) -> DeadLetterKind:
        """One kind of failure: what is open, and how the jobs fare that were done again lately."""
        found, which = org_uuid(org_id), required_text("fingerprint", fingerprint)
        async with self._app.tenant_session(found) as conn:
            kind = await dead.read_kind(conn, found, which)
        if kind is None:
            raise NotFound(f"no dead letter of kind {which}", field="fingerprint", fix="see the groups")
        return kind

    async def get(self, org_id: UUID | str, job_id: UUID | str) -> DeadLetterDetail:
        """One letter with its whole error and its job's input; an unknown id raises."""
        found, job = org_uuid(org_id), _job(job_id)
        async with self._app.tenant_session(found) as conn:
            letter = await dead.read(conn, found, job)
        if letter is None:
            raise replays.no_letter(job)
        return letter

    async def replay(self, org_id: UUID | str, job_id: UUID | str, actor: Actor, reason: str) -> Handle[Any]:
        """Do the job again, as a new one. Whoever asks second gets the same new job."""
        order, wanted = _order(org_id, actor, reason), Wanted(_job(job_id))
        return await self._new_job(
            order, lambda conn: replays.succeed(conn, order, wanted, Resolution.REPLAYED)
        )

    async def fix(
        self, org_id: UUID | str, job_id: UUID | str, payload: Mapping[str, Any], actor: Actor, reason: str
    ) -> Handle[Any]:
        """Do the job again, as a new one with another payload; it must be one that its job type takes."""
        order, letter = _order(org_id, actor, reason), await self.get(org_id, job_id)
        if letter.resolution is not None:
            raise replays.resolved(letter)
        encoded = self._app.registry.get(letter.job_type).codec.encode_mapping(payload)
        wanted = await self._with_payload(order, letter.job_id, encoded)
        return await self._new_job(order, lambda conn: replays.succeed(conn, order, wanted, Resolution.FIXED))

    async def discard(self, org_id: UUID | str, job_id: UUID | str, actor: Actor, reason: str) -> None:
        """Take the letter out of the box: nothing more will be done. Asked again, it changes nothing."""
        order, job = _order(org_id, actor, reason), _job(job_id)
        await audited_transaction(self._app, lambda conn: replays.discard(conn, order, job))

    async def discard_many(
        self,
        org_id: UUID | str,
        *,
        actor: Actor,
        reason: str,
        fingerprint: str | None = None,
        job_type: str | None = None,
        limit: int = 1000,
    ) -> int:
        """Take open letters out of the box, the oldest first; how many. It works in transactions of 500."""
        order, choice = _order(org_id, actor, reason), _choice(fingerprint, job_type)
        _check_limit(limit, 100_000)
        done = 0
        place: Place | None = _OLDEST
        while place is not None and done < limit:
            batch = replays.Batch(order, choice, place, min(_BATCH, limit - done))
            some, place = await audited_transaction(self._app, batch.discard)
            done += some
        return done

    async def rerun(
        self,
        org_id: UUID | str,
        job_id: UUID | str,
        actor: Actor,
        reason: str,
        *,
        payload: Mapping[str, Any] | None = None,
    ) -> Handle[Any]:
        """Do any ended job again, as a new one; as long as that is active, whoever asks again gets it.

        With a payload, it is done with that one, which must be one that its job type takes. A dead job whose
        letter is open is replayed, or fixed.
        """
        order, job = _order(org_id, actor, reason), _job(job_id)
        if payload is None:
            return await self._new_job(order, lambda conn: replays.rerun(conn, order, Wanted(job)))
        ended = await Handle[Any](self._app, order.org_id, job).status()
        encoded = self._app.registry.get(ended.job_type).codec.encode_mapping(payload)
        wanted = await self._with_payload(order, job, encoded)
        return await self._new_job(order, lambda conn: replays.rerun(conn, order, wanted))

    async def replay_many(
        self,
        org_id: UUID | str,
        *,
        per_second: float,
        actor: Actor,
        reason: str,
        fingerprint: str | None = None,
        job_type: str | None = None,
        limit: int = 1000,
    ) -> ReplayReport:
        """Replay open letters, the oldest first; no more than `per_second` of the new jobs come due.

        The pace lies in the times at which they may run: nothing has to stay alive to keep it. It works in
        transactions of 500. Should one fail, those before it stand, and calling again goes on from there.
        """
        order, choice = _order(org_id, actor, reason), _choice(fingerprint, job_type)
        pace = _pace(per_second)
        _check_limit(limit, 100_000)
        done: builtins.list[Replayed] = []
        left: dict[UUID, str] = {}
        place: Place | None = _OLDEST
        while place is not None and (seen := len(done) + len(left)) < limit:
            batch = replays.Batch(order, choice, place, min(_BATCH, limit - seen), seen, pace)
            some, others, place = await audited_transaction(self._app, batch.replay)
            count_new(some)
            await self._wake()
            done, left = [*done, *some], {**left, **others}
        handles = tuple(self._handle(order, replayed) for replayed in done)
        return ReplayReport(handles, left, max((r.run_at for r in done if r.run_at), default=None))

    async def _with_payload(self, order: Order, job_id: UUID, encoded: str) -> Wanted:
        stored = await store_payload(await self._app.resources(), order.org_id, encoded)
        return Wanted(job_id, **stored._asdict())

    async def _new_job(self, order: Order, work: Callable[[Connection], Awaitable[Replayed]]) -> Handle[Any]:
        replayed = await audited_transaction(self._app, work)
        count_new([replayed])
        await self._wake()
        return self._handle(order, replayed)

    def _handle(self, order: Order, replayed: Replayed) -> Handle[Any]:
        return Handle(self._app, order.org_id, replayed.job_id, created=replayed.created)

    async def _wake(self) -> None:
        (await self._app.resources()).waker.wake()


def count_new(replayed: Sequence[Replayed]) -> None:
    """New jobs are enqueued ones, whoever asked for them."""
    for kind, n in Counter((one.job_type, one.queue) for one in replayed if one.created).items():
        metrics.enqueued(*kind, n)


def _order(org_id: UUID | str, actor: Actor, reason: str) -> Order:
    who, here = change_request(actor, reason), current_context()
    request_id = here.request_id or f"req-{uuid.uuid4().hex}"
    return Order(org_uuid(org_id), who.actor, who.reason or "", request_id, here.traceparent)


def _choice(fingerprint: str | None, job_type: str | None) -> Choice:
    return Choice(checked_text("fingerprint", fingerprint), checked_text("job_type", job_type))


def _job(job_id: UUID | str) -> UUID:
    found = as_uuid("job_id", job_id)
    if found is None:
        raise MissingField("missing", field="job_id", fix="pass the id of the job")
    return found


def _place(after: str | None) -> Place:
    try:
        return _NEWEST if after is None else Place.parse(after)
    except (ValueError, TypeError, OverflowError):
        raise ContractError("no such page", field="after", fix="pass `after` of the page before") from None


def _check_limit(limit: int, most: int) -> None:
    if type(limit) is not int or not 1 <= limit <= most:
        raise ContractError(f"{limit!r} is out of range", field="limit", fix=f"use 1 to {most}")


def _pace(per_second: float) -> float:
    """The seconds between two jobs."""
    if type(per_second) not in (int, float) or not 0.001 <= per_second <= 10_000:
        raise ContractError(f"{per_second!r} is out of range", field="per_second", fix="use 0.001 to 10000")
    return 1 / per_second
