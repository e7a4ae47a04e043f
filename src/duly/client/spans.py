"""The span of an enqueue: what its jobs do later, wherever that is, lies below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duly.model.job import JobSpec, Origin
from duly.store.jobs import Written

if TYPE_CHECKING:
    from duly.observe.traces import Opened, Traces


@dataclass(frozen=True, slots=True)
class Enqueuing:
    """Jobs that are about to be written, below their span."""

    specs: list[JobSpec]
    _span: Opened

    def tell(self, written: list[Written]) -> list[Written]:
        """Which one it became; of many, their own spans say so."""
        if len(written) == 1:
            self._span.tell({"duly.job_id": str(written[0].job_id), "duly.created": written[0].created})
        return written


@contextmanager
def enqueuing(traces: Traces, specs: Sequence[JobSpec]) -> Iterator[Enqueuing]:
    """Around the writing of jobs of one org."""
    # A call that names no trace belongs to where we are, and takes the others along that do not differ.
    named = {spec.origin.traceparent for spec in specs}
    given = None if None in named else specs[0].origin.traceparent
    with traces.enqueue(*_described(specs), given) as span:
        yield Enqueuing(_below(traces, specs, span.traceparent), span)


def _described(specs: Sequence[JobSpec]) -> tuple[str, dict[str, str | int]]:
    """The name of the span, and what there is to say of all of them."""
    job_type, queue = specs[0].job_type, specs[0].policy.queue
    said: dict[str, str | int] = {"duly.org_id": str(specs[0].origin.org_id)}
    if len(specs) > 1:
        said["messaging.batch.message_count"] = len(specs)
    if any((spec.job_type, spec.policy.queue) != (job_type, queue) for spec in specs):
        return "enqueue", said
    of_all = {"duly.job_type": job_type, "duly.queue": queue, "messaging.destination.name": queue}
    return f"enqueue {job_type}", said | of_all


def _below(traces: Traces, specs: Sequence[JobSpec], ours: str | None) -> list[JobSpec]:
    """The jobs as children of the span; one that names another trace stays there."""
    if ours is None:
        return list(specs)
    moved: dict[int, Origin] = {}  # those of a batch share their origin, and are written the faster for it
    for spec in specs:
        given = spec.origin
        if id(given) not in moved:
            stays = traces.is_elsewhere(given.traceparent, ours)
            moved[id(given)] = given if stays else replace(given, traceparent=ours)
    return [replace(spec, origin=moved[id(spec.origin)]) for spec in specs]
