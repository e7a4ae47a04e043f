"""The first program of the README, as somebody new would have it: in a file, run by `duly up`."""

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
    """What the README has them write."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert found
    return found[1]


@contextmanager
def first_steps(fresh: FreshDatabase, folder: Path) -> Iterator[dict[str, Any]]:
    """Their program at work; what it says of itself."""
    (folder / "shop.py").write_text(first_program(), "utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DULY_", "PYTEST_"))}
    around = {**kept, "DULY_DATABASE_URL": fresh.direct_url, "DULY_HOME": str(folder)}
    words = [sys.executable, "-m", "duly.cli", "up", "--app", "shop:app", "--port", "0", "--json"]
    with subprocess.Popen(words, cwd=folder, env=around, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout
            yield json.loads(running.stdout.readline())
        finally:
            running.terminate()
