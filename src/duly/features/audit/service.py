"""The audit trail of an org: list, export, verify and record entries."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from duly.core.errors import ContractError, MissingField, UnknownJob
from duly.core.job import Actor
from duly.core.states import AUDITED, EventType, Status, audit_event_name
from duly.db.session_settings import ENGINE_ROLE_SQL, tenant_role_sql
from duly.features.arguments import check_org_exists, org_uuid, required_text
from duly.features.audit import store, verification
from duly.features.audit.chain import GENESIS, Chain, ChainProblem, entry_position, seal_position
from duly.features.audit.enrichment import Versions, check_target, enrichment
from duly.features.audit.entries import change_request, record_entry
from duly.features.audit.models import AuditEntry, AuditEventPage, AuditPage, AuditReport, Verification
from duly.features.audit.store import CHAIN_START, AuditMark
from duly.features.events.models import FeedEvent
from duly.features.events.service import Feed
from duly.features.pagination import decode_cursor, encode_cursor, page_size, time_cursor
from duly.jobs.application import App
from duly.jobs.handle import Handle
from duly.jobs.request_context import as_uuid, checked_text

__all__ = ["Audit", "AuditEntry", "AuditEventPage", "AuditPage", "Verification"]

_OLDEST = datetime.min.replace(tzinfo=UTC)
_NEWEST = (datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))
_ENTRIES_PER_READ = 1_000
_Row = dict[str, Any]


class _EntryFilter(NamedTuple):
    """A filter of entries; None matches all."""

    actor: str | None = None
    action: str | None = None
    target_id: str | None = None

    def matches(self, entry: AuditEntry) -> bool:
        return (
            self.actor in (None, entry.actor_id, f"{entry.actor_type}:{entry.actor_id}")
            and self.action in (None, entry.action, entry.action.partition(".")[0])
            and self.target_id in (None, entry.target_id)
        )


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
        """Return the entries of an org, newest first. An unknown org raises.

        `actor` is an id, alone or as `user:anna`; `action` is an action or its first word. `since` is
        inclusive, `until` exclusive.
        """
        org, size = org_uuid(org_id), page_size(limit)
        before = decode_cursor(after, lambda at, entry: (time_cursor(at), UUID(entry))) or _NEWEST
        before = min(before, (_zoned("until", until, _NEWEST[0]), UUID(int=0)))
        entry_filter = _EntryFilter(
            checked_text("actor", actor), checked_text("action", action), checked_text("target_id", target_id)
        )
        scanned = size + 1 if entry_filter == _EntryFilter() else _ENTRIES_PER_READ
        async with self._app.tenant_session(org) as conn:
            entries = await store.list_entries(
                conn, org, before, _zoned("since", since, _OLDEST), limit=scanned
            )
            if not entries:
                await check_org_exists(conn, org)
        matching = [entry for entry in entries if entry_filter.matches(entry)]
        page = matching[:size]
        last = page[-1] if len(matching) > size else entries[-1] if len(entries) == scanned else None
        return AuditPage(
            tuple(page), encode_cursor(last.occurred_at.isoformat(), last.entry_id) if last else None
        )

    async def verify(
        self, org_id: UUID | str, *, expect: str | None = None, step: Callable[[float], None] | None = None
    ) -> AuditReport:
        """Verify every entry of an org against its seal, and every seal against the previous one.

        `expect` is the `head` of an earlier report, stored elsewhere: the chain must still contain it.
        `step` is called with the share of the chain that is done.
        """
        org, expected = org_uuid(org_id), verification.parse_head(expect)
        async with (await self._app.resources()).database.engine() as conn:
            mark = await store.read_mark(conn)
        async with self._app.tenant_session(org) as conn:
            await check_org_exists(conn, org)
        return await self._verify(org, mark, expected, step)

    async def start_verification(
        self, org_id: UUID | str, *, expect: str | None = None, actor: Actor
    ) -> Handle[AuditReport]:
        """Verify a long chain in a job; while one is in flight, return that one."""
        verification.parse_head(expect)
        verification.declare(self._app, self)
        requester = change_request(actor, None, optional=True).actor
        call = verification.verification_call(self._app, org_uuid(org_id), requester, expect)
        [handle] = await self._app.enqueue_many([call])
        return handle

    async def verification(self, org_id: UUID | str, job_id: UUID | str) -> Verification:
        """Return a verification job, with its report once it has succeeded. Another job raises."""
        org, parsed_id = org_uuid(org_id), as_uuid("job_id", job_id)
        if parsed_id is None:
            raise MissingField("missing", field="job_id", fix="pass the id of the job")
        verification.declare(self._app, self)
        handle = Handle[AuditReport](self._app, org, parsed_id)
        job = await handle.status()
        if job.job_type != verification.JOB_TYPE:
            raise UnknownJob(
                f"no verification {parsed_id} in this org", field="job_id", fix="check id and org"
            )
        return Verification(job, await handle.result() if job.status is Status.COMPLETED else None)

    async def verify_all(self) -> AsyncIterator[AuditReport]:
        """Verify every org, one after the other."""
        async with (await self._app.resources()).database.engine() as conn:
            mark, org_ids = await store.read_mark(conn), await store.list_orgs(conn)
        for org_id in org_ids:
            yield await self._verify(org_id, mark, None, None)

    async def export(self, org_id: UUID | str) -> AsyncIterator[_Row]:
        """Yield every entry in the order of the chain, and each seal after its entries.

        The `kind` of a row is `entry` or `seal`. The rows can be verified without the database.
        """
        org = org_uuid(org_id)
        async with self._app.tenant_session(org) as conn:
            await check_org_exists(conn, org)
        position = CHAIN_START
        async for seal, entries in self._read_seals(org):
            for entry in entries:
                yield {"kind": "entry", **entry}
            yield {"kind": "seal", **seal}
            position = seal_position(seal)
        while True:
            async with self._app.tenant_session(org) as conn:
                unsealed = await store.read_after(conn, org, position, limit=_ENTRIES_PER_READ)
            for entry in unsealed:
                yield {"kind": "entry", **entry}
            if len(unsealed) < _ENTRIES_PER_READ:
                return
            position = entry_position(unsealed[-1])

    async def events(
        self, org_id: UUID | str, *, limit: int = 100, after: str | None = None
    ) -> AuditEventPage:
        """Return the events of the jobs of an org under their audit names, in commit order.

        They are the events of the feed without progress and partial results. A page may be short or empty.
        """
        page = await Feed(self._app).read(org_id, after, limit)
        events = tuple(_audit_event(event) for event in page.events if event.event_type in AUDITED)
        return AuditEventPage(events, page.after, page.more)

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
        """Enqueue a job that writes an entry `<target_type>.changed` with the differences of two versions.

        The job writes with a role that may only append to the audit trail. With `conn` it is enqueued in
        your transaction. `names` has labels of fields. Fields in `hide`, and secrets, are recorded as
        changed, without their values.
        """
        versions = Versions(
            required_text("target_type", target_type),
            required_text("target_id", target_id),
            before or {},
            after or {},
            change_request(actor, reason, optional=True).reason,
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
        """Write an entry of the application in its own transaction of the org: both commit or neither.

        The first word of the action is the type of the target, as in `invoice.deleted`.
        """
        request = change_request(actor, reason, optional=True)
        check_target(required_text("action", action).partition(".")[0], "action")
        await conn.execute(ENGINE_ROLE_SQL)
        await record_entry(
            conn, request, org_uuid(org_id), action, required_text("target_id", target_id), **detail
        )
        await conn.execute(tenant_role_sql(org_uuid(org_id)))

    async def _verify(
        self, org_id: UUID, mark: AuditMark, expected: bytes | None, step: Callable[[float], None] | None
    ) -> AuditReport:
        chain, position = Chain(org_id, mark.retained_since), CHAIN_START
        problems: builtins.list[ChainProblem] = []
        head_known = expected in (None, GENESIS)
        length = await self._count_seals(org_id) if step else 0
        async for seal, entries in self._read_seals(org_id):
            # In a thread: hundreds of entries are hashed for each seal.
            new = await asyncio.to_thread(lambda: [*chain.check_next(seal, entries)])  # noqa: B023
            problems += new[: verification.MAX_PROBLEMS - len(problems)]
            position = seal_position(seal)
            if step:
                step(min(chain.length / length, 1))
            head_known = head_known or chain.head == expected
        async with self._app.tenant_session(org_id) as conn:
            count = await store.count_unsealed(conn, org_id, position, mark.position)
        if count.seal_lost:
            message = f"{count.seal_lost} entries after the last seal were sealed, and their seal is missing"
            problems.append(ChainProblem(org_id, "seal_missing", chain.length + 1, None, message))
        return verification.make_report(
            chain,
            problems,
            unsealed=count.unsealed,
            retained_since=mark.retained_since,
            head_known=head_known,
        )

    async def _count_seals(self, org_id: UUID) -> int:
        """Return the current number of seals, at least 1."""
        async with (await self._app.resources()).database.engine() as conn:
            last = (await store.read_last_seals(conn, [org_id])).get(org_id)
        return int(last["seal_seq"]) if last else 1

    async def _read_seals(self, org_id: UUID) -> AsyncIterator[tuple[_Row, builtins.list[_Row]]]:
        """Yield every seal with the entries since the previous one.

        Rows are never changed after they were written, so no snapshot is held between reads.
        """
        seq, position = 0, CHAIN_START
        while True:
            async with self._app.tenant_session(org_id) as conn:
                segment = await store.read_segment(conn, org_id, seq, position)
            if segment is None:
                return
            entries = iter(segment.entries)
            entry = next(entries, None)
            for seal in segment.seals:
                covered: builtins.list[_Row] = []
                while entry is not None and entry_position(entry) <= seal_position(seal):
                    covered.append(entry)
                    entry = next(entries, None)
                yield seal, covered
            seq, position = segment.seals[-1]["seal_seq"], seal_position(segment.seals[-1])


def _audit_event(event: FeedEvent) -> _Row:
    """Return an event under its audit name."""
    fields = event.model_dump(exclude={"event_type", "event_seq", "payload_json"})
    action = audit_event_name(EventType(event.event_type))
    return {"kind": "event", "action": action, **fields, "detail": event.payload_json}


def _zoned(field: str, at: datetime | None, default: datetime) -> datetime:
    if at is not None and at.tzinfo is None:
        raise ContractError("has no time zone", field=field, fix="pass a time with its zone")
    return default if at is None else at
