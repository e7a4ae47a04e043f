"""Subscriptions: who of the org is told how jobs end."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.responses import Response

from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.notification_rules import allowed_recipient
from duly.http.notification_shapes import NewSubscription, SubscriptionShown, SubscriptionsShown
from duly.http.params import After, Limit
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.strict import StrictRoute
from duly.model.access import Scope
from duly.model.errors import UnknownSubscription
from duly.notify.subscriptions import is_of
from duly.store.subscriptions import Subscription


def routes(service: Service) -> APIRouter:
    """Everybody subscribes themselves; whoever operates, also others."""
    api = APIRouter(prefix="/v1/subscriptions", tags=["notifications"], route_class=StrictRoute)
    reads = Annotated[Caller, service.allows(Scope.READ)]
    subscriptions = service.subscriptions

    @api.get("", response_model=SubscriptionsShown, responses=documented())
    async def list_subscriptions(
        who: reads,
        everybody: Annotated[
            bool, Query(alias="all", description="Those of others, too; for operators.")
        ] = False,
        job_id: UUID | None = None,
        limit: Limit = 50,
        after: After = None,
    ) -> Response:
        """The caller's own subscriptions, the newest first; or all of the org."""
        if everybody:
            who.principal.require(Scope.OPERATE)
            await service.check_everything(who)
        of = None if everybody else who.actor
        page = await subscriptions.list(who.org_id, job_id=job_id, of=of, limit=limit, after=after)
        return as_json(SubscriptionsShown.model_validate(page))

    @api.post("", status_code=201, response_model=SubscriptionShown, responses=documented(404, 409, 413, 415))
    async def subscribe(request: NewSubscription, who: reads) -> Response:
        """Tell the caller, or for operators another, how a job ends, or all of a type, or all. Idempotent."""
        whom = allowed_recipient(who, request.to)
        if request.job_id is None:
            await service.check_everything(who)
        else:
            await service.check_subject(who, (await service.jobs.glance(who.org_id, request.job_id)).job)
        said = request.model_dump(exclude={"to"})
        made = await subscriptions.subscribe(who.org_id, whom, actor=who.actor, **said)
        place = {"location": who.link(f"/v1/subscriptions/{made.subscription_id}")}
        return as_json(SubscriptionShown.model_validate(made), 201, place)

    @api.get("/{subscription_id}", response_model=SubscriptionShown, responses=documented(404))
    async def show_subscription(subscription_id: UUID, who: reads) -> Response:
        """One subscription: the caller's own, or for operators any."""
        return as_json(SubscriptionShown.model_validate(await _own(who, subscription_id)))

    @api.delete("/{subscription_id}", status_code=204, response_class=Response, responses=documented(404))
    async def unsubscribe(subscription_id: UUID, who: reads) -> Response:
        """End it: the caller's own, or for operators any. What is to be told already is told."""
        await _own(who, subscription_id)
        await subscriptions.unsubscribe(who.org_id, subscription_id)
        return Response(status_code=204)

    async def _own(who: Caller, subscription_id: UUID) -> Subscription:
        """Theirs, or of the org that they look after; another's looks like none."""
        found = await subscriptions.get(who.org_id, subscription_id)
        if is_of(found, who.actor) or who.may(Scope.OPERATE):
            return found
        raise UnknownSubscription(
            "no subscription of this id in this org", field="subscription_id", fix="check the id and the org"
        )

    return api
