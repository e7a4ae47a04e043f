"""Symmetry reduction: states that are equal for everything that may still happen are explored once.

Sound only while every rule holds. With a rule switched off each state is explored as it is.
"""

from __future__ import annotations

from duly.core.states import HELD
from tests.protocol.model import Grip, Job, Pending, Worker, World
from tests.protocol.rows import Row


def alike(world: World) -> World:
    """Return the representative of a state."""
    jobs = tuple([_forgotten(job) for job in world.jobs])
    workers = tuple([_loosened(worker, jobs) for worker in world.workers])
    looks, flying = world.looks, world.flying
    if looks:
        looks = tuple(sorted([_dulled(look, jobs) for look in looks]))
    if flying:
        flying = tuple([_dulled(late, jobs) for late in flying])
    return _numbered(World(jobs, workers, looks, flying))


def _forgotten(job: Job) -> Job:
    """Drop what was checked when it was written and is never read again."""
    row = job.row
    if not row.event_seq:
        return job
    if row.status is not None and row.status.terminal:
        # Any write to an ended job is a violation.
        ended = Row(row.status, attempt=row.attempt, finals=row.finals)
        return Job(ended, job.effects, 0, job.starts - row.returned)
    return job._replace(row=row._replace(event_seq=0, errors=0))


def _loosened(worker: Worker, jobs: tuple[Job, ...]) -> Worker:
    grip = worker.grip
    if not grip:
        return worker
    weak = _weakened(grip, jobs)
    return worker if weak is grip else Worker(worker.pulse, weak)


def _dulled(pending: Pending, jobs: tuple[Job, ...]) -> Pending:
    weak = _weakened(pending.grip, jobs)
    return pending if weak is pending.grip else Pending(weak, pending.effect)


def _weakened(grip: Grip, jobs: tuple[Job, ...]) -> Grip:
    """Normalize writes that the fence refuses anyway; the attempt never comes back."""
    row = jobs[grip.job].row
    if row.attempt == grip.attempt and (row.status in HELD or row.status is grip.status):
        return grip
    return Grip(grip.job, grip.attempt, 0, acted=grip.acted, open=grip.open, ending=grip.ending and "lost")


def _numbered(world: World) -> World:
    """Renumber workers that differ only in their numbers."""
    order = sorted(range(len(world.workers)), key=lambda index: _described(world, index))
    if all(old == new for new, old in enumerate(order)):
        return world
    positions = {old: new for new, old in enumerate(order)}
    jobs = tuple(
        job._replace(row=job.row._replace(holder=positions.get(job.row.holder, job.row.holder)))
        if job.row.holder is not None
        else job
        for job in world.jobs
    )
    return world._replace(jobs=jobs, workers=tuple(world.workers[index] for index in order))


def _described(world: World, index: int) -> tuple[Worker, list[bool]]:
    return world.workers[index], [job.row.holder == index for job in world.jobs]
