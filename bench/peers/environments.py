"""An environment per system, below `.bench/` in the project: created once, with pinned versions."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.peers.catalogue import NODE, OURS, TOOLCHAINS, System

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".bench"
ADAPTERS = "bench.peers.adapters"
INSTALL_LIMIT = 600
PYTHONS = 5
"""So many minor versions are tried, from the oldest that a system accepts."""


class NotRun(Exception):
    """The system cannot be measured here; the message has the reason."""


def command_of(system: System) -> tuple[list[str], dict[str, str]]:
    """Return the command of the adapter and its environment variables; install it if necessary."""
    if system.no_adapter:
        tool = TOOLCHAINS.get(system.language)
        here = f"no {system.language} toolchain ({tool}); " if tool and shutil.which(tool) is None else ""
        raise NotRun(f"{here}{system.no_adapter}")
    if system.language == NODE:
        modules = node_modules(system)
        script = ROOT / "bench" / "peers" / "adapters" / f"{system.key}.mjs"
        own = modules / ".bin" / "node"
        return [str(own) if own.exists() else "node", str(script)], {"BENCH_MODULES": str(modules)}
    python = Path(sys.executable) if system.key == OURS else virtual_environment(system)
    # The package beside this benchmark, also where the environment has another one.
    paths = [ROOT / "src", ROOT] if system.key == OURS else [ROOT]
    return [str(python), "-P", "-m", f"{ADAPTERS}.{system.key}"], {
        "PYTHONPATH": os.pathsep.join(map(str, paths))
    }


def virtual_environment(system: System) -> Path:
    """Return the interpreter with the packages of this system."""
    home = HOME / "python" / system.key
    python = home / "bin" / "python"
    if not is_made(home, system):
        clear(home)
        base = interpreter(system.oldest_python)
        uv = shutil.which("uv")
        if uv:
            call(uv, "venv", "-q", "--python", base, str(home))
            call(uv, "pip", "install", "-q", "--python", str(python), *system.packages)
        else:
            call(base, "-m", "venv", str(home))
            call(str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *system.packages)
        mark(home, system)
    return python


def interpreter(oldest: tuple[int, int]) -> str:
    """Return this interpreter, or the nearest newer one of pyenv or PATH if this one is too old."""
    if sys.version_info >= oldest:
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    # pyenv's own folders precede PATH, where its shims answer for versions that are not selected.
    path = os.pathsep.join([*map(str, pyenv.glob("versions/*/bin")), os.environ.get("PATH", "")])
    major, minor = oldest
    for number in range(minor, minor + PYTHONS):
        if found := shutil.which(f"python{major}.{number}", path=path):
            return found
    raise NotRun(f"no Python {major}.{minor} or newer")


def node_modules(system: System) -> Path:
    """Return the folder with the packages of this system."""
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
    """Whether all packages are installed in these versions."""
    note = home / "installed"
    return note.exists() and note.read_text() == digest(system)


def mark(home: Path, system: System) -> None:
    """Record the installed versions, after all are installed."""
    (home / "installed").write_text(digest(system))


def digest(system: System) -> str:
    """Return a digest of the packages and the interpreter."""
    words = "\n".join((sys.version, *system.packages))
    return hashlib.sha256(words.encode()).hexdigest()


def clear(home: Path) -> None:
    """Remove an incomplete or older environment."""
    if home.exists():
        shutil.rmtree(home)


def call(*command: str) -> None:
    """Run an installer; raise its last line of output if it fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_LIMIT, env=os.environ.copy(), check=False
        )
    except subprocess.TimeoutExpired:
        raise NotRun(f"not installed within {INSTALL_LIMIT} s") from None
    if done.returncode:
        raise NotRun(f"not installable: {reason(done.stderr or done.stdout)}")


def reason(output: str) -> str:
    """Return the line that explains a failure: the first error line that is more than a code."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() and " code " not in line]
    return (errors or lines or ["no reason given"])[0]
