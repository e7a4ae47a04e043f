"""Counting what was enqueued: only what is written, and was not there already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from duly.model.job import JobSpec
from duly.observe import metrics
from duly.store.jobs import Written


def counted(specs: Sequence[JobSpec], written: Sequence[Written]) -> None:
    """These were written; in somebody else's transaction that is all we ever hear of them."""
    new = Counter(
        (spec.job_type, spec.policy.queue) for spec, one in zip(specs, written, strict=True) if one.created
    )
    for kind, n in new.items():
        metrics.enqueued(*kind, n)
