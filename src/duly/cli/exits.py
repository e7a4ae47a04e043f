"""How the program ends."""

from __future__ import annotations

from enum import IntEnum

from duly.model.errors import ConfigurationError, DulyError, JobEnded, LeaseLost, NotFound, StoreError


class ExitCode(IntEnum):
    """What the caller of the program can tell from its end."""

    OK = 0
    JOB_ENDED_BADLY = 1
    UNWELL = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    NO_DATABASE = 5
    INTERNAL = 70


MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.JOB_ENDED_BADLY: "the watched job ended badly, or a check failed (doctor, audit)",
    ExitCode.USAGE: "the command or the settings are wrong",
    ExitCode.NOT_FOUND: "nothing of that id or name: a job, an org, a key, a webhook ...; or an old cursor",
    ExitCode.REFUSED: "refused: the contract, the state of things, or a limit",
    ExitCode.NO_DATABASE: "the database cannot be reached, or its schema is of another version",
    ExitCode.INTERNAL: "an error of ours, or workers that had to be killed",
}


def exit_code(error: DulyError) -> ExitCode:
    """How the program ends after this error."""
    match error:
        case ConfigurationError():
            return ExitCode.USAGE
        case NotFound():
            return ExitCode.NOT_FOUND
        case StoreError():
            return ExitCode.NO_DATABASE
        case JobEnded():
            return ExitCode.JOB_ENDED_BADLY
        case LeaseLost():
            return ExitCode.INTERNAL
        case _:
            return ExitCode.REFUSED
