"""The state that routes share: the services of the features, authentication, authorization and limits."""

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

from duly.apps.documents.service import Documents
from duly.core.errors import Forbidden, LimitExceeded
from duly.core.job import JobSnapshot
from duly.core.principal import Principal, Scope
from duly.features.alerts.service import Alerts
from duly.features.api_keys.service import ApiKeys
from duly.features.arguments import unknown_job
from duly.features.audit.service import Audit
from duly.features.bulk.service import Bulk
from duly.features.dead_letters.service import DeadLetters
from duly.features.events.service import Feed
from duly.features.job_results.service import Results
from duly.features.jobs.service import Jobs
from duly.features.jobs.status_watcher import StatusWatcher
from duly.features.limits.service import Limits
from duly.features.members.service import Members
from duly.features.metrics.service import DatabaseMetrics
from duly.features.notifications.service import Notifications
from duly.features.orgs.service import Orgs
from duly.features.overview.service import Overview
from duly.features.queues.service import Queues
from duly.features.schedules.service import Schedules
from duly.features.sessions.service import Sessions
from duly.features.subscriptions.service import Subscriptions
from duly.features.webhooks.allowed_destinations import AllowedUrls
from duly.features.webhooks.service import Webhooks
from duly.http.authentication.authenticator import Authenticator
from duly.http.authentication.jwt import TokenVerifier
from duly.http.authentication.sign_in_throttle import SignInThrottle
from duly.http.options import EVERY_SUBJECT, HttpOptions, May
from duly.http.rate_limit import RequestRateLimit
from duly.http.requester import Requester
from duly.jobs.application import App, SubjectRule
from duly.jobs.request_context import RequestContext, current_context, enter_context


