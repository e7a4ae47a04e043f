"""A client process: submits, repeats unanswered requests, cancels, follows, and requests foreign ids."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg

from duly import Actor, context
from duly.core.errors import AlreadyFinished, ContractError, DulyError, LimitExceeded, NotFound, StoreError
from tests.chaos.app import ORGS, app
from tests.chaos.client_log import Logbook, answered, lines
from tests.chaos.job_mix import Wish, draw
from tests.chaos.mutant import infect
from tests.chaos.pace import pause

REQUEST_TIMEOUT = 8.0
_AWAY = (psycopg.Error, StoreError, TimeoutError, OSError)
_REFUSED = (ContractError, LimitExceeded, NotFound)


class Client:
    """One process of a client; the next one repeats its unanswered requests."""

    def __init__(self, home: Path, name: str, life: int, seed: int, rate: float) -> None:
        self._home = home
        self._path = home / f"{name}.jsonl"
        self._name = name
        self._client_id = f"{name}.{life}"
        self._dice = random.Random(f"{seed}/{self._client_id}")
        self._rate = rate
        self._unanswered = [question for question, answer in answered(self._path) if answer is None]
        self._log = Logbook(self._path, self._client_id)
        self._keys = 0
        self._recent: deque[tuple[UUID, UUID]] = deque(maxlen=200)
        self._to_follow: asyncio.Queue[tuple[UUID, UUID]] = asyncio.Queue(30)
        self._orgs_listed: dict[UUID, set[UUID]] = {org: set() for org in ORGS}
        self._stop = asyncio.Event()
        self._quiet = asyncio.Event()

    async def live(self) -> None:
        """Run until the cluster is idle."""
        await self._arrive()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen())
            group.create_task(self._ask_on())
            for _ in range(5):
                group.create_task(self._follow_on())
            group.create_task(self._read_feed(self._name, ORGS[int(self._name[1:]) % len(ORGS)]))
        self._log.write("end")
        # Do not close connections that may be dead.
        os._exit(0)

    async def _arrive(self) -> None:
        while True:
            try:
                async with asyncio.timeout(REQUEST_TIMEOUT):
                    await app.resources()
                print("ready", flush=True)
                return
            except _AWAY:
                await pause(0.3)

    async def _listen(self) -> None:
        for name, event in (("stop", self._stop), ("quiet", self._quiet)):
            while not (self._home / name).exists():
                await pause(0.2)
            event.set()

    # Submissions.

    async def _ask_on(self) -> None:
        """Send requests until the stop, and say when the last one has its answer."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._repeat_the_unanswered())
            for work in (self._submit_on, self._submit_on, self._cancel_on, self._probe_on):
                group.create_task(work())
        (self._home / f"{self._name}.answered").touch()

    async def _submit_on(self) -> None:
        while not self._stop.is_set():
            org, dice = self._dice.choice(ORGS), self._dice
            size = 1 if dice.random() < 0.4 else dice.randint(2, 20)
            wishes = draw(dice, [self._key() for _ in range(size)])
            await self._submit(org, wishes)
            if dice.random() < 0.04:
                await self._submit(org, wishes)  # the same keys: the same jobs
            await pause(2 * size / self._rate * dice.uniform(0.6, 1.4), self._stop)

    def _key(self) -> str:
        self._keys += 1
        return f"{self._client_id}-{self._keys}"

    async def _repeat_the_unanswered(self) -> None:
        for question in self._unanswered:
            if question["op"] == "submit":
                await self._submit(UUID(question["org"]), [Wish(*wish) for wish in question["wishes"]])

    async def _submit(self, org: UUID, wishes: list[Wish]) -> None:
        """Submit until there is an answer."""
        written = [[wish.key, wish.job_type, wish.value, wish.delay] for wish in wishes]

        async def enqueue() -> list[UUID]:
            with context(org_id=org, actor=Actor.user(self._client_id)):
                handles = await app.enqueue_many([wish.call() for wish in wishes])
            return [handle.job_id for handle in handles]

        while True:
            number = self._log.ask("submit", org=org, wishes=written)
            jobs = await self._request(number, enqueue)
            if jobs is None:
                await pause(self._dice.uniform(0.1, 0.8))
                continue
            for job in jobs:
                self._recent.append((org, job))
                if not self._to_follow.full() and self._dice.random() < 0.2:
                    self._to_follow.put_nowait((org, job))
            return

    async def _request(self, number: int, work: Callable[[], Awaitable[list[UUID]]]) -> list[UUID] | None:
        """Submit and record the answer; return None if it is unknown."""
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                jobs = await work()
        except _REFUSED as error:
            self._log.answer(number, "fail", error=_describe(error))
            return []
        except _AWAY as error:
            self._log.answer(number, "unknown", error=_describe(error))
            return None
        self._log.answer(number, "ok", jobs=jobs)
        return jobs

    async def _cancel_on(self) -> None:
        while not self._stop.is_set():
            await pause(self._dice.uniform(0.1, 0.6), self._stop)
            if not self._recent:
                continue
            # Prefer the newest, which are still queued.
            newest = min(len(self._recent) - 1, int(self._dice.expovariate(0.1)))
            org, job = self._recent[-1 - newest]
            await self._cancel(org, job)

    async def _cancel(self, org: UUID, job: UUID) -> None:
        number = self._log.ask("cancel", org=org, job=job)
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                with context(org_id=org, actor=Actor.user(self._client_id)):
                    status = await app.handle(job).cancel("changed my mind")
        except (AlreadyFinished, *_REFUSED) as error:
            self._log.answer(number, "fail", error=_describe(error))
        except _AWAY as error:
            self._log.answer(number, "unknown", error=_describe(error))
        else:
            self._log.answer(number, "ok", status=status.value)

    # Streams.

    async def _follow_on(self) -> None:
        while not (self._stop.is_set() and self._to_follow.empty()):
            try:
                async with asyncio.timeout(0.5):
                    org, job = await self._to_follow.get()
            except TimeoutError:
                continue
            await self._follow(org, job)

    async def _follow(self, org: UUID, job: UUID) -> None:
        """Follow over as many connections as necessary; some are closed on purpose."""
        read: list[tuple[int, str]] = []
        ended = False
        while not ended and not self._quiet.is_set():
            try:
                ended = await self._follow_a_while(org, job, read)
            except _AWAY:
                await pause(0.3)
        reader = f"{self._client_id}/{job}"
        self._log.write("stream", reader=reader, org=org, job=job, events=read, end=ended)

    async def _follow_a_while(self, org: UUID, job: UUID, read: list[tuple[int, str]]) -> bool:
        after = read[-1][0] if read else 0
        async with aclosing(app.handle(job, org_id=org).events(after=after)) as events:
            while True:
                try:
                    async with asyncio.timeout(REQUEST_TIMEOUT):
                        event = await anext(events)
                except StopAsyncIteration:
                    return True
                read.append((event.event_seq, event.event_type))
                if self._dice.random() < 0.1:
                    return False

    # The feed of an org: a page is logged with its cursor; the next process continues there.

    async def _read_feed(self, reader: str, org: UUID) -> None:
        pages = [line for line in lines(self._path) if line["op"] == "feed"]
        after = pages[-1]["after"] if pages else None
        ending = False
        while True:
            try:
                async with asyncio.timeout(REQUEST_TIMEOUT):
                    page = await app.feed.read(org, after)
            except _AWAY:
                await pause(0.3)
                continue
            if page.events:
                events = [(event.job_id, event.event_seq) for event in page.events]
                self._log.write("feed", reader=reader, org=org, events=events, after=page.after)
            after = page.after
            if not page.more:
                if ending:
                    return
                # Read once more when the cluster is idle.
                ending = self._quiet.is_set()
                await pause(0.0 if ending else 0.5)

    # Ids of other orgs.

    async def _probe_on(self) -> None:
        while not self._stop.is_set():
            await pause(self._dice.uniform(0.5, 1.5), self._stop)
            if not self._recent:
                continue
            owner, job = self._dice.choice(self._recent)
            caller = self._dice.choice([org for org in ORGS if org != owner])
            question = self._dice.choice(["status", "cancel", "events", "partials", "artifacts", "wait"])
            try:
                foreign, unknown = [await self._probe(caller, asked, question) for asked in (job, uuid4())]
                mine = await app.handle(job, org_id=owner).status()
            except _AWAY:
                continue
            self._orgs_listed[owner].add(mine.org_id)
            self._log.write(
                "probe",
                caller=caller,
                question=question,
                foreign=foreign,
                unknown=unknown,
                orgs=sorted(self._orgs_listed[caller]),
            )

    async def _probe(self, caller: UUID, job: UUID, question: str) -> str:
        """Return the whole answer as text, without the id."""
        with context(org_id=caller, actor=Actor.user(self._client_id)):
            handle = app.handle(job)
            try:
                async with asyncio.timeout(REQUEST_TIMEOUT):
                    answer = await _ask(handle, question)
            except StoreError:
                raise
            except DulyError as error:
                answer = f"{type(error).__name__} {error.code} {error.field} {error.fix} {error}"
        return answer.replace(str(job), "<id>")


async def _ask(handle: Any, question: str) -> str:
    match question:
        case "cancel":
            return str(await handle.cancel("not mine"))
        case "events":
            return str([event async for event in handle.events()])
        case "wait":
            return str(await handle.wait(timeout=0))
        case _:
            return str(await getattr(handle, question)())


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip()[:200]}"


if __name__ == "__main__":
    infect()
    name, life, seed, rate = sys.argv[1:]
    home = Path(os.environ["DULY_CHAOS_HOME"])
    asyncio.run(Client(home, name, int(life), int(seed), float(rate)).live())
