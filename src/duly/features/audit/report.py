"""What a verification of the audit trail found, in the database or in a file that was taken from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from duly.core.errors import ContractError
from duly.features.audit.chain import GENESIS, Chain, Problem, Row, end_of, place_of, walk

MOST = 100
"""Problems of a report."""


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What a verification found."""

    org_id: UUID
    ok: bool
    seals: int
    sealed: int
    """Entries that have their seal."""
    unsealed: int
    """Entries that have none yet."""
    gone: int
    """Sealed entries that retention has dropped. Their seals still link those before and after."""
    kept_since: datetime | None
    """Where what is kept begins."""
    head: str
    """The hash of the last seal. Keep it elsewhere, and expect it next time."""
    broken_at: int | None
    """The number of the first seal with which something is wrong."""
    problems: tuple[Problem, ...]
    """The first hundred."""


def reported(
    chain: Chain, problems: list[Problem], *, unsealed: int, kept_since: datetime | None, known: bool
) -> AuditReport:
    """The report of a chain that was walked to its end; `known`: whether it has the expected head."""
    if not known:
        said = "no seal has the expected hash"
        problems = [*problems, Problem(chain.org_id, "head_unknown", None, None, said)]
    return AuditReport(
        org_id=chain.org_id,
        ok=not problems,
        seals=chain.length,
        sealed=chain.sealed,
        unsealed=unsealed,
        gone=chain.gone,
        kept_since=kept_since,
        head=chain.head.hex(),
        broken_at=next((p.seal_seq for p in problems if p.seal_seq is not None), None),
        problems=tuple(problems),
    )


def verify_rows(
    rows: Iterable[dict[str, Any]], *, expect: str | None = None, kept_since: datetime | None = None
) -> list[AuditReport]:
    """Verify what was exported, org by org, without any database.

    Sealed entries before `kept_since` may be gone. Cut off at its end it is right in itself: `expect` tells.
    """
    trails: dict[UUID, dict[str, list[Row]]] = defaultdict(lambda: {"entry": [], "seal": []})
    wanted = read_hash(expect)
    for number, row in enumerate(rows, 1):
        try:
            trails[UUID(str(row["org_id"]))][row["kind"]].append(row)
        except (KeyError, ValueError, TypeError):
            raise _unreadable(number) from None
    if not trails:
        raise _unreadable("there is none")
    try:
        return [_verified(org, **trails[org], wanted=wanted, kept_since=kept_since) for org in sorted(trails)]
    except (KeyError, ValueError, TypeError) as error:
        raise _unreadable(str(error)) from None


def _verified(
    org_id: UUID, *, entry: list[Row], seal: list[Row], wanted: bytes | None, kept_since: datetime | None
) -> AuditReport:
    chain = Chain(org_id, kept_since=kept_since)
    problems = list(walk(chain, entry, seal))[:MOST]
    last = max(map(end_of, seal), default=None)
    unsealed = sum(last is None or place_of(row) > last for row in entry)
    heads = {GENESIS, *(bytes.fromhex(row["hash"]) for row in seal)}
    known = wanted is None or wanted in heads
    return reported(chain, problems, unsealed=unsealed, kept_since=kept_since, known=known)


def read_hash(text: str | None) -> bytes | None:
    """The hash of a seal from its text."""
    try:
        read = None if text is None else bytes.fromhex(text)
    except ValueError:
        read = b""
    if read is not None and len(read) != len(GENESIS):
        raise ContractError("no hash of a seal", field="expect", fix="pass the head of an earlier report")
    return read


def _unreadable(where: object) -> ContractError:
    return ContractError(
        f"no row of an export: {where}", field="file", fix="pass what duly audit export wrote"
    )
