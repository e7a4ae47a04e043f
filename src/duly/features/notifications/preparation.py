"""Prepare due notifications for delivery: check that their creator may still see the job, and render them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from duly.core.errors import ContractError
from duly.core.job import Actor, ActorType
from duly.core.principal import Principal
from duly.db.pool import Connection
from duly.features.notifications.models import DueNotification
from duly.features.templates.models import MessageText, OrgTemplate
from duly.features.templates.service import find_templates, render, resolve_template, unknown_template
from duly.jobs.application import App

_MAX_RENDER_SECONDS = 1.0
_RENDER_THREADS = ThreadPoolExecutor(2, thread_name_prefix="duly-render")
"""Threads of their own: neither previews nor name lookups delay messages."""
OrgTemplates = dict[UUID, list[OrgTemplate]]
RenderedMessages = dict[UUID, MessageText | ContractError]


async def mark_hidden(app: App, due: Sequence[DueNotification]) -> list[DueNotification]:
    """Mark notifications about jobs that their creators may no longer see.

    The rules are checked at delivery, not only when the notification or the subscription was created.
    """
    subjects: dict[tuple[UUID, str], set[str]] = {}
    for one in due:
        if one.job_subject_id is not None:
            subjects.setdefault((one.org_id, one.created_by), set()).add(one.job_subject_id)
    visible = {key: await _visible_subjects(app, *key, names) for key, names in subjects.items()}
    return [
        one
        if one.job_subject_id is None or one.job_subject_id in visible[one.org_id, one.created_by]
        else one.model_copy(update={"hidden": True})
        for one in due
    ]


async def _visible_subjects(app: App, org_id: UUID, created_by: str, subjects: Set[str]) -> Set[str]:
    kind, _, name = created_by.partition(":")
    actor = Actor(ActorType(kind), name) if kind in {*ActorType} else Actor.user(created_by)
    principal = Principal(org_id, actor, frozenset())
    for rule in app.subject_rules:
        if subjects:
            subjects = subjects & await rule(principal, subjects, "read")
    return subjects


async def read_templates(conn: Connection, due: Sequence[DueNotification]) -> OrgTemplates:
    """Return the templates that these notifications need, by org."""
    keys: dict[UUID, set[str]] = {}
    for one in due:
        keys.setdefault(one.org_id, set()).add(one.template_key)
    return {org_id: await find_templates(conn, org_id, names) for org_id, names in keys.items()}


async def render_messages(
    due: Sequence[DueNotification], templates: OrgTemplates, public_url: str
) -> RenderedMessages:
    """Render these notifications on a thread, until the time for one call is over.

    A notification whose template fails gets the error; those without an entry are left for the next call.
    """

    def render_in_time() -> RenderedMessages:
        deadline, messages = time.monotonic() + _MAX_RENDER_SECONDS, {}
        for one in due:
            messages[one.notification_id] = _render(one, templates.get(one.org_id, []), public_url)
            if time.monotonic() > deadline:
                break
        return messages

    return await asyncio.get_running_loop().run_in_executor(_RENDER_THREADS, render_in_time)


def _render(
    one: DueNotification, templates: Sequence[OrgTemplate], public_url: str
) -> MessageText | ContractError:
    template = resolve_template(templates, one.template_key, one.locale)
    if template is None:
        return ContractError(unknown_template(one.template_key, one.locale).message, field="template_key")
    url = f"{public_url}/jobs/{one.job_id}" if public_url and one.job_id else ""
    try:
        return render(template, {"job_url": url, **one.payload}, one.locale)
    except ContractError as error:
        return error
    except Exception as error:  # it must fail this message only
        return ContractError(f"could not be rendered: {type(error).__name__}", field="template_key")
