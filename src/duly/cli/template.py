"""`duly template`."""

from __future__ import annotations

from typing import Annotated

import typer

from duly.cli.application import read_text, run
from duly.cli.notify import Locale, TemplateKey
from duly.cli.options import ActorName, After, AppName, AsJson, Owner, Reason, Size, acting
from duly.cli.show import Columns, print_json, print_table

group = typer.Typer(
    help="The words of an org's own, for its notifications.", no_args_is_help=True, rich_markup_mode=None
)

_COLUMNS: Columns = {
    "template": "template_key",
    "locale": "locale",
    "subject": "subject",
    "body": "body",
    "by": "updated_by",
    "updated": "updated_at",
}


@group.command("list")
def list_templates(
    org: Owner, limit: Size = 50, after: After = None, app: AppName = None, as_json: AsJson = False
) -> None:
    """The templates of an org's own, by key and language."""
    page = run(app, lambda duly: duly.notifications.templates.list(org, limit=limit, after=after))
    print_json(page) if as_json else print_table(page.templates, _COLUMNS, after=page.after)


@group.command("set")
def set_template(
    template: TemplateKey,
    org: Owner,
    reason: Reason,
    subject: Annotated[str, typer.Option(help="One line, with {{ values }} of the payload.")],
    body: Annotated[str, typer.Option(help="The text, @file to read it from, or - for stdin.")],
    locale: Locale = "en",
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Say it in these words from now on."""
    text = read_text(body, "body")
    made = run(
        app,
        lambda duly: duly.notifications.templates.set(
            org, template, locale, subject=subject, body=text, actor=acting(actor), reason=reason
        ),
    )
    print_json(made) if as_json else print_table([made], _COLUMNS)


@group.command()
def remove(
    template: TemplateKey,
    org: Owner,
    reason: Reason,
    locale: Locale = "en",
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Forget an org's own words; those that come with Duly count again."""
    gone = run(
        app,
        lambda duly: duly.notifications.templates.remove(
            org, template, locale, actor=acting(actor), reason=reason
        ),
    )
    print_json(gone) if as_json else print_table([gone], _COLUMNS)
