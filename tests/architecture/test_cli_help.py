"""The help of the command line: imperative, one line each, and never cut off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from duly.cli.program import built

MAX_LENGTH = 72
VERBS = {
    *("Accept", "Act", "Add", "Alert", "Allow", "Apply", "Assign", "Cancel", "Check", "Choose", "Claim"),
    *("Continue", "Count", "Create", "Delete", "Disable", "Discard", "Drain", "Enable", "Enqueue", "Expire"),
    *("Export", "Filter", "Follow", "Include", "Inspect", "Limit", "List", "Listen", "Load", "Manage"),
    *("Name", "Notify", "Pause", "Print", "Read", "Record", "Remove", "Render", "Repair", "Replace"),
    *("Replay", "Require", "Resend", "Resume", "Revoke", "Run", "Select", "Send", "Serve", "Set", "Show"),
    *("Sign", "Skip", "Start", "Subscribe", "Suppress", "Suspend", "Update", "Verify", "Wait"),
}
"""The verbs that a help text may start with. Extend it only if none of these fits."""


def _commands(command: Any, path: str = "duly") -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            yield from _commands(below, f"{path} {name}")


COMMANDS = dict(_commands(built()))
SUMMARIES = {path: (command.help or "").partition("\n")[0] for path, command in COMMANDS.items()} | {
    f"{path} {option.opts[0]}": option.help or ""
    for path, command in COMMANDS.items()
    for option in command.params
    if option.name != "help"
}


def test_every_help_starts_with_an_imperative_verb() -> None:
    verbs = {summary.split(" ")[0].strip(".,") for summary in SUMMARIES.values()}
    assert {
        path: text for path, text in SUMMARIES.items() if text.split(" ")[0].strip(".,") not in VERBS
    } == {}
    assert verbs == VERBS, "a verb that no help uses any more"


def test_every_help_is_one_line_of_at_most_72_characters() -> None:
    assert {path: text for path, text in SUMMARIES.items() if len(text) > MAX_LENGTH or "\n" in text} == {}
    assert {path: text for path, text in SUMMARIES.items() if not text.endswith(".")} == {}


@pytest.mark.parametrize("path", COMMANDS)
def test_no_line_of_a_help_is_cut_off_at_80_columns(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*path.split()[1:], "--help"]
    built().main(args=arguments, prog_name="duly", standalone_mode=False, terminal_width=80)
    usage, *lines = capsys.readouterr().out.splitlines()
    assert usage.startswith(f"Usage: {path}")
    assert [line for line in lines if line.endswith("...")] == []
    # The values of a choice cannot be wrapped.
    assert [line for line in lines if len(line) > 80 and "|" not in line] == []
    for name in getattr(COMMANDS[path], "commands", {}):
        text = SUMMARIES.get(f"{path} {name}", "")
        assert text in " ".join(" ".join(lines).split()), name
