"""Servers and proxies that fail, cut, lie or talk nonsense. Both clients, over real sockets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from duly import AsyncClient, Client, Status, errors
from duly.client import InvalidResponse, ServiceUnreachable
from duly.client.retries import RequestPolicy, send
from duly.client.transport import OperationRun, RequestSpec, SendRequest, Sleep
from tests.client.fake_server import (
    JOB,
    RESULT,
    ReceivedRequest,
    event,
    fake_server,
    job,
    line,
    response,
    stream_response,
)

KEY = "duly_test_0123456789_abcdefghijklmnopqrstuvwxyz"
UNAVAILABLE = response({"code": "store.unavailable", "detail": "the database rests"}, 503, retry_after="0")


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duly.client.retries._FIRST_BACKOFF", 0.01)


async def apart(address: str, ask: Callable[[Client], Any], **choices: Any) -> Any:
    """What code that is not async gets."""

    def run() -> Any:
        with Client(address, KEY, **choices) as client:
            return ask(client)

    return await asyncio.to_thread(run)


def in_turn(*answers: bytes) -> Callable[[ReceivedRequest], bytes]:
    """One after the other; the last for ever."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


async def test_a_transient_error_is_retried_with_the_same_request() -> None:
    accepted = response({"job_id": JOB}, 202)
    cut = accepted[:-10]
    async with fake_server(in_turn(UNAVAILABLE, cut, UNAVAILABLE, accepted)) as server:
        found = await apart(
            server.address, lambda client: client.submit("report.build", {"at": datetime.now(UTC)})
        )
    assert str(found.job_id) == JOB
    assert len(server.heard) == 4
    assert len({(one.headers["idempotency-key"], one.body) for one in server.heard}) == 1

    taken = response({"jobs": [{"job_id": JOB}] * 2}, 202)
    async with fake_server(in_turn(UNAVAILABLE, taken)) as server, AsyncClient(server.address, KEY) as client:
        await client.submit_many([{"job_type": "a"}, {"job_type": "a"}])
    first, again = server.heard
    assert first.body == again.body
    assert first.body.count(b"idempotency_key") == 2


async def test_a_request_that_is_not_idempotent_is_sent_once() -> None:
    async with fake_server(lambda _: UNAVAILABLE) as server, AsyncClient(server.address, KEY) as client:
        with pytest.raises(errors.StoreUnavailable, match="the database rests") as refused:
            await client.request("POST", "/v1/orgs", json={"name": "Acme"})
        assert (refused.value.status, len(server.heard)) == (503, 1)
    async with fake_server(lambda _: response({"code": "new.code", "detail": "no"}, 409)) as server:
        with pytest.raises(errors.Conflict) as conflict:
            await apart(server.address, lambda client: client.job(JOB).status())
        assert (conflict.value.code, len(server.heard)) == ("new.code", 1)


async def test_retries_end() -> None:
    async with fake_server(lambda _: response(b"<h1>Bad gateway</h1>", 502, "text/html")) as server:
        with pytest.raises(ServiceUnreachable) as bad:
            await apart(server.address, lambda client: client.job(JOB).status(), retries=2)
        assert (bad.value.status, len(server.heard)) == (502, 3)
    with pytest.raises(ServiceUnreachable, match="ConnectError") as gone:  # the port is closed
        await apart(server.address, lambda client: client.job(JOB).status(), retries=1)
    assert KEY not in f"{gone.value!r} {gone.value} {gone.value.__cause__!r}"


def test_retry_after_is_respected_within_reason() -> None:
    def paused(retry_after: str, deadline: float = 1000) -> float:
        run = OperationRun(send(RequestSpec("GET", "/"), RequestPolicy(30, 3, deadline)))
        assert isinstance(run.advance(), SendRequest)
        step = run.advance(httpx.Response(429, headers={"retry-after": retry_after}))
        assert isinstance(step, Sleep)
        return step.seconds

    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert 7 <= paused("7") <= 7.01
    assert 28 <= paused(soon) <= 30.01
    assert 60 <= paused("86400") <= 60.01
    assert all(paused(nonsense) <= 0.01 for nonsense in ("", "soon", "-5", "1e999", "nan"))
    with pytest.raises(errors.LimitExceeded):  # it would be too late then
        paused("7", deadline=5)


@pytest.mark.parametrize("apart_from_the_loop", [True, False])
async def test_a_stream_that_breaks_after_each_event_yields_each_once(apart_from_the_loop: bool) -> None:
    def answer(request: ReceivedRequest) -> bytes:
        known = int(request.headers["last-event-id"])
        last = ("job.completed", "completed") if known == 4 else ()
        # What was told already comes again, and half of what follows.
        return stream_response(b": hello\n\n", line(known), line(known + 1, *last), line(known + 2)[:20])

    async with fake_server(answer) as server:
        if apart_from_the_loop:
            seen = await apart(server.address, lambda client: list(client.job(JOB).events()))
        else:
            async with AsyncClient(server.address, KEY) as client:
                seen = [one async for one in client.job(JOB).events()]
    assert [one.event_seq for one in seen] == [1, 2, 3, 4, 5]
    assert seen[0].payload == {"text": "a\u2028b"}
    assert [one.headers["last-event-id"] for one in server.heard] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    "stream",
    [
        response({"events": []}),  # a service without streams
        response({"code": "limit.exceeded", "detail": "too many streams"}, 429),
        stream_response(),  # a proxy that holds everything back, then cuts
        stream_response(b"data: {nonsense\n\n"),
        stream_response(line(7)),  # a gap
    ],
)
async def test_pages_are_read_where_streams_do_not_work(stream: bytes) -> None:
    written = [event(1, "job.queued", "queued"), event(2, "job.started")]

    def answer(request: ReceivedRequest) -> bytes:
        if request.headers["accept"] == "text/event-stream":
            return stream
        if "prefer" in request.headers:
            written.extend([event(3, "job.deadlettered", "failed"), event(4, "job.failed", "failed")])
        if "/events" in request.path:
            after = int(request.path.partition("after=")[2])
            return response({"events": [one for one in written if one["event_seq"] > after][:3]})
        return response(job(written[-1]["status"]), etag=f'"{len(written)}"', preference_applied="wait=25")

    async with fake_server(answer) as server, AsyncClient(server.address, KEY) as client:
        assert [one.event_seq async for one in client.job(JOB).events()] == [1, 2, 3, 4]


