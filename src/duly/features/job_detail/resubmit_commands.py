"""The commands that submit a job again, as texts to copy. What is hidden stays a placeholder."""

from __future__ import annotations

import json
import shlex
from typing import Any
from uuid import UUID

from duly.core.job import JobSnapshot


def curl(base: str, job: JobSnapshot, payload: Any) -> str:
    """A request for the HTTP API; the key comes from the environment."""
    place = base if base.startswith("http") else f"$DULY_URL{base}"
    body: dict[str, Any] = {"job_type": job.job_type, "payload": payload}
    if job.subject_id is not None:
        body["subject_id"] = job.subject_id
    if job.project_id is not None:
        body["project_id"] = str(job.project_id)
    return " \\\n  ".join(
        [
            f'curl -X POST "{place}/v1/jobs"',
            '-H "Authorization: Bearer $DULY_KEY"',
            "-H 'Content-Type: application/json'",
            f"-d {_quoted(body)}",
        ]
    )


def command(org_id: UUID, job: JobSnapshot, payload: Any) -> str:
    """The same by the command line."""
    parts = [f"duly enqueue {job.job_type}", f"--org {org_id}", f"--payload {_quoted(payload)}"]
    if job.subject_id is not None:
        parts.append(f"--subject {shlex.quote(job.subject_id)}")
    if job.project_id is not None:
        parts.append(f"--project {job.project_id}")
    return " \\\n  ".join(parts)


def _quoted(value: Any) -> str:
    return shlex.quote(json.dumps(value, ensure_ascii=False))
