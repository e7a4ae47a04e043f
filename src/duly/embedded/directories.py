"""The directories and lock files of the embedded server, and its error."""

import fcntl
import hashlib
import os
import stat
import sys
import tempfile
import time
from pathlib import Path

from duly.embedded.account import owner_of

PORT = 5432
SOCKET_NAME = f".s.PGSQL.{PORT}"
_MAX_SOCKET_LENGTH = 103 if sys.platform == "darwin" else 107


def prepare_home(named: Path | None) -> Path:
    """Create the home directory if it is missing, and return its real path."""
    home = named or _home_from_environment()
    if home is not None:
        try:
            _make_home(home)
            return home.resolve()
        except OSError as error:
            if named or "DULY_HOME" in os.environ:
                raise EmbeddedDatabaseError(
                    f"cannot make {home} ({error.strerror}): set DULY_HOME elsewhere"
                ) from error
    fallback = Path(tempfile.gettempdir()).resolve() / f"duly-{os.geteuid()}"
    make_private(fallback)
    return fallback


def _home_from_environment() -> Path | None:
    if named := os.environ.get("DULY_HOME"):
        return Path(named).expanduser()
    if shared := os.environ.get("XDG_DATA_HOME"):
        return Path(shared, "duly")
    user_home = os.environ.get("HOME")
    return Path(user_home, ".local", "share", "duly") if user_home else None


def _make_home(home: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    if not home.is_dir():
        home.mkdir(_private_mode(), exist_ok=True)
    if not os.access(home, os.W_OK | os.X_OK):
        raise PermissionError(13, "not writable", str(home))


def make_private(path: Path) -> None:
    """Create a directory that only this user can write, or verify an existing one."""
    try:
        path.mkdir(_private_mode())
    except FileExistsError:
        found = path.lstat()
        ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
        if not ours or found.st_mode & 0o066:
            raise EmbeddedDatabaseError(
                f"{path} is not a private directory of this user: remove it"
            ) from None


def _private_mode() -> int:
    # Root may have to run the server as another account, which must be able to pass through.
    return 0o711 if os.geteuid() == 0 else 0o700


def fallback_dir_for(home: Path) -> Path:
    """Return the short, reachable directory that replaces a home that is too long or unreachable."""
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    return _short_temp_dir() / f"duly-{os.geteuid()}-{digest}"


def _short_temp_dir() -> Path:
    # TMPDIR may be long, and may differ between processes that share the socket.
    plain = Path("/tmp")  # noqa: S108 - only ever used with make_private
    return plain.resolve() if os.access(plain, os.W_OK | os.X_OK) else Path(tempfile.gettempdir()).resolve()


def socket_dir_for(home: Path) -> Path:
    """Return the socket directory: in the home if its path is short and the server can reach it."""
    inside = home / "run"
    is_short = len(os.fsencode(inside / SOCKET_NAME)) <= _MAX_SOCKET_LENGTH
    is_one_host = "," not in str(inside)  # clients read a comma as the start of another host
    is_reachable = os.geteuid() != 0 or owner_of(home) is not None or open_to_all(home)
    return inside if is_short and is_one_host and is_reachable else fallback_dir_for(home) / "run"


def open_to_all(path: Path) -> bool:
    """Return whether every account may pass through, or execute, this path."""
    return all(part.stat().st_mode & stat.S_IXOTH for part in (path, *path.parents))


SHARED = fcntl.LOCK_SH
EXCLUSIVE = fcntl.LOCK_EX


def open_lock(path: Path) -> int:
    """Open or create a lock file. Closing the descriptor releases the lock.

    The kernel releases it, too, when the holder dies.
    """
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        reason = f"cannot open {path} ({error.strerror})"
        raise EmbeddedDatabaseError(
            f"{reason}: remove it, or set DULY_HOME to a directory of your own"
        ) from error


def try_lock(fd: int, kind: int) -> bool:
    """Take the lock if it is free; return whether it was."""
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def hold_lock(path: Path, kind: int, timeout: float) -> int:
    """Open the lock file and take the lock, waiting for it up to `timeout` seconds."""
    fd = open_lock(path)
    deadline = time.monotonic() + timeout
    while not try_lock(fd, kind):
        if time.monotonic() > deadline:
            os.close(fd)
            raise EmbeddedDatabaseError(
                f"{path} stayed locked for {timeout:.0f} s: end the process that holds it"
            )
        time.sleep(0.05)
    return fd


class EmbeddedDatabaseError(Exception):
    """The embedded PostgreSQL is not available; the message contains the fix."""
