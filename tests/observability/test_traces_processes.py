"""Traces across processes: the service, the worker, its isolated process, the collector."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psycopg
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from duly import Actor, Duly, context
from duly.testing import FreshDatabase
from tests.cli.conftest import ROOT, Service
from tests.worker.working import until

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SECRET = "salary4711"
SHOP = "tests.observability.traced_shop:app"
# Without q:maintenance: Duly's own jobs are scheduled, and have traces of their own.
WORKER = ("worker", "--isolated=1", "--queues=q:default")


@pytest.fixture
def environment(fresh: FreshDatabase, tmp_path: Path) -> dict[str, str]:
    pooled = {"DULY_DATABASE_DIRECT_URL": fresh.direct_url} if fresh.url != fresh.direct_url else {}
    prefixes = ("DULY_", "PYTEST_", "OTEL_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    return {
        **inherited,
        **pooled,
        "DULY_DATABASE_URL": fresh.url,
        "DULY_HOME": str(tmp_path),
        "DULY_APP": SHOP,
    }


@contextmanager
def running(environment: dict[str, str], command: str, *args: str) -> Iterator[Service]:
    started = Service(environment, *args, command=command)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.communicate(timeout=60)


def stop(*services: Service) -> None:
    for service in services:
        service.process.send_signal(signal.SIGTERM)
        assert service.wait_for_exit() == 0


class Span(NamedTuple):
    """A span as the application exported it."""

    name: str
    kind: str
    trace: str
    id: str
    parent: str | None
    attributes: dict[str, Any]
    ok: bool
    pid: int


class Spans:
    """The exported spans, by parent and name."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text()
        self.all = [_parse_span(json.loads(line)) for line in self.text.splitlines()]

    def children(self, parent: str, name: str) -> list[Span]:
        """Return the child spans with this name, in the order of their ends."""
        return [span for span in self.all if (span.parent, span.name) == (parent, name)]

    def only(self, parent: str, name: str) -> Span:
        [span] = self.children(parent, name)
        return span


def _parse_span(exported: dict[str, Any]) -> Span:
    ids, parent = exported["context"], exported["parent_id"]
    return Span(
        exported["name"],
        exported["kind"].removeprefix("SpanKind."),
        ids["trace_id"][2:],
        ids["span_id"][2:],
        parent and parent[2:],
        exported["attributes"],
        exported["status"]["status_code"] == "UNSET",
        exported["pid"],
    )


async def test_one_trace_spans_the_request_and_every_attempt_across_processes(
    app: Duly, acting: uuid.UUID, environment: dict[str, str], tmp_path: Path, sql: psycopg.Connection[Any]
) -> None:
    path = tmp_path / "spans"
    traced = {**environment, "DULY_TRACES": "global", "SPANS": str(path)}
    key = (await app.api_keys.create(acting, "t", ["jobs:write"], actor=Actor.operator("o"), reason="t")).text
    with (
        running(traced, "serve", "--port=0") as serving,
        running(traced, *WORKER) as working,
    ):
        headers = {"authorization": f"Bearer {key}", "traceparent": f"00-{TRACE}-{CALLER}-01"}
        url = f"{serving.read_until('ready ')}/v1/jobs"
        response = httpx.post(
            url, headers=headers, json={"job_type": "shop.async", "payload": {"words": [SECRET]}}
        )
        job_id = response.json()["job_id"]
        unsampled = {**headers, "traceparent": f"00-{'7' * 32}-{CALLER}-00"}
        httpx.post(url, headers=unsampled, json={"job_type": "shop.nothing"})
        await until(sql, "select count(*) = 4 from duly.jobs where status = 'completed'")
        stop(serving, working)
    spans = Spans(path)

    request = spans.only(CALLER, "POST /v1/jobs")
    assert response.headers["traceparent"] == f"00-{TRACE}-{request.id}-01"
    assert (
        request.kind,
        request.attributes["http.route"],
        request.attributes["http.response.status_code"],
    ) == (*("SERVER", "/v1/jobs", 202),)
    assert request.attributes["duly.org_id"] == str(acting)

    enqueued = spans.only(request.id, "enqueue shop.async")
    assert (enqueued.kind, enqueued.attributes["duly.job_id"], enqueued.pid) == (
        "PRODUCER",
        job_id,
        request.pid,
    )
    assert spans.only(enqueued.id, "jobs/enqueue_one").attributes["db.system.name"] == "postgresql"

    first, second = spans.children(enqueued.id, "attempt shop.async")
    assert (first.kind, first.ok, first.attributes["error.type"]) == ("CONSUMER", False, "shop.later")
    assert [first.attributes[f"duly.{name}"] for name in ("attempt", "outcome", "queue")] == [
        1,
        "retried",
        "q:default",
    ]
    assert [second.attributes[f"duly.{name}"] for name in ("attempt", "outcome", "job_id")] == [
        2,
        "succeeded",
        job_id,
    ]
    assert second.ok
    assert second.pid != request.pid

    chunk = spans.only(second.id, "chunk")
    assert spans.only(chunk.id, "mine")
    assert spans.only(spans.only(chunk.id, "partial").id, "jobs/store_chunk").kind == "CLIENT"
    assert spans.only(second.id, "select")
    child = spans.only(spans.only(second.id, "enqueue shop.sync").id, "attempt shop.sync")
    assert spans.only(spans.only(child.id, "chunk").id, "select").pid == second.pid
    isolated = spans.only(spans.only(child.id, "enqueue shop.isolated").id, "attempt shop.isolated")
    handler = spans.only(isolated.id, "handler")
    assert handler.pid != isolated.pid == second.pid
    handler_span = spans.only(handler.id, "mine")
    assert spans.only(spans.only(handler_span.id, "partial").id, "jobs/store_chunk").pid == handler.pid

    assert {span.trace for span in spans.all} == {TRACE}, (
        "neither engine work nor unsampled requests are exported"
    )
    assert not any(secret in spans.text for secret in (SECRET, key, key.rpartition("_")[2]))
    [(traceparent,)] = sql.execute("select traceparent from duly.jobs where job_type = 'shop.nothing'")
    assert traceparent.startswith(f"00-{'7' * 32}-")
    assert traceparent.endswith("-00")


