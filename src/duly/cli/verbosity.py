"""How much a command writes on stderr, and in which form."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from duly.client.log_ids import LogIds
from duly.observe.logs import Logs
from duly.settings import Settings


class LogLevel(StrEnum):
    """How much is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


HowMuch = Annotated[
    LogLevel | None,
    typer.Option("--log-level", help="How much is written on stderr; else as DULY_LOG_LEVEL says."),
]


def write_logs(
    settings: Settings, level: LogLevel | None, *, as_json: bool, otherwise: LogLevel = LogLevel.INFO
) -> None:
    """Have everything that is logged written to stderr: as the command was told, else as the settings say."""
    much = level or settings.log_level or otherwise
    Logs(as_json or settings.log_format == "json", much, (LogIds(),)).write()
