"""System jobs: the job types of Duly itself, `duly.*`. Tenants see them and may not change them."""

from __future__ import annotations

from duly.core.errors import Forbidden
from duly.core.job import Actor, ActorType

_PREFIX = "duly."
_CANCELABLE = ("duly.bulk",)
_TENANT_ACTORS = (ActorType.USER, ActorType.API_KEY)


def is_system_job(job_type: str) -> bool:
    """Return whether a job type belongs to Duly, not to the application."""
    return job_type.startswith(_PREFIX)


def may_change(actor: Actor, job_type: str) -> bool:
    """Return whether an actor may replay, retry or cancel a job: system jobs belong to the operator."""
    return actor.type not in _TENANT_ACTORS or not is_system_job(job_type)


def check_may_change(actor: Actor, job_type: str) -> None:
    """Raise if a tenant's actor would change a system job."""
    if not may_change(actor, job_type):
        raise Forbidden(
            f"{job_type} is a system job of Duly", field="job_id", fix="ask the operator of the installation"
        )


def check_may_cancel(actor: Actor, job_type: str) -> None:
    """Raise if a tenant's actor would cancel a system job, other than a bulk operation of its org."""
    if job_type not in _CANCELABLE:
        check_may_change(actor, job_type)
