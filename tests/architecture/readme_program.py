"""The program of the README that `duly up` runs, saved to a file as a newcomer would."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from duly.testing import FreshDatabase
from tests.architecture.pages import ROOT


def first_program() -> str:
    """Return the program that the README runs with `duly up`."""
    programs = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    [program] = [text for text in programs if "report.build" in text]
    return program


@contextmanager
def first_steps(fresh: FreshDatabase, folder: Path) -> Iterator[dict[str, Any]]:
    """Run the program with `duly up`; yield the first line that it prints, parsed."""
    (folder / "shop.py").write_text(first_program(), "utf-8")
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("DULY_", "PYTEST_"))
    }
    environment = {**inherited, "DULY_DATABASE_URL": fresh.direct_url, "DULY_HOME": str(folder)}
    command = [sys.executable, "-m", "duly.cli", "up", "--app", "shop:app", "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout
            yield json.loads(running.stdout.readline())
        finally:
            running.terminate()
