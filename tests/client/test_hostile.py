"""Servers and proxies that fail, cut connections or send invalid data; both clients, over real sockets."""

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
    response,
    sse_event,
    stream_response,
)

KEY = "duly_test_0123456789_abcdefghijklmnopqrstuvwxyz"
UNAVAILABLE = response({"code": "store.unavailable", "detail": "the database is down"}, 503, retry_after="0")


@pytest.fixture(autouse=True)
def _short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duly.client.retries._FIRST_BACKOFF", 0.01)


async def call_blocking(address: str, call: Callable[[Client], Any], **choices: Any) -> Any:
    """Run a call with the blocking client on a thread; return its result."""

    def run() -> Any:
        with Client(address, KEY, **choices) as client:
            return call(client)

    return await asyncio.to_thread(run)


def responses_in_order(*responses: bytes) -> Callable[[ReceivedRequest], bytes]:
    """Return the responses in order, and the last one for every further request."""
    remaining = list(responses)
    return lambda _: remaining.pop(0) if len(remaining) > 1 else remaining[0]


async def test_a_transient_error_is_retried_with_the_same_request() -> None:
    accepted = response({"job_id": JOB}, 202)
    cut = accepted[:-10]
    async with fake_server(responses_in_order(UNAVAILABLE, cut, UNAVAILABLE, accepted)) as server:
        result = await call_blocking(
            server.address, lambda client: client.submit("report.build", {"at": datetime.now(UTC)})
        )
    assert str(result.job_id) == JOB
    assert len(server.received) == 4
    assert len({(one.headers["idempotency-key"], one.body) for one in server.received}) == 1

    accepted_many = response({"jobs": [{"job_id": JOB}] * 2}, 202)
    async with (
        fake_server(responses_in_order(UNAVAILABLE, accepted_many)) as server,
        AsyncClient(server.address, KEY) as client,
    ):
        await client.submit_many([{"job_type": "a"}, {"job_type": "a"}])
    first, again = server.received
    assert first.body == again.body
    assert first.body.count(b"idempotency_key") == 2


async def test_a_request_that_is_not_idempotent_is_sent_once() -> None:
    async with fake_server(lambda _: UNAVAILABLE) as server, AsyncClient(server.address, KEY) as client:
        with pytest.raises(errors.StoreUnavailable, match="the database is down") as refused:
            await client.request("POST", "/v1/orgs", json={"name": "Acme"})
        assert (refused.value.status, len(server.received)) == (503, 1)
    async with fake_server(lambda _: response({"code": "new.code", "detail": "no"}, 409)) as server:
        with pytest.raises(errors.Conflict) as conflict:
            await call_blocking(server.address, lambda client: client.job(JOB).status())
        assert (conflict.value.code, len(server.received)) == ("new.code", 1)


async def test_retries_are_limited() -> None:
    async with fake_server(lambda _: response(b"<h1>Bad gateway</h1>", 502, "text/html")) as server:
        with pytest.raises(ServiceUnreachable) as unreachable:
            await call_blocking(server.address, lambda client: client.job(JOB).status(), retries=2)
        assert (unreachable.value.status, len(server.received)) == (502, 3)
    with pytest.raises(ServiceUnreachable, match="ConnectError") as closed:  # the server is closed
        await call_blocking(server.address, lambda client: client.job(JOB).status(), retries=1)
    assert KEY not in f"{closed.value!r} {closed.value} {closed.value.__cause__!r}"


def test_retry_after_is_respected_up_to_a_limit() -> None:
    def pause_after(retry_after: str, deadline: float = 1000) -> float:
        run = OperationRun(send(RequestSpec("GET", "/"), RequestPolicy(30, 3, deadline)))
        assert isinstance(run.advance(), SendRequest)
        step = run.advance(httpx.Response(429, headers={"retry-after": retry_after}))
        assert isinstance(step, Sleep)
        return step.seconds

    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert 7 <= pause_after("7") <= 7.01
    assert 28 <= pause_after(soon) <= 30.01
    assert 60 <= pause_after("86400") <= 60.01
    assert all(pause_after(nonsense) <= 0.01 for nonsense in ("", "soon", "-5", "1e999", "nan"))
    with pytest.raises(errors.LimitExceeded):  # the pause would exceed the deadline
        pause_after("7", deadline=5)


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_stream_that_breaks_after_each_event_yields_each_event_once(blocking: bool) -> None:
    def respond(request: ReceivedRequest) -> bytes:
        last_event_id = int(request.headers["last-event-id"])
        terminal = ("job.completed", "completed") if last_event_id == 4 else ()
        # A known event again, a new one, and half of the next.
        return stream_response(
            b": hello\n\n",
            sse_event(last_event_id),
            sse_event(last_event_id + 1, *terminal),
            sse_event(last_event_id + 2)[:20],
        )

    async with fake_server(respond) as server:
        if blocking:
            events = await call_blocking(server.address, lambda client: list(client.job(JOB).events()))
        else:
            async with AsyncClient(server.address, KEY) as client:
                events = [one async for one in client.job(JOB).events()]
    assert [one.event_seq for one in events] == [1, 2, 3, 4, 5]
    assert events[0].payload == {"text": "a\u2028b"}
    assert [one.headers["last-event-id"] for one in server.received] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    "stream",
    [
        response({"events": []}),  # a service without event streams
        response({"code": "limit.exceeded", "detail": "too many streams"}, 429),
        stream_response(),  # a proxy that buffers the stream, then closes it
        stream_response(b"data: {nonsense\n\n"),
        stream_response(sse_event(7)),  # a gap in the sequence
    ],
)
async def test_events_are_read_in_pages_where_streams_do_not_work(stream: bytes) -> None:
    stored = [event(1, "job.queued", "queued"), event(2, "job.started")]

    def respond(request: ReceivedRequest) -> bytes:
        if request.headers["accept"] == "text/event-stream":
            return stream
        if "prefer" in request.headers:
            stored.extend([event(3, "job.deadlettered", "failed"), event(4, "job.failed", "failed")])
        if "/events" in request.path:
            after = int(request.path.partition("after=")[2])
            return response({"events": [one for one in stored if one["event_seq"] > after][:3]})
        return response(job(stored[-1]["status"]), etag=f'"{len(stored)}"', preference_applied="wait=25")

    async with fake_server(respond) as server, AsyncClient(server.address, KEY) as client:
        assert [one.event_seq async for one in client.job(JOB).events()] == [1, 2, 3, 4]


