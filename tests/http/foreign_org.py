"""Requests to the resources of another org, and to unknown ids that look like them."""

from __future__ import annotations

import random
import re
import uuid
from dataclasses import dataclass
from itertools import product
from typing import Any

import psycopg
from fastapi import FastAPI

from tests.http.requests import REASON
from tests.http.sample_org import SampleOrg

PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
UUID_TEXT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
WITHOUT_ORG = re.compile(r"/static/|/v1/platform/(queues|workers)/")
"""Paths with names that belong to no org."""
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/v1/jobs/{job_id}/fix"): {**REASON, "payload": {}},
    ("PATCH", "/v1/schedules/{name}"): {**REASON, "cron": "1 1 * * *"},
    ("PUT", "/v1/members/{user_id}"): {**REASON, "role": "viewer"},
    ("PATCH", "/v1/platform/orgs/{org_id}"): {**REASON, "status": "suspended"},
    ("POST", "/v1/platform/orgs/{org_id}/keys"): {**REASON, "name": "k", "scopes": ["jobs:read"]},
    ("POST", "/v1/webhooks/{endpoint_id}/resend-failed"): {**REASON, "since": "2026-01-01T00:00:00Z"},
    ("PUT", "/v1/notification-templates/{template_key}"): {**REASON, "subject": "s", "body": "b"},
}
"""The bodies of changes that need more than a reason."""
WITHOUT_REASON = {"/v1/subscriptions/{subscription_id}"}
"""Resources that are deleted without a reason."""
REFERENCES = {
    *("subject_id", "project_id", "correlation_id", "target_id", "org_id", "job_id"),
    *("after", "blob", "fingerprint"),
}
"""Fields of queries and bodies that can refer to a resource; `mentions` or the page tests cover each."""


@dataclass(frozen=True)
class Route:
    """A route: a method and a path."""

    method: str
    path: str

    def ids(self, org: SampleOrg) -> list[dict[str, str]]:
        """Return every way to fill in the path with ids of this org; fail for unknown parameter names."""
        names = PARAMETER.findall(self.path)
        return [
            dict(zip(names, map(str, values), strict=True))
            for values in product(*(_ids(name, self.path, org) for name in names))
        ]

    def at(self, ids: dict[str, str]) -> str:
        """Return the path with these ids."""
        return PARAMETER.sub(lambda match: ids[match[1]], self.path)


def routes(api: FastAPI) -> list[Route]:
    """Return every route, also those that the OpenAPI document omits."""
    found_routes = []
    for route in api.routes:
        # Newer versions of FastAPI keep included routers as they are.
        inner = route.effective_route_contexts() if hasattr(route, "effective_route_contexts") else [route]
        found_routes += [
            Route(method, PARAMETER.sub(r"{\1}", one.path)) for one in inner for method in sorted(one.methods)
        ]
    return found_routes


def _ids(name: str, path: str, org: SampleOrg) -> list[object]:
    if name == "name":
        return [org.schedule] if path.startswith("/v1/schedules/") else [org.file]
    return {
        "job_id": [org.done, org.dead, org.waiting, org.analysis],
        "result_id": [org.result, org.findings],
        "key_id": [org.key.key.key_id],
        "user_id": [org.member],
        "org_id": [org.org_id],
        "endpoint_id": [org.webhook.endpoint.endpoint_id],
        "message_id": [org.message],
        "notification_id": [org.notification],
        "subscription_id": [org.subscription],
        "template_key": [org.template],
    }[name]


@dataclass(frozen=True)
class Mention:
    """A request that refers to a resource in its query or its body; `{}` stands for the id."""

    resource_id: object
    method: str
    url: str
    body: str | None = None


