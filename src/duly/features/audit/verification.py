"""Verification of the audit trail: the report, the verification of an export, and the job for long chains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from duly.core.errors import ContractError
from duly.core.job import Actor
from duly.core.policy import Category
from duly.features.audit.chain import (
    GENESIS,
    Chain,
    ChainProblem,
    Row,
    check_chain,
    entry_position,
    seal_position,
)
from duly.features.audit.models import AuditReport
from duly.jobs.application import App
from duly.jobs.codec import HandlerContext
from duly.jobs.job import Call
from duly.jobs.request_context import current_context

if TYPE_CHECKING:
    from duly.features.audit.service import Audit

MAX_PROBLEMS = 100
"""The problems in a report."""
JOB_TYPE = "duly.verify_audit"
_RUN_IDENTITY = "the chain of the org"
"""One verification per org at a time."""


def make_report(
    chain: Chain,
    problems: list[ChainProblem],
    *,
    unsealed: int,
    retained_since: datetime | None,
    head_known: bool,
) -> AuditReport:
    """Return the report of a chain that was checked to its end."""
    if not head_known:
        message = "no seal has the expected hash"
        problems = [*problems, ChainProblem(chain.org_id, "head_unknown", None, None, message)]
    return AuditReport(
        org_id=chain.org_id,
        ok=not problems,
        seals=chain.length,
        sealed=chain.sealed,
        unsealed=unsealed,
        gone=chain.gone,
        kept_since=retained_since,
        head=chain.head.hex(),
        broken_at=next((p.seal_seq for p in problems if p.seal_seq is not None), None),
        problems=tuple(problems),
    )


def verify_export(
    rows: Iterable[dict[str, Any]], *, expect: str | None = None, retained_since: datetime | None = None
) -> list[AuditReport]:
    """Verify the rows of an export, org by org, without a database.

    Sealed entries before `retained_since` may be missing. A truncated export is valid in itself: only
    `expect`, the head of an earlier report, proves that it is complete.
    """
    orgs: dict[UUID, dict[str, list[Row]]] = defaultdict(lambda: {"entry": [], "seal": []})
    expected = parse_head(expect)
    for number, row in enumerate(rows, 1):
        try:
            orgs[UUID(str(row["org_id"]))][row["kind"]].append(row)
        except (KeyError, ValueError, TypeError):
            raise _unreadable(f"row {number}") from None
    if not orgs:
        raise _unreadable("it is empty")
    try:
        return [
            _verify_org(org_id, **orgs[org_id], expected=expected, retained_since=retained_since)
            for org_id in sorted(orgs)
        ]
    except (KeyError, ValueError, TypeError) as error:
        raise _unreadable(str(error)) from None


def _verify_org(
    org_id: UUID,
    *,
    entry: list[Row],
    seal: list[Row],
    expected: bytes | None,
    retained_since: datetime | None,
) -> AuditReport:
    chain = Chain(org_id, retained_since)
    problems = list(check_chain(chain, entry, seal))[:MAX_PROBLEMS]
    last = max(map(seal_position, seal), default=None)
    unsealed = sum(last is None or entry_position(row) > last for row in entry)
    heads = {GENESIS, *(bytes.fromhex(row["hash"]) for row in seal)}
    known = expected is None or expected in heads
    return make_report(chain, problems, unsealed=unsealed, retained_since=retained_since, head_known=known)


def parse_head(text: str | None) -> bytes | None:
    """Return the hash of a seal from its hexadecimal text."""
    try:
        head = None if text is None else bytes.fromhex(text)
    except ValueError:
        head = b""
    if head is not None and len(head) != len(GENESIS):
        raise ContractError(
            "not the hash of a seal", field="expect", fix="pass the head of an earlier report"
        )
    return head


def _unreadable(problem: str) -> ContractError:
    return ContractError(
        f"not an audit export: {problem}", field="file", fix="pass the output of `duly audit export`"
    )


def declare(app: App, audit: Audit) -> None:
    """Declare the job type, unless the application has it."""
    if JOB_TYPE in app.registry:
        return

    @app.job(JOB_TYPE, category=Category.MAINTENANCE)
    async def verify_audit(ctx: HandlerContext, expect: str | None = None) -> AuditReport:
        def step(share: float) -> None:
            ctx.check_canceled()
            ctx.progress(100 * share)

        org_id = current_context().org_id
        assert org_id is not None
        return await audit.verify(org_id, expect=expect, step=step)


def verification_call(app: App, org_id: UUID, actor: Actor, expect: str | None) -> Call[AuditReport]:
    """Return the call of the job. While a verification of the org is in flight, it resolves to that one."""
    # A new key each time: the trail may have been changed since the last verification.
    job = app.registry.get(JOB_TYPE).options(
        org_id=org_id, actor=actor, run_identity=_RUN_IDENTITY, idempotency_key=f"verify:{uuid4()}"
    )
    return job.call(expect=expect)
