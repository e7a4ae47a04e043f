"""`duly templates`."""

from __future__ import annotations

from typing import Annotated

import typer

from duly.app import Duly
from duly.cli.app_loader import read_text
from duly.cli.command import Group
from duly.cli.options import Change, Depends, Owner, Paging
from duly.cli.output import columns
from duly.features.notifications.commands import Locale, TemplateKey
from duly.features.templates.models import OrgTemplate, TemplatePage

templates = Group("templates", "Manage the message templates of an org.")


def _body(body: Annotated[str, typer.Option(help="Set the body: the text, @file, or - for stdin.")]) -> str:
    return read_text(body, "body")


@templates.command(
    "list", columns=columns("template_key", "locale", "subject", "body", "updated_by", "updated_at")
)
async def list_templates(duly: Duly, org: Owner, paging: Paging) -> TemplatePage:
    """List the templates of an org by key and locale."""
    return await duly.notifications.templates.list(org, **paging)


@templates.command("set")
async def set_template(
    duly: Duly,
    template: TemplateKey,
    org: Owner,
    change: Change,
    subject: Annotated[str, typer.Option(help="Set the subject, with {{ values }} of the payload.")],
    body: Annotated[str, Depends(_body)],
    locale: Locale = "en",
) -> OrgTemplate:
    """Set the subject and the body of a template."""
    return await duly.notifications.templates.set(org, template, locale, subject=subject, body=body, **change)


@templates.command()
async def delete(
    duly: Duly, template: TemplateKey, org: Owner, change: Change, locale: Locale = "en"
) -> OrgTemplate:
    """Delete a template of an org; the built-in one applies again."""
    return await duly.notifications.templates.remove(org, template, locale, **change)