def mentions(org: SampleOrg, project: str, client_org: SampleOrg) -> list[Mention]:
    """Return every request of `client_org` that refers to a resource of this org other than by its path."""
    log = f"/v1/webhooks/{client_org.webhook.endpoint.endpoint_id}/deliveries"
    job = '{"job_type": "report.build", "project_id": "{}"}'
    schedule = '{"name": "s", "cron": "0 3 * * *", "reason": "r",' + job[1:]
    return [
        Mention(org.subject, "GET", "/v1/jobs?subject_id={}"),
        Mention(org.subject, "GET", "/v1/jobs?metadata=batch:{}"),
        Mention(org.key.key.key_id, "GET", "/v1/audit?target_id={}"),
        Mention(org.dead, "GET", "/v1/audit?target_id={}"),
        Mention(org.done, "GET", log + "?job_id={}"),
        *_notification_mentions(org),
        Mention(project, "POST", "/v1/jobs", job),
        Mention(project, "POST", "/v1/jobs/bulk", f'{{"jobs": [{job}]}}'),
        Mention(project, "POST", "/v1/schedules", schedule),
        Mention(project, "POST", "/v1/projects", '{"name": "n", "reason": "r", "project_id": "{}"}'),
        Mention(org.blob, "POST", "/analyze", '{"sources": [{"name": "a", "blob": "{}"}]}'),
        Mention(org.org_id, "GET", "/v1/platform/limits?org_id={}"),
        Mention(org.org_id, "PUT", "/v1/platform/limits", '{"reason": "r", "org_id": "{}"}'),
        Mention(org.org_id, "POST", "/v1/platform/limits/pause", '{"reason": "r", "org_id": "{}"}'),
        Mention(org.org_id, "POST", "/v1/platform/orgs", '{"reason": "r", "name": "n", "org_id": "{}"}'),
    ]


def _notification_mentions(org: SampleOrg) -> list[Mention]:
    send, endpoint = '{"template_key": "job.failed", "to": [', org.webhook.endpoint.endpoint_id
    return [
        Mention(org.done, "GET", "/v1/notifications?job_id={}"),
        Mention(org.done, "GET", "/v1/subscriptions?all=true&job_id={}"),
        Mention(f"{org.name}-user", "GET", "/v1/notifications?recipient={}"),
        Mention(org.done, "POST", "/v1/notifications", send + '"in_app:u"], "job_id": "{}"}'),
        Mention(endpoint, "POST", "/v1/notifications", send + '"webhook:{}"]}'),
        Mention(org.template, "POST", "/v1/notifications/preview", '{"template_key": "{}"}'),
        Mention(org.notification, "POST", "/v1/inbox/read", '{"notification_ids": ["{}"]}'),
        Mention(org.waiting, "POST", "/v1/subscriptions", '{"job_id": "{}"}'),
        Mention(endpoint, "POST", "/v1/subscriptions", '{"to": "webhook:{}"}'),
    ]


def reference_fields(document: dict[str, Any]) -> set[str]:
    """Return the fields of queries and bodies whose names suggest that they refer to a resource."""
    parameters = {
        parameter["name"]
        for operations in document["paths"].values()
        for operation in operations.values()
        for parameter in operation.get("parameters", [])
        if parameter["in"] != "path"
    }
    bodies = {
        name
        for schema in document["components"]["schemas"].values()
        if schema.get("additionalProperties") is False  # a request body
        for name in schema["properties"]
    }
    return {name for name in parameters | bodies if name.endswith("_id") or name in REFERENCES}


def lookalike(text: str, chance: random.Random) -> str:
    """Return an unknown id in the same format."""
    if text.startswith("blob:"):
        return re.sub("[0-9a-f]{64}", lambda match: match[0][::-1], text)
    if UUID_TEXT.fullmatch(text):
        return str(uuid.UUID(int=uuid.UUID(text).int ^ chance.randrange(1, 2**32)))
    if parts := re.fullmatch("(evt|msg)_([0-9a-f]{32})_([0-9]+)", text):
        return f"{parts[1]}_{lookalike(str(uuid.UUID(parts[2])), chance).replace('-', '')}_{parts[3]}"
    return text[:-4] + "".join(chance.sample("0123456789", 4))


def rows_of(sql: psycopg.Connection[Any], org: SampleOrg) -> dict[str, list[Any]]:
    """Return every row of the org, in every table."""
    tables = sql.execute(
        "select table_name from information_schema.columns natural join information_schema.tables "
        "where table_schema = 'duly' and column_name = 'org_id' and table_type = 'BASE TABLE'"
    ).fetchall()
    statement = "select to_jsonb(t)::text from duly.{} t where org_id = %s order by 1"
    return {name: sql.execute(statement.format(name), [org.org_id]).fetchall() for (name,) in tables}


def identifying_texts(org: SampleOrg) -> set[str]:
    """Return the texts that identify resources of this org."""
    ids = (org.org_id, org.done, org.result, org.waiting, org.dead, org.analysis, org.findings)
    texts = {org.name, org.blob.split("/")[1], org.key.key.key_id, org.key.text, org.webhook.secret}
    notification_ids = {str(org.notification), str(org.subscription), org.template}
    return {*map(str, ids), str(org.webhook.endpoint.endpoint_id), org.message, *notification_ids, *texts}