async def test_deleted_events_are_not_waited_for() -> None:
    def answer(request: ReceivedRequest) -> bytes:
        return (
            response({"events": []}) if "/events" in request.path else response(job("completed", event_seq=9))
        )

    async with fake_server(answer) as server:
        assert await apart(server.address, lambda client: list(client.job(JOB).events())) == []


async def test_a_dropped_poll_continues_with_a_plain_request() -> None:
    looks = iter(["running", "completed"])

    def answer(request: ReceivedRequest) -> bytes:
        return b"" if "prefer" in request.headers else response(job(next(looks)), etag='"1"')

    async with fake_server(answer) as server, AsyncClient(server.address, KEY) as client:
        assert (await client.job(JOB).wait()).status is Status.COMPLETED
    assert server.heard[1].headers["if-none-match"] == '"1"'


async def test_unknown_values_of_a_newer_service_are_kept() -> None:
    strange = job("resting", outcome="dreaming", freshness={"state": "ripe", "shown": "ripe"}, colour="red")
    unchanged = response(b"", 304, etag='"1"', preference_applied="wait=25")
    ended = response(job("completed", result_id=RESULT), preference_applied="wait=25")
    result = {
        "job_id": JOB,
        "result_id": RESULT,
        "status": "completed",
        "snapshot": {"seq": 1, "kind": "final", "value": 7},
    }
    turns = in_turn(
        response(strange, etag='"1"'),
        unchanged,
        response(strange, preference_applied="wait=25"),
        ended,
        response(result),
    )
    seen: list[Any] = []

    def ask(client: Client) -> Any:
        client.job(JOB).wait(60, seen.append)
        return client.result_of(RESULT)

    async with fake_server(turns) as server:
        found = await apart(server.address, ask)
    first, last = seen
    assert (first.status, first.outcome, first.terminal, first.colour) == (
        "resting",
        "dreaming",
        False,
        "red",
    )
    assert (first.freshness.shown, last.terminal, found.snapshot.value) == ("ripe", True, 7)


async def test_an_invalid_response_is_reported_without_its_body() -> None:
    async with fake_server(in_turn(response(b"<html>Hotel Wi-Fi</html>", kind="text/html"))) as server:
        for ask in (
            lambda c: c.job(JOB).status(),
            lambda c: c.request("GET", "/v1/jobs"),
            lambda c: list(c.jobs()),
        ):
            with pytest.raises(InvalidResponse, match="200 with text/html") as bad:
                await apart(server.address, ask)
            assert "Hotel" not in str(bad.value)
        assert len(server.heard) == 3
    async with fake_server(
        in_turn(b"SSH-2.0-OpenSSH_9.6\r\n", response(b"", 301, location="https://elsewhere.test/"))
    ) as server:
        with pytest.raises(ServiceUnreachable):
            await apart(server.address, lambda client: client.job(JOB).status(), retries=0)
        with pytest.raises(InvalidResponse):
            await apart(server.address, lambda client: client.job(JOB).status())
        assert len(server.heard) == 2


async def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    content = b"x" * 50_000
    whole = response(content, kind="text/plain", etag='"4b8c2e1d"')
    wrong = response(content, kind="text/plain", etag=f'"{"0" * 64}"')
    longer = response(b"y" * 90_000, kind="text/plain")
    async with fake_server(in_turn(longer[:-9], whole, wrong, whole[:-9])) as server:
        place = tmp_path / "file"
        await apart(server.address, lambda client: client.job(JOB).save("a/../b c", place))
        assert place.read_bytes() == content
        assert server.heard[0].path == f"/v1/jobs/{JOB}/artifacts/a/%2E%2E/b%20c"
        with pytest.raises(InvalidResponse, match="hash"):
            await apart(server.address, lambda client: client.job(JOB).download("f"))
        async with AsyncClient(server.address, KEY, retries=0) as client:
            with pytest.raises(ServiceUnreachable):
                await client.job(JOB).save("f", tmp_path / "other")
    assert list(tmp_path.iterdir()) == [place]


async def test_an_outage_while_waiting_lasts_no_longer_than_the_deadline() -> None:
    async with fake_server(in_turn(response(job("running")), b"")) as server:
        began = time.monotonic()
        with pytest.raises(ServiceUnreachable):
            await apart(server.address, lambda client: client.job(JOB).wait(), retries=0, deadline=0.3)
        assert time.monotonic() - began < 10
    assert len(server.heard) > 3
