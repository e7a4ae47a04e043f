"""The OpenAPI document against the service: schemathesis, and what the document cannot say."""

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
    r"after|Last-Event-ID"  # opaque: the text of an answer before
    r"|(jobs\.\d+\.)?(job_type|payload.*|metadata.*|run_identity)"  # the application's, and no secrets
    r"|(jobs\.\d+\.)?project_id|org_id"  # of those that there are
    r"|(jobs\.\d+\.)?scheduled_for|expires_at"  # not in the past
    r"|Idempotency-Key|(jobs\.\d+\.)?idempotency_key"  # of one request only
    r"|cron|timezone|queue"  # a grammar of its own
    r"|url|event_types|job_types|secret"  # of hosts and kinds that there are
    r"|to|template_key|subject|body|bucket"  # channels and templates have a grammar of their own
    r"|name|scopes|burst|max_waiting|freshness|sources.*",  # one with, or without, another
    re.DOTALL,
)
"""Fields whose right values a schema cannot describe: valid by the document, they may yet be refused."""
WITH_SOME_ONLY = {("/v1/jobs/actions", "reason"), ("/v1/jobs/actions", "per_second")}
"""Fields of paths that go with some requests only: a reason with all but dry runs, a pace with replays."""
PATHS_THAT_ARE_ALSO_IDS = re.compile(
    r"/v1/jobs/bulk|/v1/jobs/actions|/v1/dead-letters/(replay|discard)|/v1/notifications/preview"
)
"""To other methods they are a job whose id is no id."""


@dataclass
class Report:
    """What was asked, and what was wrong."""

    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    wrong: dict[str, str] = field(default_factory=dict)
    """One example of each."""

    def served(self) -> set[str]:
        """The operations that did something at least once."""
        return {operation for operation, status in self.answers if status < 400}


def check(address: str, key: str, org: SampleOrg, paths: str) -> Report:
    """Ask everything there is to ask of the operations with such paths, by every check there is."""
    config = schemathesis.Config.from_dict(_settings(address, key, org))
    document = httpx.get(f"{address}/openapi.json", timeout=60).json()
    document["paths"] = {path: said for path, said in document["paths"].items() if re.match(paths, path)}
    report = Report()
    for event in from_schema(schemathesis.openapi.from_dict(document, config=config)).execute():
        if isinstance(event, events.FatalError):
            raise event.exception
        if isinstance(event, events.NonFatalError):
            report.wrong[event.label] = repr(event.value)
        if isinstance(event, events.ScenarioFinished):
            _note(report, event.recorder)
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
        "dictionaries": {name: {"values": list(map(str, values))} for name, values in _known(org).items()},
        "parameters": {
            "path.job_id": _often("jobs"),
            "path.result_id": _often("results"),
            "path.key_id": _often("keys"),
            "path.user_id": _often("members"),
            "path.org_id": _often("orgs"),
            "path.endpoint_id": _often("webhooks"),
            "path.message_id": _often("messages"),
            "path.notification_id": _often("notifications"),
            "path.subscription_id": _often("subscriptions"),
            "path.template_key": _often("templates"),
            "body.template_key": _often("templates"),
            "body.to": _often("recipients"),
            "body.to[*]": _often("recipients"),
            "query.to": _often("recipients"),
            "body.job_type": _often("job types"),
            "body.jobs[*].job_type": _often("job types"),
        },
        "operations": [
            {"include-path-regex": "^/analyze", "parameters": {"path.job_id": _often("analyses")}},
            {
                "include-path-regex": "/dead-letters/|/(replay|fix|discard)$",
                "parameters": {"path.job_id": _often("dead")},
            },
        ],
    }


def _known(org: SampleOrg) -> dict[str, list[object]]:
    """What there is, by what it is."""
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


def _often(kind: str) -> dict[str, Any]:
    return {"dictionary": kind, "probability": 0.7}


def _note(report: Report, told: ScenarioRecorder) -> None:
    for name, done in told.interactions.items():
        if done.response is not None:
            report.answers[told.cases[name].value.operation.label, done.response.status_code] += 1
    for name, node in _failures(told):
        response = told.interactions[name].response
        if response is not None and not _excused(node.name, told, name):
            problem = f"{node.failure_info.failure.operation} {node.name}"  # type: ignore[union-attr]
            report.wrong.setdefault(problem, _example(node, response))


def _failures(told: ScenarioRecorder) -> Iterator[tuple[str, CheckNode]]:
    for name, nodes in told.checks.items():
        yield from ((name, node) for node in nodes if node.failure_info is not None)


def _excused(check: str, told: ScenarioRecorder, name: str) -> bool:
    """Narrow: what the document cannot say, and nothing else."""
    path = told.cases[name].value.operation.path
    if check in ("unsupported_method", "allow_header_conformance"):
        return PATHS_THAT_ARE_ALSO_IDS.fullmatch(path) is not None
    response = told.interactions[name].response
    if check != "positive_data_acceptance" or response is None or response.status_code != 422:
        return False
    errors = json.loads(response.content or b"{}")["errors"]
    asked = f"{told.interactions[name].request.uri} {told.cases[name].value.body!r}"
    no_text = "%00" in asked or "\\x00" in asked
    return all(
        NOT_DESCRIBED.fullmatch(error["field"]) or (path, error["field"]) in WITH_SOME_ONLY or no_text
        for error in errors
    )


def _example(node: CheckNode, response: schemathesis.Response) -> str:
    info = node.failure_info
    assert info is not None
    return f"{info.failure.message}\n{info.code_sample}\n{response.status_code} {response.content[:800]!r}"
