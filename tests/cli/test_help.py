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
    *(f"webhooks {verb}" for verb in ("create", "update", "disable", "enable", "delete", "rotate")),
    *("webhooks test", "webhooks resend"),
    *(
        "notifications resend",
        "notifications suppress",
        "notifications unsuppress",
        "templates set",
        "templates delete",
    ),
    *(f"docs {verb}" for verb in ("delete", "rmdir", "grant", "enable", "disable", "disconnect")),
}


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for path in commands():
        assert not built().main(args=[*path.split(), "--help"], prog_name="duly", standalone_mode=False), path
        output = capsys.readouterr()
        assert (output.out.lstrip().startswith(f"Usage: duly {path}"), output.err) == (True, ""), path


async def test_a_group_without_a_command_prints_its_usage(duly: Run) -> None:
    for args in [(), ("jobs",)]:
        result = await duly(*args)
        assert (result.code, result.err.startswith("Usage: duly")) == (2, True)


@pytest.mark.parametrize("path", commands())
def test_every_command_has_json_and_every_change_has_actor_and_reason(path: str) -> None:
    options = {name: option for option in commands()[path].params for name in option.opts}
    assert "--json" in options
    assert "--app" in options
    required = {name: options[name].required for name in ("--reason", "--actor") if name in options}
    assert (path in CHANGES) == ("--reason" in required)
    if path in CHANGES:
        # The first org needs no reason, and a dry run changes nothing.
        assert required == {"--reason": path not in ("orgs create", "jobs bulk"), "--actor": False}


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
async def test_the_command_words_of_0_9_work_with_a_deprecation_warning(
    duly: Run, old: str, new: str
) -> None:
    result = await duly(*old.split(), "--help")
    assert (result.code, result.out.partition("\n")[0].startswith(f"Usage: duly {new} ")) == (0, True)
    assert result.err == f"warning: `duly {old}` is deprecated, use `duly {new}`\n"
    assert old.split()[0] not in built().commands


async def test_duly_workers_alone_lists_workers_with_a_deprecation_warning(duly: Run) -> None:
    for options in ([], ["--json"]):
        result = await duly("workers", *options)
        listed = await duly("workers", "list", *options)
        assert (result.code, result.out, listed.err) == (0, listed.out, "")
        assert result.err == "warning: `duly workers` is deprecated, use `duly workers list`\n"
    assert (await duly("workers", "--help")).err == ""
