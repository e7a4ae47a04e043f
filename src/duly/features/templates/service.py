"""Message templates: those of orgs, the built-in ones, and which of them a message uses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from duly.core.errors import Conflict, ContractError, UnknownTemplate
from duly.core.job import Actor
from duly.core.payload import check_payload
from duly.db.pool import Connection
from duly.deprecated_names import DeprecatedName
from duly.features.arguments import check_org_exists, org_uuid, require
from duly.features.audit.entries import audited_transaction, change_request, record_entry
from duly.features.orgs.service import lock_org
from duly.features.pagination import decode_cursor, read_org_page, text_pair_cursor
from duly.features.templates import store
from duly.features.templates.builtin import BUILTIN_TEMPLATES
from duly.features.templates.models import (
    DEFAULT_LOCALE,
    MessageText,
    OrgTemplate,
    TemplatePage,
    checked_locale,
    checked_template_key,
    fallback_locales,
)
from duly.features.templates.store import find_templates
from duly.jobs.application import App

__all__ = ["OrgTemplate", "TemplatePage", "Templates", "find_templates"]

MAX_TEMPLATES_PER_ORG = 1_000
MAX_PAYLOAD_BYTES = 16 * 1024
_MAX_AUDITED_BODY = 2_000
_PREVIEW_THREADS = ThreadPoolExecutor(2, thread_name_prefix="duly-preview")
"""Threads of their own: previews may wait for each other, but nothing else waits for them."""
T = TypeVar("T")


class Templates:
    """The templates of the orgs of an application."""

    words = DeprecatedName("resolve")

    def __init__(self, app: App) -> None:
        self._app = app

    async def list(self, org_id: UUID | str, *, limit: int = 50, after: str | None = None) -> TemplatePage:
        """Return the templates of an org by key and locale; an unknown org raises."""
        org, start = org_uuid(org_id), decode_cursor(after, text_pair_cursor) or ("", "")
        page = await read_org_page(
            self._app,
            org,
            lambda conn, count: store.list_templates(conn, org, start, limit=count),
            lambda last: (last.template_key, last.locale),
            limit=limit,
        )
        return TemplatePage(*page)

    async def get(self, org_id: UUID | str, template_key: str, locale: str) -> OrgTemplate:
        """Return the template of an org in one locale; an unknown one raises."""
        org, key, locale = org_uuid(org_id), checked_template_key(template_key), checked_locale(locale)
        async with self._app.tenant_session(org) as conn:
            templates = await find_templates(conn, org, [key])
        return _require_template(next((one for one in templates if one.locale == locale), None), key, locale)

    async def set(
        self,
        org_id: UUID | str,
        template_key: str,
        locale: str,
        *,
        subject: str,
        body: str,
        actor: Actor,
        reason: str,
    ) -> OrgTemplate:
        """Create or replace a template of an org; raise if it contains what templates may not contain."""
        org, request, text = org_uuid(org_id), change_request(actor, reason), _checked_text(subject, body)
        values = {
            "org_id": org,
            "template_key": checked_template_key(template_key),
            "locale": checked_locale(locale),
            "updated_by": request.by,
            **text._asdict(),
        }
        await _run_in_thread(partial(_check_syntax, text))

        async def change(conn: Connection) -> OrgTemplate:
            await lock_org(conn, org)
            if await store.count_templates(conn, org) >= MAX_TEMPLATES_PER_ORG:
                raise Conflict(
                    f"the org has {MAX_TEMPLATES_PER_ORG} templates",
                    field="template_key",
                    fix="remove unused ones",
                )
            template = await store.set_template(conn, values)
            await record_entry(conn, request, org, "template.set", _name(template), **_detail(template))
            return template

        return await audited_transaction(self._app, change)

    async def remove(
        self, org_id: UUID | str, template_key: str, locale: str, *, actor: Actor, reason: str
    ) -> OrgTemplate:
        """Remove a template of an org; the built-in one applies again."""
        org, request = org_uuid(org_id), change_request(actor, reason)
        key, locale = checked_template_key(template_key), checked_locale(locale)

        async def change(conn: Connection) -> OrgTemplate:
            removed = _require_template(await store.remove_template(conn, org, key, locale), key, locale)
            await record_entry(conn, request, org, "template.removed", _name(removed), **_detail(removed))
            return removed

        return await audited_transaction(self._app, change)

    async def preview(
        self,
        org_id: UUID | str,
        template_key: str | None = None,
        *,
        subject: str | None = None,
        body: str | None = None,
        locale: str = DEFAULT_LOCALE,
        payload: Mapping[str, Any] | None = None,
    ) -> MessageText:
        """Render the template of a key, or a subject and a body that are not stored.

        A value that the payload lacks is an error that names it; in a message it is left empty.
        """
        locale, values = checked_locale(locale), checked_payload(payload or {})
        if (template_key is None) == (subject is None or body is None):
            raise ContractError(
                "pass either template_key, or subject and body",
                field="template_key",
                fix="pass one of the two",
            )
        if template_key is None:
            text = _checked_text(subject or "", body or "")
        else:
            text = await self.resolve(org_id, template_key, locale)
        return await _run_in_thread(partial(render, text, {"job_url": "", **values}, locale, strict=True))

    async def resolve(self, org_id: UUID | str, template_key: str, locale: str) -> MessageText:
        """Return the template that a message in this locale uses; an unknown key raises."""
        org, key, locale = org_uuid(org_id), checked_template_key(template_key), checked_locale(locale)
        async with self._app.tenant_session(org) as conn:
            text = resolve_template(await find_templates(conn, org, [key]), key, locale)
            if text is None:
                await check_org_exists(conn, org)
                raise unknown_template(key, locale)
        return text


async def _run_in_thread(work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(_PREVIEW_THREADS, work)


def render(
    text: MessageText, payload: Mapping[str, Any], locale: str, *, strict: bool = False
) -> MessageText:
    """Render a template with a payload; call it on a thread."""
    # Imported late: Jinja takes a moment to load, and few processes render.
    from duly.features.templates import engine

    return engine.render(text, payload, locale, strict=strict)


def _check_syntax(text: MessageText) -> None:
    from duly.features.templates import engine

    engine.check(text)


def resolve_template(
    org_templates: Iterable[OrgTemplate], template_key: str, locale: str
) -> MessageText | None:
    """Return the template of a message: per fallback locale that of the org, else the built-in one."""
    texts = {
        one.locale: MessageText(one.subject, one.body)
        for one in org_templates
        if one.template_key == template_key
    }
    builtin = BUILTIN_TEMPLATES.get(template_key, {})
    candidates = (texts.get(fallback) or builtin.get(fallback) for fallback in fallback_locales(locale))
    return next((text for text in candidates if text is not None), None)


def checked_payload(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the payload of a template: a small JSON object without secrets."""
    try:
        encoded = json.dumps(payload)
    except (TypeError, ValueError, RecursionError) as error:
        raise ContractError(f"not JSON: {error}", field="payload", fix="use plain values") from None
    decoded = json.loads(encoded)
    if not isinstance(decoded, dict):
        raise ContractError("not an object", field="payload", fix="pass a dict")
    if len(encoded) > MAX_PAYLOAD_BYTES:
        raise ContractError(f"larger than {MAX_PAYLOAD_BYTES} bytes", field="payload", fix="send a link")
    check_payload(decoded, len(encoded))
    return decoded


def unknown_template(template_key: str, locale: str) -> UnknownTemplate:
    """Return the error for a key that has neither a template of the org nor a built-in one."""
    return UnknownTemplate(
        f"no template {template_key!r} for {locale}",
        field="template_key",
        fix="set it, or use a built-in one",
    )


def _checked_text(subject: str, body: str) -> MessageText:
    return MessageText(_storable("subject", subject), _storable("body", body))


def _storable(field: str, value: str) -> str:
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise ContractError("not a text that can be stored", field=field, fix="pass a str without NUL")
    return value


def _name(template: OrgTemplate) -> str:
    return f"{template.template_key}/{template.locale}"


def _detail(template: OrgTemplate) -> dict[str, str]:
    return {"subject": template.subject, "body": template.body[:_MAX_AUDITED_BODY]}


def _require_template(template: OrgTemplate | None, key: str, locale: str) -> OrgTemplate:
    return require(template, UnknownTemplate, f"template {key!r} for {locale}", field="template_key")
