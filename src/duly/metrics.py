"""What is counted for Prometheus, in this process."""

from __future__ import annotations

from prometheus_client import Counter

RECONCILIATIONS = Counter(
    "job_reconciliations",
    "Jobs and records that were put right by others than their workers.",
    ["kind", "reason_code"],
)
