"""The account of PostgreSQL: it refuses root, and initdb refuses a user without a passwd entry."""

import ctypes
import os
import pwd
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_CLONE_NEWUSER = 0x10000000


@dataclass(frozen=True)
class Account:
    """The account for the server's processes; without a uid they run as the supervisor does."""

    uid: int | None = None
    gid: int | None = None

    def give(self, path: Path) -> None:
        """Give a directory of ours to the account."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)

    @property
    def groups(self) -> list[int] | None:
        """The supplementary groups: none of root's may stay with another account."""
        return None if self.uid is None else []


def nobody_account() -> Account:
    """Return the unprivileged account of the system."""
    entry = pwd.getpwnam("nobody")
    return Account(entry.pw_uid, entry.pw_gid)


def owner_of(path: Path) -> Account | None:
    """Return the account that owns `path`, if it exists and belongs to a known user other than root."""
    if not path.exists() or path.stat().st_uid == 0 or not _is_known(path.stat().st_uid):
        return None
    return Account(path.stat().st_uid, path.stat().st_gid)


def is_refused_by_postgres() -> bool:
    """Return whether PostgreSQL refuses to run as the current user."""
    return os.geteuid() == 0 or not _is_known(os.geteuid())


def _is_known(uid: int) -> bool:
    try:
        return bool(pwd.getpwuid(uid))
    except KeyError:
        return False


def enter_namespace(usable: Callable[[], bool]) -> bool:
    """Map this process to an ordinary user by a user namespace, if the kernel allows it.

    Tried in a child first: a process cannot leave the namespace if a step fails, or if inside of it the
    files are not `usable`.
    """
    if sys.platform != "linux" or os.environ.get("DULY_NO_USER_NAMESPACE"):
        return False
    child = os.fork()
    if child == 0:
        try:
            _unshare()
            os._exit(0 if usable() else 1)
        finally:
            os._exit(1)
    if os.waitpid(child, 0)[1] != 0:
        return False
    _unshare()
    return True


def _unshare() -> None:
    inside = next((entry for entry in pwd.getpwall() if entry.pw_uid != 0), None)
    uid, gid = (inside.pw_uid, inside.pw_gid) if inside else (1000, 1000)
    outer_uid, outer_gid = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {outer_uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {outer_gid} 1")
