"""All possible next steps of a state: regular ones and faults."""

from __future__ import annotations

from collections.abc import Iterator

from duly.core.states import HELD, EventType, Status
from tests.protocol import rows
from tests.protocol.model import GONE, NOW, Grip, Job, Pending, Pulse, Scope, Step, Worker, World, decided
from tests.protocol.rows import Row, Write


def steps(world: World, scope: Scope) -> Iterator[Step]:
    """Yield all possible next steps."""
    for job in range(scope.jobs):
        yield from _clients(world, scope, job)
        yield from _reapers(world, scope, job)
    for index in range(scope.workers):
        yield from _lives(world, scope, index)
        if world.workers[index].pulse in (Pulse.BEATING, Pulse.LOST):
            yield from _works(world, scope, index)
    yield from _arrivals(world, scope)


def _clients(world: World, scope: Scope, n: int) -> Iterator[Step]:
    row = world.jobs[n].row
    if row.status is None:
        yield _written(world, f"enqueue job {n}", n, rows.enqueue())
        return
    if scope.cancels and (write := rows.cancel(row)):
        yield _written(world, f"cancel job {n}", n, write)._replace(fair=False)
    if row.status is Status.QUEUED and not scope.horizons:
        to = decided(row.status, row.attempt, row.returned, row.cancel, "waited", scope.max_attempts)
        write = rows.fail_waiting(row, row.attempt, to)
        yield _written(world, f"job {n} waits too long: reconcile", n, write)._replace(fair=False)
    if row.due_at is not None:
        due = rows.promote(row, row.due_at)
        yield Step(f"job {n} is due: promote", _with_row(world, n, due), n)


def _reapers(world: World, scope: Scope, n: int) -> Iterator[Step]:
    """Reapers and reconcilers read; when they act, much may have happened."""
    row = world.jobs[n].row
    if row.status is None or row.status.terminal or len(world.looks) >= scope.reapers:
        return
    for ending in _verdicts(world, scope, row):
        look = Pending(Grip(n, row.attempt, row.returned, row.status, row.cancel, ending=ending))
        read = world._replace(looks=tuple(sorted((*world.looks, look))))
        yield Step(f"a reaper looks at job {n}: {ending}", read, n, fair=ending == "lost")


def _verdicts(world: World, scope: Scope, row: Row) -> Iterator[str]:
    if row.status in HELD:
        pulse = None if row.holder in (None, GONE) else world.workers[row.holder].pulse
        if pulse in (None, Pulse.LOST_ASLEEP, Pulse.LOST):
            yield "lost"
    if scope.horizons:
        yield "stale" if row.status in HELD else "waited"


def _arrivals(world: World, scope: Scope) -> Iterator[Step]:
    for position, look in enumerate(world.looks):
        rest = world._replace(looks=world.looks[:position] + world.looks[position + 1 :])
        step = _settled(rest, f"the reaper settles job {look.grip.job}", look, scope, reaper=True)
        yield step._replace(reaper=True)
    for position, late in enumerate(world.flying):
        rest = world._replace(flying=world.flying[:position] + world.flying[position + 1 :])
        yield _settled(rest, f"the settlement of job {late.grip.job} arrives after all", late, scope)
        yield Step(f"the settlement of job {late.grip.job} is lost", rest, late.grip.job)
    if scope.restarts and (world.looks or world.flying or any(w.grip and w.grip.open for w in world.workers)):
        workers = tuple(
            w._replace(grip=w.grip.ended("retry")) if w.grip and w.grip.open else w for w in world.workers
        )
        restarted = world._replace(workers=workers, looks=(), flying=())
        yield Step("the database restarts", restarted, 0, fair=False)


