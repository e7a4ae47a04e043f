"""The page that reruns a job with an edited payload. Redacted values never reach the browser, and stay."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import ConsolePage, Visit
from duly.core.errors import ContractError, DulyError
from duly.core.payload import parse_payload
from duly.core.principal import Scope
from duly.core.redaction import redact_payload, restore_redacted
from duly.features.job_detail.page_parts import pretty_json
from duly.features.job_detail.pages import changeable_job

_MAX_SCHEMA_DEPTH = 5


@dataclass(frozen=True, slots=True)
class PayloadField:
    """A field of the payload of a job type."""

    name: str
    kind: str
    """The type, such as `string`, `integer[]` or `'a' | 'b'`."""
    required: bool
    hint: str
    default: str
    """JSON; empty without a default."""


async def page(visit: Visit) -> ConsolePage:
    """Show the payload in a form, beside the fields of its job type."""
    job = await changeable_job(visit)
    stored = await visit.service.jobs.payload(visit.org_id, job.job_id)
    registry = visit.service.app.registry
    known = job.job_type in registry
    return visit.page(
        "job_fix.html",
        title=visit.t("job.fix.title"),
        job=job,
        known=known,
        fields=payload_fields(registry.get(job.job_type).codec.schema()) if known else [],
        text=visit.form.get("payload", "") if visit.form else pretty_json(redact_payload(stored)),
        wrong=_payload_errors(visit, job.job_type, stored),
    )


async def fix(visit: Visit, form: Form) -> Response:
    """Run the job again with the edited payload."""
    job = await changeable_job(visit)
    if job.job_type not in visit.service.app.registry:
        raise ContractError(visit.t("job.fix.unknown", type=job.job_type), field="job_type", fix="replay it")
    payload = _edited_payload(form, await visit.service.jobs.payload(visit.org_id, job.job_id))
    handle = await visit.service.dead_letters.rerun(
        visit.org_id, job.job_id, visit.actor, form.reason, payload=payload
    )
    return visit.done("job.fixed", to=f"/jobs/{handle.job_id}")


def _edited_payload(form: Form, stored: dict[str, Any]) -> dict[str, Any]:
    edited = parse_payload(form.text("payload"))
    if not isinstance(edited, dict):
        raise ContractError("not a JSON object", field="payload", fix="begin with { and end with }")
    restored: dict[str, Any] = restore_redacted(edited, stored)
    return restored


def _payload_errors(visit: Visit, job_type: str, stored: dict[str, Any]) -> list[DulyError]:
    """Return all errors of the edited payload."""
    if visit.problem is None or not (visit.problem.field or "").startswith("payload"):
        return []
    try:
        assert visit.form is not None
        codec = visit.service.app.registry.get(job_type).codec
        return [*codec.refusals(_edited_payload(visit.form, stored))] or [visit.problem]
    except ContractError:
        return [visit.problem]


def payload_fields(schema: Mapping[str, Any]) -> list[PayloadField]:
    """Return the fields of the JSON schema of an object, in order."""
    definitions, required = schema.get("$defs", {}), set(schema.get("required", ()))
    return [
        PayloadField(
            name,
            _kind(field, definitions),
            name in required,
            str(field.get("description", "")),
            json.dumps(field["default"], ensure_ascii=False) if "default" in field else "",
        )
        for name, field in schema.get("properties", {}).items()
    ]


def _kind(schema: Mapping[str, Any], definitions: Mapping[str, Any], depth: int = 0) -> str:
    nested = depth < _MAX_SCHEMA_DEPTH
    if "$ref" in schema and nested:
        name = str(schema["$ref"]).rpartition("/")[2]
        definition = definitions.get(name, {})
        return _kind(definition, definitions, depth + 1) if "enum" in definition else name
    if "const" in schema:
        return repr(schema["const"])
    if "enum" in schema:
        return " | ".join(map(repr, schema["enum"]))
    if "anyOf" in schema and nested:
        return " | ".join(dict.fromkeys(_kind(one, definitions, depth + 1) for one in schema["anyOf"]))
    kind = str(schema.get("type", "any"))
    if kind == "array" and nested:
        return f"{_kind(schema.get('items', {}), definitions, depth + 1)}[]"
    return f"{kind} ({schema['format']})" if "format" in schema else kind


ROUTES = (
    Show("/jobs/{job_id}/fix", page, Scope.OPERATE, every=30.0),
    Act("/jobs/{job_id}/fix", fix, Scope.OPERATE, page),
)
