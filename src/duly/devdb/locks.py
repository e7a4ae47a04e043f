"""File locks that the kernel frees when their holder dies, however it dies."""

import fcntl
import os
import time
from pathlib import Path

from duly.devdb.errors import DevdbError

SHARED = fcntl.LOCK_SH
EXCLUSIVE = fcntl.LOCK_EX


def open_lock(path: Path) -> int:
    """Open a lock file, making it if needed. Closing the descriptor frees whatever it holds."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        reason = f"cannot open {path} ({error.strerror})"
        raise DevdbError(f"{reason}: remove it, or set DULY_HOME to a directory of your own") from error


def try_lock(fd: int, kind: int) -> bool:
    """Take the lock if it is free now."""
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
            raise DevdbError(f"{path} stayed locked for {timeout:.0f} s: end the process that holds it")
        time.sleep(0.05)
    return fd