def _lives(world: World, scope: Scope, index: int) -> Iterator[Step]:
    """Crash, pause, wake, heartbeat."""
    worker = world.workers[index]
    pulse, grip = worker
    holds = any(job.row.holder == index and job.row.status in HELD for job in world.jobs)
    if scope.crashes and (grip or holds):
        yield Step(f"worker {index} is killed, another starts", _anew(world, index, Worker()), 0, fair=False)
    if pulse is Pulse.BEATING:
        if scope.pauses and (grip or holds):
            asleep = _with_worker(world, index, worker._replace(pulse=Pulse.ASLEEP))
            yield Step(f"worker {index} is stopped", asleep, 0, fair=False)
        if grip and not grip.ending:
            yield from _hears(world, index, grip)
    elif pulse is Pulse.LOST:
        if not scope.rules.lost_for_good:
            back = _with_worker(world, index, worker._replace(pulse=Pulse.BEATING))
            yield Step(f"worker {index} beats again, as if nothing was", back, 0)
            return
        heard = Worker(Pulse.BEATING, grip and (grip if grip.ending else grip.ended("lost")))
        yield Step(f"worker {index} hears that it was lost, and starts over", _anew(world, index, heard), 0)
    else:
        wakes = Pulse.BEATING if pulse is Pulse.ASLEEP else Pulse.LOST
        yield Step(f"worker {index} wakes up", _with_worker(world, index, worker._replace(pulse=wakes)), 0)
        if pulse is Pulse.ASLEEP:
            lost = _with_worker(world, index, worker._replace(pulse=Pulse.LOST_ASLEEP))
            yield Step(f"worker {index} is declared lost", lost, 0)


def _hears(world: World, index: int, grip: Grip) -> Iterator[Step]:
    row = world.jobs[grip.job].row
    if row.attempt != grip.attempt or row.status not in HELD:
        yield _gripping(world, f"worker {index} hears that job {grip.job} is lost", index, grip.ended("lost"))
    elif row.cancel and not grip.cancel:
        heard = grip._replace(cancel=True)
        yield _gripping(world, f"worker {index} hears of the cancel of job {grip.job}", index, heard)


def _works(world: World, scope: Scope, index: int) -> Iterator[Step]:
    pulse, grip = world.workers[index]
    if not grip:
        yield from _claims(world, scope, index, pulse)
    elif not grip.ending:
        yield from _handles(world, scope, index, grip)
    elif grip.ending == "commit":
        job = world.jobs[grip.job]
        late = _with_job(world, grip.job, job._replace(effects=job.effects + 1))
        yield Step(f"worker {index} commits", _with_worker(late, index, Worker(pulse)), grip.job)
    else:
        label = f"worker {index} settles job {grip.job}: {grip.ending}"
        yield _settled(_with_worker(world, index, Worker(pulse)), label, Pending(grip), scope)
        if scope.lost_answers and not world.flying:
            flying = world._replace(flying=(Pending(grip),))
            yield Step(f"{label}, no answer", flying, grip.job, fair=False)


def _claims(world: World, scope: Scope, index: int, pulse: Pulse) -> Iterator[Step]:
    for n, job in enumerate(world.jobs):
        row = job.row
        if row.holder == index and row.status in HELD:
            found = Grip(n, row.attempt, row.returned, ending="give back")
            yield _gripping(world, f"worker {index} finds job {n}, claimed without its knowing", index, found)
        # A worker that was declared lost claims nothing, even before it knows.
        elif pulse is Pulse.BEATING and row.status and (write := rows.claim(row, index, scope.rules)):
            taken = _written(world, f"worker {index} claims job {n}", n, write)
            grip = Grip(n, write.row.attempt, write.row.returned)
            if scope.lost_answers and row.returned < scope.give_backs:
                yield taken._replace(label=f"{taken.label}, no answer", fair=False)
            yield taken._replace(world=_with_worker(taken.world, index, Worker(pulse, grip)))


def _handles(world: World, scope: Scope, index: int, grip: Grip) -> Iterator[Step]:
    n, row = grip.job, world.jobs[grip.job].row
    ends = ["retry", "failed"]
    if row.returned < scope.give_backs:
        ends += ["snooze", *(["give back"] if scope.drains else [])]
    if grip.cancel:
        ends.append("canceled")
    for ending in ends:
        yield _gripping(world, f"worker {index} ends job {n}: {ending}", index, grip.ended(ending))
    yield from _reports(world, scope, index, grip, row)
    if scope.outside and not grip.acted:
        job = world.jobs[n]
        acted = _with_job(world, n, job._replace(outside=1))
        yield _gripping(acted, f"worker {index} acts outside for job {n}", index, grip._replace(acted=True))
    elif not scope.transactional:
        yield _gripping(world, f"worker {index} ends job {n}: done", index, grip.ended("done"))
    elif not grip.open:
        yield _gripping(world, f"worker {index} writes for job {n}", index, grip._replace(open=True))
    else:
        yield from _commits(world, scope, index, grip)


