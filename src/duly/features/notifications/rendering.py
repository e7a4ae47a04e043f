"""What a message says when it is due: the words of its recipient's language, with its payload."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from duly.core.errors import ContractError
from duly.db.pool import Connection
from duly.features.notifications.store import Due
from duly.features.templates import store as wording
from duly.features.templates.lazy import Words, render
from duly.features.templates.service import resolved, unknown_template
from duly.features.templates.store import OwnTemplate

_LONGEST_ROUND = 1.0
_THREADS = ThreadPoolExecutor(2, thread_name_prefix="duly-words")
"""Of their own: neither those who try out words nor those who look up names are in the way."""


async def own_templates(conn: Connection, due: Sequence[Due]) -> dict[UUID, list[OwnTemplate]]:
    """The own words of the orgs of these notifications, as far as they need them."""
    keys: dict[UUID, set[str]] = {}
    for one in due:
        keys.setdefault(one.org_id, set()).add(one.template_key)
    return {org_id: await wording.find_templates(conn, org_id, found) for org_id, found in keys.items()}


async def words_of(
    due: Sequence[Due], own: dict[UUID, list[OwnTemplate]], public_url: str
) -> dict[UUID, Words | ContractError]:
    """What each of them says, or why it cannot be said; those that there was no time for are not named.

    On a thread: a template may take its time.
    """

    def as_many_as_can_be() -> dict[UUID, Words | ContractError]:
        until, said = time.monotonic() + _LONGEST_ROUND, {}
        for one in due:
            said[one.notification_id] = _said(one, own.get(one.org_id, []), public_url)
            if time.monotonic() > until:
                break
        return said

    return await asyncio.get_running_loop().run_in_executor(_THREADS, as_many_as_can_be)


def _said(one: Due, own: Sequence[OwnTemplate], public_url: str) -> Words | ContractError:
    words = resolved(own, one.template_key, one.locale)
    if words is None:
        return ContractError(unknown_template(one.template_key, one.locale).message, field="template_key")
    url = f"{public_url}/jobs/{one.job_id}" if public_url and one.job_id else ""
    try:
        return render(words, {"job_url": url, **one.payload}, one.locale)
    except ContractError as error:
        return error
    except Exception as error:  # the trouble of this one alone
        return ContractError(f"it cannot be written: {type(error).__name__}", field="template_key")
