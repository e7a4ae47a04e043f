"""What the routes share: the application, its verbs, and the limits of this process."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from fastapi import Depends, Request

from duly.bulk import Bulk
from duly.client.app import App, SubjectRule
from duly.client.context import Surroundings, enter, surroundings
from duly.control.alerts import Alerts
from duly.control.audit import Audit
from duly.control.deadletter import DeadLetters
from duly.control.feed import Feed
from duly.control.figures import Figures
from duly.control.jobs import Jobs
from duly.control.keys import Keys
from duly.control.limits import Limits
from duly.control.members import Members
from duly.control.orgs import Orgs
from duly.control.overview import Overview
from duly.control.queues import Queues
from duly.control.results import Results
from duly.control.schedules import Schedules
from duly.control.sessions import Sessions
from duly.control.watch import Watch
from duly.documents.documents import Documents
from duly.http.auth import Authenticator
from duly.http.caller import Caller
from duly.http.log_ins import LogIns
from duly.http.options import EVERY_SUBJECT, HttpOptions, May
from duly.http.rates import Rates
from duly.http.tokens import Tokens
from duly.model.access import Principal, Scope
from duly.model.errors import Forbidden, LimitExceeded, UnknownJob
from duly.model.job import JobSnapshot
from duly.notify import Notifications, Subscriptions
from duly.webhooks.endpoints import Webhooks
from duly.webhooks.places import Places


class Service:
    """One process of the service."""

    def __init__(self, app: App, options: HttpOptions) -> None:
        self.app = app
        self.options = options
        self.jobs = Jobs(app)
        self.results = Results(app, options.keep)
        self.dead_letters = DeadLetters(app)
        self.bulk = Bulk(app)
        self.schedules = Schedules(app)
        self.queues = Queues(app)
        self.limits = Limits(app)
        self.feed = Feed(app)
        self.audit = Audit(app)
        self.alerts = Alerts(app)
        self.keys = Keys(app)
        self.members = Members(app)
        self.orgs = Orgs(app)
        self.overview = Overview(app)
        self.figures = Figures(app)
        self.notifications = Notifications(app)
        self.subscriptions = Subscriptions(app)
        self.sessions = Sessions(app)
        self.webhooks = Webhooks(app, Places(options.webhook_allow))
        self.watch = Watch(app)
        self.rules = [*app.subject_rules, *([one_by_one(options.may)] if options.may else [])]
        """Who may see jobs about a subject: all must agree."""
        self.rates = Rates(options.requests_per_second, options.burst)
        self.secure = options.public_url.startswith("https:")
        """Whether callers come by https, whatever the last proxy speaks."""
        self.authenticator = Authenticator(
            app,
            Tokens(options.issuers),
            believed_for=options.believed_for.total_seconds(),
            secure=self.secure,
        )
        self.console: str | None = None
        """Where the console is, behind our prefix, if somebody has added it."""
        self.log_ins = LogIns()
        self.closing = asyncio.Event()
        """Whoever waits here for something else waits for this too."""
        self._streams: Counter[UUID] = Counter()

    @cached_property
    def documents(self) -> Documents:
        """Documents of the orgs, where the application includes them."""
        return Documents(self.app, self.options.documents)

    async def close(self) -> None:
        """Let nobody wait any longer; the application is its owner's to close."""
        self.closing.set()
        await self.watch.close()

    def allows(self, scope: Scope) -> Any:
        """For routes, `who: Annotated[Caller, service.allows(...)]`: the request goes on in their name."""

        async def caller(request: Request) -> Caller:
            return await self.caller(request, scope)

        caller.scope = scope  # type: ignore[attr-defined] # for the document
        return Depends(caller)

    async def caller(self, request: Request, scope: Scope | None) -> Caller:
        """Whoever sent it, if they may; what follows in this task is in their name."""
        found = await self.authenticator.principal(request)
        request.scope["duly.org_id"] = found.org_id
        self.rates.admit(request, found)
        if scope is not None:
            found.require(scope)
        outer = surroundings()
        enter(lambda: Surroundings(org_id=found.org_id, actor=found.actor).over(outer))
        needed = found.scopes if scope is None else {scope}
        return Caller(found, self.base(request), partial(self._again, request, needed))

    async def _again(self, request: Request, needed: Set[Scope]) -> None:
        """Who has lost a right that they were shown something by must come anew."""
        found = await self.authenticator.principal(request)
        for scope in needed:
            found.require(scope)

    def base(self, request: Request) -> str:
        """What comes before our paths in links: where we are said to be, or where we are mounted."""
        return self.options.public_url or request.scope.get("root_path", "")

    def path(self, request: Request) -> str:
        """The same for our own pages, which stay with the host that they came from."""
        return urlsplit(self.options.public_url).path or request.scope.get("root_path", "")

    async def check_subject(self, who: Caller, job: JobSnapshot, action: str = "read") -> None:
        """Raise as for an unknown job unless they may see what it is about."""
        if not await self.sees(who, job.subject_id, action):
            raise unknown_job(job.job_id)

    async def check_still(self, who: Caller, job: JobSnapshot) -> None:
        """Raise unless they may still see it: asked after a wait."""
        await who.again()
        await self.check_subject(who, job)

    async def check_about(self, who: Caller, subject_id: str | None) -> None:
        """Raise unless they may have jobs done about this subject."""
        check_among(await self.seen(who, [subject_id], "submit"), subject_id)

    async def check_everything(self, who: Caller, action: str = "read") -> None:
        """Raise unless they may do it with jobs about every subject: asked where jobs are not told apart."""
        if not await self.sees(who, EVERY_SUBJECT, action):
            raise Forbidden(
                "you may not see every subject of the org", field="authorization", fix="ask for single jobs"
            )

    async def sees(self, who: Caller, subject_id: str | None, action: str = "read") -> bool:
        """Whether they may do it with jobs about this subject."""
        return subject_id in await self.seen(who, [subject_id], action)

    async def seen(
        self, who: Caller, subject_ids: Iterable[str | None], action: str = "read"
    ) -> Set[str | None]:
        """Those of the subjects that they may do it with jobs about, and None: no rule asks about that."""
        left: Set[str] = {one for one in subject_ids if one is not None}
        for rule in self.rules:
            if left:
                left = left & await rule(who.principal, left, action)
        return {*left, None}

    @contextmanager
    def stream_of(self, org_id: UUID) -> Iterator[None]:
        """A place for one open stream."""
        most = self.options.streams_max
        if self._streams[org_id] >= most:
            raise LimitExceeded(f"{most} streams are open", field="events", fix="close some, or poll instead")
        self._streams[org_id] += 1
        try:
            yield
        finally:
            self._streams[org_id] -= 1
            if not self._streams[org_id]:
                del self._streams[org_id]


def check_among(open_to_them: Set[str | None], subject_id: str | None) -> None:
    """Raise unless it is one of the subjects that they may have jobs done about."""
    if subject_id not in open_to_them:
        raise Forbidden(
            "you may not have jobs done about this subject", field="subject_id", fix="ask for access to it"
        )


def one_by_one(may: May) -> SubjectRule:
    """A rule that asks about one subject at a time."""

    async def rule(who: Principal, subject_ids: Set[str], action: str) -> Set[str]:
        return {one for one in subject_ids if await may(who, one, action)}

    return rule


def unknown_job(job_id: UUID) -> UnknownJob:
    """The same answer for an unknown job, for another org's, and for one they may not see."""
    return UnknownJob(f"no job {job_id} in this org", field="job_id", fix="check the id and the org")
