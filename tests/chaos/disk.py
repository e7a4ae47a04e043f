"""Small file systems to be filled up, in a mount namespace that ends with the run."""

from __future__ import annotations

import ctypes
import os
import subprocess
from contextlib import suppress
from pathlib import Path

from duly.embedded.account import Account

_CLONE_NEWNS = 0x00020000
_SIZE = 2048
"""Mebibytes of memory, allocated as it is used."""


def enter_namespace() -> str | None:
    """Make later mounts private; return the reason if that is not possible."""
    if os.geteuid() != 0:
        return "mounting needs root"
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS) != 0:
        return f"no mount namespace: {os.strerror(ctypes.get_errno())}"
    done = subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True, text=True, check=False)
    return done.stderr.strip() or None


class Disk:
    """A file system of a fixed size, owned by the server's account."""

    def __init__(self, path: Path, account: Account) -> None:
        self._path = path
        path.mkdir()
        self._mount(f"size={_SIZE}m,mode=0700,uid={account.uid or 0},gid={account.gid or 0}")

    def _mount(self, options: str) -> None:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", self._path]
        subprocess.run(command, check=True, capture_output=True)

    def fill(self) -> int:
        """Fill it up; return the number of bytes."""
        found = os.statvfs(self._path)
        free = found.f_bfree * found.f_frsize
        for spare in (0, 1, 4, 16, 64):  # the server keeps writing
            with suppress(subprocess.CalledProcessError):
                self._mount(f"remount,size={_SIZE * 1024 - free // 1024 + 1024 * spare}k")
                break
        return free

    def empty(self) -> None:
        """Free the space."""
        self._mount(f"remount,size={_SIZE}m")
