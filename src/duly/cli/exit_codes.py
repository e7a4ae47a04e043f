"""The exit codes of the program."""

from __future__ import annotations

from enum import IntEnum

from duly.core.errors import ConfigurationError, DulyError, JobEnded, LeaseLost, NotFound, StoreError


class ExitCode(IntEnum):
    """The exit codes, by what went wrong."""

    OK = 0
    JOB_FAILED = 1
    JOB_ENDED_BADLY = 1
    CHECK_FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    NO_DATABASE = 5
    INTERNAL = 70


MEANINGS = {
    ExitCode.OK: "success",
    ExitCode.JOB_FAILED: "the job failed or was canceled; or a check failed (doctor, reconcile, audit)",
    ExitCode.USAGE: "invalid command, option or setting",
    ExitCode.NOT_FOUND: "not found: a job, an org, a key, a webhook ...; or an expired cursor",
    ExitCode.REFUSED: "refused: invalid input, conflicting state, or a limit",
    ExitCode.NO_DATABASE: "the database is unreachable, or its schema has another version",
    ExitCode.INTERNAL: "internal error, or workers that had to be killed",
}


def exit_code(error: DulyError) -> ExitCode:
    """Return the exit code for an error."""
    match error:
        case ConfigurationError():
            return ExitCode.USAGE
        case NotFound():
            return ExitCode.NOT_FOUND
        case StoreError():
            return ExitCode.NO_DATABASE
        case JobEnded():
            return ExitCode.JOB_FAILED
        case LeaseLost():
            return ExitCode.INTERNAL
        case _:
            return ExitCode.REFUSED
