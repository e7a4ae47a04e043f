"""The command framework: options come from parameter types, output from return values."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import pytest
import typer
from typer.main import get_command

from duly.cli.command import Group, Rows
from duly.cli.exit_codes import ExitCode
from duly.cli.options import Change, ChangeOptions, Depends, Org, Paging, argument
from duly.cli.output import Output, columns

AT = datetime(2026, 11, 15, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Lamp:
    """A resource."""

    lamp_id: int
    max_watts: float
    switched_at: datetime | None = None


def _room(room: Annotated[str, typer.Option(help="Filter by room.")] = "hall") -> str:
    return room.upper()


lamps = Group("lamps", "Manage lamps.")


@lamps.command("list", columns=columns("lamp_id", "switched_at", watts="max_watts"))
async def list_lamps(room: Annotated[str, Depends(_room)], paging: Paging) -> Rows:
    """List the lamps of a room."""
    return {"room": room, "lamps": [Lamp(1, 40), Lamp(2, 7.5, AT)], "after": paging["after"]}


@lamps.command()
async def show(lamp: Annotated[int, argument("Select the lamp.")]) -> Lamp:
    """Show a lamp."""
    return Lamp(lamp, 7.5, AT)


@lamps.command()
def switch(lamp: Annotated[int, argument("Select the lamp.")], org: Org, change: Change) -> Output:
    """Switch a lamp."""
    return Output(_plain(change), f"switched {lamp} \x1b[31m", ExitCode.CHECK_FAILED)


def _plain(change: ChangeOptions) -> dict[str, Any]:
    return {"actor": change["actor"].id, "reason": change["reason"]}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def call(*args: str) -> tuple[int, str]:
        code = get_command(lamps.typer)(args=[*args], prog_name="lamps", standalone_mode=False)
        return code or 0, capsys.readouterr().out

    return call


def test_a_page_is_a_table_with_its_columns_and_the_next_page(run: Callable[..., tuple[int, str]]) -> None:
    code, out = run("list", "--after", "x1")
    assert (code, [line.split() for line in out.splitlines()]) == (
        0,
        [
            ["lamp", "switched", "watts"],
            ["1", "40"],
            ["2", "2026-11-15", "12:00:00Z", "7.5"],
            ["next", "page:", "--after", "x1"],
        ],
    )
    page = json.loads(run("list", "--room", "attic", "--json")[1])
    assert (page["room"], page["after"]) == ("ATTIC", None)
    assert page["lamps"][1] == {"lamp_id": 2, "max_watts": 7.5, "switched_at": "2026-11-15T12:00:00Z"}


def test_a_single_resource_is_printed_as_one_line_per_field(run: Callable[..., tuple[int, str]]) -> None:
    lines = [line.split("  ", 1) for line in run("show", "2")[1].splitlines()]
    assert [(name, value.strip()) for name, value in lines] == [
        ("lamp", "2"),
        ("max watts", "7.5"),
        ("switched", "2026-11-15 12:00:00Z"),
    ]


def test_an_output_has_a_text_data_and_an_exit_code(run: Callable[..., tuple[int, str]]) -> None:
    args = (
        "switch",
        "2",
        "--org",
        "00000000-0000-0000-0000-000000000001",
        "--actor",
        "eve",
        "--reason",
        "dusk",
    )
    assert run(*args) == (1, "switched 2 \N{REPLACEMENT CHARACTER}[31m\n")
    assert json.loads(run(*args, "--json")[1]) == {"actor": "eve", "reason": "dusk"}


def test_the_options_of_dependencies_are_in_the_help(run: Callable[..., tuple[int, str]]) -> None:
    _, out = run("switch", "--help")
    for option in ("--org", "--reason", "--actor", "--json"):
        assert option in out
    assert "--app" not in out, "the command opens no application"
