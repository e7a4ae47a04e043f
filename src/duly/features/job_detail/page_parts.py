"""The parts of the page about a job: attempts, events, healings and partial results, as they are shown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from duly.console.visit import Visit
from duly.core.error_report import MAX_FRAMES
from duly.core.job import JobEvent
from duly.core.reconciliation import REASONS, ReconciliationRecord
from duly.core.redaction import MAX_SHORT_TEXT_LENGTH, redact, truncate
from duly.core.states import EventType
from duly.features.audit.diff import Comparison, compare, mask_secrets
from duly.features.job_detail.service import JobStory, KeptLine, KeptPartial
from duly.features.job_detail.timeline import moment
from duly.features.job_detail.timeline_drawing import Say, end_of, workers

ATTEMPTS = 20
"""So many of the last attempts are shown one by one."""
_INSTALLATION = ("worker", "system", "operator")
_TOLD = ("progress_percent", "result_seq", "replay_of")
_LATER = (EventType.RETRIED, EventType.SNOOZED)


@dataclass(frozen=True, slots=True)
class AttemptShown:
    """One try, how it ended, and what it logged."""

    n: int
    worker: str
    ended: str
    start: datetime
    seconds: float | None
    error: str
    """What it said when it ended."""
    error_class: str
    reason: str
    lines: tuple[KeptLine, ...]
    trace: tuple[dict[str, Any], ...]
    """The exceptions that led to the end, if they are kept."""
    last: bool


@dataclass(frozen=True, slots=True)
class EventShown:
    """One fact."""

    seq: int
    at: datetime
    kind: str
    who: str
    attempt: int
    detail: str


def attempts(visit: Visit, story: JobStory) -> list[AttemptShown]:
    """The last attempts, the newest first."""
    named = workers(story.waterfall, visit.t, name_workers=visit.platform)
    runs = [row.run for row in story.waterfall.rows if row.run is not None][-ATTEMPTS:]
    shown: list[AttemptShown] = []
    for run in reversed(runs):
        detail, last = run.detail or {}, run is runs[-1]
        context = story.letter.error_context if story.letter and last else {}
        code, message = detail.get("error_code"), detail.get("error_message", "")
        shown.append(
            AttemptShown(
                n=run.attempt,
                worker=named[run.worker],
                ended=end_of(run),
                start=run.start,
                seconds=None if run.open else run.lasted.total_seconds(),
                error=f"{code}: {message}" if code else "",
                error_class=str(detail.get("error_class") or ""),
                reason=str(detail.get("reason") or detail.get("cancel_reason") or ""),
                lines=tuple(line for line in story.lines if line.attempt == run.attempt),
                trace=tuple(_exceptions(context)),
                last=last,
            )
        )
    return shown


def _exceptions(context: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "said": f"{one.get('class', '')}: {one.get('message', '')}".strip(": "),
            "relation": one.get("relation", ""),
            "frames": one.get("frames", [])[-MAX_FRAMES:],
        }
        for one in context.get("exceptions", [])
        if isinstance(one, dict)
    ]


def events(visit: Visit, story: JobStory) -> list[EventShown]:
    """The last events, the newest first."""
    named = workers(story.waterfall, visit.t, name_workers=visit.platform)
    return [
        EventShown(
            event.event_seq,
            event.occurred_at,
            event.event_type.removeprefix("job."),
            _who(visit, event, named),
            event.attempt,
            _detail(visit.t, event),
        )
        for event in reversed(story.events)
    ]


def _who(visit: Visit, event: JobEvent, named: Mapping[str, str]) -> str:
    """Who of the installation did it is for those to know who operate it."""
    if event.actor_id in named:
        return named[event.actor_id]
    if event.actor_type in _INSTALLATION and not visit.platform:
        return visit.t(f"job.actor.{event.actor_type}")
    return f"{event.actor_type}:{event.actor_id}"


def _detail(say: Say, event: JobEvent) -> str:
    payload = event.payload_json
    code, message = payload.get("error_code"), payload.get("error_message")
    told = [f"{code}: {message}"] if code else []
    told += [str(payload[name]) for name in ("reason", "cancel_reason", "note") if payload.get(name)]
    told += [
        say(f"job.detail.{name}", value=payload[name]) for name in _TOLD if payload.get(name) is not None
    ]
    if event.event_type in _LATER and (again := moment(payload.get("run_at"))):
        told.append(say("job.detail.run_at", value=f"{again:%Y-%m-%d %H:%M:%S %Z}"))
    return redact("; ".join(told), MAX_SHORT_TEXT_LENGTH)


def said(record: ReconciliationRecord) -> str:
    """What was said beyond the usual words, which the page has in its own language."""
    return "" if record.message == REASONS[record.kind][1] else redact(record.message, MAX_SHORT_TEXT_LENGTH)


def evidence(record: ReconciliationRecord) -> list[tuple[str, str | datetime]]:
    """What was seen, name by name; moments as such."""
    return [(name, _seen(value)) for name, value in record.evidence.items() if value is not None]


def _seen(value: Any) -> str | datetime:
    return moment(value) or truncate(_text(value))


@dataclass(frozen=True, slots=True)
class Compared:
    """Two partial results, and what differs."""

    before: KeptPartial
    after: KeptPartial
    difference: Comparison


def compared(visit: Visit, snapshots: Sequence[KeptPartial]) -> Compared | None:
    """The two whose values were asked for; None if there are not two of them here."""
    pair = [one for one in snapshots if one.payload is not None]
    if len(pair) < 2:
        return None
    before, after = pair[0], pair[-1]
    old, new = mask_secrets(_record(before.payload), _record(after.payload))
    return Compared(before, after, compare(old, new, locale=visit.language))


def _record(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"value": value}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def pretty(value: Any) -> str:
    """JSON to be read."""
    return json.dumps(value, ensure_ascii=False, indent=2)
