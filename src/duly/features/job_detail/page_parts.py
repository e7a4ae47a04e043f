"""The parts of the job page: attempts, events, reconciliations, partial results, and commands to copy."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from duly.console.visit import Visit
from duly.core.error_report import MAX_FRAMES
from duly.core.job import JobEvent, JobSnapshot
from duly.core.reconciliation import REASONS, ReconciliationRecord
from duly.core.redaction import MAX_SHORT_TEXT_LENGTH, redact, truncate
from duly.core.states import EventType
from duly.features.audit.diff import Comparison, compare, mask_secrets
from duly.features.job_detail.service import FullJobDetail, JobLogLine, PartialResultRow
from duly.features.job_detail.timeline import parse_time
from duly.features.job_detail.timeline_drawing import run_kind, worker_labels

_MAX_ATTEMPTS = 20
_INSTALLATION_ACTORS = ("worker", "system", "operator")
_DETAIL_FIELDS = ("progress_percent", "result_seq", "replay_of")


@dataclass(frozen=True, slots=True)
class AttemptView:
    """An attempt, its end, and its log."""

    n: int
    worker: str
    ended: str
    start: datetime
    seconds: float | None
    error: str
    error_class: str
    reason: str
    log_lines: tuple[JobLogLine, ...]
    exceptions: tuple[dict[str, Any], ...]
    """The chain of exceptions, if the dead letter has it."""
    last: bool


@dataclass(frozen=True, slots=True)
class EventView:
    """An event."""

    seq: int
    at: datetime
    kind: str
    actor: str
    attempt: int
    detail: str


@dataclass(frozen=True, slots=True)
class ResultComparison:
    """Two partial results and their difference."""

    before: PartialResultRow
    after: PartialResultRow
    difference: Comparison


def attempt_views(visit: Visit, detail: FullJobDetail) -> list[AttemptView]:
    """Return the last attempts, newest first."""
    labels = worker_labels(detail.timeline, visit.t, name_workers=visit.platform)
    dead_letter = detail.record.dead_letter
    runs = [row.run for row in detail.timeline.rows if row.run is not None][-_MAX_ATTEMPTS:]
    views: list[AttemptView] = []
    for run in reversed(runs):
        end, last = run.detail or {}, run is runs[-1]
        context = dead_letter.error_context if dead_letter and last else {}
        code, message = end.get("error_code"), end.get("error_message", "")
        views.append(
            AttemptView(
                n=run.attempt,
                worker=labels[run.worker],
                ended=run_kind(run),
                start=run.start,
                seconds=None if run.open else run.duration.total_seconds(),
                error=f"{code}: {message}" if code else "",
                error_class=str(end.get("error_class") or ""),
                reason=str(end.get("reason") or end.get("cancel_reason") or ""),
                log_lines=tuple(line for line in detail.record.log_lines if line.attempt == run.attempt),
                exceptions=tuple(_exceptions(context)),
                last=last,
            )
        )
    return views


def _exceptions(context: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "text": f"{error.get('class', '')}: {error.get('message', '')}".strip(": "),
            "relation": error.get("relation", ""),
            "frames": error.get("frames", [])[-MAX_FRAMES:],
        }
        for error in context.get("exceptions", [])
        if isinstance(error, dict)
    ]


def event_views(visit: Visit, detail: FullJobDetail) -> list[EventView]:
    """Return the last events, newest first."""
    labels = worker_labels(detail.timeline, visit.t, name_workers=visit.platform)
    return [
        EventView(
            event.event_seq,
            event.occurred_at,
            event.event_type.removeprefix("job."),
            _actor(visit, event, labels),
            event.attempt,
            _event_detail(visit, event),
        )
        for event in reversed(detail.events)
    ]


def _actor(visit: Visit, event: JobEvent, labels: Mapping[str, str]) -> str:
    """Return the actor of an event; only operators see actors of the installation by id."""
    if event.actor_id in labels:
        return labels[event.actor_id]
    if event.actor_type in _INSTALLATION_ACTORS and not visit.platform:
        return visit.t(f"job.actor.{event.actor_type}")
    return f"{event.actor_type}:{event.actor_id}"


def _event_detail(visit: Visit, event: JobEvent) -> str:
    payload = event.payload_json
    code, message = payload.get("error_code"), payload.get("error_message")
    texts = [f"{code}: {message}"] if code else []
    texts += [str(payload[name]) for name in ("reason", "cancel_reason", "note") if payload.get(name)]
    texts += [
        visit.t(f"job.detail.{name}", value=payload[name])
        for name in _DETAIL_FIELDS
        if payload.get(name) is not None
    ]
    if event.event_type in (EventType.RETRIED, EventType.SNOOZED):
        run_at = parse_time(payload.get("run_at"))
        if run_at:
            texts.append(visit.t("job.detail.run_at", value=f"{run_at:%Y-%m-%d %H:%M:%S %Z}"))
    return redact("; ".join(texts), MAX_SHORT_TEXT_LENGTH)


def reconciliation_message(record: ReconciliationRecord) -> str:
    """Return the message unless it is the usual one, which the page has in its own language."""
    return "" if record.message == REASONS[record.kind][1] else redact(record.message, MAX_SHORT_TEXT_LENGTH)


def reconciliation_evidence(record: ReconciliationRecord) -> list[tuple[str, str | datetime]]:
    """Return the evidence by name; times as such."""
    return [
        (name, parse_time(value) or truncate(_text(value)))
        for name, value in record.evidence.items()
        if value is not None
    ]


def compare_results(visit: Visit, results: Sequence[PartialResultRow]) -> ResultComparison | None:
    """Compare the first and the last partial result that have a value; None without two of them."""
    pair = [result for result in results if result.payload is not None]
    if len(pair) < 2:
        return None
    before, after = pair[0], pair[-1]
    old, new = mask_secrets(_as_object(before.payload), _as_object(after.payload))
    return ResultComparison(before, after, compare(old, new, locale=visit.language))


def _as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"value": value}


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{round(value, 1):g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def pretty_json(value: Any) -> str:
    """Return indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def curl_command(base: str, job: JobSnapshot, payload: Any) -> str:
    """Return a curl command that submits the job again; the key comes from the environment."""
    url = base if base.startswith("http") else f"$DULY_URL{base}"
    body: dict[str, Any] = {"job_type": job.job_type, "payload": payload}
    if job.subject_id is not None:
        body["subject_id"] = job.subject_id
    if job.project_id is not None:
        body["project_id"] = str(job.project_id)
    return " \\\n  ".join(
        [
            f'curl -X POST "{url}/v1/jobs"',
            '-H "Authorization: Bearer $DULY_KEY"',
            "-H 'Content-Type: application/json'",
            f"-d {_quoted_json(body)}",
        ]
    )


def cli_command(org_id: UUID, job: JobSnapshot, payload: Any) -> str:
    """Return a `duly enqueue` command that submits the job again."""
    parts = [f"duly enqueue {job.job_type}", f"--org {org_id}", f"--payload {_quoted_json(payload)}"]
    if job.subject_id is not None:
        parts.append(f"--subject {shlex.quote(job.subject_id)}")
    if job.project_id is not None:
        parts.append(f"--project {job.project_id}")
    return " \\\n  ".join(parts)


def _quoted_json(value: Any) -> str:
    return shlex.quote(json.dumps(value, ensure_ascii=False))
