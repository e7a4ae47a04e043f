"""Routes of subscriptions to the outcome of jobs."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from duly.core.principal import Scope
from duly.features.notifications.routes import To, allowed_recipient
from duly.features.subscriptions.models import Subscription, SubscriptionPage
from duly.features.subscriptions.service import is_of, unknown_subscription
from duly.features.templates.routes import Locale
from duly.http.params import After, PageSize, StrictModel
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import json_response, page_model, response_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

SubscriptionResponse = response_model(Subscription)
SubscriptionPageResponse = page_model("subscriptions", SubscriptionResponse)


class NewSubscription(StrictModel):
    """A subscription to the outcome of one job, of the jobs of a type, or of all jobs."""

    to: To | None = Field(default=None, description="Default: the requester, in the product.")
    job_id: UUID | None = None
    job_type: str | None = Field(default=None, min_length=1, max_length=200)
    outcomes: list[Literal["completed", "failed", "dead", "canceled"]] = Field(
        default=["completed", "failed", "dead", "canceled"],
        min_length=1,
        max_length=4,
        description="`failed` includes `dead`.",
    )
    locale: Locale = "en"


def routes(service: Service) -> APIRouter:
    """Return the routes of subscriptions: readers subscribe themselves, operators also others."""
    api = APIRouter(prefix="/v1/subscriptions", tags=["notifications"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    subscriptions = service.subscriptions

    @api.get("", response_model=SubscriptionPageResponse, responses=problem_responses())
    async def list_subscriptions(
        requester: reads,
        include_others: Annotated[
            bool, Query(alias="all", description="Include those of others; for operators.")
        ] = False,
        job_id: UUID | None = None,
        limit: PageSize = 50,
        after: After = None,
    ) -> SubscriptionPage:
        """List the subscriptions of the requester, or all of the org; newest first."""
        if include_others:
            requester.principal.require(Scope.OPERATE)
            await service.check_everything(requester)
        owner = None if include_others else requester.actor
        return await subscriptions.list(requester.org_id, job_id=job_id, of=owner, limit=limit, after=after)

    @api.post(
        "",
        status_code=201,
        response_model=SubscriptionResponse,
        responses=problem_responses(404, 409, 413, 415),
    )
    async def subscribe(request: NewSubscription, requester: reads) -> Response:
        """Subscribe the requester to the outcome of jobs; operators may name a recipient. Idempotent."""
        recipient = allowed_recipient(requester, request.to)
        if request.job_id is None:
            await service.check_everything(requester)
        else:
            job = (await service.jobs.status(requester.org_id, request.job_id)).job
            await service.check_subject(requester, job)
        created = await subscriptions.subscribe(
            requester.org_id, recipient, actor=requester.actor, **request.model_dump(exclude={"to"})
        )
        location = {"location": requester.link(f"/v1/subscriptions/{created.subscription_id}")}
        return json_response(SubscriptionResponse.model_validate(created), 201, location)

    @api.get("/{subscription_id}", response_model=SubscriptionResponse, responses=problem_responses(404))
    async def show_subscription(subscription_id: UUID, requester: reads) -> Subscription:
        """Get a subscription of the requester; operators may get any."""
        return await _accessible(requester, subscription_id)

    @api.delete(
        "/{subscription_id}", status_code=204, response_class=Response, responses=problem_responses(404)
    )
    async def unsubscribe(subscription_id: UUID, requester: reads) -> None:
        """Delete a subscription of the requester, for operators any. Pending messages are still sent."""
        await _accessible(requester, subscription_id)
        await subscriptions.unsubscribe(requester.org_id, subscription_id)

    async def _accessible(requester: Requester, subscription_id: UUID) -> Subscription:
        """Return a subscription of the requester, or any to an operator; else raise as for an unknown one."""
        subscription = await subscriptions.get(requester.org_id, subscription_id)
        if is_of(subscription, requester.actor) or requester.may(Scope.OPERATE):
            return subscription
        raise unknown_subscription()

    return api
