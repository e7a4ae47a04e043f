"""The application object: it works without configuration, and its arguments match the options."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields
from operator import attrgetter
from pathlib import Path

import pytest

from duly import Duly, errors
from duly.app_options import DocumentArguments, WorkerArguments
from duly.apps.documents.options import DocumentOptions
from duly.core.job import DEVELOPMENT_ORG
from duly.embedded import open_server
from duly.settings import Settings
from duly.settings_sources import SettingArguments
from duly.testing import FreshDatabase
from duly.worker.options import WorkerOptions

FIRST_PROGRAM = """
import asyncio
from duly import Duly

app = Duly()

@app.job("greet")
async def greet(name: str) -> str:
    return f"Hello, {name}!"

async def main() -> None:
    async with app, app.worker():
        print(await (await greet.enqueue("world")).result())

asyncio.run(main())
"""


def test_the_first_program_runs_without_a_database_an_org_or_an_actor(tmp_path: Path) -> None:
    assert len([line for line in FIRST_PROGRAM.splitlines() if line.strip()]) <= 11
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("DULY_", "PYTEST_"))}
    home = tmp_path / "home"
    try:
        for _ in range(2):  # the second run finds the org
            process = subprocess.run(
                [sys.executable, "-c", FIRST_PROGRAM],
                env={**environ, "DULY_HOME": str(home)},
                capture_output=True,
                text=True,
                check=False,
            )
            assert (process.returncode, process.stdout) == (0, "Hello, world!\n"), process.stderr
    finally:
        open_server(home).wait_until_stopped()


async def test_with_a_configured_database_a_missing_org_is_an_error(app: Duly) -> None:
    @app.job("greet")
    async def greet(name: str) -> str:
        return name

    with pytest.raises(errors.MissingField, match="org_id: missing"):
        await greet.enqueue("world")
    with pytest.raises(errors.MissingField, match="org_id: missing"):
        app.handle(DEVELOPMENT_ORG)


def test_settings_and_single_settings_exclude_each_other(fresh: FreshDatabase) -> None:
    with pytest.raises(errors.ConfigurationError, match="both settings and pool_max"):
        Duly(Settings(database_url=fresh.url), pool_max=3)


@pytest.mark.parametrize(
    ("former", "current"),
    [
        ("keys", "api_keys"),
        ("figures", "database_metrics"),
        ("watched", "alerting"),
        ("alerts.unwell", "alerts.critical_kinds"),
        ("api_keys.believe", "api_keys.authenticate"),
        ("dead_letters.groups_everywhere", "dead_letters.groups_of_all_orgs"),
        ("dead_letters.kind", "dead_letters.group"),
        ("documents.classes", "documents.classification"),
        ("documents.lately", "documents.recent_extractions"),
        ("documents.standing", "documents.overview"),
        ("documents.vault", "documents.file_store"),
        ("jobs.beat", "jobs.change_marker"),
        ("jobs.glance", "jobs.status"),
        ("jobs.list_everywhere", "jobs.list_all_orgs"),
        ("jobs.story", "jobs.full_detail"),
        ("notifications.templates.words", "notifications.templates.resolve"),
        ("overview.board", "overview.dashboard"),
        ("webhooks.deliveries.waiting", "webhooks.deliveries.backlogs"),
    ],
)
def test_a_name_of_0_9_works_with_a_deprecation_warning(app: Duly, former: str, current: str) -> None:
    service, _, name = former.rpartition(".")
    owner = attrgetter(service)(app) if service else app
    with pytest.warns(DeprecationWarning, match=rf"{name} is deprecated: use .*{current.rpartition('.')[2]}"):
        assert getattr(owner, name) == attrgetter(current)(app)


def test_argument_types_have_the_fields_of_their_options() -> None:
    assert list(SettingArguments.__annotations__) == list(Settings.model_fields)
    assert list(WorkerArguments.__annotations__) == [field.name for field in fields(WorkerOptions)]
    assert list(DocumentArguments.__annotations__) == [field.name for field in fields(DocumentOptions)]


def test_an_unknown_argument_is_refused_by_name(fresh: FreshDatabase) -> None:
    with pytest.raises(errors.ConfigurationError, match="pool_mxa"):
        Duly(pool_mxa=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="slotz"):
        Duly(database_url=fresh.url).worker(slotz=3)  # type: ignore[call-arg]
