"""Processes that end with the run in any case, and a final check that none is left."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from duly.embedded.account import Account

ROOT = Path(__file__).parents[2]
MARK = "DULY_CHAOS_RUN"
_PR_SET_PDEATHSIG = 1


def start(
    command: Sequence[str | Path],
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
    account: Account | None = None,
    talks: bool = False,
    dies_by: signal.Signals = signal.SIGKILL,
) -> subprocess.Popen[bytes]:
    """Start a process that writes to a log; with `talks`, its stdin and stdout are pipes."""
    run_as = account or Account()
    with log.open("ab") as file:
        return subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
            stdout=subprocess.PIPE if talks else file,
            stderr=file,
            cwd="/" if run_as.uid is not None else ROOT,
            env=env,
            user=run_as.uid,
            group=run_as.gid,
            extra_groups=run_as.groups,
            preexec_fn=_dying_with(os.getpid(), dies_by),
            process_group=0,  # Ctrl-C of the terminal goes to the parent only
        )


def python(module: str, *arguments: str) -> list[str]:
    """Return the command that runs one of our modules."""
    return [sys.executable, "-m", module, *arguments]


def end(process: subprocess.Popen[bytes], timeout: float = 10.0) -> int:
    """Stop a process; kill it if it does not stop."""
    for request in (signal.SIGCONT, signal.SIGTERM):
        with suppress(ProcessLookupError):
            process.send_signal(request)
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def children_of(pid: int) -> list[int]:
    """Return the child processes of a process, from the kernel."""
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def left_over(run: str) -> list[int]:
    """Return the processes of this run that are still alive, without this one."""
    mark, found = f"{MARK}={run}".encode(), []
    for file in Path("/proc").glob("[0-9]*/environ"):
        pid = int(file.parts[2])
        with suppress(OSError):
            if pid != os.getpid() and mark in file.read_bytes().split(b"\0"):
                found.append(pid)
    return found


def _dying_with(parent: int, number: signal.Signals) -> Callable[[], None]:
    prctl = ctypes.CDLL(None).prctl

    def arrange() -> None:
        prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os._exit(1)

    return arrange
