"""pgbouncer in transaction mode, in front of a test server."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

_CONFIG = """
[databases]
* = host={host} port={port}
[pgbouncer]
unix_socket_dir = {home}
listen_port = 6432
auth_type = trust
auth_file = {home}/users
pool_mode = transaction
max_client_conn = 500
default_pool_size = 20
logfile = {home}/log
pidfile = {home}/pid
"""


class Pooler:
    """A running pgbouncer, for any database behind it."""

    def __init__(self, server_url: str) -> None:
        program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        if program is None:
            raise FileNotFoundError("DULY_TEST_POOLER is set, but pgbouncer is not installed")
        # The path of a Unix socket must be short: not below the directory of the test run.
        self._home = Path(tempfile.mkdtemp(prefix="duly-pooler-"))
        server = conninfo_to_dict(server_url)
        (self._home / "users").write_text('"postgres" ""\n')
        config = self._home / "pgbouncer.ini"
        config.write_text(_CONFIG.format(home=self._home, host=server["host"], port=server.get("port", 5432)))
        self._command = [*_without_root(), program, "-q", str(config)]
        self._process = subprocess.Popen(self._command)

    @property
    def url(self) -> str:
        """The URL of the pooler. Some versions die of a cancel whose client has left: restart it then."""
        if self._process.poll() is not None:
            self._process = subprocess.Popen(self._command)
        return f"postgresql://postgres@/postgres?host={quote(str(self._home), safe='')}&port=6432"

    def close(self) -> None:
        """Stop pgbouncer and remove its files."""
        self._process.terminate()
        self._process.wait()
        shutil.rmtree(self._home, ignore_errors=True)


def _without_root() -> list[str]:
    """Return a command prefix for root: pgbouncer refuses to run as root, except in a user namespace."""
    return ["unshare", "--user", "--map-user=1000"] if os.geteuid() == 0 else []
