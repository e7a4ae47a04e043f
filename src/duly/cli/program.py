"""All commands together, and what their errors become."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from functools import cache
from typing import Any, NoReturn

import psycopg
import typer
from typer.main import get_command

from duly.cli import (
    alert,
    audit,
    dead,
    docs,
    doctor,
    enqueue,
    feed,
    jobs,
    key,
    limit,
    member,
    migrate,
    notify,
    org,
    queue,
    reconcile,
    schedule,
    serve,
    subscription,
    template,
    up,
    webhook,
    worker,
)
from duly.cli.exits import ExitCode, exit_code
from duly.model.errors import DulyError

program = typer.Typer(
    name="duly",
    help="Every job, duly done.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
program.command()(migrate.migrate)
program.command()(doctor.doctor)
program.command()(reconcile.reconcile)
program.command()(up.up)
program.command()(serve.serve)
program.command()(worker.worker)
program.command(hidden=True)(worker.worker_process)
program.command()(enqueue.enqueue)
program.command()(queue.workers)
program.command()(queue.drain)
program.command()(feed.feed)
program.add_typer(jobs.group, name="jobs")
program.add_typer(queue.group, name="queue")
program.add_typer(limit.group, name="limit")
program.add_typer(dead.group, name="dead")
program.add_typer(schedule.group, name="schedule")
program.add_typer(docs.group, name="docs")
program.add_typer(alert.group, name="alert")
program.add_typer(audit.group, name="audit")
program.add_typer(org.group, name="org")
program.add_typer(member.group, name="member")
program.add_typer(key.group, name="key")
program.add_typer(webhook.group, name="webhook")
program.add_typer(notify.group, name="notify")
program.add_typer(template.group, name="template")
program.add_typer(subscription.group, name="subscription")


@cache
def built() -> Any:
    """The program with all its commands; made once, as that takes longer than most of them."""
    return get_command(program)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and end."""
    code = run(arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has gone, as `head` does. Python would complain once more at its own end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; how it ended."""
    try:
        code = built()(args=arguments, prog_name="duly", standalone_mode=False)
    except typer.TyperException as error:
        return _usage(error)
    except DulyError as error:
        return _say(str(error), exit_code(error))
    except psycopg.OperationalError as error:
        return _say(f"database: {error}", ExitCode.NO_DATABASE)
    except BrokenPipeError:
        return ExitCode.OK
    except Exception:
        traceback.print_exc()
        return ExitCode.INTERNAL
    return code if isinstance(code, int) else ExitCode.OK


def _usage(error: typer.TyperException) -> int:
    said = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":  # its message is the whole help
        print(said, file=sys.stderr)
        return ExitCode.USAGE
    return _say(said, ExitCode.USAGE)


def _say(message: str, code: ExitCode) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return code
