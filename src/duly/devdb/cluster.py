"""The data directory and the server process on it; used by the supervisor alone, under its lock."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from duly.devdb.account import Account
from duly.devdb.errors import DevdbError
from duly.devdb.places import PORT, SOCKET_NAME

_PR_SET_PDEATHSIG = 1
_DEFAULTS = {"max_connections": "200", "shared_buffers": "128MB"}


@dataclass(frozen=True)
class Cluster:
    """One data directory, the programs to serve it with, and the account to serve it as."""

    data: Path
    bindir: Path
    socket_dir: Path
    account: Account
    options: dict[str, str]

    def create(self) -> None:
        """Make the data directory, if there is none, so that it appears complete or not at all."""
        for half_made in self.data.parent.glob(f"{self.data.name}.init-*"):
            shutil.rmtree(half_made, ignore_errors=True)
        if (self.data / "PG_VERSION").exists():
            return
        side = self.data.with_name(f"{self.data.name}.init-{os.getpid()}")
        self._initdb(side)
        try:
            side.rename(self.data)
        except OSError as error:
            raise DevdbError(f"{self.data} is in the way of a new cluster: move it elsewhere") from error

    def _initdb(self, side: Path) -> None:
        flags = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync", "-D", str(side)]
        said = ""
        for locale in ("C.UTF-8", "C"):
            side.mkdir(0o700)
            self.account.give(side)
            done = self._run(["initdb", f"--locale={locale}", *flags])
            if done.returncode == 0:
                return
            said = done.stderr
            shutil.rmtree(side)
        raise DevdbError(f"initdb failed; set DULY_HOME or DULY_PG_BINDIR to what works:\n{said}")

    def check(self) -> None:
        """Refuse settings that the server would refuse, before anyone waits for it."""
        done = self._run([*self._command(), "-C", "port"])
        if done.returncode != 0:
            raise DevdbError(f"PostgreSQL refuses its settings; correct `options`:\n{done.stderr}")

    def start(self, log: int) -> subprocess.Popen[bytes]:
        """Start the server as a child that shuts down when this process is gone."""
        self._clear_the_way()
        program, *arguments = self._command()
        return subprocess.Popen(  # noqa: S603
            [self.bindir / program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            user=self.account.uid,
            group=self.account.gid,
            extra_groups=self.account.groups,
            preexec_fn=_stop_with(os.getpid()),  # safe: the supervisor has one thread
        )

    def _command(self) -> list[str]:
        fixed = {
            "listen_addresses": "",
            "unix_socket_directories": '"{}"'.format(str(self.socket_dir).replace('"', '""')),
            "port": str(PORT),
        }
        settings = {**_DEFAULTS, **self.options, **fixed}
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return ["postgres", "-D", str(self.data), *flags]

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        program, *arguments = command
        return subprocess.run(  # noqa: S603
            [self.bindir / program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd="/",
            user=self.account.uid,
            group=self.account.gid,
            extra_groups=self.account.groups,
            preexec_fn=_stop_with(os.getpid()),
        )

    def _clear_the_way(self) -> None:
        """Stop a server left over from a lost supervisor; drop a lock whose number went to a stranger."""
        for lock, pid in self._recorded():
            command = _command_of(pid)
            if command is None:
                continue  # PostgreSQL itself clears this up, and sees to orphaned backends
            if f" -D {self.data} " in command:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGINT)
            else:
                lock.unlink(missing_ok=True)

    def _recorded(self) -> Iterator[tuple[Path, int]]:
        for lock in (self.data / "postmaster.pid", self.socket_dir / f"{SOCKET_NAME}.lock"):
            try:
                pid = int(lock.read_text().partition("\n")[0])
            except (FileNotFoundError, ValueError):
                continue
            yield lock, pid


def _command_of(pid: int) -> str | None:
    """Return the command line of a process, or None if there is no such process."""
    if not Path("/proc/self/cmdline").exists():
        ps = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True)  # noqa: S603, S607
        return ps.stdout if ps.returncode == 0 else None
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return None


def _stop_with(parent: int) -> Callable[[], None] | None:
    """Ask the kernel, in the child, for a fast shutdown on the death of `parent`."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl

    def arrange() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
        if os.getppid() != parent:
            os._exit(1)

    return arrange
