"""Consent: a document leaves the installation only if its user has agreed."""

from __future__ import annotations

from duly.apps.documents.elements import Engine
from duly.core.outcome import Fail

REMOTE_ENGINES: frozenset[Engine] = frozenset({"unstructured_fast", "unstructured_hires"})
"""Extraction engines that send the file to an external service."""


def require_consent(has_consent: bool, job: str, sent: str) -> None:
    """Block a job that would send `sent` to an external service without consent."""
    if not has_consent:
        message = f"{sent} would be sent to an external service: consent is required"
        raise Fail(message, code=f"{job}.no_consent", blocked=True)