class Service:
    """One process of the HTTP service."""

    def __init__(self, app: App, options: HttpOptions) -> None:
        self.app = app
        self.options = options

        self.jobs = Jobs(app)
        self.status_watcher = StatusWatcher(app)
        self.results = Results(app, options.keep)
        self.dead_letters = DeadLetters(app)
        self.bulk = Bulk(app)
        self.schedules = Schedules(app)
        self.queues = Queues(app)
        self.limits = Limits(app)
        self.feed = Feed(app)
        self.webhooks = Webhooks(app, AllowedUrls(options.webhook_allow))
        self.notifications = Notifications(app)
        self.subscriptions = Subscriptions(app)
        self.orgs = Orgs(app)
        self.members = Members(app)
        self.api_keys = ApiKeys(app)
        self.sessions = Sessions(app)
        self.audit = Audit(app)
        self.alerts = Alerts(app)
        self.overview = Overview(app)
        self.metrics = DatabaseMetrics(app)

        self.secure = options.public_url.startswith("https:")
        """Whether clients connect by https, whatever the last proxy speaks."""
        self.authenticator = Authenticator(
            app,
            TokenVerifier(options.issuers),
            cache_ttl=options.authentication_ttl.total_seconds(),
            secure=self.secure,
        )
        self.rate_limit = RequestRateLimit(options.requests_per_second, options.burst)
        self.sign_in_throttle = SignInThrottle()
        self.rules = [*app.subject_rules, *([_rule_of(options.may)] if options.may else [])]
        """The rules that decide about subjects; all of them must allow an action."""

        self.console: str | None = None
        """The path of the console below the prefix of the service, where it is installed."""
        self.closing = asyncio.Event()
        """Set when the service closes; long waits end then."""
        self._streams: Counter[UUID] = Counter()

    @cached_property
    def documents(self) -> Documents:
        """The documents of the orgs, if the application includes them."""
        return Documents(self.app, self.options.documents)

    async def close(self) -> None:
        """End all waits. The owner of the application closes it."""
        self.closing.set()
        await self.status_watcher.close()

    def allows(self, scope: Scope) -> Any:
        """Return the dependency of a route: `Annotated[Requester, service.allows(Scope.READ)]`."""

        async def authenticated(request: Request) -> Requester:
            return await self.authenticate(request, scope)

        authenticated.scope = scope  # type: ignore[attr-defined] # for the OpenAPI document
        return Depends(authenticated)

    async def authenticate(self, request: Request, scope: Scope | None) -> Requester:
        """Return the sender of a request if it has the scope; the rest of the task acts in its name."""
        principal = await self.authenticator.principal(request)
        request.scope["duly.org_id"] = principal.org_id
        self.rate_limit.admit(request, principal)
        if scope is not None:
            principal.require(scope)
        outer = current_context()
        enter_context(
            lambda: RequestContext(org_id=principal.org_id, actor=principal.actor).completed_by(outer)
        )
        scopes = principal.scopes if scope is None else {scope}
        return Requester(principal, self.base(request), partial(self._reauthenticate, request, scopes))

    async def _reauthenticate(self, request: Request, scopes: Set[Scope]) -> None:
        principal = await self.authenticator.principal(request)
        for scope in scopes:
            principal.require(scope)

    def base(self, request: Request) -> str:
        """Return the prefix of links: the public URL, or the path at which the service is mounted."""
        return self.options.public_url or request.scope.get("root_path", "")

    def path(self, request: Request) -> str:
        """Return the prefix of links between pages, which stay on the host of the request."""
        return urlsplit(self.options.public_url).path or request.scope.get("root_path", "")

    async def check_subject(self, requester: Requester, job: JobSnapshot, action: str = "read") -> None:
        """Raise as for an unknown job unless the requester may act on its subject."""
        if not await self.is_visible(requester, job.subject_id, action):
            raise unknown_job(job.job_id)

    async def check_still_visible(self, requester: Requester, job: JobSnapshot) -> None:
        """Raise unless the requester may still see a job, after a wait."""
        await requester.reauthenticate()
        await self.check_subject(requester, job)

    async def check_submit(self, requester: Requester, subject_id: str | None) -> None:
        """Raise unless the requester may submit jobs about a subject."""
        check_may_submit(await self.visible_subjects(requester, [subject_id], "submit"), subject_id)

    async def check_everything(self, requester: Requester, action: str = "read") -> None:
        """Raise unless the requester may act on every subject: where jobs are not told apart."""
        if not await self.is_visible(requester, EVERY_SUBJECT, action):
            raise Forbidden(
                "you may not see every subject of the org", field="authorization", fix="ask for single jobs"
            )

    async def is_visible(self, requester: Requester, subject_id: str | None, action: str = "read") -> bool:
        """Return whether the requester may act on jobs about a subject."""
        return subject_id in await self.visible_subjects(requester, [subject_id], action)

    async def visible_subjects(
        self, requester: Requester, subject_ids: Iterable[str | None], action: str = "read"
    ) -> Set[str | None]:
        """Return the subjects on whose jobs the requester may act, and None: jobs without one are open."""
        visible: Set[str] = {subject_id for subject_id in subject_ids if subject_id is not None}
        for rule in self.rules:
            if visible:
                visible = visible & await rule(requester.principal, visible, action)
        return {*visible, None}

    @contextmanager
    def stream_of(self, org_id: UUID) -> Iterator[None]:
        """Count an open stream of an org; raise if it has too many."""
        limit = self.options.streams_max
        if self._streams[org_id] >= limit:
            raise LimitExceeded(
                f"{limit} streams are open", field="events", fix="close some, or poll instead"
            )
        self._streams[org_id] += 1
        try:
            yield
        finally:
            self._streams[org_id] -= 1
            if not self._streams[org_id]:
                del self._streams[org_id]


def check_may_submit(visible: Set[str | None], subject_id: str | None) -> None:
    """Raise unless a subject is one of those that the requester may submit jobs about."""
    if subject_id not in visible:
        raise Forbidden(
            "you may not submit jobs about this subject", field="subject_id", fix="ask for access to it"
        )


def _rule_of(may: May) -> SubjectRule:
    """Return the rule that calls `may` for one subject after the other."""

    async def rule(principal: Principal, subject_ids: Set[str], action: str) -> Set[str]:
        return {subject_id for subject_id in subject_ids if await may(principal, subject_id, action)}

    return rule
