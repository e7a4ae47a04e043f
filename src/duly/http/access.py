"""One line for every request: what was asked for by its route, never by its path, and how it was answered."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

log = logging.getLogger("duly.http.access")
_ASKED_ALL_THE_TIME = frozenset({"/livez", "/readyz", "/metrics"})
_UNKNOWN = "(no route)"


def note(scope: Mapping[str, Any], status: int, seconds: float) -> None:
    """It was answered so, after so long."""
    route = route_of(scope) or _UNKNOWN
    level = logging.DEBUG if route in _ASKED_ALL_THE_TIME else logging.INFO
    if not log.isEnabledFor(level):
        return
    method, org_id = scope["method"], scope.get("duly.org_id")
    said = {
        "method": method,
        "route": route,
        "status": status,
        "duration_ms": round(seconds * 1000, 1),
        "request_id": scope["duly.request_id"],
        "org_id": org_id and str(org_id),
    }
    log.log(level, "%s %s %d", method, route, status, extra=said)


def route_of(scope: Mapping[str, Any]) -> str | None:
    """The route that served it, as in `/v1/jobs/{job_id}`; None if no route did."""
    route = scope.get("route")
    return getattr(route, "path_format", None) or getattr(route, "path", None)
