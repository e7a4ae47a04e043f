"""Which directories the server lives in, and the care taken when making them."""

import hashlib
import os
import stat
import sys
import tempfile
from pathlib import Path

from duly.devdb.account import owner_of
from duly.devdb.errors import DevdbError

PORT = 5432
SOCKET_NAME = f".s.PGSQL.{PORT}"
_LONGEST_SOCKET = 103 if sys.platform == "darwin" else 107


def prepare_home(named: Path | None) -> Path:
    """Make the home directory if it is missing and return its real path."""
    home = named or _home_from_environment()
    if home is not None:
        try:
            _make_home(home)
            return home.resolve()
        except OSError as error:
            if named or "DULY_HOME" in os.environ:
                raise DevdbError(f"cannot make {home} ({error.strerror}): set DULY_HOME elsewhere") from error
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
    """Make a directory nobody else can write, or verify that the one already there is such."""
    try:
        path.mkdir(_private_mode())
    except FileExistsError:
        found = path.lstat()
        ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
        if not ours or found.st_mode & 0o066:
            raise DevdbError(f"{path} is not a private directory of this user: remove it") from None


def _private_mode() -> int:
    # Root may have to run the server as another account, which must be able to pass through.
    return 0o711 if os.geteuid() == 0 else 0o700


def shelter_for(home: Path) -> Path:
    """Name the short, reachable directory that stands in for a home that is neither."""
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    return _short_temp_dir() / f"duly-{os.geteuid()}-{digest}"


def _short_temp_dir() -> Path:
    # TMPDIR may be long, and may differ between processes that must agree on the socket.
    plain = Path("/tmp")  # noqa: S108 - only ever used with make_private
    return plain.resolve() if os.access(plain, os.W_OK | os.X_OK) else Path(tempfile.gettempdir()).resolve()


def socket_dir_for(home: Path) -> Path:
    """Choose the socket directory: in the home if the path is short and the server can reach it."""
    inside = home / "run"
    is_short = len(os.fsencode(inside / SOCKET_NAME)) <= _LONGEST_SOCKET
    is_one_host = "," not in str(inside)  # clients read a comma as the start of another host
    is_reachable = os.geteuid() != 0 or owner_of(home) is not None or open_to_all(home)
    return inside if is_short and is_one_host and is_reachable else shelter_for(home) / "run"


def open_to_all(path: Path) -> bool:
    """Tell whether every account may pass through, or execute, this path."""
    return all(part.stat().st_mode & stat.S_IXOTH for part in (path, *path.parents))
