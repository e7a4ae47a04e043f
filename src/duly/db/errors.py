"""Translate errors of database drivers into Duly's errors."""

from __future__ import annotations

from collections.abc import Iterator

from psycopg import OperationalError

from duly.core.errors import (
    ContractError,
    DulyError,
    LimitExceeded,
    MissingField,
    NotFound,
    StoreUnavailable,
    UnknownJobType,
    UnknownOrg,
    UnknownProject,
)

_CONNECTION_LOST = "the connection was lost: check whether the transaction committed, and try again"
_UNKNOWN: dict[str, type[NotFound]] = {"org_id": UnknownOrg, "job_type": UnknownJobType}


def translate_error(error: BaseException) -> DulyError | None:
    """Return the Duly error for an error of any driver, or None if there is none."""
    # The innermost is the driver's own: SQLAlchemy's asyncpg wrapper has the state but not the message.
    cause = next(reversed(list(_with_sqlstate(error))), None)
    if cause is None:
        # A broken connection carries no state: no server was left to send one.
        broken = isinstance(error, OperationalError)
        return StoreUnavailable(str(error).strip(), fix=_CONNECTION_LOST) if broken else None
    state = str(getattr(cause, "sqlstate", ""))
    message, detail, hint = _texts(cause)
    match state:
        case "DU422":
            kind = MissingField if message == "missing" else ContractError
            return kind(message, field=detail, fix=hint)
        case "DU403":
            return ContractError(message, field=detail, fix=hint)
        case "DU429":
            return LimitExceeded(message, field=detail, fix=hint)
        case "DU404":
            return _UNKNOWN.get(detail, NotFound)(message, field=detail, fix=hint)
        case "23503" if "project" in message + detail:
            return UnknownProject(
                "no project of this id in this org", field="project_id", fix="create it first"
            )
        case "23502":
            return MissingField("missing", field=_column(cause), fix="pass every mandatory field of a job")
        case "57P01" | "57P02" | "57P03" | "08006" | "08001" | "08003" | "08000":
            return StoreUnavailable(message, fix=_CONNECTION_LOST)
        case _:
            return None


def _with_sqlstate(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and those it wraps: SQLAlchemy keeps the driver's in `orig`, Django in `__cause__`."""
    while error is not None:
        if getattr(error, "sqlstate", None):
            yield error
        error = getattr(error, "orig", None) or error.__cause__


def _texts(error: BaseException) -> tuple[str, str, str]:
    diag = getattr(error, "diag", None)
    if diag is not None:  # psycopg
        return diag.message_primary or "", diag.message_detail or "", diag.message_hint or ""
    names = ("message", "detail", "hint")  # asyncpg
    message, detail, hint = (str(getattr(error, name, None) or "") for name in names)
    return message, detail, hint


def _column(error: BaseException) -> str:
    diag = getattr(error, "diag", None)
    return str(getattr(diag, "column_name", None) or getattr(error, "column_name", None) or "")
