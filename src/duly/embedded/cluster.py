"""The data directory and its server process; used by the supervisor alone, under its lock."""

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
from typing import Any

from duly.embedded.account import Account, enter_namespace, is_refused_by_postgres, nobody_account, owner_of
from duly.embedded.directories import PORT, SOCKET_NAME, EmbeddedDatabaseError, make_private, open_to_all
from duly.embedded.plan import ServerPlan

_PR_SET_PDEATHSIG = 1
_DEFAULTS = {"max_connections": "200", "shared_buffers": "128MB"}


@dataclass(frozen=True)
class PostgresCluster:
    """A data directory with the programs, the account and the options of its server."""

    data: Path
    bindir: Path
    socket_dir: Path
    account: Account
    options: dict[str, str]

    def create(self) -> None:
        """Create the data directory if it is missing; it appears complete or not at all."""
        for half_made in self.data.parent.glob(f"{self.data.name}.init-*"):
            shutil.rmtree(half_made, ignore_errors=True)
        if (self.data / "PG_VERSION").exists():
            return
        side = self.data.with_name(f"{self.data.name}.init-{os.getpid()}")
        self._initdb(side)
        try:
            side.rename(self.data)
        except OSError as error:
            raise EmbeddedDatabaseError(
                f"{self.data} is in the way of a new cluster: move it elsewhere"
            ) from error

    def _initdb(self, side: Path) -> None:
        flags = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync", "-D", str(side)]
        output = ""
        for locale in ("C.UTF-8", "C"):
            side.mkdir(0o700)
            self.account.give(side)
            done = self._run(["initdb", f"--locale={locale}", *flags])
            if done.returncode == 0:
                return
            output = done.stderr
            shutil.rmtree(side)
        raise EmbeddedDatabaseError(
            f"initdb failed; set DULY_HOME or DULY_PG_BINDIR to another directory:\n{output}"
        )

    def check(self) -> None:
        """Check the options before clients wait for the server."""
        done = self._run([*self._command(), "-C", "port"])
        if done.returncode != 0:
            raise EmbeddedDatabaseError(f"PostgreSQL refuses its settings; correct `options`:\n{done.stderr}")

    def start(self, log: int) -> subprocess.Popen[bytes]:
        """Start the server as a child that shuts down when this process dies."""
        self._remove_stale_locks()
        program, *arguments = self._command()
        return subprocess.Popen(  # noqa: S603
            [self.bindir / program, *arguments], stdout=log, stderr=log, **self._process_options()
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
            [self.bindir / program, *arguments], capture_output=True, text=True, **self._process_options()
        )

    def _process_options(self) -> dict[str, Any]:
        """Return the options of every child process: its account, and that it stops with this process."""
        return {
            "stdin": subprocess.DEVNULL,
            "cwd": "/",
            "user": self.account.uid,
            "group": self.account.gid,
            "extra_groups": self.account.groups,
            "preexec_fn": _stop_with(os.getpid()),  # safe: the supervisor has one thread
        }

    def _remove_stale_locks(self) -> None:
        """Stop a server left by a lost supervisor; remove lock files whose pid belongs to another process."""
        for lock, pid in self._lock_files():
            command = _command_of(pid)
            if command is None:
                continue  # PostgreSQL itself removes the file, and waits for orphaned backends
            if f" -D {self.data} " in command:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGINT)
            else:
                lock.unlink(missing_ok=True)

    def _lock_files(self) -> Iterator[tuple[Path, int]]:
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
    """Return the function for the child that requests a fast shutdown when `parent` dies."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl

    def stop_with_parent() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
        if os.getppid() != parent:
            os._exit(1)

    return stop_with_parent


def prepare_cluster(plan: ServerPlan) -> PostgresCluster:
    """Return the cluster of the plan, created and ready to start."""
    account, data = _choose_account(plan)
    if plan.fallback_dir in (data.parent, plan.socket_dir.parent):
        make_private(plan.fallback_dir)
    _make_socket_dir(plan.socket_dir, account)
    cluster = PostgresCluster(data, _executable_bindir(plan, account), plan.socket_dir, account, plan.options)
    cluster.create()
    cluster.check()
    return cluster


def _choose_account(plan: ServerPlan) -> tuple[Account, Path]:
    """Choose the account and the data directory, entering a user namespace if that helps."""
    inside, outside = plan.home / plan.name, plan.fallback_dir / plan.name
    if not is_refused_by_postgres():
        return Account(), inside
    if os.geteuid() == 0:
        # An existing directory keeps its owner: the server runs as that account.
        for existing, data in ((plan.home, inside), (inside, inside), (outside, outside)):
            if owner := owner_of(existing):
                return owner, data
    if enter_namespace(lambda: _is_usable(plan)):
        return Account(), inside
    if os.geteuid() != 0:
        raise EmbeddedDatabaseError(f"user {os.geteuid()} is unknown to this system: add it to /etc/passwd")
    return nobody_account(), inside if open_to_all(plan.home) else outside


def _is_usable(plan: ServerPlan) -> bool:
    return os.access(plan.home, os.W_OK | os.X_OK) and os.access(plan.bindir / "postgres", os.R_OK | os.X_OK)


def _make_socket_dir(path: Path, account: Account) -> None:
    """Create the directory that only this user can enter: this makes trust authentication safe."""
    path.mkdir(0o700, exist_ok=True)
    found = path.lstat()
    if path.is_symlink() or found.st_uid not in (os.geteuid(), account.uid) or found.st_mode & 0o077:
        raise EmbeddedDatabaseError(f"{path} is not a private directory of this user: remove it")
    account.give(path)


def _executable_bindir(plan: ServerPlan, account: Account) -> Path:
    """Return the directory of the programs, or of a copy that the account can execute."""
    if account.uid is None or open_to_all(plan.bindir / "postgres"):
        return plan.bindir
    make_private(plan.fallback_dir)
    install = plan.bindir.parent
    packages = install.parents[1]
    copy = plan.fallback_dir / f"copy-{plan.version}"
    if not copy.exists():
        side = copy.with_name(f"{copy.name}.{os.getpid()}")
        unneeded = shutil.ignore_patterns("include", "doc", "*.a")
        shutil.copytree(install, side / install.relative_to(packages), symlinks=True, ignore=unneeded)
        # The programs of the wheel expect their libraries beside the package.
        libraries = packages / f"{install.parent.name}.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, side / libraries.name)
        side.rename(copy)
    return copy / plan.bindir.relative_to(packages)
