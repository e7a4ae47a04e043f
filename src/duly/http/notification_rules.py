"""How the org's people are told: its own words, what recipients want, and whom nothing is sent to."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.notification_shapes import (
    KEY,
    LOCALE,
    NewSuppression,
    PreferenceChange,
    PreferenceShown,
    PreferencesShown,
    SuppressionShown,
    SuppressionsShown,
    TemplateShown,
    TemplatesShown,
    TemplateWords,
)
from duly.http.params import After, Because, Limit
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.strict import StrictRoute
from duly.model.access import Scope
from duly.notify.recipients import IN_APP, Recipient, own_address

TemplateKey = Annotated[str, Path(pattern=KEY, max_length=100)]
InLocale = Annotated[str, Query(pattern=LOCALE, max_length=12)]
Whom = Annotated[str, Query(min_length=3, max_length=400, examples=["email:anna@example.com"])]


def routes(service: Service) -> APIRouter:
    """Everybody says what they want themselves; whoever operates, also for others."""
    api = APIRouter(prefix="/v1", tags=["notifications"], route_class=StrictRoute)
    reads = Annotated[Caller, service.allows(Scope.READ)]
    operates = Annotated[Caller, service.allows(Scope.OPERATE)]
    administers = Annotated[Caller, service.allows(Scope.ADMIN)]
    templates, refusals = service.notifications.templates, documented(404, 409, 413, 415)
    preferences, suppressions = service.notifications.preferences, service.notifications.suppressions

    @api.get("/notification-templates", response_model=TemplatesShown, responses=documented())
    async def list_templates(who: operates, limit: Limit = 50, after: After = None) -> Response:
        """The org's own templates, by key and language; not those that come with Duly."""
        page = await templates.list(who.org_id, limit=limit, after=after)
        return as_json(TemplatesShown.model_validate(page))

    @api.get(
        "/notification-templates/{template_key}", response_model=TemplateShown, responses=documented(404)
    )
    async def show_template(template_key: TemplateKey, who: operates, locale: InLocale = "en") -> Response:
        """The org's own words of one language."""
        found = await templates.get(who.org_id, template_key, locale)
        return as_json(TemplateShown.model_validate(found))

    @api.put("/notification-templates/{template_key}", response_model=TemplateShown, responses=refusals)
    async def set_template(
        template_key: TemplateKey, request: TemplateWords, who: administers, locale: InLocale = "en"
    ) -> Response:
        """Say it in these words from now on."""
        made = await templates.set(who.org_id, template_key, locale, actor=who.actor, **dict(request))
        return as_json(TemplateShown.model_validate(made))

    @api.delete(
        "/notification-templates/{template_key}",
        status_code=204,
        response_class=Response,
        responses=documented(404),
    )
    async def remove_template(
        template_key: TemplateKey, reason: Because, who: administers, locale: InLocale = "en"
    ) -> Response:
        """Forget the org's own words; those that come with Duly count again."""
        await templates.remove(who.org_id, template_key, locale, actor=who.actor, reason=reason)
        return Response(status_code=204)

    @api.get("/notification-preferences", response_model=PreferencesShown, responses=documented())
    async def show_preferences(who: reads, to: Whom | None = None) -> Response:
        """What the caller wants to hear in the product; or what another recipient wants, for operators."""
        whom = allowed_recipient(who, to)
        listed = [PreferenceShown.model_validate(one) for one in await preferences.of(who.org_id, whom)]
        return as_json(PreferencesShown(to=str(whom), preferences=listed))

    @api.put("/notification-preferences", response_model=PreferencesShown, responses=documented(413, 415))
    async def set_preference(request: PreferenceChange, who: reads) -> Response:
        """What the caller wants to hear from now on; or another recipient, for operators."""
        whom = allowed_recipient(who, request.to)
        found = await preferences.set(
            who.org_id,
            whom,
            wanted=request.wanted,
            template_key=request.template_key or "",
            actor=who.actor,
        )
        listed = [PreferenceShown.model_validate(one) for one in found]
        return as_json(PreferencesShown(to=str(whom), preferences=listed))

    @api.get("/notification-suppressions", response_model=SuppressionsShown, responses=documented())
    async def list_suppressions(who: administers, limit: Limit = 50, after: After = None) -> Response:
        """To whom nothing is sent: addresses that bounced, people who have left."""
        page = await suppressions.list(who.org_id, limit=limit, after=after)
        return as_json(SuppressionsShown.model_validate(page))

    @api.post("/notification-suppressions", response_model=SuppressionShown, responses=documented(413, 415))
    async def suppress(request: NewSuppression, who: administers) -> Response:
        """Send nothing to somebody any more. Asked again, it changes nothing."""
        made = await suppressions.add(who.org_id, request.to, actor=who.actor, reason=request.reason)
        return as_json(SuppressionShown.model_validate(made))

    @api.delete(
        "/notification-suppressions", status_code=204, response_class=Response, responses=documented()
    )
    async def end_suppression(to: Whom, reason: Because, who: administers) -> Response:
        """Send to them again. Asked again, it changes nothing."""
        await suppressions.remove(who.org_id, to, actor=who.actor, reason=reason)
        return Response(status_code=204)

    return api


def allowed_recipient(who: Caller, to: str | None) -> Recipient:
    """The caller, in the product; or whom they named, if they may speak for others."""
    own = Recipient(IN_APP, own_address(who.actor))
    whom = own if to is None else Recipient.read(to)
    if whom != own:
        # Else whoever may look at a job could have strangers written to.
        who.principal.require(Scope.OPERATE)
    return whom
