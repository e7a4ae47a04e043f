"""The verification of an audit trail as a job: a long chain takes longer than anybody waits for an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID, uuid4

from duly.core.job import Actor, JobSnapshot
from duly.core.policy import Category
from duly.features.audit.report import AuditReport
from duly.jobs.application import App
from duly.jobs.codec import HandlerContext
from duly.jobs.job import Call
from duly.jobs.request_context import current_context

JOB_TYPE = "duly.verify_audit"
_ONE_AT_A_TIME = "the chain of the org"


@dataclass(frozen=True, slots=True)
class Verification:
    """A verification that somebody asked for; its report is there when it is done."""

    job: JobSnapshot
    report: AuditReport | None


class Verify(Protocol):
    """Walks the chain of an org, and says after each step which share of it is done."""

    def __call__(
        self, org_id: UUID, *, expect: str | None, step: Callable[[float], None]
    ) -> Awaitable[AuditReport]:
        """What it found."""


def declare(app: App, verify: Verify) -> None:
    """Add the job type to an application; once."""
    if JOB_TYPE in app.registry:
        return

    @app.job(JOB_TYPE, category=Category.MAINTENANCE)
    async def verify_audit(ctx: HandlerContext, expect: str | None = None) -> AuditReport:
        def step(share: float) -> None:
            ctx.check_canceled()
            ctx.progress(100 * share)

        whose = current_context().org_id
        assert whose is not None
        return await verify(whose, expect=expect, step=step)


def call(app: App, org_id: UUID, actor: Actor, expect: str | None) -> Call[AuditReport]:
    """The call that has it done. While one is under way, it is that one."""
    job = app.registry.get(JOB_TYPE)
    # Asked again, it is done again: somebody may have touched the trail since.
    key = f"verify:{uuid4()}"
    chosen = job.options(org_id=org_id, actor=actor, run_identity=_ONE_AT_A_TIME, idempotency_key=key)
    return chosen.call(expect=expect)
