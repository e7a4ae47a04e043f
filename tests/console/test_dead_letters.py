"""Dead letters by error: replay one as a canary, then the rest; discard them."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest

from duly import Actor, Duly, context
from duly.http.options import HttpOptions
from tests.console.conftest import Arrives, Person, Post, words
from tests.worker.working import ONE_ATTEMPT, working


class World:
    """The external service that the jobs need."""

    broken = True


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def fetch(app: Duly, world: World) -> Any:
    @app.job("page.fetch", retry=ONE_ATTEMPT)
    async def fetch(n: int) -> None:
        if world.broken:
            raise ConnectionError(f"page {n} is <b>away</b>")

    return fetch


async def settle(app: Duly, n: int) -> None:
    async with working(app) as worker:
        await worker.loop_events.wait("settled", n)


async def test_one_letter_is_replayed_as_a_canary_before_the_rest(
    app: Duly, world: World, fetch: Any, acting: uuid.UUID, operator: Person, viewer: Person
) -> None:
    for n in range(4):
        await fetch.enqueue(n)
    await settle(app, 4)
    listed = await operator.get("/console/dead")
    assert "connection_error" in words(listed)
    assert "page.fetch 4" in words(listed)
    [place] = re.findall(r'href="(/console/dead/\w+)"', listed.text)
    kind = await operator.get(place)
    assert "is <b>away</b>" in words(kind)
    assert re.findall(r'action="[^"]*/(\w+)"', kind.text)[:3] == ["canary", "replay", "discard"]
    assert "action=" not in (await viewer.get(place)).text.partition("<main")[2].partition("</main>")[0]
    post = Post(operator)
    [latest] = re.findall(r'name="job_id" value="([^"]+)"', kind.text)
    world.broken = False
    sent = await post(f"{place}/canary", job_id=latest, reason="the provider is back")
    assert sent.status_code == 303
    watching = sent.headers["location"]
    assert "The canary is running; its outcome will appear here." in words(await operator.get(watching))
    await settle(app, 1)
    said = words(await operator.get(watching))
    assert "The canary succeeded: the cause appears to be fixed." in said
    assert "Open 3" in said
    bad = await post(f"{place}/replay", reason="x", per_second="fast")
    assert bad.status_code == 422
    assert "fast" in bad.text
    rest = await post(f"{place}/replay", reason="it worked", per_second="1000")
    assert rest.status_code == 303
    await settle(app, 3)
    said = words(await operator.get(place))
    assert "3 dead letters are being replayed." in said
    assert "4 replayed" in said
    assert "4 Succeeded" in said
    assert "All dead letters of this error are resolved." in said
    assert "No dead letters." in words(await operator.get("/console/dead"))


async def test_an_operator_discards_all_letters_of_a_group(
    app: Duly, fetch: Any, acting: uuid.UUID, operator: Person, viewer: Person
) -> None:
    for n in range(3):
        await fetch.enqueue(n)
    await settle(app, 3)
    [group] = await app.dead_letters.groups(acting)
    place = f"/console/dead/{group.fingerprint}"
    for act in ("canary", "replay", "discard"):
        sent = await Post(viewer)(f"{place}/{act}", reason="x", per_second="1", job_id=str(group.job_id))
        assert sent.status_code == 403
    assert (await Post(operator)(f"{place}/discard", reason="")).status_code == 422
    assert (await Post(operator)(f"{place}/discard", reason="no longer needed")).status_code == 303
    assert "3 dead letters discarded." in words(await operator.get(place))
    assert (await operator.get("/console/dead/nothing")).status_code == 404
    wrong = await Post(operator)("/console/dead/other/canary", reason="x", job_id=str(group.job_id))
    assert wrong.status_code == 404


async def test_a_platform_operator_sees_the_groups_of_all_orgs_and_chooses_an_org(
    app: Duly, fetch: Any, acting: uuid.UUID, platform: Person, operator: Person
) -> None:
    theirs = uuid.uuid4()
    await app.create_org(theirs, "Other & Co")
    await fetch.enqueue(1)
    with context(org_id=theirs, actor=Actor.user("x")):
        other = await fetch.enqueue(2)
    await settle(app, 2)
    listed = words(await platform.get("/console/dead"))
    assert "page.fetch 2 2" in listed
    [group] = await app.dead_letters.groups(theirs)
    place = f"/console/dead/{group.fingerprint}"
    answer = await platform.get(place)
    assert "Other & Co" in words(answer)
    assert f"{place}?org={theirs}" in answer.text
    chosen = await platform.get(f"{place}?org={theirs}")
    assert str(other.job_id) in chosen.text
    assert (await Post(platform)(f"{place}/discard", reason="x")).status_code == 404
    sent = await Post(platform)(f"{place}/canary?org={theirs}", reason="x", job_id=str(other.job_id))
    assert sent.status_code == 303
    assert f"org={theirs}" in sent.headers["location"]
    mine = await operator.get(f"{place}?org={theirs}")
    assert str(other.job_id) not in mine.text
    assert "Other" not in mine.text


class TestWithSubjects:
    """A service with restricted subjects."""

    @pytest.fixture
    def options(self) -> HttpOptions:
        async def may(who: Any, subject_id: str, action: str) -> bool:
            return subject_id == "open"

        return HttpOptions(may=may)

    async def test_who_may_not_see_everything_sees_single_letters(
        self, app: Duly, fetch: Any, acting: uuid.UUID, arrives: Arrives, operator: Person
    ) -> None:
        seen = await fetch.options(subject_id="open").enqueue(1)
        unseen = await fetch.options(subject_id="closed").enqueue(2)
        await settle(app, 2)
        answer = await operator.get("/console/dead")
        assert str(seen.job_id) in answer.text
        assert str(unseen.job_id) not in answer.text
        assert "page 2" not in words(answer)
        [group] = await app.dead_letters.groups(acting)
        place = f"/console/dead/{group.fingerprint}"
        assert (await operator.get(place)).status_code == 403
        assert (await Post(operator)(f"{place}/discard", reason="x")).status_code == 403
