"""What one org has, as another meets it: under its ids, and under ids of nobody that look just like them."""

from __future__ import annotations

import random
import re
import uuid
from dataclasses import dataclass
from itertools import product
from typing import Any

import psycopg
from fastapi import FastAPI

from tests.http.requests import WHY
from tests.http.sample_org import SampleOrg

PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
UUID_TEXT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
OF_NOBODY = re.compile(r"/static/|/v1/platform/(queues|workers)/")
"""Paths with names that belong to no org."""
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/v1/jobs/{job_id}/fix"): {**WHY, "payload": {}},
    ("PATCH", "/v1/schedules/{name}"): {**WHY, "cron": "1 1 * * *"},
    ("PUT", "/v1/members/{user_id}"): {**WHY, "role": "viewer"},
    ("PATCH", "/v1/platform/orgs/{org_id}"): {**WHY, "status": "suspended"},
    ("POST", "/v1/platform/orgs/{org_id}/keys"): {**WHY, "name": "k", "scopes": ["jobs:read"]},
    ("POST", "/v1/webhooks/{endpoint_id}/resend-failed"): {**WHY, "since": "2026-01-01T00:00:00Z"},
    ("PUT", "/v1/notification-templates/{template_key}"): {**WHY, "subject": "s", "body": "b"},
}
"""Of changes that need more than their reason."""
WITHOUT_REASON = {"/v1/subscriptions/{subscription_id}"}
"""What is ended without saying why."""
NAMED = {
    *("subject_id", "project_id", "correlation_id", "target_id", "org_id", "job_id"),
    *("after", "blob", "fingerprint"),
}
"""Fields of queries and bodies that can say what is somebody's; `mentions` or the pages have each of them."""


@dataclass(frozen=True)
class Route:
    """A method of a path."""

    method: str
    path: str

    def ids(self, org: SampleOrg) -> list[dict[str, str]]:
        """Every way to fill in the path with what this org has. Unknown names are an error, on purpose."""
        names = PARAMETER.findall(self.path)
        return [
            dict(zip(names, map(str, values), strict=True))
            for values in product(*(_ids(name, self.path, org) for name in names))
        ]

    def at(self, ids: dict[str, str]) -> str:
        """The path with these in it."""
        return PARAMETER.sub(lambda found: ids[found[1]], self.path)


def routes(api: FastAPI) -> list[Route]:
    """All there are, also those that the document does not show."""
    found = []
    for route in api.routes:
        # Newer versions of FastAPI keep included routers as they are.
        inner = route.effective_route_contexts() if hasattr(route, "effective_route_contexts") else [route]
        found += [
            Route(method, PARAMETER.sub(r"{\1}", one.path)) for one in inner for method in sorted(one.methods)
        ]
    return found


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
    """A request that says what is somebody's, in its query or its body; `{}` stands for it."""

    given: object
    method: str
    url: str
    body: str | None = None


def mentions(org: SampleOrg, project: str, asker: SampleOrg) -> list[Mention]:
    """Every way for another to say what this org has, other than by a path."""
    log = f"/v1/webhooks/{asker.webhook.endpoint.endpoint_id}/deliveries"
    job = '{"job_type": "report.build", "project_id": "{}"}'
    schedule = '{"name": "s", "cron": "0 3 * * *", "reason": "r",' + job[1:]
    return [
        Mention(org.subject, "GET", "/v1/jobs?subject_id={}"),
        Mention(org.subject, "GET", "/v1/jobs?metadata=batch:{}"),
        Mention(org.key.key.key_id, "GET", "/v1/audit?target_id={}"),
        Mention(org.dead, "GET", "/v1/audit?target_id={}"),
        Mention(org.done, "GET", log + "?job_id={}"),
        *_about_telling(org),
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


def _about_telling(org: SampleOrg) -> list[Mention]:
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


def named(document: dict[str, Any]) -> set[str]:
    """The fields of queries and bodies that sound as if they could say what is somebody's."""
    asked = {
        parameter["name"]
        for operations in document["paths"].values()
        for operation in operations.values()
        for parameter in operation.get("parameters", [])
        if parameter["in"] != "path"
    }
    bodies = {
        name
        for schema in document["components"]["schemas"].values()
        if schema.get("additionalProperties") is False  # what callers send
        for name in schema["properties"]
    }
    return {name for name in asked | bodies if name.endswith("_id") or name in NAMED}


def lookalike(text: str, chance: random.Random) -> str:
    """Like it in every way, and nobody's."""
    if text.startswith("blob:"):
        return re.sub("[0-9a-f]{64}", lambda found: found[0][::-1], text)
    if UUID_TEXT.fullmatch(text):
        return str(uuid.UUID(int=uuid.UUID(text).int ^ chance.randrange(1, 2**32)))
    if parts := re.fullmatch("(evt|msg)_([0-9a-f]{32})_([0-9]+)", text):
        return f"{parts[1]}_{lookalike(str(uuid.UUID(parts[2])), chance).replace('-', '')}_{parts[3]}"
    return text[:-4] + "".join(chance.sample("0123456789", 4))


def belongings(sql: psycopg.Connection[Any], org: SampleOrg) -> dict[str, list[Any]]:
    """Every row that the org has, in every table."""
    tables = sql.execute(
        "select table_name from information_schema.columns natural join information_schema.tables "
        "where table_schema = 'duly' and column_name = 'org_id' and table_type = 'BASE TABLE'"
    ).fetchall()
    asked = "select to_jsonb(t)::text from duly.{} t where org_id = %s order by 1"
    return {name: sql.execute(asked.format(name), [org.org_id]).fetchall() for (name,) in tables}


def told_apart(org: SampleOrg) -> set[str]:
    """The texts by which one would know that something is this org's."""
    ids = (org.org_id, org.done, org.result, org.waiting, org.dead, org.analysis, org.findings)
    texts = {org.name, org.blob.split("/")[1], org.key.key.key_id, org.key.text, org.webhook.secret}
    told = {str(org.notification), str(org.subscription), org.template}
    return {*map(str, ids), str(org.webhook.endpoint.endpoint_id), org.message, *told, *texts}
