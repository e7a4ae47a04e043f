"""The audit trail of the org: filtered, and verified against its seals by a job."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response

from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import Page, Visit, as_id
from duly.core.errors import ContractError
from duly.core.principal import Scope
from duly.features.audit.service import Verification

_AT_A_TIME = 50
_TEXTS = ("actor", "action", "target")
_TIMES = ("since", "until")
_ID = re.compile(r"[0-9a-f-]{16,}")


async def listed(visit: Visit) -> Page:
    """The entries, the newest first; and how a verification stands that somebody has asked for."""
    asked = {name: visit.query.get(name, "") for name in (*_TEXTS, *_TIMES)}
    after = visit.query.get("after")
    page = await visit.service.audit.list(
        visit.org_id,
        actor=asked["actor"] or None,
        action=asked["action"] or None,
        target_id=asked["target"] or None,
        since=_moment("since", asked["since"]),
        until=_moment("until", asked["until"]),
        limit=_AT_A_TIME,
        after=after,
    )
    return visit.page(
        "audit.html",
        title=visit.t("audit.title"),
        asked=asked,
        rows=[(one, _ends(one.actor_id), _ends(one.target_id), _pretty(one.detail)) for one in page.entries],
        short=page.after is not None and len(page.entries) < _AT_A_TIME,
        verification=await _verification(visit),
        after=page.after,
        first=after is None,
    )


async def verify(visit: Visit, form: Form) -> Response:
    """Have the whole trail verified."""
    expect = form.get("expect", "").strip().lower() or None
    handle = await visit.service.audit.start_verification(visit.org_id, expect=expect, actor=visit.actor)
    return visit.done("audit.verifying", to="/audit", query={"verification": handle.job_id})


async def _verification(visit: Visit) -> Verification | None:
    which = visit.query.get("verification")
    return await visit.service.audit.verification(visit.org_id, as_id(which)) if which else None


def _moment(field: str, text: str) -> datetime | None:
    """A time from a form, in UTC unless it says otherwise."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ContractError(f"{text!r} is no time", field=field, fix="as in 2026-11-15T12:00") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _ends(text: str) -> str:
    """An id by its ends: in a list, that tells it from others."""
    return f"{text[:6]}…{text[-6:]}" if _ID.fullmatch(text) else text


def _pretty(detail: dict[str, Any]) -> str:
    return json.dumps(detail, indent=2, ensure_ascii=False, sort_keys=True) if detail else ""


ROUTES = (
    Show("/audit", listed, Scope.ADMIN, nav="audit.title"),
    Act("/audit/verify", verify, Scope.ADMIN, listed),
)
