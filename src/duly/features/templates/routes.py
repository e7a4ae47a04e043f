"""Routes of the org's own templates of notifications."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import Field
from starlette.responses import Response

from duly.core.principal import Scope
from duly.features.templates.models import (
    KEY_PATTERN,
    LOCALE_PATTERN,
    MAX_KEY_LENGTH,
    MAX_SOURCE_LENGTH,
    OrgTemplate,
    TemplatePage,
)
from duly.http.params import After, PageSize, ReasonBody, ReasonParam
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import page_model, response_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

_KEY, _LOCALE = f"^{KEY_PATTERN}$", f"^{LOCALE_PATTERN}$"
Locale = Annotated[str, Field(pattern=_LOCALE, max_length=12, examples=["de"])]
Key = Annotated[str, Field(pattern=_KEY, max_length=MAX_KEY_LENGTH, examples=["job.completed"])]
KeyPath = Annotated[str, Path(pattern=_KEY, max_length=MAX_KEY_LENGTH)]
LocaleParam = Annotated[str, Query(pattern=_LOCALE, max_length=12)]
Subject = Annotated[str, Field(max_length=MAX_SOURCE_LENGTH["subject"])]
Body = Annotated[str, Field(max_length=MAX_SOURCE_LENGTH["body"])]

TemplateResponse = response_model(OrgTemplate, "Template")
TemplatePageResponse = page_model("templates", TemplateResponse)


class TemplateContent(ReasonBody):
    """The subject and the body of a template."""

    subject: Subject = Field(min_length=1)
    body: Body


def routes(service: Service) -> APIRouter:
    """Return the routes of templates."""
    api = APIRouter(prefix="/v1/notification-templates", tags=["notifications"], route_class=StrictRoute)
    operates = Annotated[Requester, service.allows(Scope.OPERATE)]
    administers = Annotated[Requester, service.allows(Scope.ADMIN)]
    templates = service.notifications.templates

    @api.get("", response_model=TemplatePageResponse, responses=problem_responses())
    async def list_templates(requester: operates, limit: PageSize = 50, after: After = None) -> TemplatePage:
        """List the org's own templates by key and language, without the built-in ones."""
        return await templates.list(requester.org_id, limit=limit, after=after)

    @api.get("/{template_key}", response_model=TemplateResponse, responses=problem_responses(404))
    async def show_template(
        template_key: KeyPath, requester: operates, locale: LocaleParam = "en"
    ) -> OrgTemplate:
        """Get the org's own template of a language."""
        return await templates.get(requester.org_id, template_key, locale)

    @api.put(
        "/{template_key}", response_model=TemplateResponse, responses=problem_responses(404, 409, 413, 415)
    )
    async def set_template(
        template_key: KeyPath, request: TemplateContent, requester: administers, locale: LocaleParam = "en"
    ) -> OrgTemplate:
        """Set the org's own template of a language."""
        return await templates.set(
            requester.org_id, template_key, locale, actor=requester.actor, **dict(request)
        )

    @api.delete("/{template_key}", status_code=204, response_class=Response, responses=problem_responses(404))
    async def remove_template(
        template_key: KeyPath, reason: ReasonParam, requester: administers, locale: LocaleParam = "en"
    ) -> None:
        """Delete the org's own template; the built-in one applies again."""
        await templates.remove(requester.org_id, template_key, locale, actor=requester.actor, reason=reason)

    return api
