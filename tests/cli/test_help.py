"""What the program says of itself."""

from __future__ import annotations

import pytest

from duly.cli.program import built
from tests.cli.conftest import Run
from tests.house.pages import commands

CHANGES = {
    *("jobs cancel", "jobs rerun", "queue create", "queue pause", "queue resume", "queue weight"),
    *("limit set", "limit pause", "limit resume", "schedule create", "schedule pause", "schedule resume"),
    *("schedule run", "schedule delete", "dead replay", "dead replay-many", "dead discard", "dead fix"),
    *("dead discard-many", "jobs bulk", "drain"),
    *("key create", "key rotate", "key revoke", "member set", "member remove", "org suspend", "org resume"),
    *("org create", "queue set"),
    *(f"webhook {word}" for word in ("create", "change", "disable", "enable", "remove", "rotate")),
    *("webhook test", "webhook resend"),
    *("notify resend", "notify suppress", "notify unsuppress", "template set", "template remove"),
    *(f"docs {word}" for word in ("delete", "rmdir", "grant", "enable", "disable", "disconnect")),
}


def test_every_command_helps(capsys: pytest.CaptureFixture[str]) -> None:
    for path in commands():
        assert not built().main(args=[*path.split(), "--help"], prog_name="duly", standalone_mode=False), path
        said = capsys.readouterr()
        assert (said.out.lstrip().startswith(f"Usage: duly {path}"), said.err) == (True, ""), path


async def test_a_group_without_a_command_says_how_it_is_used(duly: Run) -> None:
    for words in [(), ("jobs",)]:
        alone = await duly(*words)
        assert (alone.code, alone.err.startswith("Usage: duly")) == (2, True)


@pytest.mark.parametrize("path", commands())
def test_every_command_answers_programs_and_every_change_asks_who_and_why(path: str) -> None:
    options = {name: option for option in commands()[path].params for name in option.opts}
    assert "--json" in options
    assert "--app" in options
    asked = {name: options[name].required for name in ("--reason", "--actor") if name in options}
    assert (path in CHANGES) == ("--reason" in asked)
    if path in CHANGES:
        # An org is the first thing that there is: why is plain. A dry run changes nothing.
        assert asked == {"--reason": path not in ("org create", "jobs bulk"), "--actor": False}
