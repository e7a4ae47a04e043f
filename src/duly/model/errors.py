"""Every error Duly raises, each with a stable code.

DulyError                     duly.error              the root: catch this one for all
├── ConfigurationError        duly.configuration      settings that cannot work
├── ContractError             contract.invalid        a field of a job is missing or wrong
│   ├── MissingField          contract.missing        a mandatory field is absent
│   ├── PayloadRefused        payload.refused         too large, too deep, NaN, NUL, duplicate keys
│   ├── SecretInPayload       payload.secret          looks like a credential; use a secret_ref
│   └── Unschedulable         contract.unschedulable  this job type may not be delayed
├── Unauthenticated           auth.required           no credential, or one that is not believed
├── Forbidden                 auth.forbidden          the credential does not allow it
├── NotFound                  not_found               nothing of that id in this org
│   ├── CursorExpired         cursor.expired          what follows this place of a feed is not kept any more
│   ├── UnknownArtifact       artifact.unknown
│   ├── UnknownDelivery       delivery.unknown
│   ├── UnknownJob            job.unknown
│   ├── UnknownJobType        job_type.unknown
│   ├── UnknownKey            key.unknown
│   ├── UnknownMember         member.unknown
│   ├── UnknownNotification   notification.unknown
│   ├── UnknownOrg            org.unknown
│   ├── UnknownProject        project.unknown
│   ├── UnknownQueue          queue.unknown
│   ├── UnknownResult         result.unknown
│   ├── UnknownSchedule       schedule.unknown
│   ├── UnknownSubscription   subscription.unknown
│   ├── UnknownTemplate       template.unknown
│   ├── UnknownWebhook        webhook.unknown
│   └── UnknownWorker         worker.unknown
├── Conflict                  conflict                the job's state forbids it
│   ├── AlreadyFinished       job.finished
│   ├── AlreadyResolved       dead_letter.resolved
│   ├── KeyInFlight           idempotency.in_flight   a request with the same key is under way
│   └── KeyReused             idempotency.reused      the same key came with another request
├── JobEnded                  job.ended               the job ended without a result
│   ├── JobFailed             job.failed
│   └── JobCanceled           job.canceled
├── LimitExceeded             limit.exceeded          more than the org may have waiting
├── LeaseLost                 lease.lost              the attempt is no longer this worker's
├── WaitTimeout               wait.timeout            still active when the time was over
└── StoreError                store.error
    ├── SchemaMismatch        store.schema            run the migrations, or update the package
    └── StoreUnavailable      store.unavailable       the database cannot be reached
"""

from __future__ import annotations

from typing import ClassVar


class DulyError(Exception):
    """The root. `code` is stable, `fix` says what to do."""

    code: ClassVar[str] = "duly.error"
    status: int | None = None
    """Of the answer over HTTP that said so."""
    request_id: str | None = None
    """By which the service's log finds it."""

    def __init__(self, message: str, *, field: str | None = None, fix: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.fix = fix

    def __str__(self) -> str:
        where = f"{self.field}: " if self.field else ""
        fix = f" ({self.fix})" if self.fix else ""
        return f"{where}{self.message}{fix}"


class ConfigurationError(DulyError):
    """Settings that cannot work."""

    code = "duly.configuration"


class ContractError(DulyError):
    """A field of a job is wrong."""

    code = "contract.invalid"


class MissingField(ContractError):
    """A mandatory field of the job contract is absent."""

    code = "contract.missing"


class PayloadRefused(ContractError):
    """A payload that breaks a limit."""

    code = "payload.refused"


class SecretInPayload(ContractError):
    """A payload that seems to carry a credential."""

    code = "payload.secret"


class Unschedulable(ContractError):
    """A delayed run of a job type that does not allow it."""

    code = "contract.unschedulable"


class Unauthenticated(DulyError):
    """No credential, or one that is not believed. Why not is nobody's business."""

    code = "auth.required"


class Forbidden(DulyError):
    """The credential does not allow it."""

    code = "auth.forbidden"


class NotFound(DulyError):
    """Nothing of that id in this org."""

    code = "not_found"


class CursorExpired(NotFound):
    """What follows this place of a feed is no longer kept: begin again without a cursor."""

    code = "cursor.expired"


class UnknownArtifact(NotFound):
    """The job has left no file of that name."""

    code = "artifact.unknown"


class UnknownDelivery(NotFound):
    """No message of that id to this webhook, or one that is no longer kept."""

    code = "delivery.unknown"


class UnknownJob(NotFound):
    """No job of that id in this org."""

    code = "job.unknown"


class UnknownJobType(NotFound):
    """No job type of that name is registered."""

    code = "job_type.unknown"


class UnknownKey(NotFound):
    """No key of that id in this org."""

    code = "key.unknown"


class UnknownMember(NotFound):
    """No member of that id in this org."""

    code = "member.unknown"


class UnknownNotification(NotFound):
    """No notification of that id in this org."""

    code = "notification.unknown"


class UnknownOrg(NotFound):
    """No active org of that id."""

    code = "org.unknown"


class UnknownProject(NotFound):
    """No project of that id in this org."""

    code = "project.unknown"


class UnknownQueue(NotFound):
    """No queue of that name."""

    code = "queue.unknown"


class UnknownResult(NotFound):
    """No result of that id in this org, or one that is no longer kept."""

    code = "result.unknown"


class UnknownSchedule(NotFound):
    """No schedule of that name in this org."""

    code = "schedule.unknown"


class UnknownSubscription(NotFound):
    """No subscription of that id in this org."""

    code = "subscription.unknown"


class UnknownTemplate(NotFound):
    """No template of that key and language."""

    code = "template.unknown"


class UnknownWebhook(NotFound):
    """No webhook of that id in this org."""

    code = "webhook.unknown"


class UnknownWorker(NotFound):
    """No worker of that id, or one that has gone."""

    code = "worker.unknown"


class Conflict(DulyError):
    """The state of things forbids it."""

    code = "conflict"


class AlreadyFinished(Conflict):
    """The job has ended; terminal jobs never change."""

    code = "job.finished"


class AlreadyResolved(Conflict):
    """The dead letter was resolved in another way; the message names its successor."""

    code = "dead_letter.resolved"


class KeyInFlight(Conflict):
    """A request with the same idempotency key is under way."""

    code = "idempotency.in_flight"


class KeyReused(Conflict):
    """The same idempotency key came with another request."""

    code = "idempotency.reused"


class JobEnded(DulyError):
    """The job ended without a result."""

    code = "job.ended"


class JobFailed(JobEnded):
    """The job failed; the message is the job's own."""

    code = "job.failed"


class JobCanceled(JobEnded):
    """The job was canceled."""

    code = "job.canceled"


class LimitExceeded(DulyError):
    """More than the org may have waiting."""

    code = "limit.exceeded"


class LeaseLost(DulyError):
    """The attempt is no longer this worker's: whatever it still does is not written."""

    code = "lease.lost"


class WaitTimeout(DulyError, TimeoutError):
    """The job was still active when the time was over."""

    code = "wait.timeout"


class StoreError(DulyError):
    """The database refused or could not."""

    code = "store.error"


class SchemaMismatch(StoreError):
    """Schema and package are of different versions."""

    code = "store.schema"


class StoreUnavailable(StoreError):
    """The database cannot be reached."""

    code = "store.unavailable"
