"""Templates: an org's own words, those that come with Duly, and which of them are used."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from duly.core import payload as rules
from duly.core.errors import Conflict, ContractError, UnknownTemplate
from duly.core.job import Actor
from duly.db.pool import Connection
from duly.features.arguments import check_org_exists, org_uuid, required_text
from duly.features.audit.entries import audited_transaction, change_request, record_entry
from duly.features.notifications.recipients import checked_key, checked_locale, fallbacks
from duly.features.orgs.service import lock_org
from duly.features.pagination import decode_cursor, encode_cursor, page_size
from duly.features.templates import store as wording
from duly.features.templates.builtin import BUILT_IN
from duly.features.templates.lazy import Words, check, render
from duly.features.templates.store import OwnTemplate
from duly.jobs.application import App

__all__ = ["OwnTemplate", "TemplatePage", "Templates"]

MOST_TEMPLATES = 1_000
"""Of an org."""
LARGEST_PAYLOAD = 16 * 1024
_TRYING = ThreadPoolExecutor(2, thread_name_prefix="duly-preview")
"""Those who try out words wait for one another, and nobody else waits for them."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TemplatePage:
    """Some templates; `after` asks for those that follow, and is None at the end."""

    templates: tuple[OwnTemplate, ...]
    after: str | None


class Templates:
    """The words that the orgs of an application have of their own."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def list(self, org_id: UUID | str, *, limit: int = 50, after: str | None = None) -> TemplatePage:
        """An org's own templates, by key and language; an unknown org raises."""
        whose, size, start = (
            org_uuid(org_id),
            page_size(limit),
            decode_cursor(after, _key_and_locale) or ("", ""),
        )
        async with self._app.tenant_session(whose) as conn:
            found = await wording.list_templates(conn, whose, start, limit=size + 1)
            if not found:
                await check_org_exists(conn, whose)
        page = tuple(found[:size])
        more = len(found) > size
        return TemplatePage(page, encode_cursor(page[-1].template_key, page[-1].locale) if more else None)

    async def get(self, org_id: UUID | str, template_key: str, locale: str) -> OwnTemplate:
        """An org's own words of one language; raises if it has none."""
        whose, key, tongue = org_uuid(org_id), checked_key(template_key), checked_locale(locale)
        async with self._app.tenant_session(whose) as conn:
            found = await wording.find_templates(conn, whose, [key])
        return _found(next((one for one in found if one.locale == tongue), None))

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
    ) -> OwnTemplate:
        """Say it in these words from now on; what a template may not have is refused here."""
        whose, who, words = org_uuid(org_id), change_request(actor, reason), _written(subject, body)
        values = {
            "org_id": whose,
            "template_key": checked_key(template_key),
            "locale": checked_locale(locale),
            "updated_by": who.by,
            **words._asdict(),
        }
        await _tried(partial(check, words))

        async def change(conn: Connection) -> OwnTemplate:
            await lock_org(conn, whose)
            if await wording.count_templates(conn, whose) >= MOST_TEMPLATES:
                raise Conflict("too many templates", field="template_key", fix="remove those nobody uses")
            made = await wording.set_template(conn, values)
            await record_entry(conn, who, whose, "template.set", _name(made), **_said(made))
            return made

        return await audited_transaction(self._app, change)

    async def remove(
        self, org_id: UUID | str, template_key: str, locale: str, *, actor: Actor, reason: str
    ) -> OwnTemplate:
        """Forget an org's own words; those that come with Duly count again."""
        whose, who = org_uuid(org_id), change_request(actor, reason)
        key, tongue = checked_key(template_key), checked_locale(locale)

        async def change(conn: Connection) -> OwnTemplate:
            gone = _found(await wording.remove_template(conn, whose, key, tongue))
            await record_entry(conn, who, whose, "template.removed", _name(gone), **_said(gone))
            return gone

        return await audited_transaction(self._app, change)

    async def preview(
        self,
        org_id: UUID | str,
        template_key: str | None = None,
        *,
        subject: str | None = None,
        body: str | None = None,
        locale: str = "en",
        payload: Mapping[str, Any] | None = None,
    ) -> Words:
        """What a message would say: by the template of a key, or in words that nobody has kept yet.

        A value that the payload does not have is an error that names it; in a message it would be left out.
        """
        tongue, given = checked_locale(locale), checked_payload(payload or {})
        if (template_key is None) == (subject is None or body is None):
            raise ContractError("name a key, or say words", field="template_key", fix="one of the two")
        if template_key is None:
            words = _written(subject or "", body or "")
        else:
            words = await self.words(org_id, template_key, tongue)
        return await _tried(partial(render, words, {"job_url": "", **given}, tongue, strict=True))

    async def words(self, org_id: UUID | str, template_key: str, locale: str) -> Words:
        """The words of a key for somebody of that language; raises if there are none."""
        whose, key = org_uuid(org_id), checked_key(template_key)
        async with self._app.tenant_session(whose) as conn:
            found = resolved(await wording.find_templates(conn, whose, [key]), key, checked_locale(locale))
            if found is None:
                await check_org_exists(conn, whose)
                raise unknown_template(key, locale)
        return found


async def _tried(work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(_TRYING, work)


def resolved(own: Iterable[OwnTemplate], template_key: str, locale: str) -> Words | None:
    """The words that are used: for each language that comes into question an org's own, else Duly's."""
    theirs = {one.locale: Words(one.subject, one.body) for one in own if one.template_key == template_key}
    ours = BUILT_IN.get(template_key, {})
    found = (theirs.get(tongue) or ours.get(tongue) for tongue in fallbacks(locale))
    return next((words for words in found if words is not None), None)


def checked_payload(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What a template may speak of: a small object, without secrets."""
    try:
        encoded = json.dumps(payload)
    except (TypeError, ValueError, RecursionError) as error:
        raise ContractError(f"not JSON: {error}", field="payload", fix="use plain values") from None
    found = json.loads(encoded)
    if not isinstance(found, dict):
        raise ContractError("not an object", field="payload", fix="pass a dict")
    if len(encoded) > LARGEST_PAYLOAD:
        raise ContractError(f"larger than {LARGEST_PAYLOAD} bytes", field="payload", fix="send a link")
    rules.check_payload(found, len(encoded))
    return found


def unknown_template(template_key: str, locale: str) -> UnknownTemplate:
    """There are no such words."""
    return UnknownTemplate(
        f"no template {template_key!r} for {locale}",
        field="template_key",
        fix="set it, or use a built-in one",
    )


def _written(subject: str, body: str) -> Words:
    return Words(_storable("subject", subject), _storable("body", body))


def _storable(field: str, value: str) -> str:
    if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
        raise ContractError("not a text that can be stored", field=field, fix="pass a str without NUL")
    return value


def _key_and_locale(key: str, locale: str) -> tuple[str, str]:
    return required_text("after", key), required_text("after", locale)


def _name(template: OwnTemplate) -> str:
    return f"{template.template_key}/{template.locale}"


def _said(template: OwnTemplate) -> dict[str, str]:
    return {"subject": template.subject, "body": template.body[:2_000]}


def _found(template: OwnTemplate | None) -> OwnTemplate:
    if template is None:
        raise UnknownTemplate(
            "no such template of this org's own", field="template_key", fix="check key, locale and org"
        )
    return template
