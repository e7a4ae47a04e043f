"""Recovery from the kill of any process at any moment."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from duly.embedded import EmbeddedServer, open_server
from tests.embedded.leaseholders import Leaseholder, postmasters, supervisors, wait_until


def count_committed_rows(server: EmbeddedServer) -> int | None:
    """Count the committed rows, or return None while the server does not respond."""
    try:
        with psycopg.connect(server.dsn()) as connection:
            row = connection.execute("select count(*) from committed_rows").fetchone()
    except psycopg.OperationalError:
        return None
    return int(row[0]) if row else None


def commit_three_rows(server: EmbeddedServer) -> None:
    with psycopg.connect(server.dsn()) as connection:
        connection.execute("create table committed_rows as select generate_series(1, 3)")


def replaced(listing: Callable[[Path], list[int]], home: Path, old: list[int]) -> bool:
    return len(listing(home)) == 1 and listing(home) != old


def test_a_killed_postmaster_is_restarted_with_its_data(home: Path) -> None:
    with open_server(home) as server:
        commit_three_rows(server)
        old = postmasters(home)
        os.kill(old[0], signal.SIGKILL)
        wait_until(lambda: replaced(postmasters, home, old) and count_committed_rows(server) == 3)


def test_a_killed_supervisor_is_replaced_and_one_postmaster_remains(home: Path) -> None:
    with open_server(home) as server:
        commit_three_rows(server)
        old_supervisor, old_postmaster = supervisors(home), postmasters(home)
        os.kill(old_supervisor[0], signal.SIGKILL)
        wait_until(lambda: replaced(supervisors, home, old_supervisor))
        wait_until(lambda: replaced(postmasters, home, old_postmaster) and count_committed_rows(server) == 3)


def test_supervisor_and_postmaster_killed_at_once_are_replaced(home: Path) -> None:
    with open_server(home) as server:
        commit_three_rows(server)
        old_supervisor, old_postmaster = supervisors(home), postmasters(home)
        os.kill(old_supervisor[0], signal.SIGKILL)
        os.kill(old_postmaster[0], signal.SIGKILL)
        wait_until(lambda: replaced(supervisors, home, old_supervisor))
        wait_until(lambda: replaced(postmasters, home, old_postmaster) and count_committed_rows(server) == 3)


@pytest.mark.skipif("os.uname().sysname != 'Linux'", reason="only Linux signals a child when its parent dies")
def test_a_supervisor_killed_after_its_last_user_leaves_no_server_running(
    home: Path, hold: Callable[[], Leaseholder]
) -> None:
    holder = hold()
    holder.dsn()
    supervisor = supervisors(home)[0]
    os.kill(supervisor, signal.SIGSTOP)
    holder.kill()
    assert len(postmasters(home)) == 1
    os.kill(supervisor, signal.SIGKILL)
    wait_until(lambda: not postmasters(home))


def test_a_supervisor_killed_during_initdb_is_replaced(home: Path, hold: Callable[[], Leaseholder]) -> None:
    holder = hold()
    wait_until(lambda: any(home.glob("pg18.init-*")))
    os.kill(supervisors(home)[0], signal.SIGKILL)
    with psycopg.connect(holder.dsn()) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_an_incomplete_data_directory_is_ignored(home: Path) -> None:
    incomplete = home / "pg18.init-4711"
    incomplete.mkdir(parents=True)
    (incomplete / "PG_VERSION").write_text("18\n")
    with open_server(home) as server:
        commit_three_rows(server)
        assert count_committed_rows(server) == 3
        assert sorted(path.name for path in home.glob("pg18*")) == ["pg18", "pg18.log"]


def test_a_pid_file_with_the_pid_of_another_process_is_removed(home: Path) -> None:
    with open_server(home) as server:
        commit_three_rows(server)
    wait_until(lambda: not supervisors(home))
    (home / "pg18" / "postmaster.pid").write_text(f"{os.getpid()}\n{home / 'pg18'}\n0\n5432\n\n\n")
    with open_server(home) as server:
        assert count_committed_rows(server) == 3
