"""A lease on the shared embedded server."""

import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self
from urllib.parse import quote

from duly.embedded.directories import (
    EXCLUSIVE,
    PORT,
    SHARED,
    SOCKET_NAME,
    EmbeddedDatabaseError,
    fallback_dir_for,
    hold_lock,
    make_private,
    open_lock,
    prepare_home,
    socket_dir_for,
    try_lock,
)
from duly.embedded.plan import ServerPlan, find_bindir, version_of

_LOCK_TIMEOUT = 60.0
_USER = "postgres"
_LAUNCH = str(Path(__file__).resolve().with_name("launch.py"))


def open_server(
    home: Path | None = None, *, options: Mapping[str, str] | None = None, bindir: Path | None = None
) -> "EmbeddedServer":
    """Return a lease on the server of `home`, starting the server if it does not run.

    `options` are settings of PostgreSQL; those of the process that started the server apply to all.
    """
    programs = find_bindir(bindir)
    home = prepare_home(home)
    version, settings = version_of(programs), dict(options or {})
    return EmbeddedServer(
        ServerPlan(home, socket_dir_for(home), fallback_dir_for(home), programs, version, settings)
    )


class EmbeddedServer:
    """A lease on the server, which runs while any process holds one. It ends with `close` or the process."""

    def __init__(self, plan: ServerPlan) -> None:
        self.home = plan.home
        self.socket_dir = plan.socket_dir
        self.user = _USER
        self.port = PORT
        self._plan = plan
        self._lease: int | None = hold_lock(plan.users_lock, SHARED, _LOCK_TIMEOUT)
        self._closed = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="duly-devdb", daemon=True)
        try:
            self._wait_until_ready()
            self._watcher.start()
        except BaseException:
            os.close(self._lease)
            raise

    def dsn(self, dbname: str = "postgres") -> str:
        """Return the URI of a database on this server."""
        host = quote(str(self.socket_dir), safe="")
        return f"postgresql://{self.user}@/{quote(dbname, safe='')}?host={host}&port={self.port}"

    def close(self) -> None:
        """Release the lease; idempotent."""
        self._closed.set()
        lease, self._lease = self._lease, None
        if lease is not None:
            self._watcher.join()
            os.close(lease)

    def wait_until_stopped(self) -> None:
        """Release the last lease and wait until the server has stopped, for example to remove its home."""
        self.close()
        os.close(hold_lock(self._plan.supervisor_lock, EXCLUSIVE, _LOCK_TIMEOUT))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _watch(self) -> None:
        """Replace a killed supervisor, and try again until it works."""
        while not self._closed.wait(0.5):
            with suppress(EmbeddedDatabaseError, OSError, RuntimeError):
                _ensure_supervisor(self._plan)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _LOCK_TIMEOUT
        _ensure_supervisor(self._plan)
        while not _accepts_connections(self.socket_dir / SOCKET_NAME):
            if time.monotonic() > deadline:
                raise EmbeddedDatabaseError(
                    f"PostgreSQL is not ready after {_LOCK_TIMEOUT:.0f} s. {_tail(self._plan.log)}"
                )
            time.sleep(0.05)
            _ensure_supervisor(self._plan)
        if self.socket_dir.parent == self._plan.fallback_dir:
            make_private(self._plan.fallback_dir)


def _ensure_supervisor(plan: ServerPlan) -> None:
    """Start a supervisor if none holds the lock; it inherits the lock, so there is never a second one."""
    lock = open_lock(plan.supervisor_lock)
    try:
        if try_lock(lock, EXCLUSIVE):
            _start_supervisor(plan, lock)
    finally:
        os.close(lock)


def _start_supervisor(plan: ServerPlan, lock: int) -> None:
    started = subprocess.run(  # noqa: S603
        [sys.executable, "-P", "-S", _LAUNCH, plan.dumps(), str(lock)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd="/",
        pass_fds=(lock,),
        start_new_session=True,
    )
    # A negative code means that it was killed, which is not an error: the next call starts another.
    if started.returncode > 0:
        raise EmbeddedDatabaseError(started.stderr.strip() or f"the supervisor failed. {_tail(plan.log)}")


def _accepts_connections(path: Path) -> bool:
    """Send a startup message: any response but "cannot connect now" means that the server is ready."""
    parameters = f"user\0{_USER}\0database\0postgres\0\0".encode()
    greeting = struct.pack("!ii", 8 + len(parameters), 196608) + parameters
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            client.connect(str(path))
            client.sendall(greeting)
            answer = client.recv(4096)
            client.sendall(b"X\0\0\0\4")
    except OSError:
        return False
    return bool(answer) and b"\0C57P03\0" not in answer


def _tail(log: Path) -> str:
    last = log.read_text(errors="replace").splitlines()[-20:] if log.exists() else []
    return f"See {log}, which ends:\n" + "\n".join(last)
