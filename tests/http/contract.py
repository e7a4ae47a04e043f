"""Runs schemathesis against the service, except for rules that an OpenAPI document cannot describe."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import schemathesis
from schemathesis.engine import events, from_schema
from schemathesis.engine.recorder import CheckNode, ScenarioRecorder

from tests.http.sample_org import SampleOrg

EXAMPLES = int(os.environ.get("DULY_CONTRACT_EXAMPLES", "2"))
SEED = int(os.environ.get("DULY_CONTRACT_SEED", "1"))

NOT_DESCRIBED = re.compile(
    r"after|Last-Event-ID"  # opaque: from a previous response
    r"|(jobs\.\d+\.)?(job_type|payload.*|metadata.*|run_identity)"  # defined by the application
    r"|(jobs\.\d+\.)?project_id|org_id"  # existing ones only
    r"|(jobs\.\d+\.)?scheduled_for|expires_at"  # not in the past
    r"|Idempotency-Key|(jobs\.\d+\.)?idempotency_key"  # bound to one request
    r"|cron|timezone|queue"  # has its own grammar
    r"|url|event_types|job_types|secret"  # existing hosts and event types only
    r"|to|template_key|subject|body|bucket"  # channels and templates have their own grammar
    r"|name|scopes|burst|max_waiting|freshness|sources.*",  # depends on other fields
    re.DOTALL,
)
"""Fields whose valid values a schema cannot describe: the service may refuse what the document allows."""
CONDITIONAL_FIELDS = {("/v1/jobs/actions", "reason"), ("/v1/jobs/actions", "per_second")}
"""Fields that only some requests of a path accept: a reason except for dry runs, a pace for replays."""
PATHS_THAT_ARE_ALSO_IDS = re.compile(
    r"/v1/jobs/bulk|/v1/jobs/actions|/v1/dead-letters/(replay|discard)|/v1/notifications/preview"
)
"""Paths that other methods parse as a resource with an invalid id."""


@dataclass
class Report:
    """The responses by operation and status, and the failed checks."""

    responses: Counter[tuple[str, int]] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)
    """One example of each failed check."""

    def served(self) -> set[str]:
        """Return the operations that succeeded at least once."""
        return {operation for operation, status in self.responses if status < 400}


def check(address: str, key: str, org: SampleOrg, paths: str) -> Report:
    """Run every check of schemathesis on the operations with matching paths."""
    config = schemathesis.Config.from_dict(_settings(address, key, org))
    document = httpx.get(f"{address}/openapi.json", timeout=60).json()
    document["paths"] = {
        path: operations for path, operations in document["paths"].items() if re.match(paths, path)
    }
    report = Report()
    for event in from_schema(schemathesis.openapi.from_dict(document, config=config)).execute():
        if isinstance(event, events.FatalError):
            raise event.exception
        if isinstance(event, events.NonFatalError):
            report.failures[event.label] = repr(event.value)
        if isinstance(event, events.ScenarioFinished):
            _add_results(report, event.recorder)
    return report


def _settings(address: str, key: str, org: SampleOrg) -> dict[str, Any]:
    return {
        "seed": SEED,
        "base-url": address,
        "headers": {"Authorization": f"Bearer {key}"},
        "continue-on-failure": True,
        "request-timeout": 30,
        "max-stream-events": 3,
        "generation": {"max-examples": EXAMPLES, "no-shrink": True, "database": "none"},
        "dictionaries": {
            name: {"values": list(map(str, values))} for name, values in _existing_ids(org).items()
        },
        "parameters": {
            "path.job_id": _mostly("jobs"),
            "path.result_id": _mostly("results"),
            "path.key_id": _mostly("keys"),
            "path.user_id": _mostly("members"),
            "path.org_id": _mostly("orgs"),
            "path.endpoint_id": _mostly("webhooks"),
            "path.message_id": _mostly("messages"),
            "path.notification_id": _mostly("notifications"),
            "path.subscription_id": _mostly("subscriptions"),
            "path.template_key": _mostly("templates"),
            "body.template_key": _mostly("templates"),
            "body.to": _mostly("recipients"),
            "body.to[*]": _mostly("recipients"),
            "query.to": _mostly("recipients"),
            "body.job_type": _mostly("job types"),
            "body.jobs[*].job_type": _mostly("job types"),
        },
        "operations": [
            {"include-path-regex": "^/analyze", "parameters": {"path.job_id": _mostly("analyses")}},
            {
                "include-path-regex": "/dead-letters/|/(replay|fix|discard)$",
                "parameters": {"path.job_id": _mostly("dead")},
            },
        ],
    }


def _existing_ids(org: SampleOrg) -> dict[str, list[object]]:
    """Return the ids of existing resources by kind."""
    return {
        "jobs": [org.done, org.dead, org.waiting],
        "dead": [org.dead],
        "analyses": [org.analysis],
        "results": [org.result, org.findings],
        "keys": [org.key.key.key_id],
        "members": [org.member],
        "orgs": [org.org_id],
        "webhooks": [org.webhook.endpoint.endpoint_id],
        "messages": [org.message],
        "notifications": [org.notification],
        "subscriptions": [org.subscription],
        "templates": [org.template],
        "recipients": ["in_app:u1", "email:anna@example.com"],
        "job types": ["report.build", "report.fail"],
    }


def _mostly(kind: str) -> dict[str, Any]:
    return {"dictionary": kind, "probability": 0.7}


def _add_results(report: Report, recorder: ScenarioRecorder) -> None:
    for name, interaction in recorder.interactions.items():
        if interaction.response is not None:
            report.responses[
                recorder.cases[name].value.operation.label, interaction.response.status_code
            ] += 1
    for name, node in _failures(recorder):
        response = recorder.interactions[name].response
        if response is not None and not _excused(node.name, recorder, name):
            problem = f"{node.failure_info.failure.operation} {node.name}"  # type: ignore[union-attr]
            report.failures.setdefault(problem, _example(node, response))


def _failures(recorder: ScenarioRecorder) -> Iterator[tuple[str, CheckNode]]:
    for name, nodes in recorder.checks.items():
        yield from ((name, node) for node in nodes if node.failure_info is not None)


def _excused(check: str, recorder: ScenarioRecorder, name: str) -> bool:
    """Return whether a failed check is a rule that the document cannot describe."""
    path = recorder.cases[name].value.operation.path
    if check in ("unsupported_method", "allow_header_conformance"):
        return PATHS_THAT_ARE_ALSO_IDS.fullmatch(path) is not None
    response = recorder.interactions[name].response
    if check != "positive_data_acceptance" or response is None or response.status_code != 422:
        return False
    errors = json.loads(response.content or b"{}")["errors"]
    request = f"{recorder.interactions[name].request.uri} {recorder.cases[name].value.body!r}"
    no_text = "%00" in request or "\\x00" in request
    return all(
        NOT_DESCRIBED.fullmatch(error["field"]) or (path, error["field"]) in CONDITIONAL_FIELDS or no_text
        for error in errors
    )


def _example(node: CheckNode, response: schemathesis.Response) -> str:
    info = node.failure_info
    assert info is not None
    return f"{info.failure.message}\n{info.code_sample}\n{response.status_code} {response.content[:800]!r}"
