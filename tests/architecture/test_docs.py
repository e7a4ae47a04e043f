"""The documentation matches the code: programs run, commands exist, links resolve."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from duly.testing import FreshDatabase
from tests.architecture.pages import PAGES, ROOT, expected
from tests.architecture.pages import commands as duly_commands

TEXTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def _blocks(language: str) -> list[tuple[str, str]]:
    return [
        (f"{path.relative_to(ROOT)}:{number}", block)
        for path in TEXTS
        for number, block in enumerate(
            re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), re.S), 1
        )
    ]


def _environment(fresh: FreshDatabase, home: Path) -> dict[str, str]:
    pooled = {"DULY_DATABASE_DIRECT_URL": fresh.direct_url} if fresh.url != fresh.direct_url else {}
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("DULY_", "PYTEST_"))
    }
    return {**inherited, **pooled, "DULY_DATABASE_URL": fresh.url, "DULY_HOME": str(home)}


@pytest.mark.parametrize("page", PAGES)
def test_generated_parts_are_up_to_date(page: str) -> None:
    """Write them with `python -m tests.architecture.pages`."""
    assert (ROOT / page).read_text(encoding="utf-8") == expected(page)


@pytest.mark.parametrize(("where", "program"), _blocks("python"), ids=lambda v: v if ":" in v[:60] else "")
def test_every_documented_program_runs(
    where: str, program: str, fresh: FreshDatabase, tmp_path: Path
) -> None:
    environment = _environment(fresh, tmp_path)
    if ".enqueue(" in program and "context(" not in program:
        # The development org exists on the embedded database only.
        del environment["DULY_DATABASE_URL"]
        environment.pop("DULY_DATABASE_DIRECT_URL", None)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{where}\n{done.stderr}"


@pytest.mark.parametrize(("where", "statements"), _blocks("sql"), ids=lambda v: v if ":" in v[:60] else "")
def test_every_documented_statement_runs(where: str, statements: str, sql: psycopg.Connection) -> None:
    with sql.transaction(force_rollback=True):
        # Roles belong to the cluster: another test may have created this one.
        if "create role" not in statements:
            sql.execute("create role app")
        sql.execute(statements)


@pytest.mark.parametrize(("where", "commands"), _blocks("sh"), ids=lambda v: v if ":" in v[:60] else "")
def test_every_documented_command_exists(where: str, commands: str) -> None:
    offered = subprocess.run(
        [sys.executable, ROOT / "dev"], capture_output=True, text=True, check=False
    ).stderr
    known = set(re.findall(r"^\./dev (\w+)", offered, re.M))
    for line in commands.replace("\\\n", " ").strip().splitlines():
        words = [word for word in shlex.split(line) if not re.match(r"[A-Z_]+=", word)]
        if words[0] == "duly":
            _check_command(f"{where}: {line}", words[1:])
            continue
        assert words[0] == "./dev", f"{where}: {line}"
        assert words[1] in known, f"{where}: {line}"


def _check_command(where: str, words: list[str]) -> None:
    """Check that the command exists, with these options."""
    offered = duly_commands()
    path = next((p for p in (" ".join(words[:2]), " ".join(words[:1])) if p in offered), None)
    assert path, where
    options = {name for option in offered[path].params for name in option.opts}
    used = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert used <= options | {"--help"}, f"{where}: {used - options}"


@pytest.mark.parametrize("example", sorted(ROOT.glob("examples/*.py")), ids=lambda p: p.stem)
def test_every_example_runs(example: Path, fresh: FreshDatabase, tmp_path: Path) -> None:
    environment = _environment(fresh, tmp_path)
    done = subprocess.run(
        [sys.executable, example, "--once"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "completed" in done.stdout


@pytest.mark.parametrize("bench", sorted(ROOT.glob("bench/*.py")), ids=lambda p: p.stem)
def test_every_measurement_still_measures(bench: Path, tmp_path: Path) -> None:
    """Only that it runs and reports figures: a busy machine says nothing about speed."""
    figures = tmp_path / "figures.json"
    small = ["--jobs", "50", "--rounds", "1", "--json", str(figures)]
    done = subprocess.run([sys.executable, bench, *small], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    measured = json.loads(figures.read_text())
    if bench.stem == "bill":
        assert "for one job" in done.stdout
        assert min(cost["wal"] for cost in measured.values()) > 0
    else:
        assert "jobs/s" in done.stdout
        assert measured["ratio"] > 0


def test_no_page_is_empty_and_the_readme_shows_the_way() -> None:
    assert [path for path in TEXTS if len(path.read_text(encoding="utf-8")) < 200] == []
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "./dev demo\n./dev test\n" in readme
    assert "```python" in readme


def test_every_link_leads_somewhere() -> None:
    for path in TEXTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.relative_to(ROOT)}: {target}"