async def test_iterating_over_deleted_events_ends() -> None:
    def respond(request: ReceivedRequest) -> bytes:
        return (
            response({"events": []}) if "/events" in request.path else response(job("completed", event_seq=9))
        )

    async with fake_server(respond) as server:
        assert await call_blocking(server.address, lambda client: list(client.job(JOB).events())) == []


async def test_a_dropped_long_poll_is_followed_by_a_plain_request() -> None:
    statuses = iter(["running", "completed"])

    def respond(request: ReceivedRequest) -> bytes:
        return b"" if "prefer" in request.headers else response(job(next(statuses)), etag='"1"')

    async with fake_server(respond) as server, AsyncClient(server.address, KEY) as client:
        assert (await client.job(JOB).wait()).status is Status.COMPLETED
    assert server.received[1].headers["if-none-match"] == '"1"'


async def test_unknown_values_of_a_newer_service_are_returned() -> None:
    unknown_values = job(
        "resting", outcome="dreaming", freshness={"state": "ripe", "shown": "ripe"}, colour="red"
    )
    unchanged = response(b"", 304, etag='"1"', preference_applied="wait=25")
    ended = response(job("completed", result_id=RESULT), preference_applied="wait=25")
    result = {
        "job_id": JOB,
        "result_id": RESULT,
        "status": "completed",
        "snapshot": {"seq": 1, "kind": "final", "value": 7},
    }
    responses = responses_in_order(
        response(unknown_values, etag='"1"'),
        unchanged,
        response(unknown_values, preference_applied="wait=25"),
        ended,
        response(result),
    )
    progress: list[Any] = []

    def call(client: Client) -> Any:
        client.job(JOB).wait(60, progress.append)
        return client.result_of(RESULT)

    async with fake_server(responses) as server:
        returned = await call_blocking(server.address, call)
    first, last = progress
    assert (first.status, first.outcome, first.terminal, first.colour) == (
        "resting",
        "dreaming",
        False,
        "red",
    )
    assert (first.freshness.shown, last.terminal, returned.snapshot.value) == ("ripe", True, 7)


async def test_an_invalid_response_is_reported_without_its_body() -> None:
    async with fake_server(
        responses_in_order(response(b"<html>Hotel Wi-Fi</html>", kind="text/html"))
    ) as server:
        for call in (
            lambda c: c.job(JOB).status(),
            lambda c: c.request("GET", "/v1/jobs"),
            lambda c: list(c.jobs()),
        ):
            with pytest.raises(InvalidResponse, match="200 with text/html") as invalid:
                await call_blocking(server.address, call)
            assert "Hotel" not in str(invalid.value)
        assert len(server.received) == 3
    async with fake_server(
        responses_in_order(b"SSH-2.0-OpenSSH_9.6\r\n", response(b"", 301, location="https://elsewhere.test/"))
    ) as server:
        with pytest.raises(ServiceUnreachable):
            await call_blocking(server.address, lambda client: client.job(JOB).status(), retries=0)
        with pytest.raises(InvalidResponse):
            await call_blocking(server.address, lambda client: client.job(JOB).status())
        assert len(server.received) == 2


async def test_a_download_is_saved_completely_or_not_at_all(tmp_path: Path) -> None:
    content = b"x" * 50_000
    whole = response(content, kind="text/plain", etag='"4b8c2e1d"')
    wrong = response(content, kind="text/plain", etag=f'"{"0" * 64}"')
    longer = response(b"y" * 90_000, kind="text/plain")
    async with fake_server(responses_in_order(longer[:-9], whole, wrong, whole[:-9])) as server:
        path = tmp_path / "file"
        await call_blocking(server.address, lambda client: client.job(JOB).save("a/../b c", path))
        assert path.read_bytes() == content
        assert server.received[0].path == f"/v1/jobs/{JOB}/artifacts/a/%2E%2E/b%20c"
        with pytest.raises(InvalidResponse, match="hash"):
            await call_blocking(server.address, lambda client: client.job(JOB).download("f"))
        async with AsyncClient(server.address, KEY, retries=0) as client:
            with pytest.raises(ServiceUnreachable):
                await client.job(JOB).save("f", tmp_path / "other")
    assert list(tmp_path.iterdir()) == [path]


async def test_an_outage_while_waiting_lasts_no_longer_than_the_deadline() -> None:
    async with fake_server(responses_in_order(response(job("running")), b"")) as server:
        started = time.monotonic()
        with pytest.raises(ServiceUnreachable):
            await call_blocking(
                server.address, lambda client: client.job(JOB).wait(), retries=0, deadline=0.3
            )
        assert time.monotonic() - started < 10
    assert len(server.received) > 3
