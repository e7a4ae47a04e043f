"""List every page of the console with real ids; new pages are included automatically."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlencode

from bench.console.fill import Stock
from fastapi import FastAPI

from duly.console.visit import PREFIX

VARIANTS: dict[str, tuple[dict[str, str], ...]] = {
    "/jobs": (
        {"status": "failed"},
        {"status": "queued"},
        {"status": "running"},
        {"outcome": "dead"},
        {"type": "report.build"},
        {"q": "payload.region:DE"},
        {"q": "payload.region:XX"},
        {"q": "report.*"},
        {"q": "doc-7"},
        {"kind": "none"},
        {"error": "none"},
        {"freshness": "likely_stale"},
        {"status": "completed", "payload.region": "XX"},
    ),
    "/jobs/bulk": (
        {"verb": "cancel", "scope": "all"},
        {"verb": "replay", "scope": "all", "payload.region": "DE"},
        {"verb": "discard", "scope": "all", "status": "failed"},
    ),
    "/audit": ({"action": "key.created"}, {"actor": "u7"}, {"target": "none", "since": "2026-01-01T00:00"}),
    "/notifications": ({"status": "failed"}, {"channel": "fax"}),
    "/webhooks/{endpoint_id}": ({"status": "failed"}, {"event_type": "none"}),
}
"""Pages that are requested with several filters."""
NEED_PARAMETERS = {"/jobs/bulk"}
"""Pages that are empty without parameters."""


class Stop(NamedTuple):
    """A page to request."""

    name: str
    path: str


def tour(api: FastAPI, stock: Stock) -> Iterator[Stop]:
    """Return each page, with and without filters; for jobs, a dead and a completed one."""
    for route in api.router.routes:
        path = getattr(route, "path", "")
        if not path.startswith(PREFIX) or "GET" not in getattr(route, "methods", ()) or "/static/" in path:
            continue
        if "{path:path}" in path or path == f"{PREFIX}/":
            continue
        for filled in _filled(path, stock):
            if path.removeprefix(PREFIX) not in NEED_PARAMETERS:
                yield Stop(path.removeprefix(PREFIX) or "/", filled)
            for parameters in VARIANTS.get(path.removeprefix(PREFIX), ()):
                yield Stop(
                    f"{path.removeprefix(PREFIX)}?{urlencode(parameters)}",
                    f"{filled}?{urlencode(parameters)}",
                )


def _filled(path: str, stock: Stock) -> Iterator[str]:
    known = {
        "fingerprint": (stock.kind,),
        "endpoint_id": (str(stock.endpoint),),
        "schedule_id": (str(stock.schedule),),
        "name": (stock.schedule_name,),
        "notification_id": (str(stock.notification),),
        "message_id": (stock.message,),
        "job_id": (str(stock.jobs["dead"]), str(stock.jobs["succeeded"])),
    }
    names = re.findall(r"\{(\w+)[^}]*\}", path)
    if not names:
        yield path
    for first in known[names[0]] if names else ():
        values = {name: known[name][0] for name in names} | {names[0]: first}
        yield re.sub(r"\{(\w+)[^}]*\}", lambda found: values[found[1]], path)  # noqa: B023
