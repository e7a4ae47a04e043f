"""One server per home, which runs while any process holds a lease."""

import shutil
from collections.abc import Callable
from pathlib import Path

import psycopg

from duly.embedded import open_server
from tests.embedded.leaseholders import Leaseholder, postmasters, supervisors, wait_until

Hold = Callable[[], Leaseholder]


def query(dsn: str, statement: str) -> object:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(statement.encode()).fetchone()
    return row[0] if row else None


def test_the_first_start_creates_a_working_postgresql_18(home: Path) -> None:
    with open_server(home) as server:
        assert str(query(server.dsn(), "show server_version")).startswith("18")
        assert query(server.dsn(), "show listen_addresses") == ""
        assert query(server.dsn(), "show fsync") == "on"
        assert query(server.dsn(), "show max_connections") == "200"
        assert (home / "pg18").stat().st_mode & 0o777 == 0o700
        assert server.socket_dir.stat().st_mode & 0o777 == 0o700


def test_two_processes_share_one_server(home: Path, hold: Hold) -> None:
    with open_server(home) as server:
        assert hold().dsn() == server.dsn()
        assert len(postmasters(home)) == len(supervisors(home)) == 1


def test_four_processes_that_start_at_once_get_one_server(home: Path, hold: Hold) -> None:
    holders = [hold() for _ in range(4)]
    dsns = [holder.dsn() for holder in holders]
    assert len(set(dsns)) == 1
    assert query(dsns[0], "select 1") == 1
    assert len(postmasters(home)) == len(supervisors(home)) == 1


def test_the_server_stops_when_its_last_user_leaves(home: Path, hold: Hold) -> None:
    server, other = open_server(home), hold()
    dsn = other.dsn()
    server.close()
    server.close()
    assert query(dsn, "select 1") == 1
    other.leave()
    wait_until(lambda: not supervisors(home))
    assert not postmasters(home)
    assert not server.socket_dir.exists()


def test_a_killed_process_releases_its_lease_and_others_keep_the_server(home: Path, hold: Hold) -> None:
    doomed, survivor = hold(), hold()
    dsn = doomed.dsn()
    assert survivor.dsn() == dsn
    doomed.kill()
    assert query(dsn, "select 1") == 1
    survivor.leave()
    wait_until(lambda: not supervisors(home) and not postmasters(home))


def test_a_lease_taken_while_the_server_stops_gets_a_working_server(home: Path) -> None:
    for _ in range(4):
        with open_server(home) as server:
            assert query(server.dsn(), "select 1") == 1
        # The next iteration may find the supervisor still waiting, stopping or gone.
    with open_server(home) as server:
        assert query(server.dsn(), "select 1") == 1


def test_the_options_of_the_first_process_apply_to_all(home: Path) -> None:
    with (
        open_server(home, options={"work_mem": "7MB"}),
        open_server(home, options={"work_mem": "9MB"}) as second,
    ):
        assert query(second.dsn(), "show work_mem") == "7MB"


def test_the_last_process_can_wait_for_the_stop_and_remove_the_home(home: Path) -> None:
    open_server(home).wait_until_stopped()
    assert postmasters(home) == []
    shutil.rmtree(home)
