"""Every error Duly raises, each with a stable code.

DulyError                     duly.error              the base class of all errors
├── ConfigurationError        duly.configuration      settings or declarations that cannot work
├── ContractError             contract.invalid        a field of a job or a request is invalid
│   ├── MissingField          contract.missing        a mandatory field is absent
│   ├── PayloadRefused        payload.refused         too large, too deep, NaN, NUL, duplicate keys
│   ├── SecretInPayload       payload.secret          looks like a credential; use a secret_ref
│   └── Unschedulable         contract.unschedulable  the job type cannot be delayed
├── Unauthenticated           auth.required           the credential is missing or invalid
├── Forbidden                 auth.forbidden          the credential lacks the scope
├── NotFound                  not_found               the org has no resource of that id
│   ├── CursorExpired         cursor.expired          the events after this cursor were deleted by retention
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
├── Conflict                  conflict                the current state does not allow it
│   ├── AlreadyFinished       job.finished
│   ├── AlreadyResolved       dead_letter.resolved
│   ├── KeyInFlight           idempotency.in_flight   a request with the same key is in progress
│   └── KeyReused             idempotency.reused      the key was used for a different request
├── JobEnded                  job.ended               the job ended without a result
│   ├── JobFailed             job.failed
│   └── JobCanceled           job.canceled
├── LimitExceeded             limit.exceeded          the org has too many queued jobs
├── LeaseLost                 lease.lost              the worker no longer holds the attempt
├── WaitTimeout               wait.timeout            the job was still active at the timeout
└── StoreError                store.error
    ├── SchemaMismatch        store.schema            run the migrations, or update the package
    └── StoreUnavailable      store.unavailable       the database cannot be reached
"""

from __future__ import annotations

from typing import ClassVar


class DulyError(Exception):
    """The base class of all errors: `code` is stable, `fix` tells what to do."""

    code: ClassVar[str] = "duly.error"
    status: int | None = None
    """The status of the HTTP response, for errors raised by the HTTP client."""
    request_id: str | None = None
    """The request id under which the service logged the error."""

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
    """Settings or declarations cannot work."""

    code = "duly.configuration"


class ContractError(DulyError):
    """A field of a job or a request is invalid."""

    code = "contract.invalid"


class MissingField(ContractError):
    """A mandatory field is absent."""

    code = "contract.missing"


class PayloadRefused(ContractError):
    """The payload exceeds a limit or is not valid JSON."""

    code = "payload.refused"


class SecretInPayload(ContractError):
    """The payload seems to contain a credential."""

    code = "payload.secret"


class Unschedulable(ContractError):
    """The job type cannot be delayed or scheduled."""

    code = "contract.unschedulable"


class Unauthenticated(DulyError):
    """The credential is missing or invalid; the reason is not disclosed."""

    code = "auth.required"


class Forbidden(DulyError):
    """The credential lacks the scope."""

    code = "auth.forbidden"


class NotFound(DulyError):
    """The org has no resource of that id."""

    code = "not_found"


class CursorExpired(NotFound):
    """Retention deleted the events after this cursor: start again without a cursor."""

    code = "cursor.expired"


class UnknownArtifact(NotFound):
    """The job has no artifact of that name."""

    code = "artifact.unknown"


class UnknownDelivery(NotFound):
    """The webhook has no delivery of that id, or retention deleted it."""

    code = "delivery.unknown"


class UnknownJob(NotFound):
    """No job of that id in this org."""

    code = "job.unknown"


class UnknownJobType(NotFound):
    """No job type of that name is declared."""

    code = "job_type.unknown"


class UnknownKey(NotFound):
    """No API key of that id in this org."""

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
    """No result of that id in this org, or retention deleted it."""

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
    """No running worker of that id."""

    code = "worker.unknown"


class Conflict(DulyError):
    """The current state does not allow it."""

    code = "conflict"


class AlreadyFinished(Conflict):
    """The job has finished; terminal jobs never change."""

    code = "job.finished"


class AlreadyResolved(Conflict):
    """The dead letter was resolved in another way; the message names its successor."""

    code = "dead_letter.resolved"


class KeyInFlight(Conflict):
    """A request with the same idempotency key is in progress."""

    code = "idempotency.in_flight"


class KeyReused(Conflict):
    """The idempotency key was used for a different request."""

    code = "idempotency.reused"


class JobEnded(DulyError):
    """The job ended without a result."""

    code = "job.ended"


class JobFailed(JobEnded):
    """The job failed; the message is that of its error."""

    code = "job.failed"


class JobCanceled(JobEnded):
    """The job was canceled."""

    code = "job.canceled"


class LimitExceeded(DulyError):
    """The org has too many queued jobs."""

    code = "limit.exceeded"


class LeaseLost(DulyError):
    """The worker no longer holds the attempt: its writes are refused."""

    code = "lease.lost"


class WaitTimeout(DulyError, TimeoutError):
    """The job was still active at the timeout."""

    code = "wait.timeout"


class StoreError(DulyError):
    """The database refused a statement, or a session was misused."""

    code = "store.error"


class SchemaMismatch(StoreError):
    """The versions of schema and package differ."""

    code = "store.schema"


class StoreUnavailable(StoreError):
    """The database cannot be reached."""

    code = "store.unavailable"
