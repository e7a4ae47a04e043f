"""The audit trail of an org: looked at, taken elsewhere, and verified against its seals."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from duly.core.errors import ContractError, MissingField, UnknownJob
from duly.core.job import Actor
from duly.core.states import AUDITED, EventType, Status, audit_event_name
from duly.db.database import ENGINE_ROLE_SQL, tenant_role_sql
from duly.features.arguments import check_org_exists, org_uuid, required_text
from duly.features.audit import store as audit
from duly.features.audit import verifier
from duly.features.audit.chain import GENESIS, Chain, Problem, end_of, place_of
from duly.features.audit.enrichment import Versions, check_target, enrichment
from duly.features.audit.entries import change_request, record_entry
from duly.features.audit.report import MOST, AuditReport, read_hash, reported
from duly.features.audit.store import START, AuditEntry, Mark
from duly.features.audit.verifier import Verification
from duly.features.events.service import Feed
from duly.features.events.store import FeedEvent
from duly.features.pagination import decode_cursor, encode_cursor, page_size, time_cursor
from duly.jobs.application import App
from duly.jobs.handle import Handle
from duly.jobs.request_context import as_uuid, checked_text

__all__ = ["Audit", "AuditEntry", "AuditEventPage", "AuditPage", "Verification"]

_OLDEST = datetime.min.replace(tzinfo=UTC)
_NEWEST = (datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))
_AT_ONCE = 1_000
_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Some entries; `after` asks for those that follow, and is None at the end.

    With a filter so many entries are looked at and no more: a page may then be short, even empty.
    """

    entries: tuple[AuditEntry, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class AuditEventPage:
    """What became of some jobs; `after` asks for what follows, and `more` says whether to ask at once."""

    events: tuple[_Row, ...]
    after: str
    more: bool


class _Choice(NamedTuple):
    """Which entries; None means all."""

    actor: str | None = None
    action: str | None = None
    target_id: str | None = None

    def shows(self, entry: AuditEntry) -> bool:
        """Whether it is one of them."""
        return (
            self.actor in (None, entry.actor_id, f"{entry.actor_type}:{entry.actor_id}")
            and self.action in (None, entry.action, entry.action.partition(".")[0])
            and self.target_id in (None, entry.target_id)
        )


_EVERYTHING = _Choice()


class Audit:
    """The audit trails of the orgs of an application."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def list(
        self,
        org_id: UUID | str,
        *,
        actor: str | None = None,
        action: str | None = None,
        target_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> AuditPage:
        """The entries of an org, the newest first. An unknown org raises.

        `actor` is somebody's id, alone or as `user:anna`; `action` a whole one, or its first word. `since`
        includes its moment, `until` does not.
        """
        whose, size = org_uuid(org_id), page_size(limit)
        start = decode_cursor(after, lambda at, entry: (time_cursor(at), UUID(entry))) or _NEWEST
        start = min(start, (_zoned("until", until, _NEWEST[0]), UUID(int=0)))
        fits = _Choice(
            checked_text("actor", actor), checked_text("action", action), checked_text("target_id", target_id)
        )
        most = size + 1 if fits == _EVERYTHING else _AT_ONCE
        async with self._app.tenant_session(whose) as conn:
            seen = await audit.newest(conn, whose, start, _zoned("since", since, _OLDEST), most=most)
            if not seen:
                await check_org_exists(conn, whose)
        fitting = [entry for entry in seen if fits.shows(entry)]
        page = fitting[:size]
        last = page[-1] if len(fitting) > size else seen[-1] if len(seen) == most else None
        return AuditPage(
            tuple(page), encode_cursor(last.occurred_at.isoformat(), last.entry_id) if last else None
        )

    async def verify(
        self,
        org_id: UUID | str,
        *,
        expect: str | None = None,
        step: Callable[[float], None] | None = None,
    ) -> AuditReport:
        """Compare every entry of an org with its seal, and every seal with the one before.

        `expect` is the `head` of an earlier report, kept elsewhere: the chain must still contain it. `step`
        is told now and then which share of the chain is done.
        """
        whose, wanted = org_uuid(org_id), read_hash(expect)
        async with (await self._app.resources()).database.engine() as conn:
            mark = await audit.read_mark(conn)
        async with self._app.tenant_session(whose) as conn:
            await check_org_exists(conn, whose)
        return await self._verified(whose, mark, wanted, step)

    async def start_verification(
        self, org_id: UUID | str, *, expect: str | None = None, actor: Actor
    ) -> Handle[AuditReport]:
        """Have it verified by a job, as is right for a long chain; if one is under way, it is that one."""
        read_hash(expect)
        verifier.declare(self._app, self.verify)
        who = change_request(actor, None, optional=True).actor
        [handle] = await self._app.enqueue_many([verifier.call(self._app, org_uuid(org_id), who, expect)])
        return handle

    async def verification(self, org_id: UUID | str, job_id: UUID | str) -> Verification:
        """How far such a job is, and its report when it is done. The id of any other job is unknown."""
        whose, which = org_uuid(org_id), as_uuid("job_id", job_id)
        if which is None:
            raise MissingField("missing", field="job_id", fix="say which job")
        verifier.declare(self._app, self.verify)
        handle = Handle[AuditReport](self._app, whose, which)
        job = await handle.status()
        if job.job_type != verifier.JOB_TYPE:
            raise UnknownJob(f"no verification {which} in this org", field="job_id", fix="check id and org")
        done = job.status is Status.COMPLETED
        return Verification(job, await handle.result() if done else None)

    async def verify_all(self) -> AsyncIterator[AuditReport]:
        """Verify every org, one after the other."""
        async with (await self._app.resources()).database.engine() as conn:
            mark, everybody = await audit.read_mark(conn), await audit.orgs(conn)
        for org_id in everybody:
            yield await self._verified(org_id, mark, None, None)

    async def export(self, org_id: UUID | str) -> AsyncIterator[_Row]:
        """Every entry in the order of the chain, each seal after its entries: rows to verify anywhere.

        `kind` says what a row is: an entry or a seal.
        """
        whose = org_uuid(org_id)
        async with self._app.tenant_session(whose) as conn:
            await check_org_exists(conn, whose)
        end = START
        async for seal, entries in self._seals(whose):
            for entry in entries:
                yield {"kind": "entry", **entry}
            yield {"kind": "seal", **seal}
            end = end_of(seal)
        while True:
            async with self._app.tenant_session(whose) as conn:
                rest = await audit.read_rest(conn, whose, end, limit=_AT_ONCE)
            for entry in rest:
                yield {"kind": "entry", **entry}
            if len(rest) < _AT_ONCE:
                return
            end = place_of(rest[-1])

    async def events(
        self, org_id: UUID | str, *, limit: int = 100, after: str | None = None
    ) -> AuditEventPage:
        """What became of the jobs of an org, under the names of the audit, in the order of commits.

        The same facts as in the feed, without progress and partial results. A page may be short, even empty.
        """
        page = await Feed(self._app).read(org_id, after, limit)
        told = [_audited(event) for event in page.events if event.event_type in AUDITED]
        return AuditEventPage(tuple(told), page.after, page.more)

    async def describe_change(
        self,
        org_id: UUID | str,
        target_type: str,
        target_id: str,
        before: Mapping[str, Any] | None,
        after: Mapping[str, Any] | None,
        *,
        actor: Actor,
        reason: str | None = None,
        locale: str = "en",
        names: Mapping[str, str] | None = None,
        hide: Collection[str] = (),
        idempotency_key: str | None = None,
        conn: Any = None,
    ) -> Handle[Any]:
        """Have an entry `<target_type>.changed` written that says what differs between two versions.

        It is a job: it is done later, by whoever may append to the audit trail and do nothing else. With
        `conn` it goes with your transaction. `names` says how fields are called; those of `hide`, and
        secrets, are told as changed, but never shown nor kept.
        """
        who = change_request(actor, reason, optional=True)
        versions = Versions(
            required_text("target_type", target_type),
            required_text("target_id", target_id),
            before or {},
            after or {},
            who.reason,
            locale,
            names or {},
            hide,
        )
        options = {
            "org_id": org_uuid(org_id),
            "actor": actor,
            "idempotency_key": idempotency_key,
            "conn": conn,
        }
        [handle] = await self._app.enqueue_many([await enrichment(self._app, versions, options)])
        return handle

    async def record(
        self,
        conn: Any,
        org_id: UUID | str,
        action: str,
        target_id: str,
        *,
        actor: Actor,
        reason: str | None = None,
        **detail: Any,
    ) -> None:
        """Write an entry of your own in your transaction of the org: it is there if what it tells was done.

        The first word of the action says what it is about, as in `invoice.deleted`.
        """
        who = change_request(actor, reason, optional=True)
        check_target(required_text("action", action).partition(".")[0], "action")
        await conn.execute(ENGINE_ROLE_SQL)
        await record_entry(
            conn, who, org_uuid(org_id), action, required_text("target_id", target_id), **detail
        )
        await conn.execute(tenant_role_sql(org_uuid(org_id)))

    async def _verified(
        self, org_id: UUID, mark: Mark, wanted: bytes | None, step: Callable[[float], None] | None
    ) -> AuditReport:
        chain, end = Chain(org_id, kept_since=mark.kept_since), START
        problems: builtins.list[Problem] = []
        heads = {GENESIS}
        length = await self._length(org_id) if step else 0
        async for seal, entries in self._seals(org_id):
            # Not on the loop: hundreds of entries are hashed for each seal.
            found = await asyncio.to_thread(lambda: [*chain.take(seal, entries)])  # noqa: B023
            problems += found[: MOST - len(problems)]
            end = end_of(seal)
            if step:
                step(min(chain.length / length, 1))
            heads |= {chain.head} & {wanted}
        async with self._app.tenant_session(org_id) as conn:
            rest = await audit.rest(conn, org_id, end, mark.place)
        if rest.bare:
            said = f"{rest.bare} entries after the last seal were sealed, and their seal is not there"
            problems.append(Problem(org_id, "seal_missing", chain.length + 1, None, said))
        known = wanted is None or wanted in heads
        return reported(chain, problems, unsealed=rest.unsealed, kept_since=mark.kept_since, known=known)

    async def _length(self, org_id: UUID) -> int:
        """How many seals there are about now."""
        async with (await self._app.resources()).database.engine() as conn:
            last = (await audit.last_seals(conn, [org_id])).get(org_id)
        return int(last["seal_seq"]) if last else 1

    async def _seals(self, org_id: UUID) -> AsyncIterator[tuple[_Row, builtins.list[_Row]]]:
        """Every seal with the entries since the one before. Rows are written once: no snapshot is held."""
        seq, end = 0, START
        while True:
            async with self._app.tenant_session(org_id) as conn:
                part = await audit.stretch(conn, org_id, seq, end)
            if part is None:
                return
            entries = iter(part.entries)
            entry = next(entries, None)
            for seal in part.seals:
                own: builtins.list[_Row] = []
                while entry is not None and place_of(entry) <= end_of(seal):
                    own.append(entry)
                    entry = next(entries, None)
                yield seal, own
            seq, end = part.seals[-1]["seal_seq"], end_of(part.seals[-1])


def _audited(event: FeedEvent) -> _Row:
    """An event as the audit calls it."""
    said = event.model_dump(exclude={"event_type", "event_seq", "payload_json"})
    action = audit_event_name(EventType(event.event_type))
    return {"kind": "event", "action": action, **said, "detail": event.payload_json}


def _zoned(field: str, at: datetime | None, otherwise: datetime) -> datetime:
    if at is not None and at.tzinfo is None:
        raise ContractError("has no zone", field=field, fix="pass a time with its zone")
    return otherwise if at is None else at
