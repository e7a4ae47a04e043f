"""Promises about what must not change: ended jobs and the audit log."""

from __future__ import annotations

from duly.core.states import TERMINAL
from duly.features.audit.chain import verify
from duly.testing.history.checker import HistoryIndex, Key, PromiseFindings, promise
from duly.testing.history.records import JobObservation

_ENDED = frozenset(status.value for status in TERMINAL)


@promise
def i19(index: HistoryIndex, findings: PromiseFindings) -> None:
    """Rows of ended jobs never change, nor do audit entries, and the audit chain verifies."""
    _check_rows(index, findings)
    _check_entries(index, findings)
    _check_chain(index, findings)


def _check_rows(index: HistoryIndex, findings: PromiseFindings) -> None:
    ended: dict[Key, JobObservation] = {}
    has_ended: dict[tuple[str, Key], bool] = {}
    for observation in index.history.observations:
        key = (observation.org_id, observation.job_id)
        if observation.status not in _ENDED:
            if has_ended.get((observation.observer, key)):
                findings.report(
                    f"it had ended, but is {observation.status} again", key, observer=observation.observer
                )
            continue
        findings.facts += 1
        has_ended[observation.observer, key] = True
        first = ended.setdefault(key, observation)
        if first.digest != observation.digest:
            findings.report(
                f"its row changed after it was {first.status}",
                key,
                digests=[first.digest, observation.digest],
                observers=[first.observer, observation.observer],
                now=observation.status,
            )


def _check_entries(index: HistoryIndex, findings: PromiseFindings) -> None:
    stored = {str(entry["entry_id"]): entry["digest"] for entry in index.history.audit if "digest" in entry}
    for entry_id, digest in index.history.audit_observations:
        findings.facts += 1
        if entry_id not in stored:
            findings.report(f"audit entry {entry_id} was deleted", entry_id=entry_id)
        elif stored[entry_id] != digest:
            findings.report(f"audit entry {entry_id} was rewritten", entry_id=entry_id)


def _check_chain(index: HistoryIndex, findings: PromiseFindings) -> None:
    findings.facts += len(index.history.seals)
    for problem in verify(index.history.audit, index.history.seals):
        findings.report(
            f"the audit chain is broken: {problem.message}",
            org_id=problem.org_id,
            seal_seq=problem.seal_seq,
            entry_id=problem.entry_id,
        )
