"""An environment for each system, below `.bench/` in the project: made once, with pinned versions."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.peers.catalogue import NODE, OURS, System

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".bench"
ADAPTERS = "bench.peers.adapters"
INSTALL_LIMIT = 600


class NotRun(Exception):
    """A system that cannot be measured here; the message says why."""


def command_of(system: System) -> tuple[list[str], dict[str, str]]:
    """How to start the adapter, and what its environment needs to know; installs it if it is not there."""
    if system.language == NODE:
        modules = node_modules(system)
        script = ROOT / "bench" / "peers" / "adapters" / f"{system.key}.mjs"
        own = modules / ".bin" / "node"
        return [str(own) if own.exists() else "node", str(script)], {"BENCH_MODULES": str(modules)}
    python = Path(sys.executable) if system.key == OURS else virtual_environment(system)
    return [str(python), "-P", "-m", f"{ADAPTERS}.{system.key}"], {"PYTHONPATH": str(ROOT)}


def virtual_environment(system: System) -> Path:
    """The interpreter that has the packages of this system."""
    home = HOME / "python" / system.key
    python = home / "bin" / "python"
    if not is_made(home, system):
        clear(home)
        uv = shutil.which("uv")
        if uv:
            call(uv, "venv", "-q", "--python", sys.executable, str(home))
            call(uv, "pip", "install", "-q", "--python", str(python), *system.packages)
        else:
            call(sys.executable, "-m", "venv", str(home))
            call(str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *system.packages)
        mark(home, system)
    return python


def node_modules(system: System) -> Path:
    """The folder that has the packages of this system."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise NotRun("no node and npm")
    home = HOME / "node" / system.key
    if not is_made(home, system):
        clear(home)
        home.mkdir(parents=True)
        call(
            npm,
            "install",
            "--loglevel=error",
            "--no-audit",
            "--no-fund",
            "--prefix",
            str(home),
            *system.packages,
        )
        mark(home, system)
    return home / "node_modules"


def is_made(home: Path, system: System) -> bool:
    """Whether all of it was installed, in these versions."""
    note = home / "installed"
    return note.exists() and note.read_text() == digest(system)


def mark(home: Path, system: System) -> None:
    """Note what was installed, when all of it is."""
    (home / "installed").write_text(digest(system))


def digest(system: System) -> str:
    """Changes with the packages and with the interpreter."""
    words = "\n".join((sys.version, *system.packages))
    return hashlib.sha256(words.encode()).hexdigest()


def clear(home: Path) -> None:
    """Take a half-made or older environment away."""
    if home.exists():
        shutil.rmtree(home)


def call(*command: str) -> None:
    """Run an installer; its last words are the reason if it fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_LIMIT, env=os.environ.copy(), check=False
        )
    except subprocess.TimeoutExpired:
        raise NotRun(f"not installed within {INSTALL_LIMIT} s") from None
    if done.returncode:
        raise NotRun(f"not installable: {reason(done.stderr or done.stdout)}")


def reason(said: str) -> str:
    """The line that says what is wrong: among those that are errors, the first that is more than a code."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() and " code " not in line]
    return (errors or lines or ["no reason given"])[0]
