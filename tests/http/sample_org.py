"""An org with one of every resource of the API."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from duly import Actor, Context, Duly, context
from duly.apps.analyze import JOB_TYPE
from duly.core.principal import Role
from duly.features.alerts.alerter import Alerter
from duly.features.alerts.thresholds import Thresholds
from duly.features.api_keys.models import NewApiKey
from duly.features.api_keys.service import ApiKeys
from duly.features.jobs.service import Jobs
from duly.features.members.service import Members
from duly.features.schedules.service import Schedules
from duly.features.webhooks.models import NewSecret
from tests.http.conftest import ALL, ANNA
from tests.worker.working import ONE_ATTEMPT, WAIT_TIMEOUT, working


@dataclass(frozen=True)
class SampleOrg:
    """The ids of the resources of an org."""

    org_id: uuid.UUID
    name: str
    subject: str
    done: uuid.UUID
    """A completed job with partial results, a final result and artifacts."""
    result: uuid.UUID
    waiting: uuid.UUID
    dead: uuid.UUID
    analysis: uuid.UUID
    findings: uuid.UUID
    """The result of the analysis."""
    file: str
    blob: str
    schedule: str
    member: str
    key: NewApiKey
    webhook: NewSecret
    message: str
    """The id of a webhook message that is never sent."""
    notification: uuid.UUID
    subscription: uuid.UUID
    template: str


def declare(app: Duly) -> None:
    """Declare the job types; call this before the service is created, because one of them adds routes."""
    app.include_analyze()
    declare_reports(app)


def declare_reports(app: Duly) -> None:
    """Declare the job types that are not part of Duly."""

    @app.job("report.build", allows_partial=True, schedulable=True)
    async def build(ctx: Context, number: int = 0, note: str = "") -> dict[str, int]:
        for region in ("DE", "FR"):
            await ctx.partial({"region": region}, key=region, percent=40)
        await ctx.artifact(note, b"a,b\n1,2\n", content_type="text/csv")
        return {"regions": 2}

    @app.job("report.fail", retry=ONE_ATTEMPT)
    async def fail(number: int = 0) -> None:
        raise ValueError(f"no region {number}")


async def create_sample_org(app: Duly, name: str) -> SampleOrg:
    """Create an org; `name` is part of each of its texts."""
    org_id = uuid.uuid4()
    await app.create_org(org_id, name)
    file, subject = f"{name} report.csv", f"{name}-subject"
    with context(org_id=org_id, actor=Actor.user(f"{name}-user"), request_id=f"{name}-request"):
        done, dead, analysis, waiting = await _jobs(app, subject, file)
    await Alerter(app, Thresholds()).once()
    schedule = f"{name}-nightly"
    await Schedules(app).create(
        org_id, schedule, cron="0 3 * * *", job_type="report.build", actor=ANNA, reason=name
    )
    await Members(app).set(org_id, f"{name}-member", Role.VIEWER, actor=ANNA, reason=name)
    change: dict[str, Any] = {"actor": ANNA, "reason": name}
    webhook = await app.webhooks.create(org_id, f"https://{name}.example.com", ["*"], **change)
    template = await app.notifications.templates.set(
        org_id, f"{name.lower()}.greeting", "en", subject=f"Hello from {name}", body="Hello", **change
    )
    to = f"in_app:{name}-user"
    [sent] = await app.notifications.send(
        org_id, template.template_key, {}, to=[to], job_id=done.job_id, actor=ANNA
    )
    subscription = await app.subscriptions.subscribe(org_id, to, job_id=waiting.job_id, actor=ANNA)
    await app.notifications.suppressions.add(org_id, f"email:{name}@example.com", **change)
    ref = await (await app.resources()).blobs.put(org_id, name.encode())
    return SampleOrg(
        org_id=org_id,
        name=name,
        subject=subject,
        done=done.job_id,
        result=(await done.status()).result_id,
        waiting=waiting.job_id,
        dead=dead.job_id,
        analysis=analysis.job_id,
        findings=(await analysis.status()).result_id,
        file=file,
        blob=str(ref),
        schedule=schedule,
        member=f"{name}-member",
        key=await ApiKeys(app).create(org_id, f"{name}-key", ALL, actor=ANNA, reason=name),
        webhook=webhook,
        notification=sent.notification_id,
        subscription=subscription.subscription_id,
        template=template.template_key,
        message=(
            await app.webhooks.deliveries.test(org_id, webhook.endpoint.endpoint_id, **change)
        ).message_id,
    )


async def _jobs(app: Duly, subject: str, file: str) -> list[Any]:
    build, fail = app.registry.get("report.build"), app.registry.get("report.fail")
    done = await build.options(subject_id=subject, metadata={"batch": subject}).enqueue(1, note=file)
    dead = await fail.options(subject_id=subject).enqueue(2)
    text = f"Die Rechnung von {subject} ist am 17. März 2026 fällig."
    analysis = await Jobs(app).submit(
        JOB_TYPE, {"sources": [{"name": file, "text": text}]}, subject_id=subject
    )
    async with working(app):
        for handle in (done, dead, analysis):
            await handle.wait(WAIT_TIMEOUT)
    later = datetime.now(UTC) + timedelta(days=1)
    waiting = await build.options(subject_id=subject, scheduled_for=later).enqueue(3, note=file)
    return [done, dead, analysis, waiting]
