"""A job is done again with another payload. What is hidden of it is never sent to the browser, and stays."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import Page, Visit
from duly.core import payload as rules
from duly.core.errors import ContractError, DulyError
from duly.core.principal import Scope
from duly.core.redaction import redact_payload, restore_redacted
from duly.features.job_detail.page_parts import pretty
from duly.features.job_detail.pages import to_change
from duly.features.job_detail.payload_fields import fields


async def page(visit: Visit) -> Page:
    """The payload to be edited, beside the fields that its type takes."""
    job = await to_change(visit)
    stored = await visit.service.jobs.payload(visit.org_id, job.job_id)
    registry = visit.service.app.registry
    known = job.job_type in registry
    return visit.page(
        "job_fix.html",
        title=visit.t("job.fix.title"),
        job=job,
        known=known,
        fields=fields(registry.get(job.job_type).codec.schema()) if known else [],
        text=visit.form.get("payload", "") if visit.form else pretty(redact_payload(stored)),
        wrong=_wrong(visit, job.job_type, stored),
    )


async def fix(visit: Visit, form: Form) -> Response:
    """Do it again so."""
    job = await to_change(visit)
    if job.job_type not in visit.service.app.registry:
        raise ContractError(visit.t("job.fix.unknown", type=job.job_type), field="job_type", fix="replay it")
    payload = _payload(form, await visit.service.jobs.payload(visit.org_id, job.job_id))
    handle = await visit.service.dead_letters.rerun(
        visit.org_id, job.job_id, visit.actor, form.reason, payload=payload
    )
    return visit.done("job.fixed", to=f"/jobs/{handle.job_id}")


def _payload(form: Form, stored: dict[str, Any]) -> dict[str, Any]:
    typed = rules.parse_payload(form.text("payload"))
    if not isinstance(typed, dict):
        raise ContractError("not a JSON object", field="payload", fix="begin with { and end with }")
    found: dict[str, Any] = restore_redacted(typed, stored)
    return found


def _wrong(visit: Visit, job_type: str, stored: dict[str, Any]) -> list[DulyError]:
    """All that is wrong with what was typed, the field that was refused first."""
    if visit.problem is None or not (visit.problem.field or "").startswith("payload"):
        return []
    try:
        assert visit.form is not None
        codec = visit.service.app.registry.get(job_type).codec
        return [*codec.refusals(_payload(visit.form, stored))] or [visit.problem]
    except ContractError:
        return [visit.problem]


ROUTES = (
    Show("/jobs/{job_id}/fix", page, Scope.OPERATE, every=30.0),
    Act("/jobs/{job_id}/fix", fix, Scope.OPERATE, page),
)