class Collector(BaseHTTPRequestHandler):
    """Receives exported spans over OTLP."""

    received: list[tuple[str, ExportTraceServiceRequest]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.received.append((self.path, ExportTraceServiceRequest.FromString(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


async def test_a_collector_receives_the_spans_of_a_worker(
    app: Duly, acting: uuid.UUID, environment: dict[str, str], sql: psycopg.Connection[Any]
) -> None:
    received: list[tuple[str, ExportTraceServiceRequest]] = []
    handler = type("RecordingCollector", (Collector,), {"received": received})

    @app.job("shop.sync")
    def sync_job(words: list[str]) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        otlp = {"DULY_TRACES": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
        with context(traceparent=f"00-{TRACE}-{CALLER}-01"):
            handle = await sync_job.enqueue([SECRET])
        with running({**environment, **otlp}, *WORKER) as working:
            await until(sql, "select count(*) = 2 from duly.jobs where status = 'completed'")
            stop(working)
        server.shutdown()
    assert {path for path, _ in received} == {"/v1/traces"}
    names = set()
    for _, request in received:
        [group] = request.resource_spans
        assert ("service.name", "duly") in [(a.key, a.value.string_value) for a in group.resource.attributes]
        names |= {span.name for span in group.scope_spans[0].spans}
        for span in group.scope_spans[0].spans:
            assert span.trace_id.hex() == TRACE, span
            assert SECRET not in str(span)
            if span.name == "attempt shop.sync":
                assert span.parent_span_id.hex() == CALLER
                assert str(handle.job_id) in str(span.attributes)
    assert names >= {"attempt shop.sync", "chunk", "attempt shop.isolated", "handler", "partial", "commit"}


_UNTRACED = """
import asyncio, sys, uuid
from duly import Actor, Duly, context
app = Duly(maintenance=False)
@app.job("plain.nothing")
async def nothing(): ...
async def main():
    async with app:
        org = uuid.uuid4()
        await app.create_org(org, "Acme")
        async with app.worker():
            with context(org_id=org, actor=Actor.user("u")):
                await (await nothing.enqueue()).result()
asyncio.run(main())
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
app.http_app()  # FastAPI itself has the API of OpenTelemetry, which does nothing by itself
assert not [name for name in sys.modules if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))]
"""


def test_without_traces_nothing_of_opentelemetry_is_loaded(environment: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-c", _UNTRACED], cwd=ROOT, env=environment, check=True)
