"""`duly serve` and `duly up`: the service as a process."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager

import httpx

from duly import Client
from tests.cli.conftest import Service

Start = Callable[..., AbstractContextManager[Service]]


def test_up_starts_a_service_that_works_at_once(service: Start) -> None:
    with service("--port", "0", "--json", command="up", DULY_WORKER_DRAIN="0") as running:
        ready = json.loads(running.read_until(""))
        assert ready["login"] == f"{ready['url']}/login#key={ready['key']}"
        with Client(ready["url"], ready["key"]) as client:
            assert client.submit("shop.greet", {"name": "Ada"}).result(timeout=30) == "Hello Ada"
            waiting = client.submit("shop.wait")
            events = waiting.events()
            assert next(events).event_type == "job.queued"  # an open stream does not delay the shutdown
            small = {
                "sources": [{"name": "a", "text": "Good morning, how are you?"}],
                "modules": ["language"],
            }
            assert client.request("POST", "/analyze", json=small)["languages"][0]["language"] == "en"
        assert "Duly" in httpx.get(f"{ready['url']}/login").text
        running.process.send_signal(signal.SIGINT)
        assert running.wait_for_exit() == 0
    with service("--port", "0", command="up") as running:
        assert running.read_until("open ").startswith("http://127.0.0.1:")
        running.process.send_signal(signal.SIGTERM)
        assert running.wait_for_exit() == 0


def test_serve_runs_without_a_worker_until_a_signal(service: Start) -> None:
    with service("--port", "0", command="serve") as running:
        address = running.read_until("ready ")
        assert httpx.get(f"{address}/readyz").json()["status"] == "ok"
        assert httpx.get(f"{address}/v1/jobs").status_code == 401
        running.process.send_signal(signal.SIGTERM)
        assert running.wait_for_exit() == 0


def test_a_port_in_use_is_named(service: Start) -> None:
    occupied = socket.create_server(("127.0.0.1", 0))
    with occupied, service("--port", str(occupied.getsockname()[1]), command="serve") as refused:
        assert refused.read_error("--port").startswith("error: port: cannot listen on 127.0.0.1:")
        assert refused.wait_for_exit() == 2
