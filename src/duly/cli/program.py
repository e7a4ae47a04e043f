"""The program: all commands, their errors as exit codes, and the command words of 0.9."""

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

from duly.apps.documents.commands import docs
from duly.cli import serve, worker
from duly.cli.command import Group
from duly.cli.exit_codes import ExitCode, exit_code
from duly.cli.options import LoadedApp
from duly.cli.output import Output
from duly.core.errors import DulyError
from duly.features.alerts.commands import alerts
from duly.features.api_keys.commands import api_keys
from duly.features.audit.commands import audit
from duly.features.dead_letters.commands import dead_letters
from duly.features.doctor.commands import doctor
from duly.features.events.commands import events
from duly.features.job_submission.commands import enqueue
from duly.features.jobs.commands import jobs
from duly.features.limits.commands import limits
from duly.features.members.commands import members
from duly.features.notifications.commands import notifications
from duly.features.orgs.commands import orgs
from duly.features.queues.commands import queues
from duly.features.reconciliation.commands import reconcile
from duly.features.schedules.commands import schedules
from duly.features.subscriptions.commands import subscriptions
from duly.features.templates.commands import templates
from duly.features.webhooks.commands import webhooks
from duly.features.workers.commands import workers

GROUPS = (
    *(jobs, queues, workers, limits, dead_letters, schedules, events, audit, alerts),
    *(orgs, members, api_keys, webhooks, notifications, templates, subscriptions),
)
RENAMED = {
    "subscription add": "subscriptions create",
    "subscription remove": "subscriptions delete",
    "template remove": "templates delete",
    "webhook change": "webhooks update",
    "webhook remove": "webhooks delete",
    "alert": "alerts",
    "dead": "dead-letters",
    "drain": "workers drain",
    "feed": "events list",
    "key": "api-keys",
    "limit": "limits",
    "member": "members",
    "notify": "notifications",
    "org": "orgs",
    "queue": "queues",
    "schedule": "schedules",
    "subscription": "subscriptions",
    "template": "templates",
    "webhook": "webhooks",
}
"""The command words of 0.9 and their replacements, longer ones first; the next release drops them."""

program = Group(None, "Run and manage background jobs on PostgreSQL.")


@program.command()
def migrate(app: LoadedApp) -> Output:
    """Apply the pending database migrations."""
    applied = app.migrate()
    return Output({"applied": applied}, "\n".join(f"applied {name}" for name in applied) or "up to date")


program.command()(doctor)
program.command()(reconcile)
program.command()(serve.up)
program.command()(serve.serve)
program.command()(worker.worker)
program.command(hidden=True)(worker.worker_process)
program.command(job_types=True)(enqueue)
for group in GROUPS:
    program.add(group)
program.add(docs)


@cache
def built() -> Any:
    """Return the program with all its commands; building it takes longer than most commands."""
    root = get_command(program.typer)
    for command in _all_commands(root):
        # Without a short help of its own, a command would be listed with a truncated one.
        command.short_help = (command.help or "").partition("\n")[0]
    return root


def _all_commands(command: Any) -> list[Any]:
    below = getattr(command, "commands", {}).values()
    return [command, *(found for one in below for found in _all_commands(one))]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit."""
    code = run(arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone, as `head` does. Python would complain once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    words = _current_words([*(sys.argv[1:] if arguments is None else arguments)])
    try:
        code = built()(args=words, prog_name="duly", standalone_mode=False)
    except typer.TyperException as error:
        return _usage_error(error)
    except DulyError as error:
        return _error(str(error), exit_code(error))
    except psycopg.OperationalError as error:
        return _error(f"database: {error}", ExitCode.NO_DATABASE)
    except BrokenPipeError:
        return ExitCode.OK
    except Exception:
        traceback.print_exc()
        return ExitCode.INTERNAL
    return code if isinstance(code, int) else ExitCode.OK


def _current_words(words: list[str]) -> list[str]:
    """Replace the command words of 0.9, with a deprecation warning on stderr."""
    # `duly workers` was a command of its own, and is a group now.
    lists_workers = words[:1] == ["workers"] and words[1:2] != ["--help"]
    if lists_workers and all(word.startswith("-") for word in words[1:2]):
        return _deprecated("workers", "workers list", words)
    for old, new in RENAMED.items():
        if words[: old.count(" ") + 1] == old.split():
            return _deprecated(old, new, words)
    return words


def _deprecated(old: str, new: str, words: list[str]) -> list[str]:
    print(f"warning: `duly {old}` is deprecated, use `duly {new}`", file=sys.stderr)
    return [*new.split(), *words[len(old.split()) :]]


def _usage_error(error: typer.TyperException) -> int:
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":  # its message is the whole help
        print(message, file=sys.stderr)
        return ExitCode.USAGE
    return _error(message, ExitCode.USAGE)


def _error(message: str, code: ExitCode) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return code
