"""Console pages of the audit trail: list and filter entries, verify the chain in a job."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response

from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import ConsolePage, Visit, as_id
from duly.core.errors import ContractError
from duly.core.principal import Scope
from duly.features.audit.models import Verification

_PAGE_SIZE = 50
_FILTERS = ("actor", "action", "target", "since", "until")
_ID = re.compile(r"[0-9a-f-]{16,}")


async def list_page(visit: Visit) -> ConsolePage:
    """Show the entries, newest first, and the progress or report of a verification."""
    filters = {name: visit.query.get(name, "") for name in _FILTERS}
    after = visit.query.get("after")
    page = await visit.service.audit.list(
        visit.org_id,
        actor=filters["actor"] or None,
        action=filters["action"] or None,
        target_id=filters["target"] or None,
        since=_parse_time("since", filters["since"]),
        until=_parse_time("until", filters["until"]),
        limit=_PAGE_SIZE,
        after=after,
    )
    return visit.page(
        "audit.html",
        title=visit.t("audit.title"),
        filters=filters,
        rows=[
            (entry, _short_id(entry.actor_id), _short_id(entry.target_id), _indented(entry.detail))
            for entry in page.entries
        ],
        short=page.after is not None and len(page.entries) < _PAGE_SIZE,
        verification=await _verification(visit),
        after=page.after,
        first=after is None,
    )


async def verify(visit: Visit, form: Form) -> Response:
    """Start a verification of the whole audit trail."""
    expect = form.get("expect", "").strip().lower() or None
    handle = await visit.service.audit.start_verification(visit.org_id, expect=expect, actor=visit.actor)
    return visit.done("audit.verifying", to="/audit", query={"verification": handle.job_id})


async def _verification(visit: Visit) -> Verification | None:
    job_id = visit.query.get("verification")
    return await visit.service.audit.verification(visit.org_id, as_id(job_id)) if job_id else None


def _parse_time(field: str, text: str) -> datetime | None:
    """Return a time from a form, in UTC unless it has another zone."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ContractError(
            f"{text!r} is not a time", field=field, fix="write it as 2026-11-15T12:00"
        ) from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _short_id(text: str) -> str:
    """Return the first and last characters of a long id."""
    return f"{text[:6]}…{text[-6:]}" if _ID.fullmatch(text) else text


def _indented(detail: dict[str, Any]) -> str:
    return json.dumps(detail, indent=2, ensure_ascii=False, sort_keys=True) if detail else ""


ROUTES = (
    Show("/audit", list_page, Scope.ADMIN, nav="audit.title"),
    Act("/audit/verify", verify, Scope.ADMIN, list_page),
)