def _reports(world: World, scope: Scope, index: int, grip: Grip, row: Row) -> Iterator[Step]:
    n = grip.job
    if row.partials < scope.chunks:
        write = rows.store_chunk(row, grip.attempt, 40, scope.rules)
        # A refused chunk tells the handler that the lease is lost.
        after = grip._replace(status=Status.PARTIAL) if write else grip.ended("lost")
        yield _gripping(
            _written(world, f"worker {index} stores a chunk of job {n}", n, write), "", index, after
        )
    if scope.progress and (write := rows.keep_progress(row, grip.attempt, 20, scope.rules)):
        yield _written(world, f"worker {index} reports progress of job {n}", n, write)


def _commits(world: World, scope: Scope, index: int, grip: Grip) -> Iterator[Step]:
    done = Pending(grip.ended("done"), effect=True)
    label = f"worker {index} finishes job {grip.job} and commits"
    if not scope.rules.effect_with_finish:
        apart = _settled(world, f"worker {index} finishes job {grip.job}", Pending(done.grip), scope)
        yield _gripping(apart, "", index, grip.ended("commit" if apart.write else "lost"))
        return
    step = _settled(world, label, done, scope)
    left: Grip | tuple[()] = () if step.write else grip.ended("lost")
    yield step._replace(world=_with_worker(step.world, index, Worker(world.workers[index].pulse, left)))
    if scope.lost_answers and not world.flying:
        unsure = _gripping(world, f"{label}, no answer", index, grip.ended("retry"))
        yield unsure._replace(world=unsure.world._replace(flying=(done,)), fair=False)


def _settled(world: World, label: str, pending: Pending, scope: Scope, *, reaper: bool = False) -> Step:
    grip, rules = pending.grip, scope.rules
    to = decided(grip.status, grip.attempt, grip.returned, grip.cancel, grip.ending, scope.max_attempts)
    job = world.jobs[grip.job]
    if grip.ending == "waited":
        write = rows.fail_waiting(job.row, grip.attempt, to, rules)
    else:
        fence = job.row.attempt if reaper and not rules.reaper_fence else grip.attempt
        write = rows.settle(job.row, fence, to, NOW, rules)
    step = _written(world, label, grip.job, write and write._replace(attempt=grip.attempt))
    if write and pending.effect:
        job = step.world.jobs[grip.job]
        after = _with_job(step.world, grip.job, job._replace(effects=job.effects + 1))
        return step._replace(world=after)
    return step


def _written(world: World, label: str, n: int, write: Write | None) -> Step:
    if write is None:
        return Step(f"{label}: refused", world, n)
    job = world.jobs[n]
    starts = job.starts + (EventType.STARTED in write.events)
    return Step(label, _with_job(world, n, job._replace(row=write.row, starts=starts)), n, write)


def _gripping(at: World | Step, label: str, index: int, grip: Grip) -> Step:
    step = at if isinstance(at, Step) else Step(label, at, grip.job)
    pulse = step.world.workers[index].pulse
    return step._replace(world=_with_worker(step.world, index, Worker(pulse, grip)))


def _anew(world: World, index: int, worker: Worker) -> World:
    """Restart a worker under a new identity: the jobs of the old one belong to a process that is gone."""
    jobs = tuple(
        job._replace(row=job.row._replace(holder=GONE)) if job.row.holder == index else job
        for job in world.jobs
    )
    return _with_worker(world._replace(jobs=jobs), index, worker)


def _with_row(world: World, n: int, row: Row) -> World:
    return _with_job(world, n, world.jobs[n]._replace(row=row))


def _with_job(world: World, n: int, job: Job) -> World:
    return world._replace(jobs=(*world.jobs[:n], job, *world.jobs[n + 1 :]))


def _with_worker(world: World, index: int, worker: Worker) -> World:
    return world._replace(workers=(*world.workers[:index], worker, *world.workers[index + 1 :]))
