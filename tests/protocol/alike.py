"""Which worlds are the same for everything that may still happen: exploring one of them is enough.

Sound only while every rule holds. With a rule switched off each world is looked at as it is.
"""

from __future__ import annotations

from duly.core.states import HELD
from tests.protocol.model import Grip, Job, Pending, Worker, World
from tests.protocol.rows import Row


def alike(world: World) -> World:
    """The one that stands for all of its kind."""
    jobs = tuple([_forgotten(job) for job in world.jobs])
    workers = tuple([_loosened(worker, jobs) for worker in world.workers])
    looks, flying = world.looks, world.flying
    if looks:
        looks = tuple(sorted([_dulled(look, jobs) for look in looks]))
    if flying:
        flying = tuple([_dulled(late, jobs) for late in flying])
    return _numbered(World(jobs, workers, looks, flying))


def _forgotten(job: Job) -> Job:
    """What was checked when it was written, and is never asked for again."""
    row = job.row
    if not row.event_seq:
        return job
    if row.status is not None and row.status.terminal:
        # Whatever is written to a job that has ended is wrong.
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
    """A write that the fence refuses is refused whatever it says; and the attempt never comes back."""
    row = jobs[grip.job].row
    if row.attempt == grip.attempt and (row.status in HELD or row.status is grip.status):
        return grip
    return Grip(grip.job, grip.attempt, 0, acted=grip.acted, open=grip.open, ending=grip.ending and "lost")


def _numbered(world: World) -> World:
    """Workers that differ in nothing but their numbers are numbered in one way."""
    order = sorted(range(len(world.workers)), key=lambda who: _described(world, who))
    if all(old == new for new, old in enumerate(order)):
        return world
    places = {old: new for new, old in enumerate(order)}
    jobs = tuple(
        job._replace(row=job.row._replace(holder=places.get(job.row.holder, job.row.holder)))
        if job.row.holder is not None
        else job
        for job in world.jobs
    )
    return world._replace(jobs=jobs, workers=tuple(world.workers[who] for who in order))


def _described(world: World, who: int) -> tuple[Worker, list[bool]]:
    return world.workers[who], [job.row.holder == who for job in world.jobs]
