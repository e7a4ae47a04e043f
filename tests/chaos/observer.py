"""An observer as a process: looks through the same network as everybody, and is blind when it is cut."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from duly.testing.history.observe import watch

if __name__ == "__main__":
    watch(
        os.environ["DULY_CHAOS_WATCH_URL"],
        Path(os.environ["DULY_CHAOS_HOME"], "sights.jsonl"),
        name=sys.argv[1],
    )
