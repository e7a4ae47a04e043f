"""The help and the options of every command."""

from __future__ import annotations

import pytest

from duly.cli.program import RENAMED, built
from tests.architecture.pages import commands
from tests.cli.conftest import Run

CHANGES = {
    *("jobs cancel", "jobs rerun", "queues create", "queues pause", "queues resume", "queues weight"),
    *(
        "limits set",
        "limits pause",
        "limits resume",
        "schedules create",
        "schedules pause",
        "schedules resume",
    ),
    *(
        "schedules run",
        "schedules delete",
        "dead-letters replay",
        "dead-letters replay-many",
        "dead-letters discard",
        "dead-letters fix",
    ),
    *("dead-letters discard-many", "jobs bulk", "workers drain"),
    *(
        "api-keys create",
        "api-keys rotate",
        "api-keys revoke",
        "members set",
        "members remove",
        "orgs suspend",
        "orgs resume",
    ),
    *("orgs create", "queues set"),
    *(f"webhooks {word}" for word in ("create", "update", "disable", "enable", "delete", "rotate")),
    *("webhooks test", "webhooks resend"),
    *(
        "notifications resend",
        "notifications suppress",
        "notifications unsuppress",
        "templates set",
        "templates delete",
    ),
    *(f"docs {word}" for word in ("delete", "rmdir", "grant", "enable", "disable", "disconnect")),
}


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for path in commands():
        assert not built().main(args=[*path.split(), "--help"], prog_name="duly", standalone_mode=False), path
        said = capsys.readouterr()
        assert (said.out.lstrip().startswith(f"Usage: duly {path}"), said.err) == (True, ""), path


async def test_a_group_without_a_command_prints_its_usage(duly: Run) -> None:
    for words in [(), ("jobs",)]:
        alone = await duly(*words)
        assert (alone.code, alone.err.startswith("Usage: duly")) == (2, True)


@pytest.mark.parametrize("path", commands())
def test_every_command_has_json_and_every_change_has_actor_and_reason(path: str) -> None:
    options = {name: option for option in commands()[path].params for name in option.opts}
    assert "--json" in options
    assert "--app" in options
    asked = {name: options[name].required for name in ("--reason", "--actor") if name in options}
    assert (path in CHANGES) == ("--reason" in asked)
    if path in CHANGES:
        # An org is the first thing that there is: why is plain. A dry run changes nothing.
        assert asked == {"--reason": path not in ("orgs create", "jobs bulk"), "--actor": False}


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
async def test_the_command_words_of_0_9_work_with_a_deprecation_warning(
    duly: Run, old: str, new: str
) -> None:
    done = await duly(*old.split(), "--help")
    assert (done.code, done.out.partition("\n")[0].startswith(f"Usage: duly {new} ")) == (0, True)
    assert done.err == f"warning: `duly {old}` is deprecated, use `duly {new}`\n"
    assert old.split()[0] not in built().commands


async def test_duly_workers_alone_lists_workers_with_a_deprecation_warning(duly: Run) -> None:
    for options in ([], ["--json"]):
        done = await duly("workers", *options)
        listed = await duly("workers", "list", *options)
        assert (done.code, done.out, listed.err) == (0, listed.out, "")
        assert done.err == "warning: `duly workers` is deprecated, use `duly workers list`\n"
    assert (await duly("workers", "--help")).err == ""
